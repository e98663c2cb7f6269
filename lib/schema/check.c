/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/check_internal.h"
#include "schema/keywords.h"

/* ---- the types of keywords ---------------------------------------------------------------- */

static bool refuse(const struct json *value, const char *wanted, const struct field_path *at,
                   struct causes *causes)
{
    struct json got = json_string(schema_type_name(value));
    causes_add(causes, CAUSE_TYPE_INVALID, at, &got, "must be of type %s", wanted);
    return false;
}

static bool check_strings(const struct json *value, const struct field_path *at,
                          struct causes *causes)
{
    if (value->type != JSON_ARRAY)
        return refuse(value, "array", at, causes);
    for (size_t i = 0; i < value->n; i++) {
        struct field_path here = FIELD_INDEX(at, (int64_t) i);
        if (value->items[i].type != JSON_STRING)
            return refuse(&value->items[i], "string", &here, causes);
    }
    return true;
}

static bool check_schemas(const struct json *value, const struct field_path *at,
                          struct causes *causes)
{
    if (value->type != JSON_ARRAY)
        return refuse(value, "array", at, causes);
    bool good = true;
    for (size_t i = 0; i < value->n; i++) {
        struct field_path here = FIELD_INDEX(at, (int64_t) i);
        good &= check_keywords(&value->items[i], &here, causes);
    }
    return good;
}

static bool check_schema_map(const struct json *value, const struct field_path *at,
                             struct causes *causes)
{
    if (value->type != JSON_OBJECT)
        return refuse(value, "object", at, causes);
    bool good = true;
    JSON_FOR_EACH_MEMBER (value, m) {
        struct field_path here = FIELD_KEY(at, json_str(&m->key));
        good &= check_keywords(&m->value, &here, causes);
    }
    return good;
}

static bool check_shape(const struct json *v, enum keyword_shape shape, const struct field_path *at,
                        struct causes *causes)
{
    switch (shape) {
    case KEYWORD_STRING:
        return v->type == JSON_STRING || refuse(v, "string", at, causes);
    case KEYWORD_BOOL:
        return v->type == JSON_BOOL || refuse(v, "boolean", at, causes);
    case KEYWORD_NUMBER:
        return json_is_number(v) || refuse(v, "number", at, causes);
    case KEYWORD_INTEGER:
        return v->type == JSON_INT || refuse(v, "integer", at, causes);
    case KEYWORD_STRINGS:
        return check_strings(v, at, causes);
    case KEYWORD_ANY:
        return true;
    case KEYWORD_ARRAY:
        return v->type == JSON_ARRAY || refuse(v, "array", at, causes);
    case KEYWORD_OBJECT:
        return v->type == JSON_OBJECT || refuse(v, "object", at, causes);
    case KEYWORD_SCHEMA_OR_BOOL:
        return v->type == JSON_BOOL || check_keywords(v, at, causes);
    case KEYWORD_SCHEMA_OR_ARRAY:
        return v->type == JSON_ARRAY ? check_schemas(v, at, causes) : check_keywords(v, at, causes);
    case KEYWORD_SCHEMAS:
        return check_schemas(v, at, causes);
    case KEYWORD_SCHEMA_MAP:
        return check_schema_map(v, at, causes);
    case KEYWORD_SCHEMA:
        break;
    }
    return check_keywords(v, at, causes);
}

static bool check_rules(const struct json *rules, const struct field_path *at,
                        struct causes *causes)
{
    bool good = true;
    for (size_t i = 0; i < json_count(rules); i++) {
        struct field_path here = FIELD_INDEX(at, (int64_t) i);
        if (!json_is(&rules->items[i], JSON_OBJECT))
            good = refuse(&rules->items[i], "object", &here, causes);
    }
    return good;
}

