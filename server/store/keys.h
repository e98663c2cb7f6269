/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of one collection in byte order: an array of blocks of pointers, so that a scan runs
 * along memory and a count skips whole blocks. No locks here. */
#pragma once

#include "store/object.h"

#define KEY_BLOCK_MAX 128

struct event;

/* One key of a collection. It lives as long as the key exists or history speaks of it. */
struct entry {
    struct event *last; /* the newest event still in history, NULL when there is none */
    uint32_t n_key;
    char key[]; /* "<namespace>/<name>" */
};

/* The object stands beside the entry, not in it: a list of what has not changed since touches no
 * entry. */
struct key_slot {
    struct entry *entry;
    struct object *newest; /* NULL: removed, and only history remembers it */
};

struct key_block {
    int64_t newest_revision; /* no entry changed after it */
    uint32_t n;
    uint32_t n_live; /* keys that exist now */
    struct key_slot slots[KEY_BLOCK_MAX];
};

struct keys {
    struct key_block **blocks; /* none empty */
    size_t n_blocks;
    size_t capacity;
    size_t n_live;
};

/* A place before an entry, or the end (block == n_blocks). Any change of the keys makes it void. */
struct key_cursor {
    size_t block;
    uint32_t at;
};

static inline struct str entry_key(const struct entry *e)
{
    return str_range(e->key, e->n_key);
}

/* Frees blocks and entries, and drops the objects. */
void keys_done(struct keys *k);
/* The place of the first entry not before key. */
struct key_cursor keys_seek(const struct keys *k, struct str key);
/* The same for the first entry behind key. */
struct key_cursor keys_seek_behind(const struct keys *k, struct str key);
/* The place behind every key that begins with prefix, whose last byte is not 0xff. */
struct key_cursor keys_seek_end(const struct keys *k, struct str prefix);
/* NULL at the end. */
static inline const struct key_slot *keys_at(const struct keys *k, struct key_cursor c)
{
    return c.block < k->n_blocks ? &k->blocks[c.block]->slots[c.at] : NULL;
}
static inline bool key_cursor_is_before(struct key_cursor a, struct key_cursor b)
{
    return a.block != b.block ? a.block < b.block : a.at < b.at;
}

/* NULL when nothing is known of the key. Void after any change. */
const struct key_slot *keys_find(const struct keys *k, struct str key);
/* Finds or adds the entry and gives it its newest object (taken over; NULL: removed) as of
 * revision. What it had before (NULL in a new entry) comes back with its reference. */
struct entry *keys_put(struct keys *k, struct str key, struct object *o, int64_t revision,
                       struct object **ret_previous);
/* Takes the entry out and frees it. Its object has been removed. */
void keys_remove(struct keys *k, struct entry *e);
