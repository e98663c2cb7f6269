/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/merge.h"

#include <stdlib.h>

/* True when *ret, what the two make together, differs from live. What stays as it is in live is
 * shared with it, so that comparing them later is quick. */
static bool merge(struct arena *a, const struct schema *schema, const struct json *live,
                  const struct json *config, unsigned depth, struct json *ret);

/* ---- maps --------------------------------------------------------------------------------- */

#define SMALL_MAP 16 /* members up to which looking at each beats an index */

/* Members by name, quick also in a map of thousands. What is merged mostly has the same names in
 * the same order, so the member behind the last one found is looked at first. */
struct lookup {
    const struct json *object;
    size_t next;
    struct json_index index; /* made when it is needed */
};

static void lookup_done(struct lookup *l)
{
    json_index_done(&l->index);
}

static const struct json *find(struct lookup *l, struct str name)
{
    if (json_count(l->object) <= SMALL_MAP)
        return json_get(l->object, name);
    if (!l->index.slots)
        json_index_init(&l->index, l->object);
    return json_index_get(&l->index, name);
}

static const struct json *lookup_get(struct lookup *l, struct str name)
{
    if (l->next < json_count(l->object) && str_eq(json_str(&l->object->members[l->next].key), name))
        return &l->object->members[l->next++].value;
    const struct json *found = find(l, name);
    if (found)
        l->next =
            (size_t) (CONTAINER_OF(found, struct json_member, value) - l->object->members) + 1;
    return found;
}

/* The schema of a member matters only to what has others below it. */
static bool merge_member(struct arena *a, const struct schema *map, const struct json_member *live,
                         const struct json *config, unsigned depth, struct json *ret)
{
    const struct schema *schema = NULL;
    if (json_is_container(&live->value) || json_is_container(config))
        schema = shape_member(map, json_str(&live->key), depth == 0);
    return merge(a, schema, &live->value, config, depth + 1, ret);
}

static bool merge_maps(struct arena *a, const struct schema *schema, const struct json *live,
                       const struct json *config, unsigned depth, struct json *ret)
{
    struct json out = *live;
    bool is_own = false;
    size_t n_found = 0;
    CLEANUP(lookup_done) struct lookup in_config = {.object = config};
    CLEANUP(lookup_done) struct lookup in_live = {.object = live};
    for (uint32_t i = 0; i < live->n; i++) {
        const struct json_member *m = &live->members[i];
        const struct json *wanted = lookup_get(&in_config, json_str(&m->key));
        struct json value;
        n_found += wanted != NULL;
        if (!wanted || !merge_member(a, schema, m, wanted, depth, &value))
            continue;
        if (!is_own)
            json_unshare(a, &out, json_count(config));
        is_own = true;
        out.members[i].value = value;
    }
    if (n_found == json_count(config)) {
        *ret = out;
        return is_own;
    }
    JSON_FOR_EACH_MEMBER (config, m) {
        if (lookup_get(&in_live, json_str(&m->key)))
            continue;
        if (!is_own)
            json_unshare(a, &out, json_count(config));
        is_own = true;
        (void) json_append_member(a, &out, json_str(&m->key), m->value);
    }
    *ret = out;
    return is_own;
}

/* ---- lists -------------------------------------------------------------------------------- */

struct element {
    struct str text;
    uint32_t at; /* in its list */
};

/* A list with a number for each item; items of one element share the number, on both sides. */
struct side {
    const struct json *list;
    uint32_t *numbers; /* of items; those without an element are not among them */
    uint32_t *at;      /* where the item stands in the list */
    uint32_t n;
};

/* By number. */
struct known {
    uint32_t n_live;    /* how many items the live list has */
    uint32_t live_at;   /* where the last of them is */
    uint32_t config_at; /* UINT32_MAX: the configuration has none */
    bool is_merged;
};

struct list_merge {
    struct arena *arena;
    const struct schema *list;
    unsigned depth;
    struct side live, config;
    struct known *known;
    uint32_t *shared; /* numbers both sides have, in the configuration's order */
    uint32_t n_shared;
};

static int compare_elements(const void *a, const void *b)
{
    const struct element *x = a, *y = b;
    int order = element_compare(x->text, y->text);
    return order ? order : x->at < y->at ? -1 : x->at > y->at;
}

