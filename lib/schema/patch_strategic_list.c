/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "schema/patch_strategic.h"

#define NOWHERE UINT32_MAX

/* An item on its way into the result. */
struct item {
    struct json value;
    uint32_t wanted_at; /* in the patch, or in the order it gives; NOWHERE: it does not name it */
    uint32_t live_at;   /* in the old list; NOWHERE: new */
};

/* Positions by the text of an item, or of its merge key: the first and the item it has become. */
struct places {
    struct map by_key; /* position + 1 */
};

static void places_done(struct places *p)
{
    map_done(&p->by_key);
}

static uint32_t place_of(const struct places *p, struct str key)
{
    uintptr_t found = (uintptr_t) map_get(&p->by_key, key);
    return found ? (uint32_t) (found - 1) : NOWHERE;
}

/* Keeps the first. */
static void put_place(struct places *p, struct str key, uint32_t at)
{
    if (place_of(p, key) == NOWHERE)
        (void) map_put(&p->by_key, key, (void *) ((uintptr_t) at + 1));
}

/* ---- keys --------------------------------------------------------------------------------- */

static struct str merge_key(const struct schema *schema)
{
    return schema && schema->patch_merge ? schema->patch_merge_key : STR_NONE;
}

static int key_of(struct strategic *s, struct str name, const struct json *item,
                  struct str *ret_key)
{
    const struct json *value = name.p ? json_get(item, name) : item;
    if (!value)
        return strategic_fail(s, PATCH_FAILED,
                              arena_printf(s->arena,
                                           "map: %.*s does not contain declared merge key: %.*s",
                                           STR_ARG(patch_go_text(s->arena, item)), STR_ARG(name)));
    *ret_key = json_text(s->arena, value);
    return 0;
}

static int find_places(struct strategic *s, struct str name, const struct json *list,
                       struct places *ret)
{
    JSON_FOR_EACH_ITEM (list, item) {
        struct str key;
        int r = key_of(s, name, item, &key);
        if (r < 0)
            return r;
        put_place(ret, key, (uint32_t) (item - list->items));
    }
    return 0;
}

static bool is_map_list(const struct json *a, const struct json *b)
{
    const struct json *list = json_count(a) ? a : b;
    return json_count(list) && list->items[0].type == JSON_OBJECT;
}

static struct json pair_of(struct strategic *s, const struct json *old, const struct json *patch)
{
    struct json pair = json_array();
    (void) json_push(s->arena, &pair, old ? *old : json_array());
    (void) json_push(s->arena, &pair, patch ? *patch : json_array());
    return pair;
}

/* Either all are maps or none is; lists in lists are not merged. */
static int check_items(struct strategic *s, const struct json *old, const struct json *patch)
{
    bool are_maps = is_map_list(old, patch);
    const struct json *lists[] = {old, patch};
    for (size_t i = 0; i < N_ELEMENTS(lists); i++) {
        JSON_FOR_EACH_ITEM (lists[i], item) {
            if (item->type == JSON_ARRAY)
                return strategic_fail(s, PATCH_INVALID, STR("lists of lists are not supported"));
            if ((item->type == JSON_OBJECT) == are_maps && item->type != JSON_NULL)
                continue;
            const struct json pair = pair_of(s, old, patch);
            return strategic_fail(s, PATCH_FAILED,
                                  arena_printf(s->arena,
                                               "list element types are not identical: %.*s",
                                               STR_ARG(patch_go_text(s->arena, &pair))));
        }
    }
    return 0;
}

/* ---- order -------------------------------------------------------------------------------- */

static int compare_wanted(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    return x->wanted_at < y->wanted_at ? -1 : x->wanted_at > y->wanted_at;
}

static int compare_live(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    return x->live_at < y->live_at ? -1 : x->live_at > y->live_at;
}

/* Items the patch names keep its order, the others that of the old list; an other comes before the
 * first named one that stood behind it. */
