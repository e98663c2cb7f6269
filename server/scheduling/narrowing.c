/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduling/narrowing.h"

static struct label_pair *room_for_pair(struct arena *a, struct narrowing *n)
{
    n->pairs = arena_grow(a, n->pairs, n->n, sizeof(struct label_pair));
    return &n->pairs[n->n++];
}

static void add_values(struct arena *a, struct narrowing *n, struct str key,
                       const struct json *values)
{
    JSON_FOR_EACH_ITEM (values, v)
        *room_for_pair(a, n) = (struct label_pair){key, json_str(v)};
}

static bool is_in(const struct json *expression)
{
    return str_is(json_get_str(expression, STR("operator")), "In");
}

/* The values of the expression of a term that says most; NULL: none says anything that helps. */
static const struct json *tightest_of(const struct json *term, struct str *ret_key)
{
    const struct json *best = NULL;
    JSON_FOR_EACH_ITEM (json_get(term, STR("matchExpressions")), e) {
        const struct json *values = json_get(e, STR("values"));
        if (is_in(e) && (!best || json_count(values) < json_count(best))) {
            best = values;
            *ret_key = json_get_str(e, STR("key"));
        }
    }
    JSON_FOR_EACH_ITEM (json_get(term, STR("matchFields")), f)
        if (is_in(f)) {
            best = json_get(f, STR("values"));
            *ret_key = STR("name");
        }
    return best;
}

/* False: the term may be any Device's. */
static bool narrow_by_term(struct arena *a, const struct json *term, struct narrowing *ret)
{
    struct str key = STR_NONE;
    const struct json *values = tightest_of(term, &key);
    if (!values)
        return false;
    add_values(a, ret, key, values);
    return true;
}

/* One term must hold, so the pairs of all are needed. */
static bool narrow_by_terms(struct arena *a, const struct json *required, struct narrowing *ret)
{
    *ret = (struct narrowing){0};
    JSON_FOR_EACH_ITEM (json_get(required, STR("nodeSelectorTerms")), term)
        if (!narrow_by_term(a, term, ret))
            return false;
    return true;
}

bool narrowing_of_preferences(struct arena *a, const struct json *spec, struct narrowing *ret)
{
    const struct json *preferred = json_at(spec, "affinity", "nodeAffinity",
                                           "preferredDuringSchedulingIgnoredDuringExecution", NULL);
    *ret = (struct narrowing){0};
    JSON_FOR_EACH_ITEM (preferred, p)
        if (!narrow_by_term(a, json_get(p, STR("preference")), ret))
            return false;
    return true;
}

size_t narrowing_of(struct arena *a, const struct json *spec, struct narrowing **ret)
{
    const struct json *selector = json_get(spec, STR("nodeSelector")),
                      *required = json_at(spec, "affinity", "nodeAffinity",
                                          "requiredDuringSchedulingIgnoredDuringExecution", NULL);
    struct narrowing *all = ARENA_ARRAY(a, struct narrowing, json_count(selector) + 1);
    size_t n = 0;
    JSON_FOR_EACH_MEMBER (selector, m)
        *room_for_pair(a, &all[n++]) = (struct label_pair){json_str(&m->key), json_str(&m->value)};
    if (json_is(required, JSON_OBJECT) && narrow_by_terms(a, required, &all[n]))
        n++;
    *ret = all;
    return n;
}
