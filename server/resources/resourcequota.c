/* SPDX-License-Identifier: Apache-2.0 */
#include "resources/checks.h"
#include "resources/resources.h"

/* A quota begins uncounted, whatever its writer says. */
static void prepare(struct hook_context *h, const struct json *old, struct json *object)
{
    if (!old)
        (void) json_set(h->arena, object, STR("status"), json_object());
}

/* ---- scopes ------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    bool is_for_pods;   /* applies to pods and what they compute with alone */
    bool is_for_counts; /* ... and of those only to their number */
} scopes[] = {
    {"Terminating", true, false},
    {"NotTerminating", true, false},
    {"NotBestEffort", true, false},
    {"BestEffort", true, true},
    {"PriorityClass", true, false},
    {"CrossNamespacePodAffinity", true, false},
    {"VolumeAttributesClass", false, false},
};

static bool is_computed(struct str resource)
{
    static const char *const names[] = {"cpu",           "memory",       "limits.cpu",
                                        "limits.memory", "requests.cpu", "requests.memory"};
    for (size_t i = 0; i < N_ELEMENTS(names); i++)
        if (str_is(resource, names[i]))
            return true;
    return false;
}

static bool scope_is_known(struct str scope)
{
    for (size_t i = 0; i < N_ELEMENTS(scopes); i++)
        if (str_is(scope, scopes[i].name))
            return true;
    return false;
}

static bool scope_fits(struct str scope, struct str resource)
{
    if (str_is(scope, "VolumeAttributesClass"))
        return str_is(resource, "persistentvolumeclaims") || str_is(resource, "requests.storage");
    for (size_t i = 0; i < N_ELEMENTS(scopes); i++)
        if (str_is(scope, scopes[i].name) && scopes[i].is_for_pods)
            return str_is(resource, "pods") || (!scopes[i].is_for_counts && is_computed(resource));
    return true;
}

static bool scope_fits_all(struct str scope, const struct json *hard)
{
    JSON_FOR_EACH_MEMBER (hard, m)
        if (resource_is_standard_quota(json_str(&m->key)) && !scope_fits(scope, json_str(&m->key)))
            return false;
    return true;
}

static void check_scopes(struct causes *causes, const struct field_path *at_spec,
                         const struct json *spec)
{
    static const char *const pairs[][2] = {{"BestEffort", "NotBestEffort"},
                                           {"Terminating", "NotTerminating"}};
    const struct field_path at = FIELD_NAME(at_spec, STR("scopes"));
    const struct json *list = json_get(spec, STR("scopes"));
    JSON_FOR_EACH_ITEM (list, scope) {
        if (!scope_is_known(json_str(scope)))
            causes_add(causes, CAUSE_INVALID, &at, list, "unsupported scope");
        if (!scope_fits_all(json_str(scope), json_get(spec, STR("hard"))))
            causes_add(causes, CAUSE_INVALID, &at, list, "unsupported scope applied to resource");
    }
    for (size_t i = 0; i < N_ELEMENTS(pairs); i++)
        if (list_has(list, str_of(pairs[i][0])) && list_has(list, str_of(pairs[i][1])))
            causes_add(causes, CAUSE_INVALID, &at, list, "conflicting scopes");
}

