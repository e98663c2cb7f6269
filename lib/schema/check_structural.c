/* SPDX-License-Identifier: Apache-2.0 */
/* Is a schema structural: every field and item has its type outside of allOf, anyOf, oneOf and not.
 */
#include "schema/check_internal.h"

enum level { LEVEL_ROOT, LEVEL_ITEM, LEVEL_FIELD };

static const char *const junctor_names[] = {"allOf", "anyOf", "oneOf"};

/* ---- what cannot be structural at all ----------------------------------------------------- */

static bool any_unsupported(const struct json *container)
{
    JSON_FOR_EACH_MEMBER (container, m)
        if (check_has_unsupported(&m->value))
            return true;
    JSON_FOR_EACH_ITEM (container, item)
        if (check_has_unsupported(item))
            return true;
    return false;
}

bool check_has_unsupported(const struct json *schema)
{
    static const char *const unsupported[] = {"id",          "additionalItems", "patternProperties",
                                              "definitions", "dependencies",    "$ref"};
    static const char *const single[] = {"items", "additionalProperties", "not"};
    for (size_t i = 0; i < N_ELEMENTS(unsupported); i++)
        if (keyword(schema, unsupported[i]))
            return true;
    if (str_is(keyword_str(schema, "type"), "null") ||
        json_is(keyword(schema, "items"), JSON_ARRAY))
        return true;
    for (size_t i = 0; i < N_ELEMENTS(single); i++) {
        const struct json *child = keyword(schema, single[i]);
        if (json_is(child, JSON_OBJECT) && check_has_unsupported(child))
            return true;
    }
    for (size_t i = 0; i < N_ELEMENTS(junctor_names); i++)
        if (any_unsupported(keyword(schema, junctor_names[i])))
            return true;
    return any_unsupported(keyword(schema, "properties"));
}

/* ---- within junctors ---------------------------------------------------------------------- */

static void check_nested(const struct json *v, bool skip_any_of, const struct field_path *at,
                         struct causes *causes);

static void check_nested_list(const struct json *list, const char *name,
                              const struct field_path *at, bool skip_first_any_of,
                              struct causes *causes)
{
    struct field_path list_at = FIELD_NAME(at, str_of(name));
    for (size_t i = 0; i < json_count(list); i++) {
        struct field_path here = FIELD_INDEX(&list_at, (int64_t) i);
        check_nested(&list->items[i], skip_first_any_of && i == 0, &here, causes);
    }
}

static void check_pattern(const struct json *v, const struct field_path *at, struct causes *causes)
{
    const struct json *pattern = keyword(v, "pattern");
    struct str error = STR_NONE;
    if (pattern && pattern->n && pattern_check(causes->arena, json_str(pattern), &error) < 0)
        causes_add(causes, CAUSE_INVALID, AT(at, "pattern"), pattern,
                   "must be a valid regular expression, but isn't: %.*s", STR_ARG(error));
}

static void check_value_validation(const struct json *v, bool skip_any_of, bool skip_first_all_of,
                                   const struct field_path *at, struct causes *causes)
{
    if (!skip_any_of)
        check_nested_list(keyword(v, "anyOf"), "anyOf", at, false, causes);
    check_nested_list(keyword(v, "allOf"), "allOf", at, skip_first_all_of, causes);
    check_nested_list(keyword(v, "oneOf"), "oneOf", at, false, causes);
    const struct json *negated = keyword(v, "not");
    if (negated)
        check_nested(negated, false, AT(at, "not"), causes);
    check_pattern(v, at, causes);
}

/* What may not stand within a junctor, and how kube-apiserver says so. */
static const struct {
    const char *name, *must;
} forbidden_nested[] = {
    {"type", "empty"},
    {"additionalProperties", "undefined"},
    {"default", "undefined"},
    {"title", "empty"},
    {"description", "empty"},
    {"nullable", "false"},
    {"x-kubernetes-preserve-unknown-fields", "false"},
    {"x-kubernetes-embedded-resource", "false"},
    {"x-kubernetes-int-or-string", "false"},
    {"x-kubernetes-list-map-keys", "empty"},
    {"x-kubernetes-list-type", "undefined"},
    {"x-kubernetes-map-type", "undefined"},
    {"x-kubernetes-validations", "empty"},
};

/* Zero values are as good as absent where Go cannot tell them apart. */
static bool is_set(const struct json *v, bool undefined_only)
{
    if (!v || undefined_only)
        return v;
    return v->type == JSON_BOOL ? v->b : v->n > 0;
}

