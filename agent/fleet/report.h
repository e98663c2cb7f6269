/* SPDX-License-Identifier: Apache-2.0 */
/* The report of a fleet that has ended, as JSON. */
#pragma once

#include "base/buf.h"
#include "fleet/sample.h"

struct fleet_settings;

struct fleet_report {
    const struct fleet_settings *settings;
    const struct fleet_sample *sample;
    const struct fleet_timeline *timeline;
    int64_t began_wall_us;
    double seconds[FLEET_PHASES];
    struct fleet_usage usage, usage_at_begin, usage_at_steady;
};

void fleet_report_write(const struct fleet_report *r, struct buf *to);
/* What counts as an error: see docs/FLEET.md. */
uint64_t fleet_report_errors(const struct fleet_report *r);
