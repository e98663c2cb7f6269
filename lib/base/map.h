/* SPDX-License-Identifier: Apache-2.0 */
/* A hash map from strings to pointers. Keys may come from outside: the hash is keyed (SipHash-1-3),
 * so that nobody can choose colliding ones. The map copies no keys: they must outlive their entry.
 */
#pragma once

#include "base/str.h"

struct map_entry {
    struct str key;
    void *value;
};

struct map {
    struct map_entry *entries; /* value NULL: free slot */
    size_t n_items;
    size_t n_slots; /* zero or a power of two */
};

void map_done(struct map *m);
/* NULL when absent. */
void *map_get(const struct map *m, struct str key);
/* Returns the value replaced, or NULL. A replaced entry takes the new key's memory. value is not
 * NULL. */
void *map_put(struct map *m, struct str key, void *value);
void *map_remove(struct map *m, struct str key);
/* Iteration in no order: *position starts at 0; false at the end. No change to the map meanwhile.
 */
bool map_next(const struct map *m, size_t *position, struct map_entry *ret_entry);

/* The keyed hash, stable for the life of the process. */
uint64_t map_hash(struct str key);
