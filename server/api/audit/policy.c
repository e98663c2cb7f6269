/* SPDX-License-Identifier: Apache-2.0 */
/* Which rule of the policy a request meets. */
#include "api/audit/policy_internal.h"

#include "api/request.h"

struct audit_policy *audit_policy_default(void)
{
    struct arena *a = arena_new();
    struct audit_policy *p = ARENA_NEW(a, struct audit_policy);
    p->arena = a;
    p->rules = ARENA_NEW(a, struct policy_rule);
    p->n_rules = 1;
    p->rules[0].level = AUDIT_METADATA;
    p->rules[0].omitted_stages = 1u << AUDIT_REQUEST_RECEIVED | 1u << AUDIT_RESPONSE_STARTED;
    return p;
}

void audit_policy_free(struct audit_policy *p)
{
    if (p)
        arena_free(p->arena);
}

static bool has(const struct policy_names *names, struct str s)
{
    for (size_t i = 0; i < names->n; i++)
        if (str_eq(names->items[i], s))
            return true;
    return false;
}

static bool has_any_group(const struct policy_names *groups, const struct user *u)
{
    for (size_t i = 0; u && i < u->n_groups; i++)
        if (has(groups, u->groups[i]))
            return true;
    return false;
}

/* ---- resources ------------------------------------------------------------------------------ */

/* A star alone stands for everything; before the slash for any resource with that subresource,
 * behind it for a resource with whatever is below it. */
static bool is_resource(struct str rule, const struct audit_record *r)
{
    if (str_is(rule, "*"))
        return true;
    ptrdiff_t slash = str_find(rule, '/');
    if (slash < 0)
        return !r->subresource.n && str_eq(rule, r->resource);
    struct str resource = str_sub(rule, 0, (size_t) slash);
    struct str subresource = str_from(rule, (size_t) slash + 1);
    if (str_is(subresource, "*"))
        return str_eq(resource, r->resource);
    return r->subresource.n && str_eq(subresource, r->subresource) &&
           (str_is(resource, "*") || str_eq(resource, r->resource));
}

static bool is_in_group(const struct policy_resources *in, const struct audit_record *r)
{
    if (!str_eq(in->group, r->group))
        return false;
    if (!in->resources.n)
        return true;
    if (in->names.n && !has(&in->names, r->name))
        return false;
    for (size_t i = 0; i < in->resources.n; i++)
        if (is_resource(in->resources.items[i], r))
            return true;
    return false;
}

static bool meets_resource(const struct policy_rule *rule, const struct audit_record *r)
{
    if (!r->is_resource)
        return false;
    if (rule->namespaces.n && !has(&rule->namespaces, r->namespace.p ? r->namespace : STR("")))
        return false;
    for (size_t i = 0; i < rule->n_resources; i++)
        if (is_in_group(&rule->resources[i], r))
            return true;
    return rule->n_resources == 0;
}

/* ---- paths ---------------------------------------------------------------------------------- */

static bool is_path(struct str rule, struct str path)
{
    if (str_ends_with(rule, STR("*")))
        return str_starts_with(path, str_sub(rule, 0, rule.n - 1));
    return str_eq(rule, path);
}

static bool is_any_path(const struct policy_names *paths, struct str path)
{
    for (size_t i = 0; i < paths->n; i++)
        if (is_path(paths->items[i], path))
            return true;
    return false;
}

static bool meets_path(const struct policy_rule *rule, const struct audit_record *r)
{
    if (r->is_resource)
        return false;
    ptrdiff_t query = str_find(r->uri, '?');
    struct str path = query < 0 ? r->uri : str_sub(r->uri, 0, (size_t) query);
    if (str_find(path, '%') < 0)
        return is_any_path(&rule->paths, path);
    /* As it is understood, not as it is spelt: "/%6detrics" is no way around a rule. */
    ARENA_AUTO a = arena_new();
    struct str decoded = STR_NONE;
    return is_any_path(&rule->paths, request_decode_path(a, path, &decoded) < 0 ? path : decoded);
}

/* ---- the judgement -------------------------------------------------------------------------- */

static bool meets(const struct policy_rule *rule, const struct audit_record *r)
{
    if (rule->users.n && (!r->user || !has(&rule->users, r->user->name)))
        return false;
    if (rule->groups.n && !has_any_group(&rule->groups, r->user))
        return false;
    if (rule->verbs.n && !has(&rule->verbs, r->verb))
        return false;
    if (rule->namespaces.n || rule->n_resources)
        return meets_resource(rule, r);
    return !rule->paths.n || meets_path(rule, r);
}

/* Secrets, tokens to be judged, tokens just made. */
static bool holds_secrets(const struct audit_record *r)
{
    if (!r->is_resource)
        return false;
    if (!r->group.n)
        return str_is(r->resource, "secrets") ||
               (str_is(r->resource, "serviceaccounts") && str_is(r->subresource, "token"));
    return str_is(r->group, "authentication.k8s.io") && str_is(r->resource, "tokenreviews");
}

void audit_policy_judge(const struct audit_policy *p, struct audit_record *r)
{
    r->level = AUDIT_NONE;
    r->omitted_stages = p->omitted_stages;
    r->omit_managed_fields = p->omit_managed_fields;
    for (size_t i = 0; i < p->n_rules; i++) {
        const struct policy_rule *rule = &p->rules[i];
        if (!meets(rule, r))
            continue;
        r->level = rule->level;
        r->omitted_stages = rule->omitted_stages;
        r->omit_managed_fields = rule->omit_managed_fields;
        break;
    }
    if (r->level > AUDIT_METADATA && holds_secrets(r))
        r->level = AUDIT_METADATA;
}
