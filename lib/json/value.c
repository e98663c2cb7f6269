/* SPDX-License-Identifier: Apache-2.0 */
#include "json/json_internal.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/map.h"

#define MIN_ROOM 2 /* log2 of the first capacity */

/* ---- reading ------------------------------------------------------------------------------ */

/* Most keys of the same length differ in their first byte already. */
static inline bool key_is(const struct json_member *m, struct str key)
{
    return m->key.n == key.n &&
           (key.n == 0 || (m->key.s[0] == key.p[0] && str_has_bytes(m->key.s, key.p, key.n)));
}

static struct json_member *find_member(const struct json *object, struct str key)
{
    JSON_FOR_EACH_MEMBER (object, m) {
        if (key_is(m, key))
            return m;
    }
    return NULL;
}

struct json *json_get(const struct json *object, struct str key)
{
    struct json_member *m = find_member(object, key);
    return m ? &m->value : NULL;
}

struct json *json_at(const struct json *v, ...)
{
    va_list keys;
    va_start(keys, v);
    struct json *at = (struct json *) v;
    for (const char *key = va_arg(keys, const char *); key && at; key = va_arg(keys, const char *))
        at = json_get(at, str_of(key));
    va_end(keys);
    return at;
}

struct str json_get_str(const struct json *object, struct str key)
{
    return json_str(json_get(object, key));
}

bool json_get_bool(const struct json *object, struct str key, bool or_else)
{
    const struct json *v = json_get(object, key);
    return json_is(v, JSON_BOOL) ? v->b : or_else;
}

int64_t json_get_int(const struct json *object, struct str key, int64_t or_else)
{
    const struct json *v = json_get(object, key);
    return json_is(v, JSON_INT) ? v->i : or_else;
}

/* ---- index -------------------------------------------------------------------------------- */

void json_index_init(struct json_index *ix, const struct json *object)
{
    size_t n_slots = 8;
    while (n_slots < 2 * json_count(object))
        n_slots *= 2;
    *ix = (struct json_index){
        .object = object,
        .slots = mem_zalloc(n_slots * sizeof(*ix->slots)),
        .n_slots = n_slots,
    };
    uint32_t number = 0;
    JSON_FOR_EACH_MEMBER (object, m) {
        size_t slot = map_hash(json_str(&m->key)) & (n_slots - 1);
        while (ix->slots[slot])
            slot = (slot + 1) & (n_slots - 1);
        ix->slots[slot] = ++number;
    }
}

void json_index_done(struct json_index *ix)
{
    mem_free(ix->slots);
    *ix = (struct json_index){0};
}

struct json *json_index_get(const struct json_index *ix, struct str key)
{
    size_t slot = map_hash(key) & (ix->n_slots - 1);
    for (; ix->slots[slot]; slot = (slot + 1) & (ix->n_slots - 1)) {
        struct json_member *m = &ix->object->members[ix->slots[slot] - 1];
        if (str_eq(json_str(&m->key), key))
            return &m->value;
    }
    return NULL;
}

/* ---- equality ----------------------------------------------------------------------------- */

/* Exact: beyond 2^53 not every integer is a double. */
static bool int_equals_double(int64_t i, double d)
{
    return d >= -0x1p63 && d < 0x1p63 && (double) (int64_t) d == d && (int64_t) d == i;
}

static bool numbers_equal(const struct json *a, const struct json *b)
{
    if (a->type == b->type)
        return a->type == JSON_INT ? a->i == b->i : a->d == b->d;
    return a->type == JSON_INT ? int_equals_double(a->i, b->d) : int_equals_double(b->i, a->d);
}

static bool arrays_equal(const struct json *a, const struct json *b)
{
    for (uint32_t i = 0; i < a->n; i++) {
        if (!json_equal(&a->items[i], &b->items[i]))
            return false;
    }
    return true;
}

static bool members_equal_indexed(const struct json *a, uint32_t from, const struct json *b)
{
    CLEANUP(json_index_done) struct json_index ix = {0};
    json_index_init(&ix, b);
    for (uint32_t i = from; i < a->n; i++) {
        const struct json *other = json_index_get(&ix, json_str(&a->members[i].key));
        if (!other || !json_equal(&a->members[i].value, other))
            return false;
    }
    return true;
}

static bool objects_equal(const struct json *a, const struct json *b)
{
    for (uint32_t i = 0; i < a->n; i++) {
        const struct json_member *m = &a->members[i];
        const struct json *other = &b->members[i].value;
        if (!str_eq(json_str(&m->key), json_str(&b->members[i].key))) {
            if (a->n > JSON_SMALL_OBJECT)
                return members_equal_indexed(a, i, b);
            other = json_get(b, json_str(&m->key));
        }
        if (!other || !json_equal(&m->value, other))
            return false;
    }
    return true;
}