static struct json arrange(struct strategic *s, struct item *items, size_t n)
{
    size_t n_named = 0;
    qsort(items, n, sizeof(*items), compare_wanted);
    while (n_named < n && items[n_named].wanted_at != NOWHERE)
        n_named++;
    struct item *others = items + n_named;
    qsort(others, n - n_named, sizeof(*others), compare_live);
    struct json out = json_array();
    out.items = arena_alloc(s->arena, (n + 1) * sizeof(*out.items));
    size_t i = n_named, j = 0;
    while (i < n || j < n_named) {
        bool takes_other = j == n_named || (i < n && items[j].live_at != NOWHERE &&
                                            items[i].live_at < items[j].live_at);
        out.items[out.n++] = takes_other ? items[i++].value : items[j++].value;
    }
    return out;
}

/* ---- lists of scalars ---------------------------------------------------------------------- */

static int merge_scalars(struct strategic *s, const struct json *old, const struct json *patch,
                         struct json *ret)
{
    CLEANUP(places_done) struct places live = {0}, wanted = {0};
    int r = find_places(s, STR_NONE, old, &live);
    if (r == 0)
        r = find_places(s, STR_NONE, patch, &wanted);
    if (r < 0)
        return r;
    struct item *items =
        ARENA_ARRAY(s->arena, struct item, json_count(old) + json_count(patch) + 1);
    size_t n = 0, position = 0;
    struct map_entry e;
    while (map_next(&live.by_key, &position, &e)) {
        uint32_t at = place_of(&live, e.key);
        items[n++] = (struct item){old->items[at], place_of(&wanted, e.key), at};
    }
    position = 0;
    while (map_next(&wanted.by_key, &position, &e)) {
        uint32_t at = place_of(&wanted, e.key);
        if (place_of(&live, e.key) == NOWHERE)
            items[n++] = (struct item){patch->items[at], at, NOWHERE};
    }
    *ret = arrange(s, items, n);
    return 0;
}

struct json strategic_without(struct arena *a, const struct json *list, const struct json *gone)
{
    CLEANUP(places_done) struct places places = {0};
    struct json out = json_array();
    JSON_FOR_EACH_ITEM (gone, item)
        put_place(&places, json_text(a, item), 0);
    JSON_FOR_EACH_ITEM (list, item) {
        if (place_of(&places, json_text(a, item)) == NOWHERE)
            (void) json_push(a, &out, *item);
    }
    return out;
}

/* ---- lists of maps ------------------------------------------------------------------------- */

struct map_list {
    struct strategic *s;
    const struct schema *schema;
    struct str key_name;
    struct places live;   /* of the old list */
    struct places merged; /* of items */
    struct places gone;
    struct item *items;
    size_t n;
    bool replaces;
};

static void map_list_done(struct map_list *l)
{
    places_done(&l->live);
    places_done(&l->merged);
    places_done(&l->gone);
}

/* $patch in an item: the item goes, or the whole list is replaced. */
static int read_directives(struct map_list *l, const struct json *patch)
{
    JSON_FOR_EACH_ITEM (patch, item) {
        const struct json *directive = json_get(item, STR(STRATEGIC_PATCH));
        struct str what = json_str(directive), key;
        if (!directive)
            continue;
        if (what.p && str_is(what, "replace")) {
            l->replaces = true;
        } else if (what.p && str_is(what, "delete")) {
            int r = key_of(l->s, l->key_name, item, &key);
            if (r < 0)
                return r;
            put_place(&l->gone, key, 0);
        } else if (what.p && str_is(what, "merge")) {
            return strategic_fail(l->s, PATCH_FAILED,
                                  STR("merging lists cannot yet be specified in the patch"));
        } else {
            return strategic_fail_directive(l->s, directive, item);
        }
    }
    return 0;
}

static int take_old(struct map_list *l, const struct json *old)
{
    JSON_FOR_EACH_ITEM (old, item) {
        struct str key;
        uint32_t at = (uint32_t) (item - old->items);
        int r = key_of(l->s, l->key_name, item, &key);
        if (r < 0)
            return r;
        if (l->replaces || place_of(&l->gone, key) != NOWHERE)
            continue;
        put_place(&l->merged, key, (uint32_t) l->n);
        l->items[l->n++] = (struct item){*item, NOWHERE, at};
    }
    return 0;
}

