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

static void collect(void *ctx, struct buf *b)
{
    struct figures *f = ctx;
    struct telemetry_stats t;
    telemetry_stats(f->api->telemetry, &t);
    write_streams(b, &t);
    const struct {
        const char *name, *help;
        enum metric_type type;
        double value;
    } values[] = {
        {"seth_devices", "Devices in the roster.", METRIC_GAUGE,
         (double) roster_count(f->api->roster)},
        {"seth_telemetry_refused_total", "Records refused: the disk was full or behind.",
         METRIC_COUNTER, (double) t.n_refused},
        {"seth_telemetry_damaged_total", "Records found damaged.", METRIC_COUNTER,
         (double) t.n_damaged},
        {"seth_telemetry_expired_total", "Records removed by retention.", METRIC_COUNTER,
         (double) t.n_expired},
        {"seth_telemetry_syncs_total", "Times the disk was waited for.", METRIC_COUNTER,
         (double) t.n_syncs},
        {"seth_telemetry_segments", "Segment files.", METRIC_GAUGE, (double) t.n_segments},
        {"seth_telemetry_disk_bytes", "Bytes of segment files.", METRIC_GAUGE,
         (double) t.disk_bytes},
        {"seth_telemetry_queued_bytes", "Bytes waiting to be written.", METRIC_GAUGE,
         (double) t.queued_bytes},
    };
    for (size_t i = 0; i < N_ELEMENTS(values); i++) {
        metrics_write_head(b, values[i].name, values[i].help, values[i].type);
        metrics_write_value(b, values[i].name, NULL, values[i].value);
    }
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
