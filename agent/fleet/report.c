/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/report.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "fleet/settings.h"
#include "json/json.h"

static void set_int(struct arena *a, struct json *object, const char *name, uint64_t value)
{
    (void) json_set(a, object, str_of(name), json_int((int64_t) value));
}

static void set_double(struct arena *a, struct json *object, const char *name, double value)
{
    (void) json_set(a, object, str_of(name), json_double(value));
}

static struct json *add_object(struct arena *a, struct json *object, const char *name)
{
    return json_set(a, object, str_of(name), json_object());
}

static void put_latency(struct arena *a, struct json *o, const struct fleet_histogram *h)
{
    static const struct {
        const char *name;
        unsigned permille;
    } points[] = {{"p50", 500}, {"p90", 900}, {"p99", 990}, {"p99.9", 999}};
    struct json *l = add_object(a, o, "latency_ms");
    for (size_t i = 0; i < N_ELEMENTS(points); i++)
        set_double(a, l, points[i].name, (double) fleet_histogram_at(h, points[i].permille) / 1000);
    set_double(a, l, "max", (double) h->max_us / 1000);
    set_double(a, l, "mean", h->n ? (double) h->sum_us / 1000 / (double) h->n : 0);
}

static void put_exchanges(struct arena *a, struct json *o, const struct fleet_exchanges *x,
                          double seconds)
{
    set_int(a, o, "requests", x->n_started);
    set_int(a, o, "answers", x->n_answered);
    set_int(a, o, "errors", x->n_failed);
    set_int(a, o, "lost_on_purpose", x->n_unheard);
    set_int(a, o, "resumed", x->n_resumed);
    set_int(a, o, "bytes_sent", x->bytes_sent);
    set_int(a, o, "bytes_received", x->bytes_received);
    set_double(a, o, "per_second", seconds > 0 ? (double) x->n_answered / seconds : 0);
    put_latency(a, o, &x->latency);
}

static void put_tally(struct arena *a, struct json *o, const struct fleet_tally *t, double seconds)
{
    struct fleet_exchanges *sum = NEW(struct fleet_exchanges);
    fleet_tally_sum(t, sum);
    set_double(a, o, "seconds", seconds);
    put_exchanges(a, o, sum, seconds);
    mem_free(sum);
    set_int(a, o, "delayed_on_purpose", t->n_delayed);
    struct json *endpoints = add_object(a, o, "endpoints");
    for (size_t i = 0; i < FLEET_ENDPOINTS; i++)
        if (t->endpoints[i].n_started || t->endpoints[i].n_unheard)
            put_exchanges(a, add_object(a, endpoints, fleet_endpoint_name((enum fleet_endpoint) i)),
                          &t->endpoints[i], seconds);
    struct json *kinds = add_object(a, o, "errors_by_kind");
    for (size_t i = 1; i < FLEET_FAULTS; i++)
        if (t->faults[i] > 0)
            set_int(a, kinds, fleet_fault_name((enum uplink_fault) i), t->faults[i]);
    for (size_t i = 0; i < FLEET_HTTP_STATUSES; i++)
        if (t->http[i] > 0)
            set_int(a, kinds, arena_printf(a, "http-%zu", i).p, t->http[i]);
}

static void put_population(struct arena *a, struct json *o, const struct fleet_population *p)
{
    struct json *devices = add_object(a, o, "devices");
    for (size_t i = 0; i < FLEET_STATES; i++)
        set_int(a, devices, fleet_state_name((enum fleet_state) i), p->states[i]);
    set_int(a, devices, "restarts", p->n_restarts);
    struct json *apps = add_object(a, o, "applications");
    set_int(a, apps, "all", p->n_applications);
    set_int(a, apps, "running", p->n_running);
    set_int(a, apps, "failed", p->n_failed);
    struct json *info = add_object(a, o, "info");
    set_int(a, info, "delivered", p->info_delivered);
    set_int(a, info, "dropped", p->info_dropped);
    set_int(a, info, "waiting", p->info_waiting);
    struct json *metrics = add_object(a, o, "metrics");
    set_int(a, metrics, "sent", p->metrics_sent);
    set_int(a, metrics, "lost", p->metrics_lost);
    struct json *logs = add_object(a, o, "logs");
    set_int(a, logs, "device_lines", p->n_log_lines);
    set_int(a, logs, "device_lines_refused", p->n_log_lines_lost);
    set_int(a, logs, "files_sent", p->log_files_sent);
    set_int(a, logs, "files_waiting", p->log_files_waiting);
    set_int(a, logs, "bytes_sent", p->log_bytes_sent);
    set_int(a, logs, "failures", p->log_failures);
}

