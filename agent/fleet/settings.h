/* SPDX-License-Identifier: Apache-2.0 */
/* What a fleet is to be: the options of `seth-fleet run`, checked. */
#pragma once

#include "base/log.h"
#include "cli/options.h"
#include "fleet/wire.h"

extern const struct option_spec fleet_run_options[];

#define FLEET_MAX_SPEEDS 8

struct fleet_settings {
    struct str server;                                                      /* host:port */
    const char *root_certificate, *onboarding_certificate, *onboarding_key; /* files */
    size_t n_devices;
    struct str serial_prefix;
    int64_t first_serial;
    int64_t ramp_ms, warm_up_ms, duration_ms; /* the machine's time; duration 0: until a signal */
    const char *state_dir;                    /* NULL: a temporary one */
    int64_t log_lines_per_minute, app_log_lines_per_minute; /* of each device, each application */
    int64_t app_step_ms; /* between two states of one; 0: usual */
    int app_crashes_permille;
    int64_t app_crash_after_ms;
    struct fleet_wire_faults faults;
    size_t max_connections; /* of each loop at once; 0: any number */
    unsigned bad_clock_percent;
    int64_t clock_error_ms, reboot_every_ms; /* the devices' time; 0: never */
    double speeds[FLEET_MAX_SPEEDS];         /* the first at the start; signals move up and down */
    size_t n_speeds;
    size_t n_threads;
    const char *json; /* NULL: none */
    bool is_quiet, has_view;
    uint64_t seed;
    enum log_level log_level;
};

/* -EINVAL: it has said on stderr what is wrong. Strings live as long as the options. */
int fleet_settings_read(const struct options *o, struct fleet_settings *ret);
/* "90", "90s", "250ms", "5m", "1h", "2d" -> milliseconds; -EINVAL */
int fleet_duration_parse(struct str text, int64_t *ret_ms);
