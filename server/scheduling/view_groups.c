/* SPDX-License-Identifier: Apache-2.0 */
/* The index of Devices by name and by label. */
#include "base/alloc.h"
#include "scheduling/narrowing.h"
#include "scheduling/view_internal.h"

struct group *view_group_find(struct tenant *t, struct str label, struct str value, bool is_made)
{
    const struct str parts[] = {label, STR("="), value};
    const struct str key = arena_join(t->view->scratch, parts, N_ELEMENTS(parts));
    struct group *g = map_get(&t->groups, key);
    if (g || !is_made)
        return g;
    g = NEW(struct group);
    g->key = view_text_keep(key);
    (void) map_put(&t->groups, g->key, g);
    return g;
}

void view_group_drop_if_unused(struct tenant *t, struct group *g)
{
    if (g->devices.n || g->waiting.n)
        return;
    (void) map_remove(&t->groups, g->key);
    pointers_done(&g->devices);
    pointers_done(&g->waiting);
    view_text_drop(&g->key);
    mem_free(g);
}

static size_t size_of(struct tenant *t, const struct narrowing *n)
{
    size_t sum = 0;
    for (size_t i = 0; i < n->n; i++) {
        const struct group *g = view_group_find(t, n->pairs[i].key, n->pairs[i].value, false);
        sum += g ? g->devices.n : 0;
    }
    return sum;
}

static const struct narrowing *tightest(struct tenant *t, const struct narrowing *all, size_t n)
{
    const struct narrowing *best = NULL;
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < n; i++) {
        const size_t size = size_of(t, &all[i]);
        if (size < least) {
            least = size;
            best = &all[i];
        }
    }
    return best;
}

static bool has(struct group **groups, size_t n, const struct group *g)
{
    for (size_t i = 0; i < n; i++)
        if (groups[i] == g)
            return true;
    return false;
}

static struct group **find_all(struct tenant *t, const struct narrowing *by, bool is_made,
                               size_t *ret_n)
{
    struct group **groups = ARENA_ARRAY(t->view->scratch, struct group *, by->n + 1);
    *ret_n = 0;
    for (size_t i = 0; i < by->n; i++) {
        struct group *g = view_group_find(t, by->pairs[i].key, by->pairs[i].value, is_made);
        if (g && !has(groups, *ret_n, g))
            groups[(*ret_n)++] = g;
    }
    return groups;
}

bool view_groups_of(struct tenant *t, const struct json *selection, bool is_made,
                    struct group ***ret, size_t *ret_n)
{
    struct narrowing *all = NULL;
    const size_t n_all = narrowing_of(t->view->scratch, selection, &all);
    const struct narrowing *by = tightest(t, all, n_all);
    if (by)
        *ret = find_all(t, by, is_made, ret_n);
    return by != NULL;
}

bool view_groups_preferred(struct tenant *t, const struct json *selection, struct group ***ret,
                           size_t *ret_n)
{
    struct narrowing by;
    if (!narrowing_of_preferences(t->view->scratch, selection, &by))
        return false;
    *ret = find_all(t, &by, /* is_made= */ false, ret_n);
    return true;
}
