/* SPDX-License-Identifier: Apache-2.0 */
/* Field errors as Kubernetes writes them: a type, a field, a message that quotes the bad value.
 * Whatever validates appends to a list; the list becomes the causes of a Status. */
#pragma once

#include "json/fieldpath.h"
#include "json/json.h"

enum cause_type {
    CAUSE_REQUIRED,      /* FieldValueRequired    "spec.x: Required value: detail" */
    CAUSE_INVALID,       /* FieldValueInvalid     "spec.x: Invalid value: \"v\": detail" */
    CAUSE_NOT_SUPPORTED, /* FieldValueNotSupported "spec.x: Unsupported value: \"v\": supported
                            values: ..." */
    CAUSE_DUPLICATE,     /* FieldValueDuplicate   "spec.x: Duplicate value: \"v\"" */
    CAUSE_FORBIDDEN,     /* FieldValueForbidden   "spec.x: Forbidden: detail" */
    CAUSE_TOO_LONG,     /* FieldValueTooLong     "spec.x: Too long: may not be more than N bytes" */
    CAUSE_TOO_MANY,     /* FieldValueTooMany     "spec.x: Too many: N: must have at most M items" */
    CAUSE_TYPE_INVALID, /* FieldValueTypeInvalid "spec.x: Invalid value: \"string\": detail" */
    CAUSE_NOT_FOUND,    /* FieldValueNotFound    "spec.x: Not found: \"v\"" */
    CAUSE_INTERNAL,     /* InternalError */
    CAUSE_MANAGER_CONFLICT, /* FieldManagerConflict, of server-side apply alone */
};

struct cause {
    enum cause_type type;
    struct str field;
    struct str message; /* without the field: "Invalid value: \"x\": must be ..." */
    struct cause *next;
};

/* Bounded: past these limits further ones are counted only. */
#define CAUSES_MAX 1000
#define CAUSES_MAX_BYTES ((size_t) 4 * 1024 * 1024) /* of all their texts */
#define CAUSE_VALUE_MAX_BYTES 16384                 /* of a quoted value; the rest is cut off */

struct causes {
    struct arena *arena;
    struct cause *first;
    struct cause **last; /* points at first or at the last's next; set by causes_init() */
    size_t n;
    size_t n_bytes;
};

void causes_init(struct causes *c, struct arena *a);
/* The reason Kubernetes gives to the type: "FieldValueRequired" ... */
struct str cause_reason(enum cause_type type);

/* Appends one. value NULL where the type shows none; it is rendered as Go's field.Error does
 * (strings quoted, numbers plain, objects and arrays as JSON). detail is a printf format; may be
 * "". field NULL is written "<nil>", as Go writes the path of nothing. */
void causes_add(struct causes *c, enum cause_type type, const struct field_path *field,
                const struct json *value, const char *detail, ...) PRINTF_LIKE(5, 6);
/* "Unsupported value: \"x\": supported values: \"a\", \"b\"" in the order given. */
void causes_add_not_supported(struct causes *c, const struct field_path *field,
                              const struct json *value, const struct str *supported,
                              size_t n_supported);

/* No more are taken: their texts need not be made, causes_add_text() with anything counts them. */
bool causes_are_full(const struct causes *c);
/* The same with what is already text. */
void causes_add_text(struct causes *c, enum cause_type type, struct str field,
                     const struct json *value, struct str detail);
/* "supported values: \"a\", \"b\"" */
void causes_write_supported(struct buf *b, const struct str *supported, size_t n_supported);
/* Go's %q. */
void causes_quote(struct buf *b, struct str s);
/* JSON as Go's encoder writes it: keys sorted, no HTML markup. Stops soon after max_bytes. */
void causes_write_json(struct arena *a, struct buf *b, const struct json *v, size_t max_bytes);

/* A point to return to: what was added since is forgotten. */
struct causes_mark {
    struct cause **last;
    size_t n, n_bytes;
};
struct causes_mark causes_mark(const struct causes *c);
void causes_rewind(struct causes *c, struct causes_mark mark);
