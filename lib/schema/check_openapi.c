/* SPDX-License-Identifier: Apache-2.0 */
/* The rules a CRD's schema has beyond being structural: forbidden keywords, list and map types,
 * where defaults may stand, the form of validation rules. */
#include "schema/check_internal.h"
#include "schema/schema_path.h"

/* What holds for a part of the schema because of where it is. */
struct place {
    bool is_root;
    bool inside_meta;            /* of TypeMeta or ObjectMeta */
    const char *no_defaults_why; /* NULL: defaults are allowed */
};

static void check_node(const struct json *s, struct place place, const struct field_path *at,
                       struct causes *causes);

static void forbid(const struct field_path *at, const char *name, const char *why,
                   struct causes *causes)
{
    struct field_path here = FIELD_NAME(at, str_of(name));
    causes_add(causes, CAUSE_FORBIDDEN, &here, NULL, "%s", why);
}

/* ---- keywords ----------------------------------------------------------------------------- */

static void check_type(const struct json *s, const struct field_path *at, struct causes *causes)
{
    static const struct str types[] = {{"array", 5},  {"boolean", 7}, {"integer", 7},
                                       {"number", 6}, {"object", 6},  {"string", 6}};
    struct str type = keyword_str(s, "type");
    if (str_is(type, "null"))
        forbid(at, "type", "type cannot be set to null, use nullable as an alternative", causes);
    for (size_t i = 0; i < N_ELEMENTS(types); i++)
        if (!type.n || str_eq(type, types[i]))
            return;
    causes_add_not_supported(causes, AT(at, "type"), keyword(s, "type"), types, N_ELEMENTS(types));
}

static void check_forbidden(const struct json *s, const struct field_path *at,
                            struct causes *causes)
{
    static const char *const unsupported[] = {"id",          "additionalItems", "patternProperties",
                                              "definitions", "dependencies",    "$ref"};
    for (size_t i = 0; i < N_ELEMENTS(unsupported); i++) {
        const struct json *v = keyword(s, unsupported[i]);
        struct field_path here = FIELD_NAME(at, str_of(unsupported[i]));
        bool is_empty =
            v && v->type != JSON_BOOL && v->n == 0 && strcmp(unsupported[i], "$ref") != 0;
        if (v && !is_empty)
            causes_add(causes, CAUSE_FORBIDDEN, &here, NULL, "%s is not supported", unsupported[i]);
    }
    if (json_is(keyword(s, "items"), JSON_ARRAY) && keyword(s, "items")->n)
        forbid(at, "items", "items must be a schema object and not an array", causes);
    if (keyword_is_true(s, "uniqueItems"))
        forbid(at, "uniqueItems",
               "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
               causes);
}

static void check_place(const struct json *s, struct place place, const struct field_path *at,
                        struct causes *causes)
{
    if (keyword(s, "default") && place.no_defaults_why)
        causes_add(causes, CAUSE_FORBIDDEN, AT(at, "default"), NULL, "must not be set %s",
                   place.no_defaults_why);
    if (place.inside_meta && keyword_is_true(s, "x-kubernetes-embedded-resource"))
        forbid(at, "x-kubernetes-embedded-resource", "must not be used inside of resource meta",
               causes);
    const struct json *preserve = keyword(s, "x-kubernetes-preserve-unknown-fields");
    if (preserve && !preserve->b)
        causes_add(causes, CAUSE_INVALID, AT(at, "x-kubernetes-preserve-unknown-fields"), preserve,
                   "must be true or undefined");
}

/* ---- list and map types ------------------------------------------------------------------- */

/* The type that an extension demands of the schema it stands in. */
static void demand_type(const struct json *s, const char *type, const char *because,
                        const struct field_path *at, struct causes *causes)
{
    struct str given = keyword_str(s, "type");
    causes_add(causes, given.n ? CAUSE_INVALID : CAUSE_REQUIRED, AT(at, "type"), keyword(s, "type"),
               "must be %s if %s is specified", type, because);
}

