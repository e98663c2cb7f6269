/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of schema_check(). They read the schema's JSON, whose keywords have the right types by
 * then. */
#pragma once

#include "schema/schema_internal.h"

/* Set, as Go sees it after decoding: null is not. */
static inline const struct json *keyword(const struct json *schema, const char *name)
{
    const struct json *v = json_get(schema, str_of(name));
    return v && v->type != JSON_NULL ? v : NULL;
}

static inline bool keyword_is_true(const struct json *schema, const char *name)
{
    return json_get_bool(schema, str_of(name), false);
}

/* "" when it is not set. */
static inline struct str keyword_str(const struct json *schema, const char *name)
{
    struct str s = json_get_str(schema, str_of(name));
    return s.p ? s : STR("");
}

/* A child of the path: at.name */
#define AT(parent, text) (&FIELD_NAME((parent), STR(text)))

/* Appends what makes a keyword unreadable; true when all can be read. */
bool check_keywords(const struct json *schema, const struct field_path *at, struct causes *causes);
/* Keywords that no structural schema can have; the rest of its check is then left out. */
bool check_has_unsupported(const struct json *schema);
void check_structural(const struct json *schema, const struct field_path *at,
                      struct causes *causes);
void check_defaults(const struct schema *schema, const struct field_path *at,
                    struct causes *causes);
void check_openapi(const struct json *schema, const struct field_path *at, struct causes *causes);
