/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/live.h"

#include <stdlib.h>

#include "base/alloc.h"

#define FIRST_ENTRIES 4

struct live {
    struct map by_device; /* struct holding */
};

static struct str key_of(const struct uuid *u)
{
    return str_range((const char *) u->bytes, sizeof(u->bytes));
}

struct live *live_new(void)
{
    return NEW(struct live);
}

void live_free(struct live *l)
{
    if (!l)
        return;
    size_t position = 0;
    struct map_entry item;
    while (map_next(&l->by_device, &position, &item)) {
        struct holding *h = item.value;
        mem_free(h->entries);
        mem_free(h);
    }
    map_done(&l->by_device);
    mem_free(l);
}

static struct holding *holding_of(struct live *l, const struct uuid *device)
{
    struct holding *h = map_get(&l->by_device, key_of(device));
    if (h)
        return h;
    h = NEW(struct holding);
    h->row.device = *device;
    (void) map_put(&l->by_device, key_of(&h->row.device), h);
    return h;
}

void live_add(struct live *l, const struct segment_head *head, const struct frame *f,
              uint64_t position)
{
    struct holding *h = holding_of(l, &f->device);
    if (h->row.n == h->capacity) {
        h->capacity = h->capacity ? h->capacity * 2 : FIRST_ENTRIES;
        h->entries = mem_realloc_array(h->entries, h->capacity, sizeof(*h->entries));
    }
    h->entries[h->row.n++] = entry_of(head, f, position);
    h->row.last_id = f->id;
    h->row.last_arrived_us = f->arrived_us;
    h->row.n_bytes += FRAME_BYTES + f->n_bytes;
    if (f->stream == FRAME_FORGET)
        h->row.forget_id = f->id;
}

bool live_row(const struct live *l, const struct uuid *device, struct row *ret)
{
    const struct holding *h = map_get(&l->by_device, key_of(device));
    if (h)
        *ret = h->row;
    return h != NULL;
}

size_t live_entries(const struct live *l, const struct segment_head *head,
                    const struct uuid *device, uint64_t after, struct entry *ret, size_t max)
{
    const struct holding *h = map_get(&l->by_device, key_of(device));
    if (!h)
        return 0;
    size_t low = 0, high = h->row.n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (head->first_id + h->entries[middle].id_delta <= after)
            low = middle + 1;
        else
            high = middle;
    }
    size_t n = MIN(max, h->row.n - low);
    if (n > 0)
        memcpy(ret, h->entries + low, n * sizeof(*ret));
    return n;
}

void live_each(const struct live *l, void (*fn)(void *ctx, const struct row *r), void *ctx)
{
    size_t position = 0;
    struct map_entry item;
    while (map_next(&l->by_device, &position, &item))
        fn(ctx, &((const struct holding *) item.value)->row);
}

static int by_device(const void *a, const void *b)
{
    const struct holding *const *x = a, *const *y = b;
    return memcmp((*x)->row.device.bytes, (*y)->row.device.bytes, sizeof((*x)->row.device.bytes));
}

struct holding **live_sorted(const struct live *l, size_t *ret_n)
{
    size_t n = 0, position = 0;
    struct holding **all = mem_realloc_array(NULL, MAX(l->by_device.n_items, 1), sizeof(*all));
    struct map_entry item;
    while (map_next(&l->by_device, &position, &item))
        all[n++] = item.value;
    qsort(all, n, sizeof(struct holding *), by_device);
    *ret_n = n;
    return all;
}
