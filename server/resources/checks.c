/* SPDX-License-Identifier: Apache-2.0 */
#include "resources/checks.h"

#define DATA_KEY_MAX_BYTES 253

struct json shown(struct str text)
{
    return json_string(text.p ? text : STR(""));
}

bool list_has(const struct json *list, struct str wanted)
{
    JSON_FOR_EACH_ITEM (list, item)
        if (str_eq(json_str(item), wanted))
            return true;
    return false;
}

static bool is_nothing(const struct json *v)
{
    return !v || v->type == JSON_NULL || (v->type >= JSON_STRING && v->n == 0);
}

bool same_member(const struct json *a, const struct json *b, struct str member)
{
    const struct json *x = json_get(a, member), *y = json_get(b, member);
    if (is_nothing(x) || is_nothing(y))
        return is_nothing(x) == is_nothing(y);
    return json_equal(x, y);
}

void check_required(struct causes *causes, const struct field_path *at, const struct json *object,
                    struct str member)
{
    if (is_nothing(json_get(object, member)))
        causes_add(causes, CAUSE_REQUIRED, &FIELD_NAME(at, member), NULL, "%s", "");
}

void check_supported(struct causes *causes, const struct field_path *at, const struct json *value,
                     const struct str *supported, size_t n_supported)
{
    if (!value || value->type == JSON_NULL)
        return;
    for (size_t i = 0; i < n_supported; i++)
        if (str_eq(json_str(value), supported[i]))
            return;
    causes_add_not_supported(causes, at, value, supported, n_supported);
}

/* ---- keys and labels ---------------------------------------------------------------------- */

static bool is_data_key(struct str key)
{
    for (size_t i = 0; i < key.n; i++) {
        const char c = key.p[i];
        const bool is_alnum =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!is_alnum && c != '-' && c != '_' && c != '.')
            return false;
    }
    return key.n > 0;
}

struct name_errors check_data_key(struct arena *a, struct str key)
{
    (void) a;
    struct name_errors e = {0};
    if (key.n > DATA_KEY_MAX_BYTES)
        e.text[e.n++] = STR("must be no more than 253 characters");
    if (!is_data_key(key))
        e.text[e.n++] =
            STR("a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
                "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
                "'[-._a-zA-Z0-9]+')");
    if (str_is(key, "."))
        e.text[e.n++] = STR("must not be '.'");
    else if (str_is(key, ".."))
        e.text[e.n++] = STR("must not be '..'");
    else if (str_starts_with(key, STR("..")))
        e.text[e.n++] = STR("must not start with '..'");
    return e;
}

void check_label_name(struct causes *causes, const struct field_path *at, struct str name)
{
    const struct name_errors errors = name_qualified(causes->arena, name);
    object_meta_add_errors(causes, at, name, &errors);
}

static void check_label_value(struct causes *causes, const struct field_path *at, struct str value)
{
    const struct name_errors errors = name_label_value(causes->arena, value);
    object_meta_add_errors(causes, at, value, &errors);
}