static void check_operator(struct causes *causes, const struct field_path *at,
                           const struct json *condition)
{
    const struct json comparison = shown(json_get_str(condition, STR("operator")));
    const struct json *values = json_get(condition, STR("values"));
    const struct str scope = json_get_str(condition, STR("scopeName")),
                     text = json_str(&comparison);
    const struct field_path at_operator = FIELD_NAME(at, STR("operator"));
    const struct field_path at_values = FIELD_NAME(at, STR("values"));
    const bool has_values =
        str_is(scope, "PriorityClass") || str_is(scope, "VolumeAttributesClass");
    if (scope_is_known(scope) && !has_values && !str_is(text, "Exists"))
        causes_add(causes, CAUSE_INVALID, &at_operator, &comparison,
                   "must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, "
                   "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
                   "ResourceQuotaScopeNotBestEffort or "
                   "ResourceQuotaScopeCrossNamespacePodAffinity");
    if (str_is(text, "In") || str_is(text, "NotIn")) {
        if (json_count(values) == 0)
            causes_add(
                causes, CAUSE_REQUIRED, &at_values, NULL,
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector");
    } else if (str_is(text, "Exists") || str_is(text, "DoesNotExist")) {
        if (json_count(values) > 0)
            causes_add(causes, CAUSE_INVALID, &at_values, values,
                       "must be no value when `operator` is 'Exists' or 'DoesNotExist' for scope "
                       "selector");
    } else {
        causes_add(causes, CAUSE_INVALID, &at_operator, &comparison,
                   "not a valid selector operator");
    }
}

static void check_selector(struct causes *causes, const struct field_path *at_spec,
                           const struct json *spec)
{
    const struct field_path at_selector = FIELD_NAME(at_spec, STR("scopeSelector"));
    const struct field_path at = FIELD_NAME(&at_selector, STR("matchExpressions"));
    const struct json *selector = json_get(spec, STR("scopeSelector"));
    const struct json *conditions = json_get(selector, STR("matchExpressions"));
    JSON_FOR_EACH_ITEM (conditions, condition) {
        const struct json scope = shown(json_get_str(condition, STR("scopeName")));
        if (!scope_is_known(json_str(&scope)))
            causes_add(causes, CAUSE_INVALID, &FIELD_NAME(&at, STR("scopeName")), &scope,
                       "unsupported scope");
        if (!scope_fits_all(json_str(&scope), json_get(spec, STR("hard"))))
            causes_add(causes, CAUSE_INVALID, &at, selector,
                       "unsupported scope applied to resource");
        check_operator(causes, &at, condition);
    }
}

/* ---- rules -------------------------------------------------------------------------------- */

static void check_amounts(struct causes *causes, const struct field_path *up,
                          const struct json *object, const char *member)
{
    const struct field_path at = FIELD_NAME(up, str_of(member));
    const struct json *amounts = json_get(object, str_of(member));
    JSON_FOR_EACH_MEMBER (amounts, m) {
        const struct field_path at_key = FIELD_KEY(&at, json_str(&m->key));
        check_quota_resource_name(causes, &at_key, json_str(&m->key));
        check_resource_amount(causes, &at_key, json_str(&m->key), &m->value);
    }
}

static void validate(struct hook_context *h, const struct json *object, struct causes *causes)
{
    (void) h;
    const struct field_path at_spec = FIELD_NAME(NULL, STR("spec"));
    const struct field_path at_status = FIELD_NAME(NULL, STR("status"));
    const struct json *spec = json_get(object, STR("spec"));
    const struct json *status = json_get(object, STR("status"));
    check_amounts(causes, &at_spec, spec, "hard");
    check_scopes(causes, &at_spec, spec);
    check_selector(causes, &at_spec, spec);
    check_amounts(causes, &at_status, status, "hard");
    check_amounts(causes, &at_status, status, "used");
}

static bool has_all(const struct json *list, const struct json *wanted)
{
    JSON_FOR_EACH_ITEM (wanted, item)
        if (!list_has(list, json_str(item)))
            return false;
    return true;
}

static void validate_update(struct hook_context *h, const struct json *old,
                            const struct json *object, struct causes *causes)
{
    (void) h;
    const struct field_path at_spec = FIELD_NAME(NULL, STR("spec"));
    const struct json *before = json_at(old, "spec", "scopes", NULL);
    const struct json *after = json_at(object, "spec", "scopes", NULL);
    const struct json none = json_null();
    if (!has_all(before, after) || !has_all(after, before))
        causes_add(causes, CAUSE_INVALID, &FIELD_NAME(&at_spec, STR("scopes")),
                   after ? after : &none, "field is immutable");
}

const struct kind_hooks resourcequota_hooks = {
    .group = STR(""),
    .plural = STR("resourcequotas"),
    .prepare = prepare,
    .validate = validate,
    .validate_update = validate_update,
    .returns_deleted = true,
};
