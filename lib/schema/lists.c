/* SPDX-License-Identifier: Apache-2.0 */
/* What kube-apiserver checks beside the schema: that sets and maps of items hold nothing twice. */
#include "schema/schema_internal.h"

#define SMALL_LIST 16 /* items up to which comparing each pair beats an index */

struct list_walk {
    struct causes *causes; /* NULL: only count */
    size_t n_errors;
};

static void check_lists(struct list_walk *w, const struct schema *s, const struct json *value,
                        const struct field_path *at);

/* ---- equality of items -------------------------------------------------------------------- */

static bool same_keys(const struct schema *s, const struct json *a, const struct json *b)
{
    for (size_t i = 0; i < s->n_list_map_keys; i++) {
        const struct json *x = json_get(a, s->list_map_keys[i]),
                          *y = json_get(b, s->list_map_keys[i]);
        if (!(x && y ? json_equal(x, y) : x == y))
            return false;
    }
    return true;
}

/* What identifies an item of a map: the members that are keys. */
static struct json keys_of(struct arena *a, const struct schema *s, const struct json *item)
{
    struct json keys = json_object();
    for (size_t i = 0; i < s->n_list_map_keys; i++) {
        const struct json *key = json_get(item, s->list_map_keys[i]);
        if (key)
            (void) json_set(a, &keys, s->list_map_keys[i], *key);
    }
    return keys;
}

static void add_duplicate(struct list_walk *w, const struct schema *s, const struct json *list,
                          size_t i, const struct field_path *at)
{
    w->n_errors++;
    if (!w->causes)
        return;
    struct field_path here = FIELD_INDEX(at, (int64_t) i);
    struct json shown = list->items[i];
    if (s->list_type == SCHEMA_LIST_MAP)
        shown = keys_of(w->causes->arena, s, &shown);
    causes_add(w->causes, CAUSE_DUPLICATE, &here, &shown, "%s", "");
}

static bool same_items(const struct schema *s, const struct json *a, const struct json *b)
{
    return s->list_type == SCHEMA_LIST_MAP ? same_keys(s, a, b) : json_equal(a, b);
}

/* Equal values have equal marks; different ones mostly not. */
static uint32_t mark_of(const struct json *value)
{
    if (!value || value->type == JSON_NULL)
        return 0;
    return value->type == JSON_STRING ? schema_name_hash(json_str(value)) : 1;
}

static uint32_t item_mark(const struct schema *s, const struct json *item)
{
    if (s->list_type != SCHEMA_LIST_MAP)
        return mark_of(item);
    uint32_t mark = 0;
    for (size_t i = 0; i < s->n_list_map_keys; i++)
        mark = mark * 31 + mark_of(json_get(item, s->list_map_keys[i]));
    return mark;
}

/* Reports the second of equal items, once for each set of equals. */
static void find_duplicates_small(struct list_walk *w, const struct schema *s,
                                  const struct json *list, const struct field_path *at)
{
    uint32_t marks[SMALL_LIST];
    for (size_t i = 0; i < list->n; i++) {
        marks[i] = item_mark(s, &list->items[i]);
        size_t n_same = 0;
        for (size_t k = 0; k < i; k++)
            n_same += marks[k] == marks[i] && same_items(s, &list->items[i], &list->items[k]);
        if (n_same == 1)
            add_duplicate(w, s, list, i, at);
    }
}

/* The text of what identifies an item. */
static struct str identity(struct arena *a, const struct schema *s, const struct json *item)
{
    struct json key = *item;
    if (s->list_type == SCHEMA_LIST_MAP)
        key = keys_of(a, s, item);
    BUF_AUTO text = {0};
    causes_write_json(a, &text, &key, SIZE_MAX);
    return arena_str(a, buf_str(&text));
}

