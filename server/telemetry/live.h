/* SPDX-License-Identifier: Apache-2.0 */
/* The index of a segment that is still written, in memory: which records each device has in it. */
#pragma once

#include "base/map.h"
#include "telemetry/segment.h"

/* What a device has in a segment. */
struct row {
    struct uuid device;
    uint64_t forget_id; /* of the last frame that forgets it; 0: none */
    uint64_t last_id;
    int64_t last_arrived_us;
    uint64_t n_bytes;  /* of its frames */
    uint32_t first, n; /* its entries */
};

struct live *live_new(void);
void live_free(struct live *l); /* NULL allowed */
void live_add(struct live *l, const struct segment_head *h, const struct frame *f,
              uint64_t position);
/* false: the device has nothing here. */
bool live_row(const struct live *l, const struct uuid *device, struct row *ret);
/* Entries of the device above id `after`, at most `max`, in order. */
size_t live_entries(const struct live *l, const struct segment_head *h, const struct uuid *device,
                    uint64_t after, struct entry *ret, size_t max);
void live_each(const struct live *l, void (*fn)(void *ctx, const struct row *r), void *ctx);

struct holding {
    struct row row; /* first is not set */
    struct entry *entries;
    size_t capacity;
};
/* All, sorted by device; heap. */
struct holding **live_sorted(const struct live *l, size_t *ret_n);