static void check_condition(struct causes *causes, const struct field_path *at,
                            const struct json *condition)
{
    const struct json comparison = shown(json_get_str(condition, STR("operator")));
    const struct json *values = json_get(condition, STR("values"));
    const struct field_path at_values = FIELD_NAME(at, STR("values"));
    if (str_is(json_str(&comparison), "In") || str_is(json_str(&comparison), "NotIn")) {
        if (json_count(values) == 0)
            causes_add(causes, CAUSE_REQUIRED, &at_values, NULL,
                       "must be specified when `operator` is 'In' or 'NotIn'");
    } else if (str_is(json_str(&comparison), "Exists") ||
               str_is(json_str(&comparison), "DoesNotExist")) {
        if (json_count(values) > 0)
            causes_add(causes, CAUSE_FORBIDDEN, &at_values, NULL,
                       "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    } else {
        causes_add(causes, CAUSE_INVALID, &FIELD_NAME(at, STR("operator")), &comparison,
                   "not a valid selector operator");
    }
    check_label_name(causes, &FIELD_NAME(at, STR("key")), json_get_str(condition, STR("key")));
    int64_t i = 0;
    JSON_FOR_EACH_ITEM (values, value)
        check_label_value(causes, &FIELD_INDEX(&at_values, i++), json_str(value));
}

void check_label_selector(struct causes *causes, const struct field_path *at,
                          const struct json *selector)
{
    const struct field_path at_labels = FIELD_NAME(at, STR("matchLabels"));
    const struct field_path at_conditions = FIELD_NAME(at, STR("matchExpressions"));
    const struct json *labels = json_get(selector, STR("matchLabels"));
    const struct json *conditions = json_get(selector, STR("matchExpressions"));
    JSON_FOR_EACH_MEMBER (labels, m) {
        check_label_name(causes, &at_labels, json_str(&m->key));
        check_label_value(causes, &at_labels, json_str(&m->value));
    }
    int64_t i = 0;
    JSON_FOR_EACH_ITEM (conditions, condition)
        check_condition(causes, &FIELD_INDEX(&at_conditions, i++), condition);
}

/* ---- quantities --------------------------------------------------------------------------- */

struct quantity check_quantity(const struct json *value)
{
    struct quantity q = {0};
    struct str error;
    (void) quantity_parse(json_str(value), &q, &error);
    return q;
}

bool check_read_amount(const struct json *value, struct quantity *ret)
{
    struct str error = STR_NONE;
    if (json_is(value, JSON_INT)) {
        *ret = quantity_from_int(value->i);
        return true;
    }
    return json_is(value, JSON_STRING) && quantity_parse(json_str(value), ret, &error) == 0;
}

void check_amount(struct causes *causes, const struct field_path *at, const struct json *value)
{
    struct quantity q = {0};
    if (!value || value->type == JSON_NULL)
        return;
    if (!check_read_amount(value, &q))
        causes_add(causes, CAUSE_INVALID, at, value, "must be a quantity, (e.g. 512Mi)");
    else if (quantity_sign(&q) <= 0)
        causes_add(causes, CAUSE_INVALID, at, value, "must be greater than zero");
}

void check_positive(struct causes *causes, const struct field_path *at, const struct json *value)
{
    const struct quantity q = check_quantity(value);
    if (quantity_sign(&q) <= 0)
        causes_add(causes, CAUSE_INVALID, at, value, "must be greater than zero");
}

void check_resource_amount(struct causes *causes, const struct field_path *at, struct str resource,
                           const struct json *value)
{
    static const char *const counted[] = {"pods",
                                          "resourcequotas",
                                          "services",
                                          "replicationcontrollers",
                                          "secrets",
                                          "configmaps",
                                          "persistentvolumeclaims",
                                          "services.nodeports",
                                          "services.loadbalancers"};
    const struct quantity q = check_quantity(value);
    if (quantity_sign(&q) < 0)
        causes_add(causes, CAUSE_INVALID, at, value, "must be greater than or equal to 0");
    bool is_counted = !resource_is_native(resource) && !str_starts_with(resource, STR("requests."));
    for (size_t i = 0; i < N_ELEMENTS(counted); i++)
        is_counted |= str_is(resource, counted[i]);
    if (is_counted && !quantity_is_integer(&q))
        causes_add(causes, CAUSE_INVALID, at, value, "must be an integer");
}

/* ---- names of resources ------------------------------------------------------------------- */

enum { RESOURCE_ANY = 1, RESOURCE_QUOTA = 2, RESOURCE_CONTAINER = 4 };

static const struct {
    const char *name;
    unsigned uses;
} resources[] = {
    {"cpu", RESOURCE_ANY | RESOURCE_QUOTA | RESOURCE_CONTAINER},
    {"memory", RESOURCE_ANY | RESOURCE_QUOTA | RESOURCE_CONTAINER},
    {"ephemeral-storage", RESOURCE_ANY | RESOURCE_QUOTA | RESOURCE_CONTAINER},
    {"storage", RESOURCE_ANY},
    {"requests.cpu", RESOURCE_ANY | RESOURCE_QUOTA},
    {"requests.memory", RESOURCE_ANY | RESOURCE_QUOTA},
    {"requests.storage", RESOURCE_ANY | RESOURCE_QUOTA},
    {"requests.ephemeral-storage", RESOURCE_ANY | RESOURCE_QUOTA},
    {"limits.cpu", RESOURCE_ANY | RESOURCE_QUOTA},
    {"limits.memory", RESOURCE_ANY | RESOURCE_QUOTA},
    {"limits.ephemeral-storage", RESOURCE_ANY | RESOURCE_QUOTA},
    {"pods", RESOURCE_ANY | RESOURCE_QUOTA},
    {"resourcequotas", RESOURCE_ANY | RESOURCE_QUOTA},
    {"services", RESOURCE_ANY | RESOURCE_QUOTA},
    {"replicationcontrollers", RESOURCE_ANY | RESOURCE_QUOTA},
    {"secrets", RESOURCE_ANY | RESOURCE_QUOTA},
    {"configmaps", RESOURCE_ANY | RESOURCE_QUOTA},
    {"persistentvolumeclaims", RESOURCE_ANY | RESOURCE_QUOTA},
    {"services.nodeports", RESOURCE_ANY | RESOURCE_QUOTA},
    {"services.loadbalancers", RESOURCE_ANY | RESOURCE_QUOTA},
};

static bool is_huge_pages(struct str name)
{
    return str_starts_with(name, STR("hugepages-"));
}

static bool has_use(struct str name, unsigned use)
{
    if (is_huge_pages(name))
        return true;
    if (use != RESOURCE_CONTAINER && str_starts_with(name, STR("requests.hugepages-")))
        return true;
    for (size_t i = 0; i < N_ELEMENTS(resources); i++)
        if (str_is(name, resources[i].name))
            return resources[i].uses & use;
    return false;
}

bool resource_is_native(struct str name)
{
    return str_find(name, '/') < 0 || str_find_str(name, STR("kubernetes.io/")) >= 0;
}

bool resource_is_standard_quota(struct str name)
{
    return has_use(name, RESOURCE_QUOTA);
}

bool resource_can_overcommit(struct str name)
{
    return resource_is_native(name) && !is_huge_pages(name);
}

void check_resource_name(struct causes *causes, const struct field_path *at, struct str name)
{
    const struct json value = shown(name);
    const struct name_errors errors = name_qualified(causes->arena, name);
    object_meta_add_errors(causes, at, name, &errors);
    if (errors.n == 0 && str_find(name, '/') < 0 && !has_use(name, RESOURCE_ANY))
        causes_add(causes, CAUSE_INVALID, at, &value,
                   "must be a standard resource type or fully qualified");
}

static bool is_extended(struct arena *a, struct str name)
{
    if (str_starts_with(name, STR("requests.")))
        return false;
    return name_qualified(a, arena_printf(a, "requests.%.*s", STR_ARG(name))).n == 0;
}

void check_container_resource_name(struct causes *causes, const struct field_path *at,
                                   struct str name)
{
    const struct json value = shown(name);
    check_resource_name(causes, at, name);
    if (str_find(name, '/') < 0) {
        if (!has_use(name, RESOURCE_CONTAINER))
            causes_add(causes, CAUSE_INVALID, at, &value,
                       "must be a standard resource for containers");
    } else if (!resource_is_native(name) && !is_extended(causes->arena, name)) {
        causes_add(causes, CAUSE_INVALID, at, &value,
                   "doesn't follow extended resource name standard");
    }
}

void check_quota_resource_name(struct causes *causes, const struct field_path *at, struct str name)
{
    const struct json value = shown(name);
    check_resource_name(causes, at, name);
    if (str_find(name, '/') < 0 && !has_use(name, RESOURCE_QUOTA))
        causes_add(causes, CAUSE_INVALID, at, &value, "must be a standard resource for quota");
}
