/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>

#include "schema/schema_internal.h"

#define MAX_FAST_PATTERNS 1000 /* of a schema; machine code takes pages */

struct compiler {
    struct arena *arena;
    size_t n_patterns;
    struct str error;
};

static int fail(struct compiler *c, const char *format, ...) PRINTF_LIKE(2, 3);
static int fail(struct compiler *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    c->error = arena_vprintf(c->arena, format, args);
    va_end(args);
    return -EINVAL;
}

static int compile(struct compiler *c, const struct json *source, const struct schema **ret_schema);

/* ---- keywords ----------------------------------------------------------------------------- */

static int read_number(struct compiler *c, const struct json *source, const char *key,
                       double *ret_value, bool *ret_has)
{
    const struct json *v = json_get(source, str_of(key));
    if (!v || json_is(v, JSON_NULL))
        return 0;
    if (!json_is_number(v))
        return fail(c, "%s must be a number", key);
    *ret_value = v->type == JSON_INT ? (double) v->i : v->d;
    *ret_has = true;
    return 0;
}

static int read_count(struct compiler *c, const struct json *source, const char *key,
                      int64_t *ret_value)
{
    const struct json *v = json_get(source, str_of(key));
    *ret_value = SCHEMA_NO_BOUND;
    if (!v || json_is(v, JSON_NULL))
        return 0;
    if (json_is(v, JSON_INT))
        *ret_value = MAX(v->i, (int64_t) 0);
    else if (json_is(v, JSON_DOUBLE) && v->d == floor(v->d) && fabs(v->d) < 0x1p62)
        *ret_value = MAX((int64_t) v->d, (int64_t) 0);
    else
        return fail(c, "%s must be an integer", key);
    return 0;
}

static int read_strings(struct compiler *c, const struct json *source, const char *key,
                        const struct str **ret_strings, size_t *ret_n)
{
    const struct json *v = json_get(source, str_of(key));
    if (!v || json_is(v, JSON_NULL))
        return 0;
    if (!json_is(v, JSON_ARRAY))
        return fail(c, "%s must be an array of strings", key);
    struct str *strings = ARENA_ARRAY(c->arena, struct str, v->n + 1);
    for (size_t i = 0; i < v->n; i++) {
        if (!json_is(&v->items[i], JSON_STRING))
            return fail(c, "%s must be an array of strings", key);
        strings[i] = json_str(&v->items[i]);
    }
    *ret_strings = strings;
    *ret_n = v->n;
    return 0;
}

static int read_schemas(struct compiler *c, const struct json *source, const char *key,
                        struct schema_list *ret_list)
{
    const struct json *v = json_get(source, str_of(key));
    if (!v || json_is(v, JSON_NULL))
        return 0;
    if (!json_is(v, JSON_ARRAY))
        return fail(c, "%s must be an array of schemas", key);
    ret_list->schemas = ARENA_ARRAY(c->arena, const struct schema *, v->n + 1);
    for (; ret_list->n < v->n; ret_list->n++)
        if (compile(c, &v->items[ret_list->n], &ret_list->schemas[ret_list->n]) < 0)
            return -EINVAL;
    return 0;
}

static int read_type(struct compiler *c, const struct json *source, enum schema_type *ret_type)
{
    static const char *const names[] = {
        [SCHEMA_ANY] = "",           [SCHEMA_OBJECT] = "object",   [SCHEMA_ARRAY] = "array",
        [SCHEMA_STRING] = "string",  [SCHEMA_INTEGER] = "integer", [SCHEMA_NUMBER] = "number",
        [SCHEMA_BOOLEAN] = "boolean"};
    struct str name = json_get_str(source, STR("type"));
    *ret_type = SCHEMA_ANY;
    for (size_t i = 0; i < N_ELEMENTS(names); i++) {
        if (str_is(name, names[i])) {
            *ret_type = (enum schema_type) i;
            return 0;
        }
    }
    return fail(c, "unknown type \"%.*s\"", STR_ARG(name));
}

