/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/histogram.h"

/* The first 64 buckets hold one value each; from there on every power of two has 64. */
static size_t bucket_of(uint64_t us)
{
    if (us < FLEET_HISTOGRAM_PARTS)
        return (size_t) us;
    const int bits = 64 - __builtin_clzll(us); /* at least 7 */
    const uint64_t part = us >> (bits - 7);    /* 64 to 127 */
    return (size_t) (bits - 6) * FLEET_HISTOGRAM_PARTS + (size_t) part - FLEET_HISTOGRAM_PARTS;
}

/* The largest value that counts there. */
static uint64_t end_of(size_t bucket)
{
    if (bucket < FLEET_HISTOGRAM_PARTS)
        return bucket;
    const size_t shift = bucket / FLEET_HISTOGRAM_PARTS - 1;
    const uint64_t part = FLEET_HISTOGRAM_PARTS + bucket % FLEET_HISTOGRAM_PARTS;
    return ((part + 1) << shift) - 1;
}

void fleet_histogram_add(struct fleet_histogram *h, int64_t us)
{
    const uint64_t most = ((uint64_t) 1 << FLEET_HISTOGRAM_MAX_BITS) - 1;
    const uint64_t value = us < 0 ? 0 : MIN((uint64_t) us, most);
    h->n++;
    h->sum_us += value;
    h->max_us = MAX(h->max_us, value);
    h->buckets[bucket_of(value)]++;
}

void fleet_histogram_merge(struct fleet_histogram *to, const struct fleet_histogram *from)
{
    to->n += from->n;
    to->sum_us += from->sum_us;
    to->max_us = MAX(to->max_us, from->max_us);
    for (size_t i = 0; i < FLEET_HISTOGRAM_BUCKETS; i++)
        to->buckets[i] += from->buckets[i];
}

int64_t fleet_histogram_at(const struct fleet_histogram *h, unsigned permille)
{
    if (h->n == 0)
        return 0;
    const uint64_t rank = MAX((h->n * permille + 999) / 1000, 1);
    uint64_t n = 0;
    for (size_t i = 0; i < FLEET_HISTOGRAM_BUCKETS; i++) {
        n += h->buckets[i];
        if (n >= rank)
            return (int64_t) MIN(end_of(i), h->max_us);
    }
    return (int64_t) h->max_us;
}
