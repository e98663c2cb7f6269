/* SPDX-License-Identifier: Apache-2.0 */
#include "store/index.h"

#include <assert.h>
#include <errno.h>

#include "base/alloc.h"
#include "store/row.h"

/* ---- locks -------------------------------------------------------------------------------- */

void index_lock_read(struct index *ix)
{
    (void) pthread_rwlock_rdlock(&ix->lock);
}

static void lock_write(struct index *ix)
{
    (void) pthread_rwlock_wrlock(&ix->lock);
}

void index_unlock(struct index *ix)
{
    (void) pthread_rwlock_unlock(&ix->lock);
}

/* ---- life --------------------------------------------------------------------------------- */

void index_init(struct index *ix, int64_t floor)
{
    *ix = (struct index){.revision = floor, .floor = floor};
    pthread_rwlockattr_t attributes;
    (void) pthread_rwlockattr_init(&attributes);
    /* The writer takes the lock briefly and rarely; readers without a pause must not keep it out.
     */
    (void) pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    (void) pthread_rwlock_init(&ix->lock, &attributes);
    (void) pthread_rwlockattr_destroy(&attributes);
}

void index_done(struct index *ix)
{
    for (struct event *e = ix->oldest, *next; e; e = next) {
        next = e->next;
        bytes_unref(&e->shared.bytes);
    }
    size_t position = 0;
    struct map_entry item;
    while (map_next(&ix->collections, &position, &item)) {
        struct collection *c = item.value;
        keys_done(&c->keys);
        mem_free(c->history);
        mem_free(c);
    }
    map_done(&ix->collections);
    (void) pthread_rwlock_destroy(&ix->lock);
}

/* ---- collections -------------------------------------------------------------------------- */

struct collection *index_collection(const struct index *ix, struct str name)
{
    return map_get(&ix->collections, name);
}

static struct collection *put_collection(struct index *ix, struct str name)
{
    struct collection *c = index_collection(ix, name);
    if (c)
        return c;
    c = mem_zalloc(sizeof(*c) + name.n);
    c->n_name = name.n;
    memcpy(c->name, name.p, name.n);
    (void) map_put(&ix->collections, str_range(c->name, c->n_name), c);
    return c;
}

static struct event *history_at(const struct collection *c, size_t i)
{
    return c->history[(c->first + i) & (c->capacity - 1)];
}

static void history_resize(struct collection *c, size_t capacity)
{
    struct event **slots = capacity ? mem_alloc(capacity * sizeof(struct event *)) : NULL;
    for (size_t i = 0; i < c->n_events; i++)
        slots[i] = history_at(c, i);
    mem_free(c->history);
    c->history = slots;
    c->first = 0;
    c->capacity = capacity;
}

static void history_append(struct collection *c, struct event *e)
{
    if (c->n_events == c->capacity)
        history_resize(c, MAX(c->capacity * 2, (size_t) 8));
    c->history[(c->first + c->n_events++) & (c->capacity - 1)] = e;
}

static void history_drop_first(struct collection *c)
{
    c->first = (c->first + 1) & (c->capacity - 1);
    c->n_events--;
    if (c->n_events == 0)
        history_resize(c, 0);
    else if (c->n_events < c->capacity / 8)
        history_resize(c, c->capacity / 2);
}

/* ---- changes ------------------------------------------------------------------------------ */

static void event_free(struct bytes *b)
{
    struct event *e = CONTAINER_OF(b, struct event, shared.bytes);
    object_unref(e->shared.object);
    object_unref(e->shared.previous);
    mem_free(e);
}

static struct event *event_new(const struct change *change, int64_t time_us)
{
    struct event *e = NEW(struct event);
    atomic_init(&e->shared.bytes.refs, 1);
    e->shared.bytes.free = event_free;
    e->shared.type = change->type;
    e->shared.revision = change->object->revision;
    e->shared.object = change->object;
    e->time_us = time_us;
    return e;
}

int64_t index_event_bytes(const struct event *e)
{
    int64_t n = (int64_t) sizeof(*e);
    if (e->shared.previous)
        n += (int64_t) sizeof(struct object) + e->shared.previous->n;
    if (e->shared.type == STORE_DELETED)
        n += (int64_t) sizeof(struct object) + e->shared.object->n;
    return n;
}

static size_t n_superseded_by(const struct event *e)
{
    return (size_t) (e->shared.previous != NULL) + (size_t) (e->shared.type == STORE_DELETED);
}

static void history_add(struct index *ix, struct event *e)
{
    e->older = e->entry->last;
    if (e->older)
        e->older->newer = e;
    e->entry->last = e;
    if (ix->newest)
        ix->newest->next = e;
    else
        ix->oldest = e;
    ix->newest = e;
    history_append(e->collection, e);
    ix->n_events++;
    ix->n_superseded += n_superseded_by(e);
    ix->history_bytes += index_event_bytes(e);
}

