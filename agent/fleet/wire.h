/* SPDX-License-Identifier: Apache-2.0 */
/* A wire in front of the real one: counts and times what passes, loses and delays some of it. */
#pragma once

#include "controllerconn/wire.h"
#include "fleet/tally.h"

struct loop;

struct fleet_wire_faults {
    /* Of a hundred exchanges so many get no answer, by turns because the request and because the
     * answer is lost: the device waits until its time is over. */
    unsigned drop_percent;
    int64_t slow_ms; /* each is held back so long before it is sent, by the machine's time */
    uint64_t seed;
};

struct fleet_wire_options {
    struct loop *loop;
    /* Exchanges under way at once, 0: any number. Those beyond wait for their turn, and the wait
     * counts as latency: devices that share a processor would otherwise all be slow together, until
     * their connections are closed half made and everything begins anew. */
    size_t max_under_way;
    struct uplink_wire *inner; /* outlives it */
    struct fleet_wire_faults faults;
    int64_t begin_us; /* when the time line begins, in the machine's monotonic time */
    struct fleet_timeline *timeline;
    /* Where it is counted: a pointer, so that the owner may begin another. */
    struct fleet_tally **tally;
};

struct uplink_wire *fleet_wire_new(const struct fleet_wire_options *o);
/* After all transfers have ended or were cancelled. NULL allowed. */
void fleet_wire_free(struct uplink_wire *w);
