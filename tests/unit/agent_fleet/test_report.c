/* SPDX-License-Identifier: Apache-2.0 */
/* What is shown and what is written of a fleet. */
#include "fleet/report.h"

#include "base/alloc.h"
#include "fleet/settings.h"
#include "fleet/view.h"
#include "test.h"
#include "json/json.h"

static const struct fleet_settings settings = {
    .server = {"127.0.0.1:8443", 14}, .n_devices = 4, .speeds = {1}, .n_speeds = 1};

static struct fleet_sample *some_sample(void)
{
    struct fleet_sample *s = NEW(struct fleet_sample);
    s->population.states[FLEET_RUNNING] = 3;
    s->population.states[FLEET_OFF] = 1;
    s->population.n_applications = 6;
    s->population.n_running = 5;
    const struct fleet_outcome good = {
        .endpoint = FLEET_CONFIG, .http_status = 304, .latency_us = 2000, .is_resumed = true};
    const struct fleet_outcome bad = {.endpoint = FLEET_INFO, .http_status = 503};
    for (int i = 0; i < 10; i++) {
        s->tallies[FLEET_STEADY].endpoints[FLEET_CONFIG].n_started++;
        fleet_tally_outcome(&s->tallies[FLEET_STEADY], &good);
    }
    s->tallies[FLEET_RAMP].endpoints[FLEET_INFO].n_started++;
    fleet_tally_outcome(&s->tallies[FLEET_RAMP], &bad);
    return s;
}

/* Whole numbers are written without a fraction. */
static double number(const struct json *v)
{
    assert_true(json_is_number(v));
    return v->type == JSON_INT ? (double) v->i : v->d;
}

TEST(the_report_has_totals_steady_figures_and_seconds)
{
    ARENA_AUTO a = arena_new();
    struct fleet_sample *s = some_sample();
    struct fleet_timeline timeline = {0};
    fleet_timeline_at(&timeline, 1000000)->n_started = 11;
    const struct fleet_report r = {
        .settings = &settings,
        .sample = s,
        .timeline = &timeline,
        .seconds = {[FLEET_RAMP] = 1, [FLEET_STEADY] = 5},
        .usage = {.rss_bytes = 5000, .cpu_us = 3000000},
        .usage_at_begin = {.rss_bytes = 1000},
        .usage_at_steady = {.cpu_us = 1000000},
    };
    BUF_AUTO text = {0};
    fleet_report_write(&r, &text);
    assert_int_equal(fleet_report_errors(&r), 1);
    struct json *o = json_parse_quick(a, buf_str(&text));
    assert_int_equal(json_get_int(o, STR("errors"), -1), 1);
    assert_int_equal(json_at(o, "devices", "running", NULL)->i, 3);
    assert_int_equal(json_at(o, "applications", "running", NULL)->i, 5);
    assert_int_equal(json_at(o, "total", "answers", NULL)->i, 11);
    assert_int_equal(json_at(o, "total", "errors_by_kind", "http-503", NULL)->i, 1);
    assert_int_equal(json_at(o, "steady", "answers", NULL)->i, 10);
    assert_null(json_at(o, "steady", "errors_by_kind", "http-503", NULL));
    assert_int_equal(json_at(o, "steady", "endpoints", "config", "resumed", NULL)->i, 10);
    assert_true(number(json_at(o, "steady", "endpoints", "config", "per_second", NULL)) == 2.0);
    assert_true(number(json_at(o, "steady", "endpoints", "config", "latency_ms", "p99", NULL)) ==
                2.0);
    assert_true(number(json_at(o, "memory", "bytes_per_device", NULL)) == 1000);
    assert_true(number(json_at(o, "cpu", "steady_percent", NULL)) == 40);
    const struct json *seconds = json_at(o, "timeline", "seconds", NULL);
    assert_int_equal(json_count(seconds), 2);
    assert_int_equal(seconds->items[1].items[0].i, 11);
    fleet_timeline_done(&timeline);
    mem_free(s);
}

TEST(a_device_that_could_not_start_is_an_error)
{
    struct fleet_sample *s = NEW(struct fleet_sample);
    const struct fleet_report r = {.settings = &settings, .sample = s};
    assert_int_equal(fleet_report_errors(&r), 0);
    s->population.states[FLEET_BROKEN] = 2;
    assert_int_equal(fleet_report_errors(&r), 2);
    mem_free(s);
}

static bool has(const struct buf *b, const char *words)
{
    return str_find_str(buf_str(b), str_of(words)) >= 0;
}

TEST(the_view_shows_states_rates_and_errors)
{
    struct fleet_sample *s = some_sample();
    const struct fleet_view v = {.settings = &settings,
                                 .now = s,
                                 .before = {[FLEET_CONFIG] = 6},
                                 .usage = {.rss_bytes = 4000000, .cpu_us = 500000},
                                 .seconds = 2,
                                 .elapsed_s = 3661,
                                 .speed = 1,
                                 .phase = FLEET_STEADY};
    BUF_AUTO screen = {0};
    fleet_view_screen(&v, &screen);
    assert_true(has(&screen, "1:01:01"));
    assert_true(has(&screen, "off 1  running 3"));
    assert_true(has(&screen, "CPU 25 %"));
    assert_true(has(&screen, "HTTP 503: 1"));
    assert_true(has(&screen, "\nconfig              2.0         10"));
    assert_false(has(&screen, "\nregister"));
    BUF_AUTO line = {0};
    fleet_view_line(&v, &line);
    assert_int_equal(str_find(buf_str(&line), '\n'), (ptrdiff_t) line.n - 1);
    assert_true(has(&line, "3661 s steady: off 1 running 3; apps 5/6;"));
    assert_true(has(&line, "1 errors"));
    mem_free(s);
}

TEST(samples_of_several_loops_are_added_up)
{
    struct fleet_sample *a = some_sample(), *b = some_sample();
    fleet_sample_merge(a, b);
    assert_int_equal(fleet_population_devices(&a->population), 8);
    assert_int_equal(a->population.n_applications, 12);
    assert_int_equal(a->tallies[FLEET_STEADY].endpoints[FLEET_CONFIG].n_answered, 20);
    mem_free(a);
    mem_free(b);
}
