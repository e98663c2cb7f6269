/* SPDX-License-Identifier: Apache-2.0 */
/* A token bucket: so many at once, then so many per second. Time is an argument. */
#pragma once

#include "base/lang.h"

struct bucket {
    uint64_t burst, per_second;
    uint64_t n_left;
    int64_t filled_ms; /* up to here */
};

static inline void bucket_init(struct bucket *b, uint64_t burst, uint64_t per_second,
                               int64_t now_ms)
{
    *b = (struct bucket){burst, per_second, burst, now_ms};
}

static inline void bucket_add(struct bucket *b, uint64_t n)
{
    b->n_left = MIN(b->n_left + n, b->burst);
}

/* Only whole tokens move the time, so that frequent calls lose no fraction. */
static inline void bucket_fill(struct bucket *b, int64_t now_ms)
{
    if (now_ms <= b->filled_ms || b->per_second == 0)
        return;
    uint64_t n = (uint64_t) (now_ms - b->filled_ms) * b->per_second / 1000;
    if (n == 0)
        return;
    b->filled_ms = now_ms;
    bucket_add(b, n);
}

/* Takes one; false when there is none. */
static inline bool bucket_take(struct bucket *b)
{
    if (b->n_left == 0)
        return false;
    b->n_left--;
    return true;
}
