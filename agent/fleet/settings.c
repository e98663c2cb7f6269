/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_DEVICES 100000
#define MAX_DURATION_MS ((int64_t) 366 * 86400 * 1000)
#define MIN_SPEED 0.01
#define MAX_SPEED 1000000.0

const struct option_spec fleet_run_options[] = {
    {"config", OPTION_TEXT, NULL, "YAML file with these options, names as keys", 0, 0},
    {"server", OPTION_TEXT, NULL, "host:port of the controller's device API", 0, 0},
    {"root-certificate", OPTION_TEXT, NULL, "file with the certificates that are trusted", 0, 0},
    {"onboarding-certificate", OPTION_TEXT, NULL, "file; all devices register with it", 0, 0},
    {"onboarding-key", OPTION_TEXT, NULL, "file with its private key", 0, 0},
    {"devices", OPTION_INT, "10", "how many", 1, MAX_DEVICES},
    {"serial-prefix", OPTION_TEXT, "fleet-", "serial numbers begin so", 0, 0},
    {"first-serial", OPTION_INT, "1", "and end with this number and those after it", 0, INT32_MAX},
    {"ramp", OPTION_TEXT, "10s", "devices start evenly spread over this time", 0, 0},
    {"warm-up", OPTION_TEXT, "0s", "after the ramp, before `steady` is measured", 0, 0},
    {"duration", OPTION_TEXT, "60s", "after ramp and warm-up; 0: until SIGINT or SIGTERM", 0, 0},
    {"state-dir", OPTION_TEXT, NULL, "the devices' files; a temporary one if not given", 0, 0},
    {"log-lines-per-minute", OPTION_INT, "6", "of each device", 0, 60000},
    {"app-log-lines-per-minute", OPTION_INT, "6", "of each application", 0, 60000},
    {"app-step", OPTION_TEXT, "0s", "an application's time in each passing state; 0: as usual", 0,
     0},
    {"app-crashes", OPTION_INT, "0", "so many of a thousand starts end by themselves", 0, 1000},
    {"app-crash-after", OPTION_TEXT, "5m", "at most so long after they started", 0, 0},
    {"drop", OPTION_INT, "0", "percent of requests that get no answer", 0, 100},
    {"slow", OPTION_INT, "0", "milliseconds each request is held back", 0, 600000},
    {"bad-clock", OPTION_INT, "0", "percent of devices whose wall clock is wrong", 0, 100},
    {"clock-error", OPTION_TEXT, "30d", "by at most so much, either way", 0, 0},
    {"reboot-every", OPTION_TEXT, "0s", "each device, on average; 0: never", 0, 0},
    {"speed", OPTION_LIST, "1",
     "time of the devices runs so many times faster; of several the first, then SIGUSR2 takes the "
     "next and SIGUSR1 the one before",
     0, 0},
    {"threads", OPTION_INT, "1", "loops that the devices are spread over", 1, 64},
    {"max-connections", OPTION_INT, "128",
     "of each loop at once, others wait for their turn; 0: any number", 0, 1000000},
    {"json", OPTION_TEXT, NULL, "file for the report", 0, 0},
    {"seed", OPTION_INT, "1", "of everything that is left to chance here", 0, INT32_MAX},
    {"log-level", OPTION_TEXT, "error", "error, warning, info or debug, to stderr", 0, 0},
    {"no-view", OPTION_ACTION, NULL, "a line each second, also on a terminal", 0, 0},
    {"quiet", OPTION_ACTION, NULL, "nothing on stdout", 0, 0},
    {0},
};

int fleet_duration_parse(struct str text, int64_t *ret_ms)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}, {"", 1000}};
    size_t n_digits = 0;
    int64_t number = 0;
    while (n_digits < text.n && text.p[n_digits] >= '0' && text.p[n_digits] <= '9')
        n_digits++;
    if (n_digits == 0 || str_to_i64(str_sub(text, 0, n_digits), &number) < 0)
        return -EINVAL;
    for (size_t i = 0; i < N_ELEMENTS(units); i++) {
        if (!str_is(str_from(text, n_digits), units[i].name))
            continue;
        if (number > MAX_DURATION_MS / units[i].ms)
            return -EINVAL;
        *ret_ms = number * units[i].ms;
        return 0;
    }
    return -EINVAL;
}

static int refuse(const char *name, const char *text, const char *wanted)
{
    fprintf(stderr, "seth-fleet: --%s: '%s' is no %s\n", name, text, wanted);
    return -EINVAL;
}

