/* SPDX-License-Identifier: Apache-2.0 */
/* Time as the rest of the program sees it. Code that decides by time takes a `struct clock`, so
 * that a test can run a day in a millisecond. */
#pragma once

#include <stdatomic.h>

#include "base/str.h"

struct clock {
    /* Since 1970, in microseconds; may jump. */
    int64_t (*wall_us)(const struct clock *c);
    /* Since some start, never goes back. */
    int64_t (*monotonic_us)(const struct clock *c);
};

/* The machine's. */
extern const struct clock clock_system;

/* A clock that moves only when told. Embed nothing; change now_us between calls. */
struct clock_virtual {
    struct clock clock;
    int64_t now_us;
};
void clock_virtual_init(struct clock_virtual *v, int64_t now_us);

/* Another clock, so many times faster from a moment on: both its times go on from where they were.
 * Any thread may read it, one at a time may set its speed. */
struct clock_scaled {
    struct clock clock;
    const struct clock *of;
    atomic_uint version; /* odd while the rest is being written */
    atomic_int_fast64_t of_us, wall_us, monotonic_us;
    _Atomic double speed;
};
/* With a speed of 1. `of` outlives it; of its times only the monotonic one is followed. */
void clock_scaled_init(struct clock_scaled *s, const struct clock *of);
/* factor > 0 */
void clock_scaled_set_speed(struct clock_scaled *s, double factor);

#define CLOCK_SECONDS_BYTES 21 /* 2006-01-02T15:04:05Z */
#define CLOCK_MICROS_BYTES 28  /* 2006-01-02T15:04:05.000000Z */
void clock_format_seconds(int64_t wall_us, char out[CLOCK_SECONDS_BYTES]);
void clock_format_micros(int64_t wall_us, char out[CLOCK_MICROS_BYTES]);
/* RFC 3339 with any zone and fraction; -EINVAL otherwise. */
int clock_parse(struct str text, int64_t *ret_wall_us);
