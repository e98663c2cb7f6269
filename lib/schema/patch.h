/* SPDX-License-Identifier: Apache-2.0 */
/* The three patch formats that take an old object and give a new one. None changes its inputs; the
 * result may share their parts. */
#pragma once

#include "schema/schema.h"

struct patch_error {
    enum {
        PATCH_BAD_REQUEST, /* 400: not a patch */
        PATCH_INVALID,     /* 422: cannot be applied */
        PATCH_TOO_LARGE,   /* 413: too many operations */
        PATCH_FAILED, /* an item without its merge key, an unknown directive; kube-apiserver answers
                         500 */
        PATCH_WRONG_TYPE, /* 422 with a cause for the field "patch", whose bad value is `value` */
    } kind;
    struct str message; /* in the words kube-apiserver's library uses */
    struct str value;   /* PATCH_WRONG_TYPE: the patch as Go prints it, "map[data:x]" */
};

#define JSON_PATCH_MAX_OPERATIONS 10000
#define JSON_PATCH_MAX_ADDED_BYTES (3u << 20) /* of JSON text that copies may add */
#define JSON_PATCH_MAX_STEPS 20000000u /* members and items that operations may look at or move */

/* RFC 6902. */
int patch_json(struct arena *a, const struct json *old, const struct json *patch,
               struct json **ret_new, struct patch_error *ret_error);
/* RFC 7386. */
int patch_merge(struct arena *a, const struct json *old, const struct json *patch,
                struct json **ret_new, struct patch_error *ret_error);
/* Strategic merge, with the merge keys of the schema and the $patch, $retainKeys, $setElementOrder
 * and $deleteFromPrimitiveList directives. */
int patch_strategic(struct arena *a, const struct json *old, const struct json *patch,
                    const struct schema *schema, struct json **ret_new,
                    struct patch_error *ret_error);

/* A value as Go's %v prints it: map[data:map[a:1] x:[1 2]], keys sorted. */
struct str patch_go_text(struct arena *a, const struct json *value);
/* As Go's %#v prints it: map[string]interface {}{"a":1}. */
struct str patch_go_syntax(struct arena *a, const struct json *value);