static int merge_item(struct map_list *l, const struct json *change, uint32_t at)
{
    struct str key;
    int r = key_of(l->s, l->key_name, change, &key);
    if (r < 0)
        return r;
    uint32_t found = place_of(&l->merged, key);
    if (found == NOWHERE) {
        put_place(&l->merged, key, (uint32_t) l->n);
        l->items[l->n++] = (struct item){strategic_plain(l->s->arena, change), at, NOWHERE};
        return 0;
    }
    struct item *item = &l->items[found];
    item->wanted_at = MIN(item->wanted_at, at);
    const struct json old = item->value;
    const struct schema *schema = l->schema ? l->schema->items : NULL;
    return strategic_merge_map(l->s, schema, &old, change, /* depth= */ 1, &item->value);
}

static int merge_maps(struct strategic *s, const struct schema *schema, const struct json *old,
                      const struct json *patch, struct json *ret)
{
    CLEANUP(map_list_done)
    struct map_list l = {.s = s, .schema = schema, .key_name = merge_key(schema)};
    if (!l.key_name.p)
        return strategic_fail(s, PATCH_FAILED, STR("cannot merge lists without merge key"));
    l.items = ARENA_ARRAY(s->arena, struct item, json_count(old) + json_count(patch) + 1);
    int r = read_directives(&l, patch);
    if (r == 0)
        r = take_old(&l, old);
    JSON_FOR_EACH_ITEM (patch, item) {
        if (r == 0 && !json_get(item, STR(STRATEGIC_PATCH)))
            r = merge_item(&l, item, (uint32_t) (item - patch->items));
    }
    if (r == 0)
        *ret = arrange(s, l.items, l.n);
    return r;
}

int strategic_merge_list(struct strategic *s, const struct schema *schema, const struct json *old,
                         const struct json *patch, struct json *ret)
{
    if (!schema || !schema->patch_merge) {
        *ret = *patch;
        return 0;
    }
    int r = check_items(s, old, patch);
    if (r < 0)
        return r;
    return is_map_list(old, patch) ? merge_maps(s, schema, old, patch, ret)
                                   : merge_scalars(s, old, patch, ret);
}

/* ---- an order given ------------------------------------------------------------------------ */

/* What the patch adds or changes must stand in the order, and in that order. */
static int check_order(struct strategic *s, struct str key_name, const struct json *patch,
                       const struct json *order)
{
    if (json_count(patch) == 0 || json_count(order) == 0)
        return 0;
    uint32_t at = 0;
    JSON_FOR_EACH_ITEM (patch, item) {
        struct str key, other = STR_NONE;
        if (json_get(item, STR(STRATEGIC_PATCH)))
            continue;
        int r = key_of(s, key_name, item, &key);
        while (r == 0 && at < order->n && !(other.p && str_eq(key, other)))
            r = key_of(s, key_name, &order->items[at++], &other);
        if (r < 0)
            return r;
        if (!other.p || !str_eq(key, other))
            return strategic_fail(s, PATCH_FAILED,
                                  arena_printf(s->arena,
                                               "The order in patch list:\n%.*s\n doesn't match "
                                               "$setElementOrder list:\n%.*s\n",
                                               STR_ARG(patch_go_text(s->arena, patch)),
                                               STR_ARG(patch_go_text(s->arena, order))));
    }
    return 0;
}

int strategic_order_list(struct strategic *s, const struct schema *schema, const struct json *old,
                         const struct json *patch, const struct json *order, struct json *ret)
{
    static const struct json empty = {.type = JSON_ARRAY};
    struct str key_name = is_map_list(old, patch) ? merge_key(schema) : STR_NONE;
    struct json merged;
    int r = check_order(s, key_name, patch, order);
    if (r == 0)
        r = strategic_merge_list(s, schema, old ? old : &empty, patch ? patch : &empty, &merged);
    if (r == 0 && !patch)
        merged = *old;
    if (r < 0)
        return r;
    CLEANUP(places_done) struct places live = {0}, wanted = {0};
    r = find_places(s, key_name, old, &live);
    if (r == 0)
        r = find_places(s, key_name, order, &wanted);
    struct item *items = ARENA_ARRAY(s->arena, struct item, merged.n + 1);
    for (uint32_t i = 0; i < merged.n && r == 0; i++) {
        struct str key;
        r = key_of(s, key_name, &merged.items[i], &key);
        if (r == 0)
            items[i] = (struct item){merged.items[i], place_of(&wanted, key), place_of(&live, key)};
    }
    if (r == 0)
        *ret = arrange(s, items, merged.n);
    return r;
}