static int read_bounds(struct compiler *c, const struct json *source, struct schema_rules *r)
{
    if (read_number(c, source, "minimum", &r->minimum, &r->has_minimum) < 0 ||
        read_number(c, source, "maximum", &r->maximum, &r->has_maximum) < 0 ||
        read_number(c, source, "multipleOf", &r->multiple_of, &r->has_multiple_of) < 0 ||
        read_count(c, source, "minLength", &r->min_length) < 0 ||
        read_count(c, source, "maxLength", &r->max_length) < 0 ||
        read_count(c, source, "minItems", &r->min_items) < 0 ||
        read_count(c, source, "maxItems", &r->max_items) < 0 ||
        read_count(c, source, "minProperties", &r->min_properties) < 0 ||
        read_count(c, source, "maxProperties", &r->max_properties) < 0)
        return -EINVAL;
    r->exclusive_minimum = json_get_bool(source, STR("exclusiveMinimum"), false);
    r->exclusive_maximum = json_get_bool(source, STR("exclusiveMaximum"), false);
    r->unique_items = json_get_bool(source, STR("uniqueItems"), false);
    return read_strings(c, source, "required", &r->required, &r->n_required);
}

static int read_text_rules(struct compiler *c, const struct json *source, struct schema_rules *r)
{
    struct str pattern = json_get_str(source, STR("pattern"));
    if (pattern.n) {
        struct str why = {0};
        if (pattern_compile(c->arena, pattern, c->n_patterns++ < MAX_FAST_PATTERNS, &r->pattern,
                            &why) < 0)
            return fail(c, "%.*s", STR_ARG(why));
        r->pattern_text = pattern;
    }
    r->format = format_find(json_get_str(source, STR("format")));
    const struct json *values = json_get(source, STR("enum"));
    if (values && !json_is(values, JSON_NULL) && !json_is(values, JSON_ARRAY))
        return fail(c, "enum must be an array");
    r->enum_values = json_count(values) ? values : NULL;
    return 0;
}

static int read_junctors(struct compiler *c, const struct json *source, struct schema_rules *r)
{
    if (read_schemas(c, source, "allOf", &r->all_of) < 0 ||
        read_schemas(c, source, "anyOf", &r->any_of) < 0 ||
        read_schemas(c, source, "oneOf", &r->one_of) < 0)
        return -EINVAL;
    const struct json *negated = json_get(source, STR("not"));
    if (negated && !json_is(negated, JSON_NULL) && compile(c, negated, &r->none_of) < 0)
        return -EINVAL;
    r->has_junctors = r->all_of.n || r->any_of.n || r->one_of.n || r->none_of;
    return 0;
}

/* ---- children ----------------------------------------------------------------------------- */

static void inherit(struct schema_rules *r, const struct schema *child)
{
    r->has_embedded |= child->rules->has_embedded;
    r->has_lists |= child->rules->has_lists;
}

static void list_defaults(struct compiler *c, struct schema *s, struct schema_rules *r,
                          struct schema **properties)
{
    r->defaulted = ARENA_ARRAY(c->arena, const struct schema *, s->n_properties + 1);
    struct str *names = ARENA_ARRAY(c->arena, struct str, s->n_properties + 1);
    for (size_t i = 0; i < s->n_properties; i++) {
        if (!properties[i]->default_value)
            continue;
        /* The rules of a property belong to it alone and were made just now. */
        ((struct schema_rules *) properties[i]->rules)->default_slot = (uint32_t) r->n_defaulted;
        names[r->n_defaulted] = s->property_names[i];
        r->defaulted[r->n_defaulted++] = properties[i];
    }
    r->defaulted_names = names;
}

/* The map's table moves into the arena: a compiled schema has no destructor. */
static void fill_map(struct compiler *c, struct schema *s, struct schema **properties)
{
    struct map m = {0};
    for (size_t i = 0; i < s->n_properties; i++)
        (void) map_put(&m, s->property_names[i], properties[i]);
    s->properties = m;
    if (m.n_slots) {
        s->properties.entries = ARENA_ARRAY(c->arena, struct map_entry, m.n_slots);
        memcpy(s->properties.entries, m.entries, m.n_slots * sizeof(*m.entries));
    }
    map_done(&m);
}

static int read_properties(struct compiler *c, const struct json *source, struct schema *s,
                           struct schema_rules *r)
{
    const struct json *v = json_get(source, STR("properties"));
    if (v && !json_is(v, JSON_NULL) && !json_is(v, JSON_OBJECT))
        return fail(c, "properties must be an object");
    size_t n = json_count(v);
    struct schema **properties = ARENA_ARRAY(c->arena, struct schema *, n + 1);
    struct str *names = ARENA_ARRAY(c->arena, struct str, n + 1);
    s->property_names = names;
    JSON_FOR_EACH_MEMBER (v, m) {
        const struct schema *property = NULL;
        if (compile(c, &m->value, &property) < 0)
            return -EINVAL;
        names[s->n_properties] = json_str(&m->key);
        properties[s->n_properties++] = (struct schema *) property;
        inherit(r, property);
    }
    fill_map(c, s, properties);
    schema_index_properties(c->arena, s, r);
    list_defaults(c, s, r, properties);
    return 0;
}

