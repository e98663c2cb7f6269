/* SPDX-License-Identifier: Apache-2.0 */
/* Time as the rest of the program sees it. Code that decides by time takes a `struct clock`, so
 * that a test can run a day in a millisecond. */
#pragma once

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

#define CLOCK_SECONDS_BYTES 21 /* 2006-01-02T15:04:05Z */
#define CLOCK_MICROS_BYTES 28  /* 2006-01-02T15:04:05.000000Z */
void clock_format_seconds(int64_t wall_us, char out[CLOCK_SECONDS_BYTES]);
void clock_format_micros(int64_t wall_us, char out[CLOCK_MICROS_BYTES]);
/* RFC 3339 with any zone and fraction; -EINVAL otherwise. */
int clock_parse(struct str text, int64_t *ret_wall_us);
