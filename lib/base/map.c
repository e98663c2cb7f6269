/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/random.h"

#define MAP_MIN_SLOTS 8

static uint64_t secret[2];
static pthread_once_t secret_once = PTHREAD_ONCE_INIT;

static void secret_make(void)
{
    random_bytes(secret, sizeof(secret));
}

static uint64_t rotate(uint64_t x, int bits)
{
    return (x << bits) | (x >> (64 - bits));
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] = rotate(v[2], 32);
}

uint64_t map_hash(struct str key)
{
    (void) pthread_once(&secret_once, secret_make);
    uint64_t v[4] = {secret[0] ^ 0x736f6d6570736575, secret[1] ^ 0x646f72616e646f6d,
                     secret[0] ^ 0x6c7967656e657261, secret[1] ^ 0x7465646279746573};
    size_t whole = key.n & ~(size_t) 7;
    uint64_t word = 0;
    for (size_t i = 0; i < whole; i += 8) {
        memcpy(&word, key.p + i, 8);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    word = (uint64_t) key.n << 56;
    for (size_t i = whole; i < key.n; i++)
        word |= (uint64_t) (unsigned char) key.p[i] << (8 * (i - whole));
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void map_done(struct map *m)
{
    mem_free(m->entries);
    *m = (struct map){0};
}

/* The slot that holds key, or the free one where it belongs. */
static size_t find_slot(const struct map *m, struct str key)
{
    size_t mask = m->n_slots - 1;
    size_t slot = map_hash(key) & mask;
    while (m->entries[slot].value && !str_eq(m->entries[slot].key, key))
        slot = (slot + 1) & mask;
    return slot;
}

void *map_get(const struct map *m, struct str key)
{
    return m->n_items ? m->entries[find_slot(m, key)].value : NULL;
}

static void grow(struct map *m)
{
    struct map bigger = {.n_slots = MAX(m->n_slots * 2, (size_t) MAP_MIN_SLOTS)};
    bigger.entries = mem_zalloc(bigger.n_slots * sizeof(*bigger.entries));
    for (size_t i = 0; i < m->n_slots; i++)
        if (m->entries[i].value)
            bigger.entries[find_slot(&bigger, m->entries[i].key)] = m->entries[i];
    bigger.n_items = m->n_items;
    mem_free(m->entries);
    *m = bigger;
}

void *map_put(struct map *m, struct str key, void *value)
{
    if (4 * (m->n_items + 1) > 3 * m->n_slots)
        grow(m);
    struct map_entry *e = &m->entries[find_slot(m, key)];
    void *replaced = e->value;
    m->n_items += !replaced;
    *e = (struct map_entry){key, value};
    return replaced;
}

void *map_remove(struct map *m, struct str key)
{
    if (!m->n_items)
        return NULL;
    size_t mask = m->n_slots - 1;
    size_t hole = find_slot(m, key);
    void *removed = m->entries[hole].value;
    if (!removed)
        return NULL;
    m->n_items--;
    /* Close the gap: move back every follower that may not stand behind a free slot. */
    for (size_t i = (hole + 1) & mask; m->entries[i].value; i = (i + 1) & mask) {
        size_t home = map_hash(m->entries[i].key) & mask;
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            m->entries[hole] = m->entries[i];
            hole = i;
        }
    }
    m->entries[hole] = (struct map_entry){0};
    return removed;
}

bool map_next(const struct map *m, size_t *position, struct map_entry *ret_entry)
{
    for (; *position < m->n_slots; (*position)++) {
        if (m->entries[*position].value) {
            *ret_entry = m->entries[(*position)++];
            return true;
        }
    }
    return false;
}