static void find_duplicates_large(struct list_walk *w, const struct schema *s,
                                  const struct json *list, const struct field_path *at)
{
    ARENA_AUTO a = arena_new();
    struct map seen = {0};
    static char once, twice; /* marks only: their addresses tell them apart */
    for (size_t i = 0; i < list->n; i++) {
        struct str name = identity(a, s, &list->items[i]);
        void *before = map_put(&seen, name, &once);
        if (before)
            (void) map_put(&seen, name, &twice);
        if (before == &once)
            add_duplicate(w, s, list, i, at);
    }
    map_done(&seen);
}

/* ---- items by their keys ------------------------------------------------------------------ */

struct schema_items schema_items_of(const struct schema *schema, const struct json *list)
{
    struct schema_items items = {0};
    if (schema->list_type != SCHEMA_LIST_MAP || !json_is(list, JSON_ARRAY))
        return items;
    items.schema = schema;
    items.list = list;
    if (list->n <= SMALL_LIST)
        return items;
    items.arena = arena_new();
    JSON_FOR_EACH_ITEM (list, item)
        (void) map_put(&items.index, identity(items.arena, schema, item), item);
    return items;
}

const struct json *schema_items_find(const struct schema_items *items, const struct json *item)
{
    if (!items->schema || !json_is(item, JSON_OBJECT))
        return NULL;
    if (items->arena)
        return map_get(&items->index, identity(items->arena, items->schema, item));
    JSON_FOR_EACH_ITEM (items->list, candidate)
        if (json_is(candidate, JSON_OBJECT) && same_keys(items->schema, candidate, item))
            return candidate;
    return NULL;
}

void schema_items_done(struct schema_items *items)
{
    map_done(&items->index);
    arena_free(items->arena);
}

/* ---- the walk ----------------------------------------------------------------------------- */

/* False when the list is no map at all, which is then the only error. */
static bool is_list_of_objects(struct list_walk *w, const struct json *list,
                               const struct field_path *at)
{
    JSON_FOR_EACH_ITEM (list, item) {
        if (json_is(item, JSON_OBJECT) || json_is(item, JSON_NULL))
            continue;
        w->n_errors++;
        struct field_path here = FIELD_INDEX(at, item - list->items);
        if (w->causes)
            causes_add(w->causes, CAUSE_INVALID, &here, item,
                       "must be an object for an array of list-type map");
        return false;
    }
    return true;
}

static void check_array(struct list_walk *w, const struct schema *s, const struct json *value,
                        const struct field_path *at)
{
    bool is_unique = s->list_type != SCHEMA_LIST_ATOMIC;
    if (s->list_type == SCHEMA_LIST_MAP && !is_list_of_objects(w, value, at))
        is_unique = false;
    if (is_unique && value->n <= SMALL_LIST)
        find_duplicates_small(w, s, value, at);
    else if (is_unique)
        find_duplicates_large(w, s, value, at);
    if (!s->items || !s->items->rules->has_lists)
        return;
    for (size_t i = 0; i < value->n; i++) {
        struct field_path here = FIELD_INDEX(at, (int64_t) i);
        check_lists(w, s->items, &value->items[i], &here);
    }
}

static void check_lists(struct list_walk *w, const struct schema *s, const struct json *value,
                        const struct field_path *at)
{
    if (!s->rules->has_lists)
        return;
    if (value->type == JSON_ARRAY)
        check_array(w, s, value, at);
    JSON_FOR_EACH_MEMBER (value, m) {
        if (!json_count(&m->value))
            continue;
        struct str name = json_str(&m->key);
        const struct schema *property = schema_property(s, name);
        struct field_path here = property ? FIELD_NAME(at, name) : FIELD_KEY(at, name);
        if (property || s->additional_properties)
            check_lists(w, property ? property : s->additional_properties, &m->value, &here);
    }
}

size_t schema_check_lists(const struct schema *schema, const struct json *value,
                          const struct field_path *at, struct causes *causes)
{
    struct list_walk w = {.causes = causes};
    check_lists(&w, schema, value, at);
    return w.n_errors;
}