static int read_durations(const struct options *o, struct fleet_settings *s)
{
    const struct {
        const char *name;
        int64_t *ms;
    } durations[] = {{"ramp", &s->ramp_ms},
                     {"warm-up", &s->warm_up_ms},
                     {"duration", &s->duration_ms},
                     {"app-step", &s->app_step_ms},
                     {"app-crash-after", &s->app_crash_after_ms},
                     {"clock-error", &s->clock_error_ms},
                     {"reboot-every", &s->reboot_every_ms}};
    for (size_t i = 0; i < N_ELEMENTS(durations); i++) {
        const char *text = option_text(o, durations[i].name);
        if (fleet_duration_parse(str_of(text), durations[i].ms) < 0)
            return refuse(durations[i].name, text, "time such as 90s, 250ms, 5m, 1h or 2d");
    }
    return 0;
}

static int read_speeds(const struct options *o, struct fleet_settings *s)
{
    struct str rest = str_of(option_text(o, "speed")), part;
    while (str_split(&rest, ',', &part)) {
        char text[32] = "", *end = NULL;
        memcpy(text, part.p, MIN(part.n, sizeof(text) - 1));
        const double speed = strtod(text, &end);
        if (part.n >= sizeof(text) || end == text || *end ||
            !(speed >= MIN_SPEED && speed <= MAX_SPEED))
            return refuse("speed", text, "number between 0.01 and 1000000");
        if (s->n_speeds == FLEET_MAX_SPEEDS)
            return refuse("speed", option_text(o, "speed"), "list of at most 8");
        s->speeds[s->n_speeds++] = speed;
    }
    return s->n_speeds > 0 ? 0 : refuse("speed", "", "number");
}

static int read_log_level(const struct options *o, enum log_level *ret)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};
    const char *text = option_text(o, "log-level");
    for (size_t i = 0; i < N_ELEMENTS(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            *ret = (enum log_level) i;
            return 0;
        }
    }
    return refuse("log-level", text, "level: error, warning, info or debug");
}

static int check_needed(const struct options *o)
{
    static const char *const needed[] = {"server", "root-certificate", "onboarding-certificate",
                                         "onboarding-key"};
    for (size_t i = 0; i < N_ELEMENTS(needed); i++) {
        if (option_text(o, needed[i])[0])
            continue;
        fprintf(stderr, "seth-fleet: --%s is needed; --help lists the options\n", needed[i]);
        return -EINVAL;
    }
    return 0;
}

static const char *text_or_null(const struct options *o, const char *name)
{
    const char *text = option_text(o, name);
    return text[0] ? text : NULL;
}

static void read_plain(const struct options *o, struct fleet_settings *s)
{
    s->server = str_of(option_text(o, "server"));
    s->root_certificate = option_text(o, "root-certificate");
    s->onboarding_certificate = option_text(o, "onboarding-certificate");
    s->onboarding_key = option_text(o, "onboarding-key");
    s->n_devices = (size_t) option_int(o, "devices");
    s->serial_prefix = str_of(option_text(o, "serial-prefix"));
    s->first_serial = option_int(o, "first-serial");
    s->state_dir = text_or_null(o, "state-dir");
    s->log_lines_per_minute = option_int(o, "log-lines-per-minute");
    s->app_log_lines_per_minute = option_int(o, "app-log-lines-per-minute");
    s->app_crashes_permille = (int) option_int(o, "app-crashes");
    s->faults.drop_percent = (unsigned) option_int(o, "drop");
    s->faults.slow_ms = option_int(o, "slow");
    s->bad_clock_percent = (unsigned) option_int(o, "bad-clock");
    s->n_threads = (size_t) option_int(o, "threads");
    s->max_connections = (size_t) option_int(o, "max-connections");
    s->json = text_or_null(o, "json");
    s->is_quiet = option_is_given(o, "quiet");
    s->has_view = !s->is_quiet && !option_is_given(o, "no-view");
    s->seed = (uint64_t) option_int(o, "seed");
}

int fleet_settings_read(const struct options *o, struct fleet_settings *ret)
{
    struct fleet_settings s = {0};
    if (check_needed(o) < 0 || read_durations(o, &s) < 0 || read_speeds(o, &s) < 0 ||
        read_log_level(o, &s.log_level) < 0)
        return -EINVAL;
    read_plain(o, &s);
    if (o->n_rest > 0) {
        fprintf(stderr, "seth-fleet: what is '%s'? --help lists the options\n", o->rest[0]);
        return -EINVAL;
    }
    *ret = s;
    return 0;
}
