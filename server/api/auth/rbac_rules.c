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
