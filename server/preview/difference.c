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

static void compare_items(struct making *m, const struct schema *list, struct str place,
                          const struct json *old, const struct json *new, const struct str *was,
                          const struct str *is)
{
    for (size_t i = 0; i < old->n; i++)
        if (place_find(is, new->n, was[i]) < 0)
            (void) add(m, join(m, place, was[i]), &old->items[i], NULL);
    for (size_t i = 0; i < old->n; i++) {
        const ptrdiff_t at = place_find(is, new->n, was[i]);
        if (at >= 0)
            compare(m, list->items, join(m, place, was[i]), &old->items[i], &new->items[at]);
    }
    for (size_t i = 0; i < new->n; i++)
        if (place_find(was, old->n, is[i]) < 0)
            add(m, join(m, place, is[i]), NULL, &new->items[i])->at = i;
    if (!keeps_order(was, old->n, is, new->n))
        add(m, place, key_list(m, was, old->n), key_list(m, is, new->n))->is_order = true;
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
    const struct str *was = place_items(m->arena, schema, old);
    const struct str *is = was ? place_items(m->arena, schema, new) : NULL;
    if (was && is)
        compare_items(m, schema, place, old, new, was, is);
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

/* Where an item of the list goes that the change brings. */
static void put_item(struct arena *a, struct json *list, const struct difference_change *c)
{
    (void) json_insert(a, list, MIN(c->at, (size_t) list->n), json_clone(a, c->new));
}

static void reorder(struct arena *a, const struct schema *schema, struct json *list,
                    const struct json *keys)
{
    struct json sorted = json_array();
    const struct str *is = place_items(a, schema, list);
    JSON_FOR_EACH_ITEM (keys, key) {
        const ptrdiff_t at = is ? place_find(is, list->n, json_str(key)) : -1;
        if (at >= 0)
            (void) json_push(a, &sorted, list->items[at]);
    }
    *list = sorted;
}

static void set_member(struct arena *a, struct json *object, struct str name,
                       const struct json *value)
{
    if (value)
        (void) json_set(a, object, name, json_clone(a, value));
    else
        (void) json_remove(object, name);
}

static void apply_at(struct arena *a, const struct schema *schema, struct json *value,
                     struct str rest, const struct difference_change *c);

static void apply_to_item(struct arena *a, const struct schema *schema, struct json *list,
                          struct str step, struct str rest, const struct difference_change *c)
{
    const struct str *keys = place_items(a, schema, list);
    const ptrdiff_t at = keys ? place_find(keys, list->n, step) : -1;
    if (rest.n && at >= 0)
        apply_at(a, schema->items, &list->items[at], rest, c);
    else if (!rest.n && c->new &&at < 0)
        put_item(a, list, c);
    else if (!rest.n && !c->new &&at >= 0)
        json_remove_at(list, (size_t) at);
}

/* A list comes with its first item and goes with its last. */
static void apply_to_member(struct arena *a, const struct schema *schema, struct json *object,
                            struct str name, struct str rest, const struct difference_change *c)
{
    struct json *member = json_get(object, name);
    if (!rest.n && !c->is_order) {
        set_member(a, object, name, c->new);
        return;
    }
    if (!member && rest.n && rest.p[0] == '[')
        member = json_set(a, object, name, json_array());
    if (member)
        apply_at(a, schema_member(schema, name), member, rest, c);
    if (json_is(member, JSON_ARRAY) && !member->n)
        (void) json_remove(object, name);
}

static void apply_at(struct arena *a, const struct schema *schema, struct json *value,
                     struct str rest, const struct difference_change *c)
{
    struct str step;
    if (!place_step(&rest, &step) && c->is_order)
        reorder(a, schema, value, c->new);
    else if (!c->place.n && c->new)
        *value = json_clone(a, c->new);
    else if (step.p[0] == '[')
        apply_to_item(a, schema, value, step, rest, c);
    else
        apply_to_member(a, schema, value, step, rest, c);
}

struct json difference_apply(struct arena *a, const struct schema *schema, const struct json *old,
                             const struct difference *d)
{
    struct json value = json_clone(a, old);
    for (size_t i = 0; i < d->n; i++)
        apply_at(a, schema, &value, d->items[i].place, &d->items[i]);
    return value;
}
