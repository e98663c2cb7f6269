/* SPDX-License-Identifier: Apache-2.0 */
#include "device/figures.h"

#include <stdio.h>

#include "base/alloc.h"

static const char *const class_names[DEVICE_CLASSES] = {"essential", "info", "metrics", "logs"};
static const double seconds_bounds[] = {0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5};

static const struct metric_family requests_family = {
    .name = "seth_device_requests_total",
    .help = "Requests of devices, by endpoint, class and status.",
    .type = METRIC_COUNTER,
    .labels = (const char *const[]){"endpoint", "class", "code", NULL}};
static const struct metric_family duration_family = {
    .name = "seth_device_request_duration_seconds",
    .help = "Time from a whole request to its answer, by class.",
    .type = METRIC_HISTOGRAM,
    .labels = (const char *const[]){"class", NULL},
    .bounds = seconds_bounds,
    .n_bounds = N_ELEMENTS(seconds_bounds)};
static const struct metric_family shed_family = {
    .name = "seth_device_shed_total",
    .help = "Requests of devices turned away to protect the server, by class.",
    .type = METRIC_COUNTER,
    .labels = (const char *const[]){"class", NULL}};
static const struct metric_family limited_family = {.name = "seth_device_limited_total",
                                                    .help =
                                                        "Requests of devices over their own limit.",
                                                    .type = METRIC_COUNTER};

/* What devices are answered when all is well: their series are found once. */
static const int usual_codes[] = {200, 201, 304};

struct usual {
    _Atomic(struct metric_series *) series[N_ELEMENTS(usual_codes)];
};

struct figures {
    struct device_api *api;
    struct metric *requests;
    struct usual *usual; /* by endpoint */
    struct metric_series *durations[DEVICE_CLASSES], *shed[DEVICE_CLASSES], *limited;
};

static const char *const stream_names[TELEMETRY_STREAMS] = {
    "log", "app_log", "info", "metrics", "flowlog", "hardware", "requests"};

static void write_streams(struct buf *b, const struct telemetry_stats *t)
{
    metrics_write_head(b, "seth_telemetry_records_total", "Records kept, by stream.",
                       METRIC_COUNTER);
    for (size_t i = 0; i < TELEMETRY_STREAMS; i++) {
        BUF_AUTO labels = {0};
        metrics_write_label(&labels, "stream", str_of(stream_names[i]));
        metrics_write_value(b, "seth_telemetry_records_total", &labels, (double) t->n_appended[i]);
    }
    metrics_write_head(b, "seth_telemetry_bytes_total", "Bytes kept, by stream.", METRIC_COUNTER);
    for (size_t i = 0; i < TELEMETRY_STREAMS; i++) {
        BUF_AUTO labels = {0};
        metrics_write_label(&labels, "stream", str_of(stream_names[i]));
        metrics_write_value(b, "seth_telemetry_bytes_total", &labels,
                            (double) t->bytes_appended[i]);
    }
}

struct value {
    const char *name, *help;
    enum metric_type type;
    double value;
};

static void write_values(struct buf *b, const struct value *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        metrics_write_head(b, values[i].name, values[i].help, values[i].type);
        metrics_write_value(b, values[i].name, NULL, values[i].value);
    }
}

static void collect_telemetry(struct buf *b, const struct telemetry_stats *t)
{
    const struct value values[] = {
        {"seth_telemetry_refused_total", "Records refused: the disk was full or behind.",
         METRIC_COUNTER, (double) t->n_refused},
        {"seth_telemetry_damaged_total", "Records found damaged.", METRIC_COUNTER,
         (double) t->n_damaged},
        {"seth_telemetry_expired_total", "Records removed by retention.", METRIC_COUNTER,
         (double) t->n_expired},
        {"seth_telemetry_repeats_total", "Uploads that were sent twice, kept once.", METRIC_COUNTER,
         (double) t->n_repeats},
        {"seth_telemetry_syncs_total", "Times the disk was waited for.", METRIC_COUNTER,
         (double) t->n_syncs},
        {"seth_telemetry_segments", "Segment files.", METRIC_GAUGE, (double) t->n_segments},
        {"seth_telemetry_disk_bytes", "Bytes of segment files.", METRIC_GAUGE,
         (double) t->disk_bytes},
        {"seth_telemetry_queued_bytes", "Bytes waiting to be written.", METRIC_GAUGE,
         (double) t->queued_bytes},
    };
    write_streams(b, t);
    write_values(b, values, N_ELEMENTS(values));
}

