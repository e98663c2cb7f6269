/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that have more on disk than they may: their oldest records are no longer read. */
#include "base/alloc.h"
#include "telemetry/keeper.h"

#define CHUNK_ENTRIES 256

struct over {
    struct uuid device;
    uint64_t floor;
    int64_t n_bytes;
};

/* Bytes of a device's records above the floor in one segment; when they pass `enough`, *ret_id is
 * the record that did it. */
static int64_t bytes_in(struct telemetry *t, struct segment *s, const struct over *o,
                        int64_t enough, uint64_t *ret_id)
{
    uint64_t floor = o->floor;
    struct entry chunk[CHUNK_ENTRIES];
    int64_t n_bytes = 0;
    for (;;) {
        uint64_t scan_at = 0;
        ssize_t n = segment_entries(t, s, &o->device, floor, &scan_at, chunk, CHUNK_ENTRIES);
        if (n <= 0 || entry_id(s, &chunk[n - 1]) <= floor)
            return n_bytes;
        for (ssize_t i = 0; i < n; i++) {
            n_bytes += entry_size(&chunk[i]);
            if (n_bytes >= enough) {
                *ret_id = entry_id(s, &chunk[i]);
                return n_bytes;
            }
        }
        floor = entry_id(s, &chunk[n - 1]);
    }
}

static void trim(struct telemetry *t, const struct over *o, struct segment **all, size_t n)
{
    int64_t total = 0, max = t->options.max_device_bytes;
    uint64_t id = 0;
    for (size_t i = n; i-- > 0 && !id;) {
        total += bytes_in(t, all[i], o, INT64_MAX, &id);
        if (total > max)
            total -= bytes_in(t, all[i], o, total - max, &id);
    }
    pthread_mutex_lock(&t->lock);
    struct track *k = track_of(t, &o->device);
    /* And what came meanwhile. */
    k->n_bytes = MAX(total + k->n_bytes - o->n_bytes, 0);
    k->floor = MAX(k->floor, id);
    pthread_mutex_unlock(&t->lock);
}

void keeper_trim_devices(struct telemetry *t)
{
    if (t->options.max_device_bytes <= 0)
        return;
    struct over *over = NULL;
    size_t n_over = 0, position = 0;
    struct map_entry item;
    pthread_mutex_lock(&t->lock);
    while (map_next(&t->tracks, &position, &item)) {
        const struct track *k = item.value;
        if (k->n_bytes <= t->options.max_device_bytes)
            continue;
        over = mem_realloc_array(over, n_over + 1, sizeof(*over));
        over[n_over++] = (struct over){k->device, k->floor, k->n_bytes};
    }
    size_t n = t->n_segments;
    struct segment **all = mem_realloc_array(NULL, MAX(n, 1), sizeof(struct segment *));
    for (size_t i = 0; i < n; i++)
        all[i] = segment_ref(t->segments[i]);
    pthread_mutex_unlock(&t->lock);
    for (size_t i = 0; i < n_over; i++)
        trim(t, &over[i], all, n);
    for (size_t i = 0; i < n; i++)
        segment_unref(all[i]);
    mem_free(all);
    mem_free(over);
}