/* Fills elements with those of the list's items; `at` counts on from `first`. */
static uint32_t read_elements(struct arena *a, const struct schema *list, struct side *side,
                              uint32_t first, struct element *elements)
{
    uint32_t n = (uint32_t) json_count(side->list), n_read = 0;
    side->at = ARENA_ARRAY(a, uint32_t, n + 1);
    side->numbers = ARENA_ARRAY(a, uint32_t, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        if (element_of_item(a, list, &side->list->items[i], &elements[n_read].text, NULL) < 0)
            continue;
        side->at[n_read] = i;
        elements[n_read].at = first + n_read;
        n_read++;
    }
    side->n = n_read;
    return n_read;
}

/* Numbers the elements of both lists and fills known and shared. */
static void number_elements(struct list_merge *m)
{
    size_t n_all = json_count(m->live.list) + json_count(m->config.list);
    struct element *all = ARENA_ARRAY(m->arena, struct element, n_all + 1);
    uint32_t n_live = read_elements(m->arena, m->list, &m->live, 0, all);
    uint32_t n = n_live + read_elements(m->arena, m->list, &m->config, n_live, all + n_live);
    qsort(all, n, sizeof(*all), compare_elements);
    m->known = ARENA_ARRAY(m->arena, struct known, n + 1);
    uint32_t number = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (i == 0 || !str_eq(all[i].text, all[i - 1].text))
            m->known[++number].config_at = UINT32_MAX;
        struct known *k = &m->known[number];
        bool is_live = all[i].at < n_live;
        uint32_t at = is_live ? all[i].at : all[i].at - n_live;
        (is_live ? m->live : m->config).numbers[at] = number;
        if (is_live) {
            k->n_live++;
            k->live_at = m->live.at[at];
        } else {
            k->config_at = m->config.at[at];
        }
    }
    m->shared = ARENA_ARRAY(m->arena, uint32_t, m->config.n + 1);
    for (uint32_t i = 0; i < m->config.n; i++) {
        if (m->known[m->config.numbers[i]].n_live)
            m->shared[m->n_shared++] = m->config.numbers[i];
    }
}

/* The configuration's item, over the live one when there is exactly one. */
static void take_config(struct list_merge *m, uint32_t number, struct json *out)
{
    struct known *k = &m->known[number];
    const struct json *live = k->n_live == 1 ? &m->live.list->items[k->live_at] : NULL;
    const struct json *wanted = &m->config.list->items[k->config_at];
    k->is_merged = true;
    struct json *item = &out->items[out->n++];
    if (live)
        (void) merge(m->arena, m->list->items, live, wanted, m->depth + 1, item);
    else
        *item = *wanted;
}

/* The configuration's items keep their order; live items that it does not name stay before the
 * shared item they stood before. */
static void merge_in_order(struct list_merge *m, struct json *out)
{
    uint32_t l = 0, c = 0, s = 0;
    while (l < m->live.n || c < m->config.n) {
        uint32_t live = l < m->live.n ? m->live.numbers[l] : 0;
        uint32_t wanted = c < m->config.n ? m->config.numbers[c] : 0;
        bool is_shared = live && m->known[live].config_at != UINT32_MAX;
        if (live && !is_shared) {
            out->items[out->n++] = m->live.list->items[m->live.at[l++]];
            continue;
        }
        bool is_out_of_turn = s < m->n_shared && m->shared[s] != live;
        bool is_done =
            live && live != wanted && (m->known[live].is_merged || (wanted && is_out_of_turn));
        if (live == wanted || is_done)
            l++;
        if (!wanted || (is_done && is_out_of_turn))
            continue;
        take_config(m, wanted, out);
        c++;
        if (s < m->n_shared && m->shared[s] == wanted)
            s++;
    }
}

static void merge_unlike_lists(struct arena *a, const struct schema *list, const struct json *live,
                               const struct json *config, unsigned depth, struct json *ret)
{
    struct list_merge m = {.arena = a, .list = list, .depth = depth};
    m.live.list = live;
    m.config.list = config;
    number_elements(&m);
    struct json out = json_array();
    out.items = arena_alloc(a, (json_count(live) + json_count(config)) * sizeof(*out.items));
    merge_in_order(&m, &out);
    /* What has no key cannot be merged; it is not for apply to drop it. */
    for (uint32_t i = 0, next = 0; i < json_count(live); i++) {
        if (next < m.live.n && m.live.at[next] == i)
            next++;
        else
            out.items[out.n++] = live->items[i];
    }
    *ret = out;
}