static void check_nested(const struct json *v, bool skip_any_of, const struct field_path *at,
                         struct causes *causes)
{
    check_value_validation(v, skip_any_of, false, at, causes);
    const struct json *items = keyword(v, "items");
    if (items)
        check_nested(items, false, AT(at, "items"), causes);
    JSON_FOR_EACH_MEMBER (keyword(v, "properties"), m) {
        struct field_path here = FIELD_KEY(AT(at, "properties"), json_str(&m->key));
        check_nested(&m->value, false, &here, causes);
    }
    for (size_t i = 0; i < N_ELEMENTS(forbidden_nested); i++) {
        const char *name = forbidden_nested[i].name, *must = forbidden_nested[i].must;
        struct field_path here = FIELD_NAME(at, str_of(name));
        if (is_set(keyword(v, name), str_is(str_of(must), "undefined")))
            causes_add(causes, CAUSE_FORBIDDEN, &here, NULL, "must be %s to be structural", must);
    }
    if (keyword(keyword(v, "properties"), "metadata")) {
        struct field_path here = FIELD_KEY(AT(at, "properties"), STR("metadata"));
        causes_add(causes, CAUSE_FORBIDDEN, &here, NULL,
                   "must not be specified in a nested context");
    }
}

/* anyOf: [{type: integer}, {type: string}], which int-or-string may say. */
static bool is_int_or_string(const struct json *any_of)
{
    static const char *const types[] = {"integer", "string"};
    if (json_count(any_of) != 2)
        return false;
    for (size_t i = 0; i < 2; i++)
        if (any_of->items[i].n != 1 || !str_is(keyword_str(&any_of->items[i], "type"), types[i]))
            return false;
    return true;
}

/* ---- fields and items --------------------------------------------------------------------- */

static void check_invariants(const struct json *s, enum level level, const struct field_path *at,
                             struct causes *causes);

static void check_type(const struct json *s, enum level level, const struct field_path *at,
                       struct causes *causes)
{
    static const char *const why[] = {[LEVEL_ROOT] = "must not be empty at the root",
                                      [LEVEL_ITEM] = "must not be empty for specified array items",
                                      [LEVEL_FIELD] =
                                          "must not be empty for specified object fields"};
    const struct json *type = keyword(s, "type");
    struct str name = keyword_str(s, "type");
    const struct field_path *here = AT(at, "type");
    if (keyword_is_true(s, "x-kubernetes-embedded-resource") && !str_is(name, "object"))
        causes_add(causes, name.n ? CAUSE_INVALID : CAUSE_REQUIRED, here, type,
                   "must be object if x-kubernetes-embedded-resource is true");
    else if (!name.n && !keyword_is_true(s, "x-kubernetes-int-or-string") &&
             !keyword_is_true(s, "x-kubernetes-preserve-unknown-fields"))
        causes_add(causes, CAUSE_REQUIRED, here, NULL, "%s", why[level]);
    if (level == LEVEL_ROOT && name.n && !str_is(name, "object"))
        causes_add(causes, CAUSE_INVALID, here, type, "must be object at the root");
}

static void check_extensions(const struct json *s, const struct field_path *at,
                             struct causes *causes)
{
    static const char *const others[] = {"x-kubernetes-preserve-unknown-fields",
                                         "x-kubernetes-embedded-resource"};
    for (size_t i = 0; i < N_ELEMENTS(others); i++) {
        struct field_path here = FIELD_NAME(at, str_of(others[i]));
        if (keyword_is_true(s, "x-kubernetes-int-or-string") && keyword_is_true(s, others[i]))
            causes_add(causes, CAUSE_INVALID, &here, keyword(s, others[i]),
                       "must be false if x-kubernetes-int-or-string is true");
    }
}

/* The types of kind, apiVersion and metadata of a resource. */
static void check_meta_types(const struct json *s, const struct field_path *at,
                             struct causes *causes)
{
    static const struct {
        const char *name, *type;
    } wanted[] = {{"kind", "string"}, {"apiVersion", "string"}, {"metadata", "object"}};
    for (size_t i = 0; i < N_ELEMENTS(wanted); i++) {
        const struct json *property = keyword(keyword(s, "properties"), wanted[i].name);
        struct str type = keyword_str(property, "type");
        if (!property || str_is(type, wanted[i].type))
            continue;
        struct field_path here = FIELD_KEY(AT(at, "properties"), str_of(wanted[i].name));
        struct json shown = json_string(type);
        causes_add(causes, CAUSE_INVALID, AT(&here, "type"), &shown, "must be %s", wanted[i].type);
    }
}

/* Says metadata's schema no more than how name and generateName look. */
static bool is_plain_metadata(const struct json *metadata)
{
    JSON_FOR_EACH_MEMBER (metadata, m) {
        struct str name = json_str(&m->key);
        if (str_is(name, "type") || str_is(name, "default") || json_is(&m->value, JSON_NULL))
            continue;
        if (!str_is(name, "properties") && is_set(&m->value, false))
            return false;
    }
    JSON_FOR_EACH_MEMBER (keyword(metadata, "properties"), m)
        if (!str_is(json_str(&m->key), "name") && !str_is(json_str(&m->key), "generateName"))
            return false;
    return true;
}

