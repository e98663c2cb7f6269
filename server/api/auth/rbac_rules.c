/* SPDX-License-Identifier: Apache-2.0 */
/* Rules as they are written: reading them, and matching one after the other. */
#include "api/auth/rbac_internal.h"

static struct rbac_texts parse_texts(struct arena *a, const struct json *array)
{
    struct str *items = ARENA_ARRAY(a, struct str, json_count(array) + 1);
    size_t n = 0;
    JSON_FOR_EACH_ITEM (array, item)
        items[n++] = arena_str(a, json_str(item));
    return (struct rbac_texts){items, n};
}

size_t rbac_parse_rules(struct arena *a, const struct json *rules,
                        const struct rbac_rule **ret_rules)
{
    struct rbac_rule *list = ARENA_ARRAY(a, struct rbac_rule, json_count(rules) + 1);
    size_t n = 0;
    JSON_FOR_EACH_ITEM (rules, rule)
        list[n++] = (struct rbac_rule){
            .verbs = parse_texts(a, json_get(rule, STR("verbs"))),
            .groups = parse_texts(a, json_get(rule, STR("apiGroups"))),
            .resources = parse_texts(a, json_get(rule, STR("resources"))),
            .names = parse_texts(a, json_get(rule, STR("resourceNames"))),
            .urls = parse_texts(a, json_get(rule, STR("nonResourceURLs"))),
        };
    *ret_rules = list;
    return n;
}

/* ---- matching ------------------------------------------------------------------------------ */

static bool has_text(const struct rbac_texts *t, struct str s)
{
    for (size_t i = 0; i < t->n; i++)
        if (str_eq(t->items[i], s))
            return true;
    return false;
}

static bool has_or_all(const struct rbac_texts *t, struct str s)
{
    return has_text(t, STR("*")) || has_text(t, s);
}

static bool url_matches(struct str pattern, struct str url)
{
    if (str_eq(pattern, url))
        return true;
    if (!str_ends_with(pattern, STR("*")))
        return false;
    while (str_ends_with(pattern, STR("*")))
        pattern.n--;
    return str_starts_with(url, pattern);
}

static bool has_url(const struct rbac_texts *t, struct str url)
{
    for (size_t i = 0; i < t->n; i++)
        if (url_matches(t->items[i], url))
            return true;
    return false;
}

bool rbac_rule_matches(const struct rbac_rule *rule, const struct rbac_query *q)
{
    if (!has_or_all(&rule->verbs, q->verb))
        return false;
    if (q->is_url)
        return has_url(&rule->urls, q->url);
    return has_or_all(&rule->groups, q->group) &&
           (has_or_all(&rule->resources, q->resource) ||
            (q->any_resource.n && has_text(&rule->resources, q->any_resource))) &&
           (!rule->names.n || (q->has_name && has_text(&rule->names, q->name)));
}

/* ---- rights -------------------------------------------------------------------------------- */

static bool each_name(const struct rbac_rule *rule, struct rbac_right right,
                      bool (*on_right)(void *ctx, const struct rbac_right *right), void *ctx)
{
    bool goes_on = true;
    if (!rule->names.n)
        return on_right(ctx, &right);
    for (size_t i = 0; i < rule->names.n && goes_on; i++) {
        right.name = rule->names.items[i];
        goes_on = on_right(ctx, &right);
    }
    return goes_on;
}

static bool each_verb(const struct rbac_rule *rule, struct rbac_right right,
                      bool (*on_right)(void *ctx, const struct rbac_right *right), void *ctx)
{
    bool goes_on = true;
    for (size_t i = 0; i < rule->verbs.n && goes_on; i++) {
        right.verb = rule->verbs.items[i];
        goes_on = right.url.p ? on_right(ctx, &right) : each_name(rule, right, on_right, ctx);
    }
    return goes_on;
}

bool rbac_each_right(const struct rbac_rule *rule,
                     bool (*on_right)(void *ctx, const struct rbac_right *right), void *ctx)
{
    bool goes_on = true;
    for (size_t g = 0; g < rule->groups.n; g++)
        for (size_t r = 0; r < rule->resources.n && goes_on; r++)
            goes_on = each_verb(rule,
                                (struct rbac_right){.group = rule->groups.items[g],
                                                    .resource = rule->resources.items[r]},
                                on_right, ctx);
    for (size_t i = 0; i < rule->urls.n && goes_on; i++)
        goes_on = each_verb(rule, (struct rbac_right){.url = rule->urls.items[i]}, on_right, ctx);
    return goes_on;
}

struct rbac_query rbac_right_query(const struct rbac_right *right)
{
    return (struct rbac_query){
        .verb = right->verb,
        .is_url = right->url.p != NULL,
        .url = right->url,
        .group = right->group,
        .resource = right->resource,
        .has_name = right->name.p != NULL,
        .name = right->name,
    };
}

struct str rbac_right_subresource(const struct rbac_right *right)
{
    ptrdiff_t slash = right->url.p ? -1 : str_find(right->resource, '/');
    return slash < 0 ? STR_NONE : str_from(right->resource, (size_t) slash + 1);
}

bool rbac_rules_cover(const struct rbac_rule *rules, size_t n_rules, const struct rbac_right *right)
{
    ARENA_AUTO a = arena_new();
    struct rbac_query q = rbac_right_query(right);
    struct str subresource = rbac_right_subresource(right);
    if (subresource.n)
        q.any_resource = arena_printf(a, "*/%.*s", STR_ARG(subresource));
    for (size_t i = 0; i < n_rules; i++)
        if (rbac_rule_matches(&rules[i], &q))
            return true;
    return false;
}