bool json_is_empty(const struct json *v)
{
    switch ((enum json_type) v->type) {
    case JSON_NULL:
        return true;
    case JSON_BOOL:
        return !v->b;
    case JSON_INT:
        return v->i == 0;
    case JSON_DOUBLE:
        return v->d == 0;
    default:
        return v->n == 0;
    }
}

bool json_equal(const struct json *a, const struct json *b)
{
    if (a == b)
        return true;
    if (!a || !b)
        return false;
    if (json_is_number(a) && json_is_number(b))
        return numbers_equal(a, b);
    if (a->type != b->type)
        return false;
    switch (a->type) {
    case JSON_BOOL:
        return a->b == b->b;
    case JSON_STRING:
        return str_eq(json_str(a), json_str(b));
    case JSON_ARRAY:
        return a->n == b->n && (a->items == b->items || arrays_equal(a, b));
    case JSON_OBJECT:
        return a->n == b->n && (a->members == b->members || objects_equal(a, b));
    default:
        return true;
    }
}

static bool elements_identical(const struct json *a, const struct json *b)
{
    for (uint32_t i = 0; i < a->n; i++) {
        bool is_same = a->type == JSON_ARRAY
                           ? json_identical(&a->items[i], &b->items[i])
                           : str_eq(json_str(&a->members[i].key), json_str(&b->members[i].key)) &&
                                 json_identical(&a->members[i].value, &b->members[i].value);
        if (!is_same)
            return false;
    }
    return true;
}

bool json_identical(const struct json *a, const struct json *b)
{
    if (a->type != b->type)
        return false;
    switch (a->type) {
    case JSON_NULL:
        return true;
    case JSON_BOOL:
        return a->b == b->b;
    case JSON_INT:
    case JSON_DOUBLE: /* by its bits: -0 is not 0 */
        return a->i == b->i;
    case JSON_STRING:
        return str_eq(json_str(a), json_str(b));
    default:
        return a->n == b->n && (a->items == b->items || elements_identical(a, b));
    }
}

static bool fits(const struct json *v, int depth, size_t *left);

static inline bool element_fits(const struct json *v, int depth, size_t *left)
{
    return !json_is_container(v) || (v->n ? fits(v, depth, left) : depth < JSON_MAX_DEPTH);
}

/* Takes the values below the container off *left. */
static bool fits(const struct json *v, int depth, size_t *left)
{
    bool is_good = depth < JSON_MAX_DEPTH && v->n <= *left;
    *left -= is_good ? v->n : 0;
    if (v->type == JSON_ARRAY) {
        for (uint32_t i = 0; is_good && i < v->n; i++)
            is_good = element_fits(&v->items[i], depth + 1, left);
    } else {
        for (uint32_t i = 0; is_good && i < v->n; i++)
            is_good = element_fits(&v->members[i].value, depth + 1, left);
    }
    return is_good;
}

bool json_fits(const struct json *v, size_t max_values)
{
    if (max_values == 0)
        return false;
    size_t left = max_values - 1;
    return element_fits(v, 0, &left);
}

/* ---- building ----------------------------------------------------------------------------- */

struct json *json_new(struct arena *a, struct json value)
{
    struct json *v = arena_alloc(a, sizeof(*v));
    *v = value;
    return v;
}

static size_t element_bytes(const struct json *container)
{
    return container->type == JSON_OBJECT ? sizeof(struct json_member) : sizeof(struct json);
}

/* Makes room for one more element. */
static void grow(struct arena *a, struct json *container)
{
    size_t capacity = container->room ? (size_t) 1 << container->room : container->n;
    if (container->n < capacity)
        return;
    uint8_t room = MAX(container->room, MIN_ROOM);
    while (((size_t) 1 << room) <= container->n)
        room++;
    assert(room <= 31);
    size_t each = element_bytes(container);
    container->items =
        arena_realloc(a, container->items, capacity * each, ((size_t) 1 << room) * each);
    container->room = room;
}

struct json *json_append_member(struct arena *a, struct json *object, struct str key,
                                struct json value)
{
    assert(object->type == JSON_OBJECT);
    grow(a, object);
    struct json_member *m = &object->members[object->n++];
    *m = (struct json_member){json_string(key), value};
    return &m->value;
}

struct json *json_set(struct arena *a, struct json *object, struct str key, struct json value)
{
    struct json *old = json_get(object, key);
    if (!old)
        return json_append_member(a, object, key, value);
    *old = value;
    return old;
}