static void check_resource(const struct json *s, enum level level, const struct field_path *at,
                           struct causes *causes)
{
    bool is_embedded = keyword_is_true(s, "x-kubernetes-embedded-resource");
    const struct json *properties = keyword(s, "properties");
    if (level == LEVEL_ROOT || is_embedded)
        check_meta_types(s, at, causes);
    const struct json *metadata = keyword(properties, "metadata");
    struct field_path metadata_at = FIELD_KEY(AT(at, "properties"), STR("metadata"));
    if (metadata && level == LEVEL_ROOT && !is_plain_metadata(metadata))
        causes_add(causes, CAUSE_FORBIDDEN, &metadata_at, NULL,
                   "must not specify anything other than name and generateName, but metadata is "
                   "implicitly "
                   "specified");
    if (is_embedded && keyword(s, "additionalProperties"))
        causes_add(causes, CAUSE_FORBIDDEN, AT(at, "additionalProperties"), NULL,
                   "must not be used if x-kubernetes-embedded-resource is set");
    if (is_embedded && !keyword_is_true(s, "x-kubernetes-preserve-unknown-fields") &&
        !json_count(properties))
        causes_add(causes, CAUSE_REQUIRED, AT(at, "properties"), NULL,
                   "must not be empty if x-kubernetes-embedded-resource is true without "
                   "x-kubernetes-preserve-unknown-fields");
}

static void check_children(const struct json *s, enum level level, const struct field_path *at,
                           struct causes *causes)
{
    const struct json *items = keyword(s, "items"), *more = keyword(s, "additionalProperties");
    if (str_is(keyword_str(s, "type"), "array") && !items)
        causes_add(causes, CAUSE_REQUIRED, AT(at, "items"), NULL, "must be specified");
    if (items)
        check_invariants(items, LEVEL_ITEM, AT(at, "items"), causes);
    JSON_FOR_EACH_MEMBER (keyword(s, "properties"), m) {
        struct field_path here = FIELD_KEY(AT(at, "properties"), json_str(&m->key));
        check_invariants(&m->value, LEVEL_FIELD, &here, causes);
    }
    if (more && level == LEVEL_ROOT)
        causes_add(causes, CAUSE_FORBIDDEN, AT(at, "additionalProperties"), NULL,
                   "must not be used at the root");
    if (json_is(more, JSON_OBJECT))
        check_invariants(more, LEVEL_FIELD, AT(at, "additionalProperties"), causes);
}

static void check_invariants(const struct json *s, enum level level, const struct field_path *at,
                             struct causes *causes)
{
    check_children(s, level, at, causes);
    check_extensions(s, at, causes);
    const struct json *all_of = keyword(s, "allOf");
    bool skip_first = json_count(all_of) && is_int_or_string(keyword(&all_of->items[0], "anyOf"));
    check_value_validation(s, is_int_or_string(keyword(s, "anyOf")), skip_first, at, causes);
    check_type(s, level, at, causes);
    check_resource(s, level, at, causes);
}

/* ---- completeness ------------------------------------------------------------------------- */

static void check_complete(const struct json *nested, const struct json *s,
                           const struct field_path *s_at, const struct field_path *nested_at,
                           struct causes *causes);

static void add_undefined(const struct field_path *at, const struct field_path *defined_at,
                          struct causes *causes)
{
    struct str text = field_path_text(causes->arena, defined_at);
    causes_add(causes, CAUSE_REQUIRED, at, NULL, "because it is defined in %.*s", STR_ARG(text));
}

static void check_junctors_complete(const struct json *v, const struct json *s,
                                    const struct field_path *s_at, const struct field_path *v_at,
                                    struct causes *causes)
{
    const struct json *negated = keyword(v, "not");
    if (negated)
        check_complete(negated, s, s_at, AT(v_at, "not"), causes);
    for (size_t i = 0; i < N_ELEMENTS(junctor_names); i++) {
        const struct json *list = keyword(v, junctor_names[i]);
        struct field_path list_at = FIELD_NAME(v_at, str_of(junctor_names[i]));
        for (size_t k = 0; k < json_count(list); k++) {
            struct field_path here = FIELD_INDEX(&list_at, (int64_t) k);
            check_complete(&list->items[k], s, s_at, &here, causes);
        }
    }
}

/* Everything a junctor speaks of must be specified outside of it. */
static void check_complete(const struct json *nested, const struct json *s,
                           const struct field_path *s_at, const struct field_path *nested_at,
                           struct causes *causes)
{
    check_junctors_complete(nested, s, s_at, nested_at, causes);
    const struct json *items = keyword(nested, "items"), *s_items = keyword(s, "items");
    if (items && s_items)
        check_complete(items, s_items, AT(s_at, "items"), AT(nested_at, "items"), causes);
    else if (items)
        add_undefined(AT(s_at, "items"), AT(nested_at, "items"), causes);
    JSON_FOR_EACH_MEMBER (keyword(nested, "properties"), m) {
        struct str name = json_str(&m->key);
        const struct json *property = json_get(keyword(s, "properties"), name);
        struct field_path here = FIELD_KEY(AT(s_at, "properties"), name);
        struct field_path there = FIELD_KEY(AT(nested_at, "properties"), name);
        if (property)
            check_complete(&m->value, property, &here, &there, causes);
        else
            add_undefined(&here, &there, causes);
    }
}

void check_structural(const struct json *schema, const struct field_path *at, struct causes *causes)
{
    check_invariants(schema, LEVEL_ROOT, at, causes);
    check_junctors_complete(schema, schema, at, at, causes);
}
