/* SPDX-License-Identifier: Apache-2.0 */
#include "preview/difference.h"

#include "preview/place.h"

struct making {
    struct arena *arena;
    struct difference ret;
};

static void compare(struct making *m, const struct schema *schema, struct str place,
                    const struct json *old, const struct json *new);

static struct difference_change *add(struct making *m, struct str place, const struct json *old,
                                     const struct json *new)
{
    struct difference *d = &m->ret;
    d->items = arena_grow(m->arena, d->items, d->n, sizeof(*d->items));
    d->items[d->n] = (struct difference_change){.place = place, .old = old, .new = new};
    return &d->items[d->n++];
}

static struct str join(struct making *m, struct str place, struct str item)
{
    const struct str parts[] = {place, item};
    return arena_join(m->arena, parts, N_ELEMENTS(parts));
}

/* ---- lists with keys ----------------------------------------------------------------------- */

static const struct json *key_list(struct making *m, const struct str *keys, size_t n)
{
    struct json *list = json_new(m->arena, json_array());
    for (size_t i = 0; i < n; i++)
        (void) json_push(m->arena, list, json_string(keys[i]));
    return list;
}

/* Whether those that stay follow each other as before. */
static bool keeps_order(const struct str *was, size_t n_was, const struct str *is, size_t n_is)
{
    ptrdiff_t last = -1;
    for (size_t i = 0; i < n_is; i++) {
        const ptrdiff_t at = place_find(was, n_was, is[i]);
        if (at >= 0 && at < last)
            return false;
        last = MAX(at, last);
    }
    return true;
}

/* A list with the keys of its items. */
struct keyed {
    const struct json *list;
    const struct str *keys;
};

static ptrdiff_t find(const struct keyed *in, struct str key)
{
    return place_find(in->keys, in->list->n, key);
}

static void compare_items(struct making *m, const struct schema *schema, struct str place,
                          const struct keyed *old, const struct keyed *new)
{
    const size_t n_old = old->list->n, n_new = new->list->n;
    for (size_t i = 0; i < n_old; i++)
        if (find(new, old->keys[i]) < 0)
            (void) add(m, join(m, place, old->keys[i]), &old->list->items[i], NULL);
    for (size_t i = 0; i < n_old; i++) {
        const ptrdiff_t at = find(new, old->keys[i]);
        if (at >= 0)
            compare(m, schema->items, join(m, place, old->keys[i]), &old->list->items[i],
                    &new->list->items[at]);
    }
    for (size_t i = 0; i < n_new; i++)
        if (find(old, new->keys[i]) < 0)
            add(m, join(m, place, new->keys[i]), NULL, &new->list->items[i])->at = i;
    if (!keeps_order(old->keys, n_old, new->keys, n_new))
        add(m, place, key_list(m, old->keys, n_old), key_list(m, new->keys, n_new))->is_order =
            true;
}

/* ---- values -------------------------------------------------------------------------------- */

/* A member, or the empty list that an absent one with keys stands for: as in protobuf. */
static const struct json *member_or_empty(const struct schema *schema, const struct json *object,
                                          struct str name)
{
    static const struct json empty = {.type = JSON_ARRAY};
    const struct json *value = json_get(object, name);
    const struct schema *member = schema_member(schema, name);
    return !value && member && member->list_type == SCHEMA_LIST_MAP ? &empty : value;
}

static void compare_members(struct making *m, const struct schema *schema, struct str place,
                            const struct json *old, const struct json *new)
{
    JSON_FOR_EACH_MEMBER (old, member) {
        const struct str name = json_str(&member->key);
        const struct json *now = member_or_empty(schema, new, name);
        const struct str at = place_member(m->arena, place, name);
        if (now)
            compare(m, schema_member(schema, name), at, &member->value, now);
        else
            (void) add(m, at, &member->value, NULL);
    }
    JSON_FOR_EACH_MEMBER (new, member) {
        const struct str name = json_str(&member->key);
        const struct str at = place_member(m->arena, place, name);
        const struct json *was = json_get(old, name) ? NULL : member_or_empty(schema, old, name);
        if (was)
            compare(m, schema_member(schema, name), at, was, &member->value);
        else if (!json_get(old, name))
            (void) add(m, at, NULL, &member->value);
    }
}

