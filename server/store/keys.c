/* SPDX-License-Identifier: Apache-2.0 */
#include "store/keys.h"

#include <assert.h>

#include "base/alloc.h"

void keys_done(struct keys *k)
{
    for (size_t b = 0; b < k->n_blocks; b++) {
        for (uint32_t i = 0; i < k->blocks[b]->n; i++) {
            object_unref(k->blocks[b]->slots[i].newest);
            mem_free(k->blocks[b]->slots[i].entry);
        }
        mem_free(k->blocks[b]);
    }
    mem_free(k->blocks);
    *k = (struct keys){0};
}

/* The last block whose first key is not behind `key`; the first block when there is none such. */
static size_t find_block(const struct keys *k, struct str key)
{
    size_t low = 0, high = k->n_blocks;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (str_cmp(entry_key(k->blocks[middle]->slots[0].entry), key) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? low - 1 : 0;
}

/* How many entries of the block stand before key, or before and at it. */
static uint32_t find_in_block(const struct key_block *b, struct str key, bool behind)
{
    uint32_t low = 0, high = b->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = str_cmp(entry_key(b->slots[middle].entry), key);
        if (order < 0 || (behind && order == 0))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct key_cursor seek(const struct keys *k, struct str key, bool behind)
{
    if (k->n_blocks == 0)
        return (struct key_cursor){0};
    size_t block = find_block(k, key);
    uint32_t at = find_in_block(k->blocks[block], key, behind);
    if (at == k->blocks[block]->n)
        return (struct key_cursor){block + 1, 0};
    return (struct key_cursor){block, at};
}

struct key_cursor keys_seek(const struct keys *k, struct str key)
{
    return seek(k, key, /* behind= */ false);
}

struct key_cursor keys_seek_behind(const struct keys *k, struct str key)
{
    return seek(k, key, /* behind= */ true);
}

struct key_cursor keys_seek_end(const struct keys *k, struct str prefix)
{
    assert(prefix.n && (unsigned char) prefix.p[prefix.n - 1] != 0xff);
    char *successor = mem_dup(prefix.p, prefix.n);
    successor[prefix.n - 1]++;
    struct key_cursor c = keys_seek(k, str_range(successor, prefix.n));
    mem_free(successor);
    return c;
}

const struct key_slot *keys_find(const struct keys *k, struct str key)
{
    const struct key_slot *slot = keys_at(k, keys_seek(k, key));
    return slot && str_eq(entry_key(slot->entry), key) ? slot : NULL;
}

static void insert_block(struct keys *k, size_t at, struct key_block *b)
{
    if (k->n_blocks == k->capacity) {
        k->capacity = MAX(k->capacity * 2, (size_t) 4);
        k->blocks = mem_realloc_array(k->blocks, k->capacity, sizeof(struct key_block *));
    }
    memmove(k->blocks + at + 1, k->blocks + at, (k->n_blocks - at) * sizeof(struct key_block *));
    k->blocks[at] = b;
    k->n_blocks++;
}

static void remove_block(struct keys *k, size_t at)
{
    mem_free(k->blocks[at]);
    k->n_blocks--;
    memmove(k->blocks + at, k->blocks + at + 1, (k->n_blocks - at) * sizeof(struct key_block *));
}

static uint32_t count_live(const struct key_block *b)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->n; i++)
        n += b->slots[i].newest != NULL;
    return n;
}

/* Moves the upper part of a full block into a new one behind it. Keys that only ever grow
 * (generated in order) leave full blocks: nothing but the new key moves. */
static void split_block(struct keys *k, size_t block, uint32_t n_keep)
{
    struct key_block *low = k->blocks[block];
    struct key_block *high = NEW(struct key_block);
    high->n = low->n - n_keep;
    memcpy(high->slots, low->slots + n_keep, high->n * sizeof(struct key_slot));
    high->newest_revision = low->newest_revision;
    low->n = n_keep;
    low->n_live = count_live(low);
    high->n_live = count_live(high);
    insert_block(k, block + 1, high);
}

static struct entry *entry_new(struct str key)
{
    struct entry *e = mem_alloc(sizeof(*e) + key.n);
    *e = (struct entry){.n_key = (uint32_t) key.n};
    memcpy(e->key, key.p, key.n);
    return e;
}

/* Makes a slot for the entry before place `at` of the block. Returns the block that has it. */
static struct key_block *insert_at(struct keys *k, size_t block, uint32_t *at, struct entry *e)
{
    struct key_block *b = k->blocks[block];
    if (b->n == KEY_BLOCK_MAX) {
        bool at_end = block + 1 == k->n_blocks && *at == b->n;
        uint32_t n_keep = at_end ? KEY_BLOCK_MAX - 1 : KEY_BLOCK_MAX / 2;
        split_block(k, block, n_keep);
        if (*at > n_keep) {
            b = k->blocks[block + 1];
            *at -= n_keep;
        }
    }
    memmove(b->slots + *at + 1, b->slots + *at, (b->n - *at) * sizeof(struct key_slot));
    b->slots[*at] = (struct key_slot){e, NULL};
    b->n++;
    return b;
}

struct entry *keys_put(struct keys *k, struct str key, struct object *o, int64_t revision,
                       struct object **ret_previous)
{
    if (k->n_blocks == 0)
        insert_block(k, 0, NEW(struct key_block));
    size_t block = k->blocks[0]->n ? find_block(k, key) : 0;
    struct key_block *b = k->blocks[block];
    uint32_t at = find_in_block(b, key, /* behind= */ false);
    if (at == b->n || !str_eq(entry_key(b->slots[at].entry), key))
        b = insert_at(k, block, &at, entry_new(key));

    struct key_slot *slot = &b->slots[at];
    *ret_previous = slot->newest;
    b->n_live -= slot->newest != NULL;
    k->n_live -= slot->newest != NULL;
    b->n_live += o != NULL;
    k->n_live += o != NULL;
    b->newest_revision = MAX(b->newest_revision, revision);
    slot->newest = o;
    return slot->entry;
}

/* Joins a block with the one behind it once both are small, so that many removals leave no trail of
 * scraps. */
static void join_behind(struct keys *k, size_t block)
{
    if (block + 1 >= k->n_blocks ||
        k->blocks[block]->n + k->blocks[block + 1]->n > KEY_BLOCK_MAX / 2)
        return;
    struct key_block *low = k->blocks[block];
    const struct key_block *high = k->blocks[block + 1];
    memcpy(low->slots + low->n, high->slots, high->n * sizeof(struct key_slot));
    low->n += high->n;
    low->n_live += high->n_live;
    low->newest_revision = MAX(low->newest_revision, high->newest_revision);
    remove_block(k, block + 1);
}

void keys_remove(struct keys *k, struct entry *e)
{
    struct key_cursor c = keys_seek(k, entry_key(e));
    struct key_block *b = k->blocks[c.block];
    assert(b->slots[c.at].entry == e && !b->slots[c.at].newest);
    b->n--;
    memmove(b->slots + c.at, b->slots + c.at + 1, (b->n - c.at) * sizeof(struct key_slot));
    mem_free(e);
    if (b->n == 0) {
        remove_block(k, c.block);
        return;
    }
    join_behind(k, c.block);
    if (c.block > 0)
        join_behind(k, c.block - 1);
}
