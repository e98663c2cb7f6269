/* SPDX-License-Identifier: Apache-2.0 */
/* Roles and bindings as data; what they permit is decided elsewhere. */
#include "resources/checks.h"
#include "resources/resources.h"

#define RBAC_GROUP "rbac.authorization.k8s.io"

static struct name_errors check_name(struct arena *a, struct str name, bool is_prefix)
{
    (void) is_prefix;
    return name_path_segment(a, name);
}

/* ---- roles -------------------------------------------------------------------------------- */

static void require_items(struct causes *causes, const struct field_path *at,
                          const struct json *rule, const char *member, const char *detail)
{
    if (json_count(json_get(rule, str_of(member))) == 0)
        causes_add(causes, CAUSE_REQUIRED, &FIELD_NAME(at, str_of(member)), NULL, "%s", detail);
}

static void check_rule(struct hook_context *h, struct causes *causes, const struct field_path *at,
                       const struct json *rule)
{
    const struct json *urls = json_get(rule, STR("nonResourceURLs"));
    const size_t n_groups = json_count(json_get(rule, STR("apiGroups")));
    const size_t n_resources = json_count(json_get(rule, STR("resources")));
    const size_t n_names = json_count(json_get(rule, STR("resourceNames")));
    const struct field_path at_urls = FIELD_NAME(at, STR("nonResourceURLs"));
    require_items(causes, at, rule, "verbs", "verbs must contain at least one value");
    if (json_count(urls) > 0) {
        if (h->kind->is_namespaced)
            causes_add(causes, CAUSE_INVALID, &at_urls, urls,
                       "namespaced rules cannot apply to non-resource URLs");
        if (n_groups + n_resources + n_names > 0)
            causes_add(causes, CAUSE_INVALID, &at_urls, urls,
                       "rules cannot apply to both regular resources and non-resource URLs");
        return;
    }
    require_items(causes, at, rule, "apiGroups",
                  "resource rules must supply at least one api group");
    require_items(causes, at, rule, "resources",
                  "resource rules must supply at least one resource");
}

static void validate_role(struct hook_context *h, const struct json *object, struct causes *causes)
{
    const struct field_path at = FIELD_NAME(NULL, STR("rules"));
    const struct json *rules = json_get(object, STR("rules"));
    int64_t i = 0;
    JSON_FOR_EACH_ITEM (rules, rule)
        check_rule(h, causes, &FIELD_INDEX(&at, i++), rule);
}

static void validate_cluster_role(struct hook_context *h, const struct json *object,
                                  struct causes *causes)
{
    const struct field_path at_rule = FIELD_NAME(NULL, STR("aggregationRule"));
    const struct field_path at = FIELD_NAME(&at_rule, STR("clusterRoleSelectors"));
    const struct json *aggregation = json_get(object, STR("aggregationRule"));
    validate_role(h, object, causes);
    if (!json_is(aggregation, JSON_OBJECT))
        return;
    const struct json *selectors = json_get(aggregation, STR("clusterRoleSelectors"));
    if (json_count(selectors) == 0)
        causes_add(causes, CAUSE_REQUIRED, &at, NULL,
                   "at least one clusterRoleSelector required if aggregationRule is non-nil");
    int64_t i = 0;
    JSON_FOR_EACH_ITEM (selectors, selector)
        check_label_selector(causes, &FIELD_INDEX(&at, i++), selector);
}

/* ---- bindings ----------------------------------------------------------------------------- */

static void default_group(struct arena *a, struct json *reference)
{
    if (json_is(reference, JSON_OBJECT) && json_get_str(reference, STR("apiGroup")).n == 0)
        (void) json_set(a, reference, STR("apiGroup"), json_string(STR(RBAC_GROUP)));
}

static void set_defaults(struct hook_context *h, struct json *object)
{
    default_group(h->arena, json_get(object, STR("roleRef")));
    const struct json *subjects = json_get(object, STR("subjects"));
    JSON_FOR_EACH_ITEM (subjects, subject) {
        const struct str kind = json_get_str(subject, STR("kind"));
        if (str_is(kind, "User") || str_is(kind, "Group"))
            default_group(h->arena, subject);
    }
}

static void check_group(struct causes *causes, const struct field_path *at,
                        const struct json *reference, struct str wanted)
{
    const struct json group = shown(json_get_str(reference, STR("apiGroup")));
    check_supported(causes, &FIELD_NAME(at, STR("apiGroup")), &group, &wanted, 1);
}

