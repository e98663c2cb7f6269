/* SPDX-License-Identifier: Apache-2.0 */
#include "resources/checks.h"
#include "resources/webhookconfiguration.h"

/* A list that may not be empty, nor have others beside "*". */
static void check_list(struct causes *causes, const struct field_path *at, const struct json *list,
                       const char *others)
{
    if (!json_count(list))
        causes_add(causes, CAUSE_REQUIRED, at, NULL, "%s", "");
    else if (list->n > 1 && list_has(list, STR("*")))
        causes_add(causes, CAUSE_INVALID, at, list, "if '*' is present, must not specify other %s",
                   others);
}

static void check_operations(struct causes *causes, const struct field_path *at,
                             const struct json *operations)
{
    static const struct str supported[] = {STR("*"), STR("CONNECT"), STR("CREATE"), STR("DELETE"),
                                           STR("UPDATE")};
    int64_t i = 0;
    check_list(causes, at, operations, "operations");
    JSON_FOR_EACH_ITEM (operations, operation)
        check_supported(causes, &FIELD_INDEX(at, i++), operation, supported, N_ELEMENTS(supported));
}

static void check_versions(struct causes *causes, const struct field_path *at,
                           const struct json *versions)
{
    int64_t i = 0;
    check_list(causes, at, versions, "API versions");
    JSON_FOR_EACH_ITEM (versions, version) {
        const struct field_path here = FIELD_INDEX(at, i++);
        if (!version->n)
            causes_add(causes, CAUSE_REQUIRED, &here, NULL, "%s", "");
    }
}

/* ---- resources ---------------------------------------------------------------------------- */

/* "things/status" in its parts; no slash: the second is STR_NONE. */
struct resource_name {
    struct str resource, subresource;
};

static struct resource_name split(const struct json *text)
{
    const struct str s = json_str(text);
    const ptrdiff_t slash = str_find(s, '/');
    return slash < 0 ? (struct resource_name){s, STR_NONE}
                     : (struct resource_name){str_sub(s, 0, (size_t) slash),
                                              str_from(s, (size_t) slash + 1)};
}

/* One that an earlier wildcard covers already. */
static void check_covered(struct causes *causes, const struct field_path *at,
                          const struct json *resources, size_t i)
{
    const struct json *text = &resources->items[i];
    const struct resource_name this = split(text);
    bool by_resource = false, by_subresource = false;
    for (size_t j = 0; j < i; j++) {
        const struct resource_name other = split(&resources->items[j]);
        by_resource |= str_is(other.subresource, "*") && str_eq(other.resource, this.resource);
        by_subresource |= other.subresource.p && str_is(other.resource, "*") &&
                          str_eq(other.subresource, this.subresource);
    }
    if (by_resource)
        causes_add(causes, CAUSE_INVALID, at, text, "if '%.*s/*' is present, must not specify %.*s",
                   STR_ARG(this.resource), STR_ARG(json_str(text)));
    if (by_subresource)
        causes_add(causes, CAUSE_INVALID, at, text, "if '*/%.*s' is present, must not specify %.*s",
                   STR_ARG(this.subresource), STR_ARG(json_str(text)));
}

static void check_resources(struct causes *causes, const struct field_path *at,
                            const struct json *resources)
{
    bool has_plain = false;
    if (!json_count(resources))
        causes_add(causes, CAUSE_REQUIRED, at, NULL, "%s", "");
    if (!webhook_check_count(causes, at, resources))
        return;
    for (size_t i = 0; i < json_count(resources); i++) {
        const struct field_path here = FIELD_INDEX(at, (int64_t) i);
        const struct str text = json_str(&resources->items[i]);
        if (!text.n)
            causes_add(causes, CAUSE_REQUIRED, &here, NULL, "%s", "");
        else if (str_find(text, '/') >= 0)
            check_covered(causes, &here, resources, i);
        else
            has_plain |= !str_is(text, "*");
    }
    if (json_count(resources) > 1 && list_has(resources, STR("*/*")))
        causes_add(causes, CAUSE_INVALID, at, resources,
                   "if '*/*' is present, must not specify other resources");
    if (list_has(resources, STR("*")) && has_plain)
        causes_add(causes, CAUSE_INVALID, at, resources,
                   "if '*' is present, must not specify other resources without subresources");
}

void webhook_check_rule(struct causes *causes, const struct field_path *at, const struct json *rule)
{
    static const struct str scopes[] = {STR("*"), STR("Cluster"), STR("Namespaced")};
    check_operations(causes, &FIELD_NAME(at, STR("operations")), json_get(rule, STR("operations")));
    check_list(causes, &FIELD_NAME(at, STR("apiGroups")), json_get(rule, STR("apiGroups")),
               "API groups");
    check_versions(causes, &FIELD_NAME(at, STR("apiVersions")), json_get(rule, STR("apiVersions")));
    check_resources(causes, &FIELD_NAME(at, STR("resources")), json_get(rule, STR("resources")));
    check_supported(causes, &FIELD_NAME(at, STR("scope")), json_get(rule, STR("scope")), scopes,
                    N_ELEMENTS(scopes));
}
