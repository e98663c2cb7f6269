/* SPDX-License-Identifier: Apache-2.0 */
/* Every object the store has and every change it still remembers, in memory. Readers of any thread
 * share a lock; one thread, the writer, changes things, and it alone may read without the lock. */
#pragma once

#include <pthread.h>

#include "base/map.h"
#include "store/keys.h"
#include "store/store.h"

/* How many objects a list takes, or events a trim drops, before others get at the lock again. */
#define INDEX_LIST_CHUNK 4096
#define INDEX_FILTER_CHUNK 256
#define INDEX_TRIM_CHUNK 1024

struct collection;

/* A change still in history. Chained per key, newest first, it also yields the older versions: what
 * a key held before an event is the event's `previous`. */
struct event {
    struct store_event shared; /* first member: what followers see */
    struct collection *collection;
    struct entry *entry;
    struct event *older; /* of the same key */
    struct event *newer;
    struct event *next; /* in revision order, over all collections */
    int64_t time_us;
};

struct index {
    pthread_rwlock_t lock;
    struct map collections; /* name -> struct collection; they stay until the end */
    int64_t revision;
    int64_t floor; /* the oldest revision a read or feed can begin at; history holds what came after
                      it */
    struct event *oldest, *newest;
    size_t n_events;
    size_t n_superseded;   /* versions that only history holds */
    int64_t history_bytes; /* what history costs beyond the objects that exist */
};

void index_init(struct index *ix, int64_t floor);
void index_done(struct index *ix);

/* ---- the writer's ------------------------------------------------------------------------- */

struct change {
    enum store_event_type type;
    struct str key;        /* valid */
    struct object *object; /* has its revision; one reference taken over */
};

/* Applies changes in revision order. ret_events[i] borrows the event of changes[i] from history. */
void index_apply(struct index *ix, const struct change *changes, size_t n_changes, int64_t time_us,
                 struct store_event **ret_events);
/* What the key holds now, without a reference. For the writer alone. */
struct object *index_newest(const struct index *ix, struct str key);
/* Drops at most max_events of history up to the revision `before`, which becomes the floor when all
 * of it is gone. The events come back chained by `next`, each with a reference; NULL when nothing
 * was dropped. */
struct event *index_trim(struct index *ix, int64_t before, size_t max_events);
/* What the event keeps in memory that would be gone without it. */
int64_t index_event_bytes(const struct event *e);

/* ---- anybody's ---------------------------------------------------------------------------- */

int64_t index_revision(struct index *ix);
int64_t index_floor(struct index *ix);
struct object *index_get(struct index *ix, struct str key);
size_t index_count(struct index *ix, struct str collection);
int index_list(struct index *ix, const struct store_range *range, struct store_page *ret_page);
int index_history(struct index *ix, struct str collection, int64_t from, int64_t to,
                  struct store_event ***ret_events, size_t *ret_n);
/* Objects that exist, over all collections. */
size_t index_n_objects(const struct index *ix);

/* ---- for the module's own files ----------------------------------------------------------- */

struct collection {
    struct keys keys;
    /* Its events in revision order: a ring of `capacity` slots, a power of two. */
    struct event **history;
    size_t first, n_events, capacity;
    size_t n_name;
    char name[];
};

struct collection *index_collection(const struct index *ix, struct str name);
void index_lock_read(struct index *ix);
void index_unlock(struct index *ix);