static void check_account(struct hook_context *h, struct causes *causes,
                          const struct field_path *at, const struct json *subject)
{
    const struct str name = json_get_str(subject, STR("name"));
    if (name.n > 0) {
        const struct name_errors errors = name_subdomain(causes->arena, name);
        object_meta_add_errors(causes, &FIELD_NAME(at, STR("name")), name, &errors);
    }
    check_group(causes, at, subject, STR(""));
    if (!h->kind->is_namespaced)
        check_required(causes, at, subject, STR("namespace"));
}

static void check_subject(struct hook_context *h, struct causes *causes,
                          const struct field_path *at, const struct json *subject)
{
    static const struct str kinds[] = {STR("ServiceAccount"), STR("User"), STR("Group")};
    const struct json kind = shown(json_get_str(subject, STR("kind")));
    check_required(causes, at, subject, STR("name"));
    if (str_is(json_str(&kind), "ServiceAccount")) {
        check_account(h, causes, at, subject);
    } else if (str_is(json_str(&kind), "User") || str_is(json_str(&kind), "Group")) {
        const struct json name = shown(json_get_str(subject, STR("name")));
        if (name.n == 0)
            causes_add(causes, CAUSE_INVALID, &FIELD_NAME(at, STR("name")), &name,
                       "%s name cannot be empty",
                       str_is(json_str(&kind), "User") ? "user" : "group");
        check_group(causes, at, subject, STR(RBAC_GROUP));
    } else {
        causes_add_not_supported(causes, &FIELD_NAME(at, STR("kind")), &kind, kinds,
                                 N_ELEMENTS(kinds));
    }
}

static void validate_binding(struct hook_context *h, const struct json *object,
                             struct causes *causes)
{
    static const struct str role_kinds[] = {STR("Role"), STR("ClusterRole")};
    const struct field_path at = FIELD_NAME(NULL, STR("roleRef"));
    const struct field_path at_subjects = FIELD_NAME(NULL, STR("subjects"));
    const struct json *role = json_get(object, STR("roleRef"));
    const struct json kind = shown(json_get_str(role, STR("kind")));
    const struct str name = json_get_str(role, STR("name"));
    const size_t n_skipped = h->kind->is_namespaced ? 0 : 1;
    check_group(causes, &at, role, STR(RBAC_GROUP));
    check_supported(causes, &FIELD_NAME(&at, STR("kind")), &kind, role_kinds + n_skipped,
                    N_ELEMENTS(role_kinds) - n_skipped);
    check_required(causes, &at, role, STR("name"));
    if (name.n > 0) {
        const struct name_errors errors = name_path_segment(causes->arena, name);
        object_meta_add_errors(causes, &FIELD_NAME(&at, STR("name")), name, &errors);
    }
    const struct json *subjects = json_get(object, STR("subjects"));
    int64_t i = 0;
    JSON_FOR_EACH_ITEM (subjects, subject)
        check_subject(h, causes, &FIELD_INDEX(&at_subjects, i++), subject);
}

/* The message shows the reference under the names of its Go fields. */
static void validate_binding_update(struct hook_context *h, const struct json *old,
                                    const struct json *object, struct causes *causes)
{
    (void) h;
    const struct json *role = json_get(object, STR("roleRef"));
    if (same_member(old, object, STR("roleRef")))
        return;
    struct json value = json_object();
    (void) json_append_member(causes->arena, &value, STR("APIGroup"),
                              shown(json_get_str(role, STR("apiGroup"))));
    (void) json_append_member(causes->arena, &value, STR("Kind"),
                              shown(json_get_str(role, STR("kind"))));
    (void) json_append_member(causes->arena, &value, STR("Name"),
                              shown(json_get_str(role, STR("name"))));
    causes_add(causes, CAUSE_INVALID, &FIELD_NAME(NULL, STR("roleRef")), &value,
               "cannot change roleRef");
}

const struct kind_hooks role_hooks = {
    .group = STR(RBAC_GROUP),
    .plural = STR("roles"),
    .validate = validate_role,
    .check_name = check_name,
    .creates_on_update = true,
};

const struct kind_hooks clusterrole_hooks = {
    .group = STR(RBAC_GROUP),
    .plural = STR("clusterroles"),
    .validate = validate_cluster_role,
    .check_name = check_name,
    .creates_on_update = true,
};

const struct kind_hooks rolebinding_hooks = {
    .group = STR(RBAC_GROUP),
    .plural = STR("rolebindings"),
    .set_defaults = set_defaults,
    .validate = validate_binding,
    .validate_update = validate_binding_update,
    .check_name = check_name,
    .creates_on_update = true,
};

const struct kind_hooks clusterrolebinding_hooks = {
    .group = STR(RBAC_GROUP),
    .plural = STR("clusterrolebindings"),
    .set_defaults = set_defaults,
    .validate = validate_binding,
    .validate_update = validate_binding_update,
    .check_name = check_name,
    .creates_on_update = true,
};
