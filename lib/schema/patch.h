/* SPDX-License-Identifier: Apache-2.0 */
/* The three patch formats that take an old object and give a new one. None changes its inputs; the
 * result may share their parts. */
#pragma once

#include "schema/schema.h"

struct patch_error {
    enum { PATCH_BAD_REQUEST, PATCH_INVALID } kind; /* 400: not a patch; 422: cannot be applied */
    struct str message; /* in the words kube-apiserver's library uses */
};

#define JSON_PATCH_MAX_OPERATIONS 10000

/* RFC 6902. */
int patch_json(struct arena *a, const struct json *old, const struct json *patch, struct json **ret_new,
               struct patch_error *ret_error);
/* RFC 7386. */
int patch_merge(struct arena *a, const struct json *old, const struct json *patch, struct json **ret_new,
                struct patch_error *ret_error);
/* Strategic merge, with the merge keys of the schema and the $patch, $retainKeys, $setElementOrder and
 * $deleteFromPrimitiveList directives. */
int patch_strategic(struct arena *a, const struct json *old, const struct json *patch,
                    const struct schema *schema, struct json **ret_new, struct patch_error *ret_error);
