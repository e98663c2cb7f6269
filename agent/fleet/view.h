/* SPDX-License-Identifier: Apache-2.0 */
/* A fleet in text: a screen for a terminal, or a line. */
#pragma once

#include "base/buf.h"
#include "fleet/sample.h"

struct fleet_settings;

/* One moment and the one before it, a second or so apart. */
struct fleet_view {
    const struct fleet_settings *settings;
    const struct fleet_sample *now;
    uint64_t before[FLEET_ENDPOINTS]; /* answered then */
    struct fleet_usage usage, usage_before;
    uint64_t rss_at_begin;
    double seconds; /* between the two */
    double elapsed_s, speed;
    enum fleet_phase phase;
};

void fleet_view_screen(const struct fleet_view *v, struct buf *to);
void fleet_view_line(const struct fleet_view *v, struct buf *to);
