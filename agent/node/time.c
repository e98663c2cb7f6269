/* SPDX-License-Identifier: Apache-2.0 */
/* Time as EVE spreads it and as Go writes it. */
#include <assert.h>

#include "node/node_internal.h"

#define GO_ZERO_TIME STR("0001-01-01T00:00:00Z")
#define GO_ZERO_YEAR STR("0001-")

int64_t node_jitter_ms(const struct node *n, int64_t interval_s)
{
    (void) n;
    assert(interval_s >= 0);
    return interval_s * 300 + (int64_t) random_below((uint64_t) interval_s * 700 + 1);
}

int64_t node_spread_ms(const struct node *n, int64_t interval_ms, int percent)
{
    (void) n;
    assert(interval_ms >= 0 && percent >= 0 && percent <= 100);
    const int64_t width = interval_ms / 100 * percent + interval_ms % 100 * percent / 100;
    return interval_ms - width + (int64_t) random_below((uint64_t) width * 2 + 1);
}

struct json *node_json_time(struct arena *a, int64_t wall_us)
{
    if (wall_us == 0)
        return json_new(a, json_string(GO_ZERO_TIME));
    char text[CLOCK_MICROS_BYTES];
    clock_format_micros(wall_us, text);
    /* Go writes no zeros at the end of a fraction, and no fraction of zero. */
    size_t n = strlen(text) - 1;
    while (text[n - 1] == '0')
        n--;
    if (text[n - 1] == '.')
        n--;
    return json_new(a, json_string(arena_printf(a, "%.*sZ", (int) n, text)));
}

int64_t node_json_time_us(const struct json *value)
{
    int64_t us = 0;
    const struct str text = json_str(value);
    if (!text.p || str_starts_with(text, GO_ZERO_YEAR) || clock_parse(text, &us) < 0)
        return 0;
    return us;
}