static void check_map_type(const struct json *s, const struct field_path *at, struct causes *causes)
{
    static const struct str supported[] = {{"atomic", 6}, {"granular", 8}};
    const struct json *map_type = keyword(s, "x-kubernetes-map-type");
    if (!map_type)
        return;
    if (!str_is(keyword_str(s, "type"), "object"))
        demand_type(s, "object", "x-kubernetes-map-type", at, causes);
    if (!str_is(json_str(map_type), "atomic") && !str_is(json_str(map_type), "granular"))
        causes_add_not_supported(causes, AT(at, "x-kubernetes-map-type"), map_type, supported,
                                 N_ELEMENTS(supported));
}

/* Items of a set are compared whole, so they must be atomic. */
static void check_set_items(const struct json *items, const struct field_path *at,
                            struct causes *causes)
{
    const struct json *list_type = keyword(items, "x-kubernetes-list-type");
    const struct json nothing = json_null();
    const struct json *shown = list_type ? list_type : &nothing;
    const char *why = "must be atomic as item of a list with x-kubernetes-list-type=set";
    struct str type = keyword_str(items, "type");
    if (str_is(type, "array") && list_type && !str_is(json_str(list_type), "atomic"))
        causes_add(causes, CAUSE_INVALID, AT(at, "x-kubernetes-list-type"), shown, "%s", why);
    if (str_is(type, "object") && !str_is(keyword_str(items, "x-kubernetes-map-type"), "atomic"))
        causes_add(causes, CAUSE_INVALID, AT(at, "x-kubernetes-map-type"), shown, "%s", why);
}

static bool contains(const struct json *strings, struct str s, size_t n_first)
{
    for (size_t i = 0; i < n_first; i++)
        if (str_eq(json_str(&strings->items[i]), s))
            return true;
    return false;
}

static void check_map_key(const struct json *s, const struct json *items, size_t i,
                          const struct field_path *at, struct causes *causes)
{
    const struct json *keys = keyword(s, "x-kubernetes-list-map-keys");
    struct str key = json_str(&keys->items[i]);
    const struct json *property = json_get(keyword(items, "properties"), key);
    struct field_path property_at = FIELD_KEY(AT(AT(at, "items"), "properties"), key);
    const struct json *required = keyword(items, "required");
    struct str type = keyword_str(property, "type");
    if (!property)
        causes_add(causes, CAUSE_INVALID, AT(at, "x-kubernetes-list-map-keys"), keys,
                   "entries must all be names of item properties");
    if (str_is(type, "array") || str_is(type, "object"))
        causes_add(causes, CAUSE_INVALID, AT(&property_at, "type"), keyword(items, "type"),
                   "must be a scalar type if parent array's x-kubernetes-list-type is map");
    if (contains(keys, key, i))
        causes_add(causes, CAUSE_INVALID, AT(at, "x-kubernetes-list-map-keys"), keys,
                   "must not contain duplicate entries");
    if (property && !contains(required, key, json_count(required)) && !keyword(property, "default"))
        causes_add(
            causes, CAUSE_REQUIRED, AT(&property_at, "default"), NULL,
            "this property is in x-kubernetes-list-map-keys, so it must have a default or be a "
            "required property");
    if (keyword_is_true(property, "nullable"))
        forbid(&property_at, "nullable",
               "this property is in x-kubernetes-list-map-keys, so it cannot be nullable", causes);
}

static void check_list_map(const struct json *s, const struct field_path *at, struct causes *causes)
{
    const struct json *keys = keyword(s, "x-kubernetes-list-map-keys"),
                      *items = keyword(s, "items");
    if (!json_count(keys))
        causes_add(causes, CAUSE_REQUIRED, AT(at, "x-kubernetes-list-map-keys"), NULL,
                   "must not be empty if x-kubernetes-list-type is map");
    if (!items) {
        causes_add(causes, CAUSE_REQUIRED, AT(at, "items"), NULL,
                   "must have a schema if x-kubernetes-list-type is map");
    } else if (!json_is(items, JSON_OBJECT)) {
        causes_add(causes, CAUSE_INVALID, AT(at, "items"), items,
                   "must only have a single schema if x-kubernetes-list-type is map");
    } else if (!str_is(keyword_str(items, "type"), "object")) {
        struct json shown = json_string(keyword_str(items, "type"));
        causes_add(causes, CAUSE_INVALID, AT(AT(at, "items"), "type"), &shown,
                   "must be object if parent array's x-kubernetes-list-type is map");
    } else {
        for (size_t i = 0; i < json_count(keys); i++)
            check_map_key(s, items, i, at, causes);
    }
}

