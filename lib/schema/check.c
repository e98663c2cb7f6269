/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/check_internal.h"

enum shape {
    SHAPE_STRING,
    SHAPE_BOOL,
    SHAPE_NUMBER,
    SHAPE_INTEGER,
    SHAPE_STRINGS,
    SHAPE_ANY,
    SHAPE_ARRAY,
    SHAPE_OBJECT,
    SHAPE_SCHEMA,
    SHAPE_SCHEMA_OR_BOOL,
    SHAPE_SCHEMA_OR_ARRAY,
    SHAPE_SCHEMAS,
    SHAPE_SCHEMA_MAP,
};

/* Every keyword of a CRD's schema, and what it holds. */
static const struct {
    const char *name;
    enum shape shape;
} keywords[] = {
    {"$ref", SHAPE_STRING},
    {"$schema", SHAPE_STRING},
    {"additionalItems", SHAPE_SCHEMA_OR_BOOL},
    {"additionalProperties", SHAPE_SCHEMA_OR_BOOL},
    {"allOf", SHAPE_SCHEMAS},
    {"anyOf", SHAPE_SCHEMAS},
    {"default", SHAPE_ANY},
    {"definitions", SHAPE_SCHEMA_MAP},
    {"dependencies", SHAPE_OBJECT},
    {"description", SHAPE_STRING},
    {"enum", SHAPE_ARRAY},
    {"example", SHAPE_ANY},
    {"exclusiveMaximum", SHAPE_BOOL},
    {"exclusiveMinimum", SHAPE_BOOL},
    {"externalDocs", SHAPE_OBJECT},
    {"format", SHAPE_STRING},
    {"id", SHAPE_STRING},
    {"items", SHAPE_SCHEMA_OR_ARRAY},
    {"maxItems", SHAPE_INTEGER},
    {"maxLength", SHAPE_INTEGER},
    {"maxProperties", SHAPE_INTEGER},
    {"maximum", SHAPE_NUMBER},
    {"minItems", SHAPE_INTEGER},
    {"minLength", SHAPE_INTEGER},
    {"minProperties", SHAPE_INTEGER},
    {"minimum", SHAPE_NUMBER},
    {"multipleOf", SHAPE_NUMBER},
    {"not", SHAPE_SCHEMA},
    {"nullable", SHAPE_BOOL},
    {"oneOf", SHAPE_SCHEMAS},
    {"pattern", SHAPE_STRING},
    {"patternProperties", SHAPE_SCHEMA_MAP},
    {"properties", SHAPE_SCHEMA_MAP},
    {"required", SHAPE_STRINGS},
    {"title", SHAPE_STRING},
    {"type", SHAPE_STRING},
    {"uniqueItems", SHAPE_BOOL},
    {"x-kubernetes-embedded-resource", SHAPE_BOOL},
    {"x-kubernetes-int-or-string", SHAPE_BOOL},
    {"x-kubernetes-list-map-keys", SHAPE_STRINGS},
    {"x-kubernetes-list-type", SHAPE_STRING},
    {"x-kubernetes-map-type", SHAPE_STRING},
    {"x-kubernetes-preserve-unknown-fields", SHAPE_BOOL},
    {"x-kubernetes-validations", SHAPE_ARRAY},
};

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

static bool check_shape(const struct json *v, enum shape shape, const struct field_path *at,
                        struct causes *causes)
{
    switch (shape) {
    case SHAPE_STRING:
        return v->type == JSON_STRING || refuse(v, "string", at, causes);
    case SHAPE_BOOL:
        return v->type == JSON_BOOL || refuse(v, "boolean", at, causes);
    case SHAPE_NUMBER:
        return json_is_number(v) || refuse(v, "number", at, causes);
    case SHAPE_INTEGER:
        return v->type == JSON_INT || refuse(v, "integer", at, causes);
    case SHAPE_STRINGS:
        return check_strings(v, at, causes);
    case SHAPE_ANY:
        return true;
    case SHAPE_ARRAY:
        return v->type == JSON_ARRAY || refuse(v, "array", at, causes);
    case SHAPE_OBJECT:
        return v->type == JSON_OBJECT || refuse(v, "object", at, causes);
    case SHAPE_SCHEMA_OR_BOOL:
        return v->type == JSON_BOOL || check_keywords(v, at, causes);
    case SHAPE_SCHEMA_OR_ARRAY:
        return v->type == JSON_ARRAY ? check_schemas(v, at, causes) : check_keywords(v, at, causes);
    case SHAPE_SCHEMAS:
        return check_schemas(v, at, causes);
    case SHAPE_SCHEMA_MAP:
        return check_schema_map(v, at, causes);
    case SHAPE_SCHEMA:
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
    for (size_t i = 0; i < N_ELEMENTS(keywords); i++) {
        const struct json *v = keyword(schema, keywords[i].name);
        struct field_path here = FIELD_NAME(at, str_of(keywords[i].name));
        if (v)
            good &= check_shape(v, keywords[i].shape, &here, causes);
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
