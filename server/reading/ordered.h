/* SPDX-License-Identifier: Apache-2.0 */
/* Lines in the order of their own time, with bounded memory: the first so many bytes of them beyond
 * a place, then the same again beyond the last of those. */
#pragma once

#include "base/buf.h"
#include "reading/query.h"

#define ORDERED_MAX_BYTES ((size_t) 8 * 1024 * 1024)

struct ordered_key {
    int64_t time_us;
    uint64_t record;
    int64_t line;
};
int ordered_compare(const struct ordered_key *a, const struct ordered_key *b);

struct ordered_item {
    struct ordered_key key;
    char *text; /* heap; NULL: the key alone */
    size_t n;
};

/* A heap whose root is the item to go first. */
struct ordered {
    struct ordered_item *items;
    size_t n, capacity, n_bytes;
    bool is_lowest_first; /* else the highest */
    bool is_partial;      /* something went */
};
void ordered_done(struct ordered *o);
/* Empties it. */
void ordered_reset(struct ordered *o, bool is_lowest_first);
/* text is copied; STR_NONE: the key alone. */
void ordered_add(struct ordered *o, const struct ordered_key *key, struct str text);
void ordered_drop_first(struct ordered *o);
/* Ends the heap: items by rising keys. */
void ordered_sort(struct ordered *o);
