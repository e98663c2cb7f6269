/* SPDX-License-Identifier: Apache-2.0 */
/* A fleet at one moment: what its devices are doing, what they asked for, what they cost. */
#pragma once

#include "fleet/tally.h"

/* Each device is in exactly one state. */
enum fleet_state {
    FLEET_WAITING,    /* for its turn of the ramp */
    FLEET_OFF,        /* restarting, or told to stay off */
    FLEET_STARTING,   /* not onboarded yet */
    FLEET_ONBOARDED,  /* not configured yet */
    FLEET_CONFIGURED, /* some of its applications do not run, or it has none */
    FLEET_RUNNING,    /* configured, and all its applications run */
    FLEET_BROKEN,     /* could not be started */
    FLEET_STATES
};
const char *fleet_state_name(enum fleet_state s);

struct fleet_population {
    size_t states[FLEET_STATES];
    size_t n_applications, n_running, n_failed;
    uint64_t n_restarts;
    uint64_t n_log_lines, n_log_lines_lost; /* of devices: handed to the collector, refused by it */
    uint64_t info_delivered, info_dropped, metrics_sent, metrics_lost, log_files_sent,
        log_bytes_sent, log_failures;
    size_t info_waiting, log_files_waiting;
};
void fleet_population_merge(struct fleet_population *to, const struct fleet_population *from);
size_t fleet_population_devices(const struct fleet_population *p);

/* The figures of interest are those of the steady phase; the ramp is a storm of its own. */
enum fleet_phase { FLEET_RAMP, FLEET_STEADY, FLEET_PHASES };

struct fleet_usage {
    uint64_t rss_bytes, peak_rss_bytes;
    int64_t cpu_us;
};
/* Of this process. */
struct fleet_usage fleet_usage_now(void);

struct fleet_sample {
    struct fleet_population population;
    struct fleet_tally tallies[FLEET_PHASES];
};
void fleet_sample_merge(struct fleet_sample *to, const struct fleet_sample *from);
/* Both phases. */
void fleet_sample_total(const struct fleet_sample *s, struct fleet_tally *ret);
