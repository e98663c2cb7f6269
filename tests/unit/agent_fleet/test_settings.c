/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/settings.h"

#include <errno.h>

#include "cli/program.h"
#include "test.h"

TEST(durations_have_units)
{
    static const struct {
        const char *text;
        int64_t ms; /* -1: refused */
    } cases[] = {
        {"0", 0},       {"90", 90000},        {"90s", 90000},    {"250ms", 250},
        {"5m", 300000}, {"1h", 3600000},      {"2d", 172800000}, {"", -1},
        {"s", -1},      {"-5s", -1},          {"5 s", -1},       {"5y", -1},
        {"1.5s", -1},   {"99999999999d", -1}, {"400d", -1},      {"99999999999999999999", -1},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        int64_t ms = 0;
        const int r = fleet_duration_parse(str_of(cases[i].text), &ms);
        assert_int_equal(r, cases[i].ms < 0 ? -EINVAL : 0);
        if (r == 0)
            assert_int_equal(ms, cases[i].ms);
    }
}

static int parse(struct arena *a, int argc, const char **argv, struct fleet_settings *ret)
{
    static const struct command commands[] = {{"run", "", "", fleet_run_options, NULL}, {0}};
    static const struct program program = {.name = "seth-fleet", .commands = commands};
    struct options o;
    const int r = options_parse(a, &program, fleet_run_options, "", argc, (char **) argv, &o);
    return r < 0 ? r : fleet_settings_read(&o, ret);
}

#define NEEDED \
    "--server", "127.0.0.1:1", "--root-certificate", "r", "--onboarding-certificate", "c", \
        "--onboarding-key", "k"

TEST(defaults_are_a_small_plain_fleet)
{
    ARENA_AUTO a = arena_new();
    const char *argv[] = {NEEDED};
    struct fleet_settings s;
    assert_int_equal(parse(a, N_ELEMENTS(argv), argv, &s), 0);
    assert_str(s.server, "127.0.0.1:1");
    assert_int_equal(s.n_devices, 10);
    assert_int_equal(s.ramp_ms, 10000);
    assert_int_equal(s.duration_ms, 60000);
    assert_null(s.state_dir);
    assert_null(s.json);
    assert_true(s.has_view && !s.is_quiet);
    assert_true(s.n_speeds == 1 && s.speeds[0] == 1);
    assert_int_equal(s.faults.drop_percent + (unsigned) s.faults.slow_ms + s.bad_clock_percent, 0);
    assert_int_equal(s.log_level, LOG_ERROR);
}

TEST(every_option_is_taken)
{
    ARENA_AUTO a = arena_new();
    const char *argv[] = {
        NEEDED, "--devices",     "50",       "--serial-prefix", "x",     "--first-serial",
        "7",    "--ramp",        "2s",       "--warm-up",       "1s",    "--duration",
        "0",    "--state-dir",   "/d",       "--drop",          "5",     "--slow",
        "10",   "--bad-clock",   "20",       "--clock-error",   "1h",    "--reboot-every",
        "1d",   "--speed",       "2.5,1440", "--threads",       "2",     "--json",
        "/j",   "--app-crashes", "3",        "--app-step",      "100ms", "--log-level",
        "info", "--quiet"};
    struct fleet_settings s;
    assert_int_equal(parse(a, N_ELEMENTS(argv), argv, &s), 0);
    assert_int_equal(s.n_devices, 50);
    assert_str(s.serial_prefix, "x");
    assert_int_equal(s.first_serial, 7);
    assert_int_equal(s.warm_up_ms, 1000);
    assert_int_equal(s.duration_ms, 0);
    assert_string_equal(s.state_dir, "/d");
    assert_int_equal(s.faults.drop_percent, 5);
    assert_int_equal(s.faults.slow_ms, 10);
    assert_int_equal(s.bad_clock_percent, 20);
    assert_int_equal(s.clock_error_ms, 3600000);
    assert_int_equal(s.reboot_every_ms, 86400000);
    assert_true(s.n_speeds == 2 && s.speeds[0] == 2.5 && s.speeds[1] == 1440);
    assert_int_equal(s.n_threads, 2);
    assert_string_equal(s.json, "/j");
    assert_int_equal(s.app_crashes_permille, 3);
    assert_int_equal(s.app_step_ms, 100);
    assert_int_equal(s.log_level, LOG_INFO);
    assert_true(s.is_quiet && !s.has_view);
}

TEST(what_makes_no_sense_is_refused)
{
    static const char *const bad[][2] = {{"--devices", "0"},      {"--devices", "1000000"},
                                         {"--ramp", "soon"},      {"--speed", "0"},
                                         {"--speed", "fast"},     {"--speed", "nan"},
                                         {"--speed", "1,x"},      {"--speed", "1,2,3,4,5,6,7,8,9"},
                                         {"--speed", ""},         {"--drop", "101"},
                                         {"--log-level", "loud"}, {"--duration", "1.5"},
                                         {"--threads", "0"},      {"--no-such", "thing"},
                                         {"stray", "words"}};
    ARENA_AUTO a = arena_new();
    struct fleet_settings s;
    for (size_t i = 0; i < N_ELEMENTS(bad); i++) {
        const char *argv[] = {NEEDED, bad[i][0], bad[i][1]};
        assert_int_equal(parse(a, N_ELEMENTS(argv), argv, &s), -EINVAL);
    }
    const char *too_little[] = {"--server", "127.0.0.1:1"};
    assert_int_equal(parse(a, N_ELEMENTS(too_little), too_little, &s), -EINVAL);
}