static const struct json *unless_empty(const struct schema *schema, const struct json *value)
{
    const bool is_empty =
        schema && schema->list_type == SCHEMA_LIST_MAP && value->type == JSON_ARRAY && !value->n;
    return is_empty ? NULL : value;
}

static void compare(struct making *m, const struct schema *schema, struct str place,
                    const struct json *old, const struct json *new)
{
    const bool is_atomic = schema && schema->map_is_atomic;
    if (json_identical(old, new))
        return;
    if (old->type == JSON_OBJECT && new->type == JSON_OBJECT && !is_atomic) {
        compare_members(m, schema, place, old, new);
        return;
    }
    const struct keyed was = {old, place_items(m->arena, schema, old)};
    const struct keyed is = {new, was.keys ? place_items(m->arena, schema, new) : NULL};
    if (was.keys && is.keys)
        compare_items(m, schema, place, &was, &is);
    else if (!json_equal(old, new))
        (void) add(m, place, unless_empty(schema, old), unless_empty(schema, new));
}

struct difference difference_make(struct arena *a, const struct schema *schema,
                                  const struct json *old, const struct json *new)
{
    struct making m = {.arena = a};
    compare(&m, schema, STR(""), old, new);
    return m.ret;
}

/* ---- applying ------------------------------------------------------------------------------ */

struct applying {
    struct arena *arena;
    const struct difference_change *change;
};

static void apply_at(struct applying *w, const struct schema *schema, struct json *value,
                     struct str rest);

static void reorder(struct applying *w, const struct schema *schema, struct json *list)
{
    struct json sorted = json_array();
    const struct str *is = place_items(w->arena, schema, list);
    JSON_FOR_EACH_ITEM (w->change->new, key) {
        const ptrdiff_t at = is ? place_find(is, list->n, json_str(key)) : -1;
        if (at >= 0)
            (void) json_push(w->arena, &sorted, list->items[at]);
    }
    *list = sorted;
}

static void apply_to_item(struct applying *w, const struct schema *schema, struct json *list,
                          struct str step, struct str rest)
{
    const struct difference_change *c = w->change;
    const struct str *keys = place_items(w->arena, schema, list);
    const ptrdiff_t at = keys ? place_find(keys, list->n, step) : -1;
    if (rest.n && at >= 0)
        apply_at(w, schema->items, &list->items[at], rest);
    else if (!rest.n && c->new &&at < 0)
        (void) json_insert(w->arena, list, MIN(c->at, (size_t) list->n),
                           json_clone(w->arena, c->new));
    else if (!rest.n && !c->new &&at >= 0)
        json_remove_at(list, (size_t) at);
}

static void set_member(struct applying *w, struct json *object, struct str name)
{
    if (w->change->new)
        (void) json_set(w->arena, object, name, json_clone(w->arena, w->change->new));
    else
        (void) json_remove(object, name);
}

/* A list comes with its first item and goes with its last. */
static void apply_to_member(struct applying *w, const struct schema *schema, struct json *object,
                            struct str name, struct str rest)
{
    struct json *member = json_get(object, name);
    if (!rest.n && !w->change->is_order) {
        set_member(w, object, name);
        return;
    }
    if (!member && rest.n && rest.p[0] == '[')
        member = json_set(w->arena, object, name, json_array());
    if (member)
        apply_at(w, schema_member(schema, name), member, rest);
    if (json_is(member, JSON_ARRAY) && !member->n)
        (void) json_remove(object, name);
}

static void apply_at(struct applying *w, const struct schema *schema, struct json *value,
                     struct str rest)
{
    const struct difference_change *c = w->change;
    struct str step = STR("");
    const bool has_step = place_step(&rest, &step);
    if (!has_step && c->is_order)
        reorder(w, schema, value);
    else if (!has_step && !c->place.n && c->new)
        *value = json_clone(w->arena, c->new);
    else if (has_step && step.p[0] == '[')
        apply_to_item(w, schema, value, step, rest);
    else if (has_step)
        apply_to_member(w, schema, value, step, rest);
}

struct json difference_apply(struct arena *a, const struct schema *schema, const struct json *old,
                             const struct difference *d)
{
    struct json value = json_clone(a, old);
    for (size_t i = 0; i < d->n; i++) {
        struct applying w = {a, &d->items[i]};
        apply_at(&w, schema, &value, d->items[i].place);
    }
    return value;
}
