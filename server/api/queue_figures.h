/* SPDX-License-Identifier: Apache-2.0 */
/* What a controller's queue counts, for workqueue_* of the metrics. */
#pragma once

#include "base/lang.h"

/* Bounds of both histograms: 10 ns to 1000 s, each ten times the one before. */
#define QUEUE_FIGURES_BUCKETS 12

struct queue_histogram {
    int64_t
        counts[QUEUE_FIGURES_BUCKETS + 1]; /* of each bucket alone; the last: above all bounds */
    int64_t sum_us;
};

struct queue_figures {
    const char *name;
    int64_t depth; /* keys that wait and are due */
    int64_t n_adds, n_retries;
    struct queue_histogram waited, worked;
};

static inline void queue_histogram_add(struct queue_histogram *h, int64_t us)
{
    size_t bucket = us > 0 ? 2 : 0;
    for (int64_t bound_us = 1; bucket < QUEUE_FIGURES_BUCKETS && us > bound_us; bound_us *= 10)
        bucket++;
    h->counts[bucket]++;
    h->sum_us += us;
}