static int read_additional(struct compiler *c, const struct json *source, struct schema *s,
                           struct schema_rules *r)
{
    const struct json *v = json_get(source, STR("additionalProperties"));
    if (!v || json_is(v, JSON_NULL))
        return 0;
    if (json_is(v, JSON_BOOL)) {
        r->additional = v->b ? ADDITIONAL_ALLOWED : ADDITIONAL_REFUSED;
        return 0;
    }
    r->additional = ADDITIONAL_SCHEMA;
    if (compile(c, v, &s->additional_properties) < 0)
        return -EINVAL;
    inherit(r, s->additional_properties);
    return 0;
}

static int read_items(struct compiler *c, const struct json *source, struct schema *s,
                      struct schema_rules *r)
{
    const struct json *v = json_get(source, STR("items"));
    if (!v || json_is(v, JSON_NULL))
        return 0;
    if (compile(c, v, &s->items) < 0)
        return -EINVAL;
    inherit(r, s->items);
    return 0;
}

/* ---- extensions --------------------------------------------------------------------------- */

static int read_extensions(struct compiler *c, const struct json *source, struct schema *s,
                           struct schema_rules *r)
{
    s->nullable = json_get_bool(source, STR("nullable"), false);
    s->int_or_string = json_get_bool(source, STR("x-kubernetes-int-or-string"), false);
    s->preserve_unknown_fields =
        json_get_bool(source, STR("x-kubernetes-preserve-unknown-fields"), false);
    s->embedded_resource = json_get_bool(source, STR("x-kubernetes-embedded-resource"), false);
    s->map_is_atomic = str_is(json_get_str(source, STR("x-kubernetes-map-type")), "atomic");
    struct str list_type = json_get_str(source, STR("x-kubernetes-list-type"));
    s->list_type = str_is(list_type, "set")   ? SCHEMA_LIST_SET
                   : str_is(list_type, "map") ? SCHEMA_LIST_MAP
                                              : SCHEMA_LIST_ATOMIC;
    r->has_embedded = s->embedded_resource;
    r->has_lists = s->list_type != SCHEMA_LIST_ATOMIC;
    struct str strategy = json_get_str(source, STR("x-kubernetes-patch-strategy"));
    s->patch_merge = str_find_str(strategy, STR("merge")) >= 0;
    s->patch_replace_keys = str_find_str(strategy, STR("retainKeys")) >= 0;
    s->patch_merge_key = json_get_str(source, STR("x-kubernetes-patch-merge-key"));
    s->format = json_get_str(source, STR("format"));
    const struct json *value = json_get(source, STR("default"));
    s->default_value = json_is(value, JSON_NULL) ? NULL : value;
    return read_strings(c, source, "x-kubernetes-list-map-keys", &s->list_map_keys,
                        &s->n_list_map_keys);
}

static int compile(struct compiler *c, const struct json *source, const struct schema **ret_schema)
{
    if (!json_is(source, JSON_OBJECT))
        return fail(c, "a schema must be an object");
    struct schema *s = ARENA_NEW(c->arena, struct schema);
    struct schema_rules *r = ARENA_NEW(c->arena, struct schema_rules);
    s->source = source;
    s->rules = r;
    r->default_slot = SCHEMA_NO_SLOT;
    if (read_type(c, source, &s->type) < 0 || read_extensions(c, source, s, r) < 0 ||
        read_bounds(c, source, r) < 0 || read_text_rules(c, source, r) < 0 ||
        read_junctors(c, source, r) < 0 || read_properties(c, source, s, r) < 0 ||
        read_additional(c, source, s, r) < 0 || read_items(c, source, s, r) < 0)
        return -EINVAL;
    *ret_schema = s;
    return 0;
}

int schema_compile(struct arena *a, const struct json *source, const struct schema **ret_schema,
                   struct str *ret_error)
{
    struct compiler c = {.arena = a};
    int r = compile(&c, source, ret_schema);
    if (r < 0)
        *ret_error = c.error;
    return r;
}