static void put_usage(struct arena *a, struct json *o, const struct fleet_report *r)
{
    const uint64_t begin = r->usage_at_begin.rss_bytes, end = r->usage.rss_bytes;
    const double n = (double) r->settings->n_devices;
    struct json *memory = add_object(a, o, "memory");
    set_int(a, memory, "rss_bytes", end);
    set_int(a, memory, "peak_rss_bytes", r->usage.peak_rss_bytes);
    set_double(a, memory, "bytes_per_device", (double) (end - MIN(begin, end)) / n);
    struct json *cpu = add_object(a, o, "cpu");
    set_double(a, cpu, "seconds", (double) r->usage.cpu_us / 1e6);
    const double steady_us = (double) (r->usage.cpu_us - r->usage_at_steady.cpu_us);
    const double steady_s = r->seconds[FLEET_STEADY];
    set_double(a, cpu, "steady_percent", steady_s > 0 ? steady_us / 1e4 / steady_s : 0);
}

static void put_settings(struct arena *a, struct json *o, const struct fleet_settings *s)
{
    struct json *p = add_object(a, o, "settings");
    (void) json_set(a, p, STR("server"), json_string(s->server));
    set_int(a, p, "devices", s->n_devices);
    set_int(a, p, "threads", s->n_threads);
    set_double(a, p, "ramp_s", (double) s->ramp_ms / 1000);
    set_double(a, p, "speed", s->speeds[0]);
    set_int(a, p, "drop_percent", s->faults.drop_percent);
    set_int(a, p, "slow_ms", (uint64_t) s->faults.slow_ms);
    set_int(a, p, "bad_clock_percent", s->bad_clock_percent);
    set_double(a, p, "reboot_every_s", (double) s->reboot_every_ms / 1000);
    set_int(a, p, "log_lines_per_minute", (uint64_t) s->log_lines_per_minute);
    set_int(a, p, "seed", s->seed);
}

/* [[started, answered, failed], ...], a second each. */
static void put_timeline(struct arena *a, struct json *o, const struct fleet_timeline *t)
{
    struct json *timeline = add_object(a, o, "timeline");
    struct json *columns = json_set(a, timeline, STR("columns"), json_array());
    (void) json_push(a, columns, json_string(STR("started")));
    (void) json_push(a, columns, json_string(STR("answered")));
    (void) json_push(a, columns, json_string(STR("failed")));
    struct json *seconds = json_set(a, timeline, STR("seconds"), json_array());
    for (size_t i = 0; i < t->n; i++) {
        struct json *row = json_push(a, seconds, json_array());
        (void) json_push(a, row, json_int(t->seconds[i].n_started));
        (void) json_push(a, row, json_int(t->seconds[i].n_answered));
        (void) json_push(a, row, json_int(t->seconds[i].n_failed));
    }
}

uint64_t fleet_report_errors(const struct fleet_report *r)
{
    uint64_t n = r->sample->population.states[FLEET_BROKEN];
    for (size_t phase = 0; phase < FLEET_PHASES; phase++)
        for (size_t i = 0; i < FLEET_ENDPOINTS; i++)
            n += r->sample->tallies[phase].endpoints[i].n_failed;
    return n;
}

void fleet_report_write(const struct fleet_report *r, struct buf *to)
{
    ARENA_AUTO a = arena_new();
    struct json *o = json_new(a, json_object());
    char began[CLOCK_SECONDS_BYTES];
    clock_format_seconds(r->began_wall_us, began);
    (void) json_set(a, o, STR("program"), json_string(STR("seth-fleet " SETH_VERSION)));
    (void) json_set(a, o, STR("began"), json_string(str_of(began)));
    put_settings(a, o, r->settings);
    set_int(a, o, "errors", fleet_report_errors(r));
    put_population(a, o, &r->sample->population);
    put_usage(a, o, r);
    (void) json_set(a, o, STR("latency_precision"),
                    json_string(STR("percentiles are at most 1/64 too high")));
    struct fleet_tally *total = NEW(struct fleet_tally);
    fleet_sample_total(r->sample, total);
    put_tally(a, add_object(a, o, "total"), total,
              r->seconds[FLEET_RAMP] + r->seconds[FLEET_STEADY]);
    mem_free(total);
    put_tally(a, add_object(a, o, "steady"), &r->sample->tallies[FLEET_STEADY],
              r->seconds[FLEET_STEADY]);
    put_timeline(a, o, r->timeline);
    json_write_pretty(to, o);
}
