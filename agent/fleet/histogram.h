/* SPDX-License-Identifier: Apache-2.0 */
/* Many times in little memory: each is counted in a bucket that is at most 1/64 wider than its
 * values, so a percentile is at most 1.6 % too high. */
#pragma once

#include "base/lang.h"

#define FLEET_HISTOGRAM_PARTS 64    /* buckets between a power of two and the next */
#define FLEET_HISTOGRAM_MAX_BITS 33 /* 2.4 hours in microseconds; what is longer counts as that */
#define FLEET_HISTOGRAM_BUCKETS (FLEET_HISTOGRAM_PARTS * (FLEET_HISTOGRAM_MAX_BITS - 6 + 1))

struct fleet_histogram {
    uint64_t n, sum_us, max_us;
    uint32_t buckets[FLEET_HISTOGRAM_BUCKETS];
};

void fleet_histogram_add(struct fleet_histogram *h, int64_t us);
void fleet_histogram_merge(struct fleet_histogram *to, const struct fleet_histogram *from);
/* So many per thousand are not longer; 0 when there are none. */
int64_t fleet_histogram_at(const struct fleet_histogram *h, unsigned permille);