static void check_list_type(const struct json *s, const struct field_path *at,
                            struct causes *causes)
{
    static const struct str supported[] = {{"atomic", 6}, {"set", 3}, {"map", 3}};
    const struct json *list_type = keyword(s, "x-kubernetes-list-type"),
                      *items = keyword(s, "items");
    struct str name = json_str(list_type);
    const struct field_path *here = AT(at, "x-kubernetes-list-type");
    if (json_count(keyword(s, "x-kubernetes-list-map-keys")) && !str_is(name, "map"))
        causes_add(causes, list_type ? CAUSE_INVALID : CAUSE_REQUIRED, here, list_type,
                   "must be map if x-kubernetes-list-map-keys is non-empty");
    if (!list_type)
        return;
    bool is_set = str_is(name, "set"), is_map = str_is(name, "map");
    if (!str_is(keyword_str(s, "type"), "array"))
        demand_type(s, "array", "x-kubernetes-list-type", at, causes);
    else if (is_set && json_is(items, JSON_OBJECT))
        check_set_items(items, AT(at, "items"), causes);
    if (!is_set && !is_map && !str_is(name, "atomic"))
        causes_add_not_supported(causes, here, list_type, supported, N_ELEMENTS(supported));
    if (is_map)
        check_list_map(s, at, causes);
    if ((is_set || is_map) && keyword_is_true(items, "nullable"))
        causes_add(causes, CAUSE_FORBIDDEN, AT(AT(at, "items"), "nullable"), NULL,
                   "cannot be nullable when x-kubernetes-list-type is %.*s", STR_ARG(name));
}

/* ---- validation rules --------------------------------------------------------------------- */

static bool has_newline(struct str s)
{
    return str_find(s, '\n') >= 0 || str_find(s, '\r') >= 0;
}

static void check_rule_message(const struct json *rule, const struct field_path *at,
                               struct causes *causes)
{
    struct str text = str_trim(keyword_str(rule, "rule"));
    const struct json *message = keyword(rule, "message");
    struct str trimmed = str_trim(keyword_str(rule, "message"));
    const struct field_path *here = AT(at, "message");
    if (!text.n)
        causes_add(causes, CAUSE_REQUIRED, AT(at, "rule"), NULL, "rule is not specified");
    else if (json_str(message).n && !trimmed.n)
        causes_add(causes, CAUSE_INVALID, here, message, "message must be non-empty if specified");
    else if (has_newline(trimmed))
        causes_add(causes, CAUSE_INVALID, here, message, "message must not contain line breaks");
    else if (has_newline(text) && !trimmed.n)
        causes_add(causes, CAUSE_REQUIRED, here, NULL,
                   "message must be specified if rule contains line breaks");
    struct str expression = keyword_str(rule, "messageExpression");
    if (expression.n && !str_trim(expression).n)
        causes_add(causes, CAUSE_REQUIRED, AT(at, "messageExpression"), NULL,
                   "messageExpression must be non-empty if specified");
}

static void check_rule(const struct json *s, const struct json *rule, const struct field_path *at,
                       struct causes *causes)
{
    static const struct str reasons[] = {{"FieldValueDuplicate", 19},
                                         {"FieldValueForbidden", 19},
                                         {"FieldValueInvalid", 17},
                                         {"FieldValueRequired", 18}};
    check_rule_message(rule, at, causes);
    const struct json *reason = keyword(rule, "reason");
    bool is_known = !reason;
    for (size_t i = 0; i < N_ELEMENTS(reasons); i++)
        is_known |= str_eq(json_str(reason), reasons[i]);
    if (!is_known)
        causes_add_not_supported(causes, AT(at, "reason"), reason, reasons, N_ELEMENTS(reasons));
    const struct json *path = keyword(rule, "fieldPath");
    struct str text = json_str(path);
    const struct field_path *here = AT(at, "fieldPath");
    if (text.n && !str_trim(text).n)
        causes_add(causes, CAUSE_INVALID, here, path, "fieldPath must be non-empty if specified");
    if (has_newline(text))
        causes_add(causes, CAUSE_INVALID, here, path, "fieldPath must not contain line breaks");
    struct str error = STR_NONE;
    if (text.n && !schema_path_find(causes->arena, s, text, /* allow_brackets= */ true, &error))
        causes_add(causes, CAUSE_INVALID, here, path, "fieldPath must be a valid path");
}