/* The usual case: a short list with the same items in the same order, none of them twice. */
static bool has_same_items(const struct schema *list, const struct json *live,
                           const struct json *config)
{
    const struct json *keys[SMALL_MAP];
    if (live->n != config->n || live->n > SMALL_MAP)
        return false;
    for (uint32_t i = 0; i < live->n; i++) {
        const struct json *wanted = element_only_key(list, &config->items[i]);
        keys[i] = element_only_key(list, &live->items[i]);
        if (!keys[i] || !wanted || !json_identical(keys[i], wanted))
            return false;
        for (uint32_t k = 0; k < i; k++) {
            if (json_identical(keys[k], keys[i]))
                return false;
        }
    }
    return true;
}

static bool merge_lists(struct arena *a, const struct schema *list, const struct json *live,
                        const struct json *config, unsigned depth, struct json *ret)
{
    *ret = *live;
    bool is_own = false;
    if (!has_same_items(list, live, config)) {
        merge_unlike_lists(a, list, live, config, depth, ret);
        return true;
    }
    for (uint32_t i = 0; i < live->n; i++) {
        struct json item;
        if (!merge(a, list->items, &live->items[i], &config->items[i], depth + 1, &item))
            continue;
        if (!is_own)
            json_unshare(a, ret, 0);
        is_own = true;
        ret->items[i] = item;
    }
    return is_own;
}

static bool merge(struct arena *a, const struct schema *schema, const struct json *live,
                  const struct json *config, unsigned depth, struct json *ret)
{
    enum shape shape = SHAPE_LEAF;
    if (json_is_container(live) || json_is_container(config))
        shape = shape_of(schema, config, depth);
    if (shape == SHAPE_LEAF || shape != shape_of(schema, live, depth) || json_count(live) == 0) {
        bool is_same = json_identical(live, config);
        *ret = is_same ? *live : *config;
        return !is_same;
    }
    /* To say null or nothing of a map or list that has content leaves the content. */
    if (json_count(config) == 0) {
        *ret = *live;
        return false;
    }
    return shape == SHAPE_MAP ? merge_maps(a, schema, live, config, depth, ret)
                              : merge_lists(a, schema, live, config, depth, ret);
}

struct json merge_values(struct arena *a, const struct schema *schema, const struct json *live,
                         const struct json *config)
{
    struct json merged;
    (void) merge_maps(a, schema, live, config, 0, &merged);
    return merged;
}

/* ---- taking away -------------------------------------------------------------------------- */

static struct json without(struct arena *a, const struct schema *schema, const struct json *value,
                           const struct fieldset *set, unsigned depth);

static struct json map_without(struct arena *a, const struct schema *schema,
                               const struct json *value, const struct fieldset *set, unsigned depth)
{
    struct json out = json_object();
    out.members = arena_alloc(a, value->n * sizeof(*out.members));
    JSON_FOR_EACH_MEMBER (value, m) {
        struct str name = json_str(&m->key);
        const struct fieldset_node *node = fieldset_find_field(set, name);
        if (node && node->is_member)
            continue;
        struct json_member kept = *m;
        if (node)
            kept.value = without(a, shape_member(schema, name, depth == 0), &m->value,
                                 node->children, depth + 1);
        out.members[out.n++] = kept;
    }
    return out;
}

static struct json list_without(struct arena *a, const struct schema *list,
                                const struct json *value, const struct fieldset *set,
                                unsigned depth)
{
    struct json out = json_array();
    out.items = arena_alloc(a, value->n * sizeof(*out.items));
    JSON_FOR_EACH_ITEM (value, item) {
        struct str element;
        const struct fieldset_node *node = NULL;
        if (element_of_item(a, list, item, &element, NULL) == 0)
            node = fieldset_find(set, element);
        if (node && node->is_member)
            continue;
        out.items[out.n++] =
            node ? without(a, list->items, item, node->children, depth + 1) : *item;
    }
    return out;
}

static struct json without(struct arena *a, const struct schema *schema, const struct json *value,
                           const struct fieldset *set, unsigned depth)
{
    enum shape shape = shape_of(schema, value, depth);
    if (shape == SHAPE_LEAF || json_count(value) == 0 || fieldset_is_empty(set))
        return *value;
    return shape == SHAPE_MAP ? map_without(a, schema, value, set, depth)
                              : list_without(a, schema, value, set, depth);
}

struct json merge_without(struct arena *a, const struct schema *schema, const struct json *value,
                          const struct fieldset *set)
{
    return without(a, schema, value, set, 0);
}
