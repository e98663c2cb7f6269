/* SPDX-License-Identifier: Apache-2.0 */
/* Chance by seed: the same fleet has the same faults. For simulation alone. */
#pragma once

#include "base/lang.h"

struct fleet_dice {
    uint64_t state;
};

static inline void fleet_dice_init(struct fleet_dice *d, uint64_t seed)
{
    d->state = seed;
}

/* splitmix64 */
static inline uint64_t fleet_dice_next(struct fleet_dice *d)
{
    uint64_t z = d->state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* Uniform below bound, which is not 0, as far as it matters here. */
static inline uint64_t fleet_dice_below(struct fleet_dice *d, uint64_t bound)
{
    return fleet_dice_next(d) % bound;
}