static void apply(struct index *ix, const struct change *change, struct event *e)
{
    struct str collection = STR_NONE, rest = STR_NONE;
    int r = key_split(change->key, &collection, &rest);
    assert(r == 0 && e->shared.revision > ix->revision);
    (void) r;
    e->collection = put_collection(ix, collection);
    e->shared.collection = str_range(e->collection->name, e->collection->n_name);
    struct object *newest = change->type == STORE_DELETED ? NULL : object_ref(change->object);
    e->entry =
        keys_put(&e->collection->keys, rest, newest, e->shared.revision, &e->shared.previous);
    ix->revision = e->shared.revision;
    history_add(ix, e);
}

void index_apply(struct index *ix, const struct change *changes, size_t n_changes, int64_t time_us,
                 struct store_event **ret_events)
{
    for (size_t i = 0; i < n_changes; i++)
        ret_events[i] = &event_new(&changes[i], time_us)->shared;
    lock_write(ix);
    for (size_t i = 0; i < n_changes; i++)
        apply(ix, &changes[i], CONTAINER_OF(ret_events[i], struct event, shared));
    index_unlock(ix);
}

struct object *index_newest(const struct index *ix, struct str key)
{
    struct str collection = STR_NONE, rest = STR_NONE;
    if (key_split(key, &collection, &rest) < 0)
        return NULL;
    const struct collection *c = index_collection(ix, collection);
    const struct key_slot *slot = c ? keys_find(&c->keys, rest) : NULL;
    return slot ? slot->newest : NULL;
}

/* The oldest event of all is the oldest of its collection and of its key too. */
static void history_drop(struct index *ix, struct event *e)
{
    ix->oldest = e->next;
    if (!ix->oldest)
        ix->newest = NULL;
    history_drop_first(e->collection);
    if (e->newer) {
        e->newer->older = NULL;
    } else {
        e->entry->last = NULL;
        if (e->shared.type == STORE_DELETED)
            keys_remove(&e->collection->keys, e->entry);
    }
    ix->n_events--;
    ix->n_superseded -= n_superseded_by(e);
    ix->history_bytes -= index_event_bytes(e);
}

struct event *index_trim(struct index *ix, int64_t before, size_t max_events)
{
    struct event *first = ix->oldest, *last = NULL;
    lock_write(ix);
    before = MIN(before, ix->revision);
    for (; max_events && ix->oldest && ix->oldest->shared.revision <= before; max_events--) {
        last = ix->oldest;
        history_drop(ix, last);
        ix->floor = MAX(ix->floor, last->shared.revision);
    }
    if (!ix->oldest || ix->oldest->shared.revision > before)
        ix->floor = MAX(ix->floor, before);
    index_unlock(ix);
    if (!last)
        return NULL;
    last->next = NULL;
    return first;
}

/* ---- reading ------------------------------------------------------------------------------ */

int64_t index_revision(struct index *ix)
{
    index_lock_read(ix);
    int64_t revision = ix->revision;
    index_unlock(ix);
    return revision;
}

int64_t index_floor(struct index *ix)
{
    index_lock_read(ix);
    int64_t floor = ix->floor;
    index_unlock(ix);
    return floor;
}

struct object *index_get(struct index *ix, struct str key)
{
    index_lock_read(ix);
    struct object *o = object_ref(index_newest(ix, key));
    index_unlock(ix);
    return o;
}

size_t index_count(struct index *ix, struct str collection)
{
    index_lock_read(ix);
    const struct collection *c = index_collection(ix, collection);
    size_t n = c ? c->keys.n_live : 0;
    index_unlock(ix);
    return n;
}

size_t index_n_objects(const struct index *ix)
{
    size_t n = 0, position = 0;
    struct map_entry item;
    while (map_next(&ix->collections, &position, &item))
        n += ((const struct collection *) item.value)->keys.n_live;
    return n;
}

/* How many of the collection's events are not after revision. */
static size_t history_find(const struct collection *c, int64_t revision)
{
    size_t low = 0, high = c->n_events;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (history_at(c, middle)->shared.revision <= revision)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int index_history(struct index *ix, struct str collection, int64_t from, int64_t to,
                  struct store_event ***ret_events, size_t *ret_n)
{
    index_lock_read(ix);
    if (from < ix->floor) {
        index_unlock(ix);
        return -ERANGE;
    }
    const struct collection *c = index_collection(ix, collection);
    size_t begin = c ? history_find(c, from) : 0;
    size_t end = c && to > from ? history_find(c, to) : begin;
    struct store_event **events = mem_alloc(MAX(end - begin, (size_t) 1) * sizeof(*events));
    for (size_t i = begin; i < end; i++) {
        events[i - begin] = &history_at(c, i)->shared;
        (void) bytes_ref(&events[i - begin]->bytes);
    }
    index_unlock(ix);
    *ret_events = events;
    *ret_n = end - begin;
    return 0;
}