bool check_keywords(const struct json *schema, const struct field_path *at, struct causes *causes)
{
    if (!json_is(schema, JSON_OBJECT))
        return refuse(schema, "object", at, causes);
    bool good = true;
    for (size_t i = 0; i < N_ELEMENTS(keyword_table); i++) {
        const struct json *v = keyword(schema, keyword_table[i].name);
        struct field_path here = FIELD_NAME(at, str_of(keyword_table[i].name));
        if (v)
            good &= check_shape(v, keyword_table[i].shape, &here, causes);
    }
    const struct json *rules = keyword(schema, "x-kubernetes-validations");
    if (json_is(rules, JSON_ARRAY))
        good &= check_rules(rules, AT(at, "x-kubernetes-validations"), causes);
    return good;
}

/* ---- defaults ----------------------------------------------------------------------------- */

static void check_default(const struct schema *s, const struct field_path *at, bool inside_meta,
                          struct causes *causes)
{
    const struct field_path *here = AT(at, "default");
    size_t n_before = causes->n;
    if (!inside_meta) {
        struct json pruned = json_clone(causes->arena, s->default_value);
        schema_prune_value(causes->arena, s, &pruned);
        if (!json_equal(&pruned, s->default_value))
            causes_add(causes, CAUSE_INVALID, here, s->default_value,
                       "must not have unknown fields");
        n_before = causes->n;
        schema_check_embedded(s, s->default_value, s->embedded_resource, here, causes);
    }
    if (causes->n == n_before)
        schema_validate_keywords(s, s->default_value, here, causes);
}

static void check_defaults_below(const struct schema *s, const struct field_path *at,
                                 bool inside_meta, bool is_resource, struct causes *causes)
{
    if (s->default_value)
        check_default(s, at, inside_meta, causes);
    if (s->items)
        check_defaults_below(s->items, AT(at, "items"), inside_meta, s->items->embedded_resource,
                             causes);
    for (size_t i = 0; i < s->n_properties; i++) {
        const struct schema *property = map_get(&s->properties, s->property_names[i]);
        struct field_path here = FIELD_KEY(AT(at, "properties"), s->property_names[i]);
        bool is_meta = !property->embedded_resource &&
                       (inside_meta || (is_resource && schema_is_meta_name(s->property_names[i])));
        check_defaults_below(property, &here, is_meta, property->embedded_resource, causes);
    }
}

void check_defaults(const struct schema *schema, const struct field_path *at, struct causes *causes)
{
    check_defaults_below(schema, at, /* inside_meta= */ false, /* is_resource= */ true, causes);
}

/* ---- the whole ---------------------------------------------------------------------------- */

static void check_structure(const struct json *source, const struct field_path *at,
                            struct causes *causes)
{
    size_t n_before = causes->n;
    check_structural(source, at, causes);
    if (causes->n != n_before)
        return;
    ARENA_AUTO scratch = arena_new();
    const struct schema *schema = NULL;
    struct str error = STR_NONE;
    /* What cannot be compiled for another reason is reported by check_openapi(). */
    if (schema_compile(scratch, source, &schema, &error) == 0)
        check_defaults(schema, at, causes);
}

void schema_check(const struct json *source, const struct field_path *at, struct causes *causes)
{
    size_t n_before = causes->n;
    if (!check_keywords(source, at, causes))
        return;
    if (keyword_is_true(source, "nullable"))
        causes_add(causes, CAUSE_FORBIDDEN, AT(at, "nullable"), NULL,
                   "nullable cannot be true at the root");
    if (!check_has_unsupported(source))
        check_structure(source, at, causes);
    check_openapi(source, at, causes);
    if (causes->n != n_before)
        return;
    ARENA_AUTO scratch = arena_new();
    const struct schema *schema = NULL;
    struct str error = STR_NONE;
    if (schema_compile(scratch, source, &schema, &error) < 0) {
        struct json nothing = json_string(STR(""));
        causes_add(causes, CAUSE_INVALID, at, &nothing, "error building validator: %.*s",
                   STR_ARG(error));
    }
}
