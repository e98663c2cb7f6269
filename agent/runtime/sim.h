/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime that runs nothing: its states advance as on a device, its log lines and metrics are
 * invented and say so, its faults come by seed. Without processes, files or threads, so that
 * thousands of instances cost their memory alone. */
#pragma once

#include "runtime/runtime.h"

struct runtime_sim_span {
    int64_t min_ms, max_ms;
};

#define RUNTIME_SIM_STATES (RUNTIME_LOADING + 1)
struct runtime_sim_options {
    uint64_t seed; /* the same seed and the same calls give the same life */
    /* How long an object stays in a state that passes by itself. */
    struct runtime_sim_span spans[RUNTIME_SIM_STATES];
    /* Of a thousand steps so many fail. */
    int fetch_fails_permille, create_fails_permille, boot_fails_permille;
    /* Of a thousand starts so many end by themselves, after a time within crash_span. */
    int crashes_permille;
    struct runtime_sim_span crash_span;
    int64_t log_interval_ms; /* between two lines of a running instance; 0: none */
    int64_t memory_bytes;    /* each instance reports */
    int cpu_permille;        /* of one CPU */
};
extern const struct runtime_sim_options runtime_sim_defaults;

/* loop NULL: nothing advances but by runtime_sim_turn(), for tests on a virtual clock. */
struct runtime *runtime_sim_new(struct loop *loop, const struct clock *clock,
                                const struct runtime_sim_options *options,
                                const struct runtime_events *events);
/* Does what is due by the clock. Returns the monotonic time of what comes next, or -1. */
int64_t runtime_sim_turn(struct runtime *r);