static void check_rules(const struct json *s, const struct field_path *at, struct causes *causes)
{
    const struct json *rules = keyword(s, "x-kubernetes-validations");
    for (size_t i = 0; i < json_count(rules); i++) {
        struct field_path here = FIELD_INDEX(AT(at, "x-kubernetes-validations"), (int64_t) i);
        check_rule(s, &rules->items[i], &here, causes);
    }
}

/* ---- the walk ----------------------------------------------------------------------------- */

static void check_additional(const struct json *s, struct place place, const struct field_path *at,
                             struct causes *causes)
{
    const struct json *more = keyword(s, "additionalProperties");
    if (!more)
        return;
    bool allows_all = more->type == JSON_BOOL && more->b;
    if (json_count(keyword(s, "properties")) && !allows_all)
        forbid(at, "additionalProperties",
               "additionalProperties and properties are mutual exclusive", causes);
    if (place.inside_meta)
        place.no_defaults_why = "inside additionalProperties applying to object metadata";
    if (more->type == JSON_OBJECT)
        check_node(more, place, AT(at, "additionalProperties"), causes);
}

static void check_properties(const struct json *s, struct place place, bool is_root,
                             const struct field_path *at, struct causes *causes)
{
    static const char *const why[] = {"in top-level apiVersion", "in top-level kind",
                                      "in top-level metadata"};
    bool is_resource = is_root || keyword_is_true(s, "x-kubernetes-embedded-resource");
    JSON_FOR_EACH_MEMBER (keyword(s, "properties"), m) {
        struct str name = json_str(&m->key);
        struct place below = place;
        if (is_resource && schema_is_meta_name(name)) {
            below.inside_meta = true;
            if (is_root)
                below.no_defaults_why = why[str_is(name, "kind") + 2 * str_is(name, "metadata")];
        }
        struct field_path here = FIELD_KEY(AT(at, "properties"), name);
        check_node(&m->value, below, &here, causes);
    }
}

static void check_list(const struct json *list, struct place place, const struct field_path *at,
                       struct causes *causes)
{
    for (size_t i = 0; json_is(list, JSON_ARRAY) && i < list->n; i++) {
        struct field_path here = FIELD_INDEX(at, (int64_t) i);
        check_node(&list->items[i], place, &here, causes);
    }
}

static void check_children(const struct json *s, struct place place, bool is_root,
                           const struct field_path *at, struct causes *causes)
{
    check_additional(s, place, at, causes);
    check_properties(s, place, is_root, at, causes);
    const struct json *negated = keyword(s, "not"), *items = keyword(s, "items");
    if (negated)
        check_node(negated, place, AT(at, "not"), causes);
    check_list(keyword(s, "allOf"), place, AT(at, "allOf"), causes);
    check_list(keyword(s, "oneOf"), place, AT(at, "oneOf"), causes);
    check_list(keyword(s, "anyOf"), place, AT(at, "anyOf"), causes);
    JSON_FOR_EACH_MEMBER (keyword(s, "definitions"), m) {
        struct field_path here = FIELD_KEY(AT(at, "definitions"), json_str(&m->key));
        check_node(&m->value, place, &here, causes);
    }
    if (json_is(items, JSON_OBJECT))
        check_node(items, place, AT(at, "items"), causes);
    check_list(items, place, AT(at, "items"), causes);
}

static void check_node(const struct json *s, struct place place, const struct field_path *at,
                       struct causes *causes)
{
    bool is_root = place.is_root;
    place.is_root = false;
    check_type(s, at, causes);
    check_forbidden(s, at, causes);
    check_place(s, place, at, causes);
    check_children(s, place, is_root, at, causes);
    check_map_type(s, at, causes);
    check_list_type(s, at, causes);
    check_rules(s, at, causes);
}

void check_openapi(const struct json *schema, const struct field_path *at, struct causes *causes)
{
    check_node(schema, (struct place){.is_root = true}, at, causes);
}
