/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "json/json.h"

/* A scalar as libyaml hands it over. */
struct yaml_scalar {
    struct str text;
    struct str tag;   /* long form; STR_NONE: none */
    bool is_implicit; /* plain, so its type follows from its text */
};

/* The value by go-yaml's rules, strings copied into the arena. Infinite and NaN doubles are
 * possible. -EINVAL and *ret_error when the text does not fit an explicit tag. */
int yaml_resolve(struct arena *a, const struct yaml_scalar *scalar, struct json *ret_value,
                 struct str *ret_error);
/* A key that is no string, as sigs.k8s.io/yaml spells it; STR_NONE for null, which is no key. */
struct str yaml_key_text(struct arena *a, const struct json *key);
