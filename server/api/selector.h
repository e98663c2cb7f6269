/* SPDX-License-Identifier: Apache-2.0 */
/* Label and field selectors: parsed once per request, matched against the heads of objects without
 * parsing them. */
#pragma once

#include "api/kind.h"
#include "store/store.h"

#define SELECTOR_MAX_BYTES ((size_t) 64 * 1024)

enum selector_operator {
    SELECT_EXISTS,
    SELECT_NOT_EXISTS,
    SELECT_IN, /* also = and == */
    SELECT_NOT_IN,
    SELECT_GREATER,
    SELECT_LESS,
};

struct requirement {
    enum selector_operator op;
    struct str key;
    struct str *values;
    size_t n_values;
    int64_t bound;                       /* of GREATER and LESS */
    const struct kind_selectable *field; /* of field selectors; NULL: metadata.name or .namespace */
};

struct selector {
    struct requirement *labels;
    size_t n_labels;
    struct requirement *fields;
    size_t n_fields;
    bool needs_parse; /* some field requirement looks into the object */
};

/* Failure: -EINVAL and *ret_error in kube-apiserver's words. Empty text selects everything. */
int selector_parse_labels(struct arena *a, struct str text, struct selector *ret,
                          struct str *ret_error);
int selector_parse_fields(struct arena *a, struct str text, const struct kind *kind,
                          struct selector *ret, struct str *ret_error);
/* A LabelSelector object (matchLabels, matchExpressions), validated when it was written: what is no
 * operator is -EINVAL. NULL and {} select everything. Borrows its strings. */
int selector_from_json(struct arena *a, const struct json *source, struct selector *ret);
static inline bool selector_is_empty(const struct selector *s)
{
    return s->n_labels == 0 && s->n_fields == 0;
}
bool selector_matches(const struct selector *s, const struct object *o);
/* The labels alone, as an object from names to values; NULL: none. */
bool selector_matches_labels(const struct selector *s, const struct json *labels);
/* Lets the range show only what s selects; s must outlive the listing. */
void selector_restrict(struct selector *s, struct store_range *range);