static void collect_reports(struct buf *b, const struct reports_stats *r)
{
    const struct value values[] = {
        {"seth_reports_taken_total", "Messages worked into statuses.", METRIC_COUNTER,
         (double) r->n_taken},
        {"seth_reports_bad_total", "Messages that could not be read.", METRIC_COUNTER,
         (double) r->n_bad},
        {"seth_reports_foreign_total", "Messages about objects that are not the device's.",
         METRIC_COUNTER, (double) r->n_foreign},
        {"seth_reports_stale_total", "Messages older than what was known.", METRIC_COUNTER,
         (double) r->n_stale},
        {"seth_reports_missed_total", "Messages that found no room and were read again.",
         METRIC_COUNTER, (double) r->n_missed},
        {"seth_reports_writes_total", "Statuses written.", METRIC_COUNTER, (double) r->n_writes},
        {"seth_reports_write_failures_total", "Statuses that could not be written at once.",
         METRIC_COUNTER, (double) r->n_failures},
        {"seth_reports_events_total", "Events recorded.", METRIC_COUNTER, (double) r->n_events},
        {"seth_reports_events_shed_total", "Events of devices that caused too many.",
         METRIC_COUNTER, (double) r->n_events_shed},
        {"seth_reports_queued_bytes", "Bytes of messages waiting to be worked in.", METRIC_GAUGE,
         (double) r->n_queued_bytes},
    };
    write_values(b, values, N_ELEMENTS(values));
}

static void collect(void *ctx, struct buf *b)
{
    struct figures *f = ctx;
    struct telemetry_stats telemetry;
    struct reports_stats reports;
    const struct value devices = {"seth_devices", "Devices in the roster.", METRIC_GAUGE,
                                  (double) roster_count(f->api->roster)};
    telemetry_stats(f->api->telemetry, &telemetry);
    reports_stats(f->api->reports, &reports);
    write_values(b, &devices, 1);
    collect_telemetry(b, &telemetry);
    collect_reports(b, &reports);
}

struct figures *figures_new(struct metrics *m, struct device_api *api)
{
    struct figures *f = NEW(struct figures);
    f->api = api;
    f->requests = metric_register(m, &requests_family);
    f->usual = mem_zalloc(route_count() * sizeof(*f->usual));
    struct metric *durations = metric_register(m, &duration_family);
    struct metric *shed = metric_register(m, &shed_family);
    for (size_t i = 0; i < DEVICE_CLASSES; i++) {
        struct str name = str_of(class_names[i]);
        f->durations[i] = metric_series(durations, &name);
        f->shed[i] = metric_series(shed, &name);
    }
    f->limited = metric_series(metric_register(m, &limited_family), NULL);
    metrics_on_collect(m, collect, f);
    return f;
}

void figures_free(struct figures *f)
{
    if (f)
        mem_free(f->usual);
    mem_free(f);
}

static struct metric_series *find_series(struct figures *f, const struct endpoint *e, int status)
{
    char code[12];
    (void) snprintf(code, sizeof(code), "%d", status);
    struct str labels[] = {str_of(e ? e->name : "none"), str_of(e ? class_names[e->class] : "none"),
                           str_of(code)};
    return metric_series(f->requests, labels);
}

static struct metric_series *series_of(struct figures *f, const struct endpoint *e, int status)
{
    size_t i = 0;
    while (i < N_ELEMENTS(usual_codes) && usual_codes[i] != status)
        i++;
    if (!e || i == N_ELEMENTS(usual_codes))
        return find_series(f, e, status);
    _Atomic(struct metric_series *) *known = &f->usual[e - route_endpoint(0)].series[i];
    struct metric_series *s = atomic_load_explicit(known, memory_order_acquire);
    if (!s) {
        s = find_series(f, e, status);
        atomic_store_explicit(known, s, memory_order_release);
    }
    return s;
}

void figures_count(struct device_server *s, const struct endpoint *e, int status,
                   int64_t duration_us)
{
    struct figures *f = device_server_figures(s);
    metric_add(series_of(f, e, status), 1);
    if (e)
        metric_observe(f->durations[e->class], (double) duration_us / 1e6);
}

void figures_shed(struct device_server *s, enum device_class class)
{
    metric_add(device_server_figures(s)->shed[class], 1);
}

void figures_limited(struct device_server *s)
{
    metric_add(device_server_figures(s)->limited, 1);
}