struct json *json_insert(struct arena *a, struct json *array, size_t at, struct json value)
{
    assert(array->type == JSON_ARRAY && at <= array->n);
    grow(a, array);
    struct json *item = array->items + at;
    memmove(item + 1, item, (array->n - at) * sizeof(*item));
    array->n++;
    *item = value;
    return item;
}

struct json *json_push(struct arena *a, struct json *array, struct json value)
{
    return json_insert(a, array, array->n, value);
}

struct json *json_ensure_object(struct arena *a, struct json *object, struct str key)
{
    struct json *v = json_get(object, key);
    if (!v)
        return json_append_member(a, object, key, json_object());
    if (v->type != JSON_OBJECT)
        *v = json_object();
    return v;
}

bool json_remove(struct json *object, struct str key)
{
    struct json_member *m = find_member(object, key);
    if (!m)
        return false;
    size_t at = (size_t) (m - object->members);
    memmove(m, m + 1, (object->n - at - 1) * sizeof(*m));
    object->n--;
    return true;
}

void json_remove_at(struct json *array, size_t at)
{
    assert(array->type == JSON_ARRAY && at < array->n);
    memmove(array->items + at, array->items + at + 1, (array->n - at - 1) * sizeof(struct json));
    array->n--;
}

static int compare_members(const void *a, const void *b)
{
    const struct json_member *left = a, *right = b;
    return str_cmp(json_str(&left->key), json_str(&right->key));
}

void json_sort_members(struct json *object)
{
    if (json_count(object) > 1)
        qsort(object->members, object->n, sizeof(*object->members), compare_members);
}

static struct json clone_array(struct arena *a, const struct json *v)
{
    struct json copy = json_array();
    copy.items = arena_alloc(a, v->n * sizeof(*v->items));
    copy.n = v->n;
    for (uint32_t i = 0; i < v->n; i++)
        copy.items[i] = json_clone(a, &v->items[i]);
    return copy;
}

static struct json clone_object(struct arena *a, const struct json *v)
{
    struct json copy = json_object();
    copy.members = arena_alloc(a, v->n * sizeof(*v->members));
    copy.n = v->n;
    for (uint32_t i = 0; i < v->n; i++) {
        copy.members[i].key = v->members[i].key;
        copy.members[i].value = json_clone(a, &v->members[i].value);
    }
    return copy;
}

struct json json_clone(struct arena *a, const struct json *v)
{
    if (json_count(v) == 0)
        return json_is(v, JSON_ARRAY) ? json_array() : json_is(v, JSON_OBJECT) ? json_object() : *v;
    return v->type == JSON_ARRAY ? clone_array(a, v) : clone_object(a, v);
}

/* ---- sharing ------------------------------------------------------------------------------ */

void json_unshare(struct arena *a, struct json *container, size_t n_more)
{
    uint8_t room = 0;
    while (((size_t) 1 << room) < container->n + n_more)
        room++;
    size_t each = element_bytes(container);
    void *elements = arena_alloc(a, each << room);
    if (container->n)
        memcpy(elements, container->items, container->n * each);
    container->items = elements;
    container->room = room;
}

static bool share_items(struct json *array, const struct json *old)
{
    bool is_same = array->n == old->n;
    for (uint32_t i = 0; i < MIN(array->n, old->n); i++)
        is_same &= json_share(&array->items[i], &old->items[i]);
    return is_same;
}

/* Members that changed places are found again behind each other, or, in a small object, anywhere.
 */
static bool share_members(struct json *object, const struct json *old)
{
    bool is_same = object->n == old->n;
    const struct json_member *next = old->members, *end = old->members + old->n;
    for (uint32_t i = 0; i < object->n; i++) {
        struct json_member *m = &object->members[i];
        const struct json_member *was = next < end && key_is(next, json_str(&m->key)) ? next : NULL;
        if (!was && old->n <= JSON_SMALL_OBJECT)
            was = find_member(old, json_str(&m->key));
        next = was ? was + 1 : next;
        bool is_same_member = was && json_share(&m->value, &was->value);
        is_same &= is_same_member && was == &old->members[i];
    }
    return is_same;
}

bool json_share(struct json *value, const struct json *old)
{
    if (!json_is_container(value) || value->type != old->type || !value->n || !old->n)
        return json_identical(value, old);
    if (value->items == old->items)
        return value->n == old->n;
    bool is_same = value->type == JSON_ARRAY ? share_items(value, old) : share_members(value, old);
    if (is_same) {
        value->items = old->items;
        value->room = 0;
    }
    return is_same;
}
