/* SPDX-License-Identifier: Apache-2.0 */
/* Figures that somebody else keeps, read when the text is made. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "api/audit/audit.h"
#include "api/fairness.h"
#include "api/health.h"
#include "api/metrics_internal.h"
#include "api/release.h"
#include "base/map.h"
#include "net/stream.h"

#define MAX_QUEUES 64

static void write_one(struct buf *b, const char *name, const char *help, enum metric_type type,
                      double value)
{
    metrics_write_head(b, name, help, type);
    metrics_write_value(b, name, NULL, value);
}

static void write_labelled(struct buf *b, const char *name, const char *label, struct str of,
                           double value)
{
    BUF_AUTO labels = {0};
    metrics_write_label(&labels, label, of);
    metrics_write_value(b, name, &labels, value);
}

/* ---- requests and logins -------------------------------------------------------------------- */

static void collect_fairness(const struct api_metrics *m, struct buf *b)
{
    static const char inflight[] = "apiserver_current_inflight_requests";
    static const char shed[] = "seth_requests_shed_total";
    struct fairness_stats st;
    if (!m->options.fairness)
        return;
    fairness_stats(m->options.fairness, &st);
    metrics_write_head(b, inflight,
                       "Maximal number of currently used inflight request limit of this apiserver "
                       "per request kind in last second.",
                       METRIC_GAUGE);
    write_labelled(b, inflight, "request_kind", STR("mutating"), (double) st.n_writes);
    write_labelled(b, inflight, "request_kind", STR("readOnly"), (double) st.n_reads);
    metrics_write_head(b, shed, "Requests answered 429 for want of a place, by kind of request.",
                       METRIC_COUNTER);
    write_labelled(b, shed, "request_kind", STR("longRunning"),
                   (double) st.n_rejected_long_running);
    write_labelled(b, shed, "request_kind", STR("mutating"), (double) st.n_rejected_writes);
    write_labelled(b, shed, "request_kind", STR("readOnly"), (double) st.n_rejected_reads);
    write_one(b, "seth_login_failures_total", "Requests whose credentials nobody accepted.",
              METRIC_COUNTER, (double) st.n_login_failures);
}

static void collect_listener(const struct api_metrics *m, struct buf *b)
{
    struct listener_stats st;
    if (!m->listener)
        return;
    listener_stats(m->listener, &st);
    write_one(b, "apiserver_tls_handshake_errors_total",
              "Number of requests dropped with 'TLS handshake error from' error", METRIC_COUNTER,
              (double) st.n_handshake_errors);
    write_one(b, "seth_connections", "Connections that are open.", METRIC_GAUGE,
              (double) listener_connections(m->listener));
    write_one(b, "seth_connections_refused_total",
              "Connections closed at once because their address had too many.", METRIC_COUNTER,
              (double) st.n_refused_addresses);
}

static void collect_audit(const struct api_metrics *m, struct buf *b)
{
    struct audit_stats st = {0};
    if (m->options.audit)
        audit_stats(m->options.audit, &st);
    write_one(b, "apiserver_audit_event_total",
              "Counter of audit events generated and sent to the audit backend.", METRIC_COUNTER,
              (double) st.n_events);
    metrics_write_head(b, "apiserver_audit_error_total",
                       "Counter of audit events that failed to be audited properly. Plugin "
                       "identifies the plugin affected by the error.",
                       METRIC_COUNTER);
    write_labelled(b, "apiserver_audit_error_total", "plugin", STR("log"), (double) (st.n_dropped));
    /* Kept for dashboards: we drop events rather than requests. */
    write_one(b, "apiserver_audit_requests_rejected_total",
              "Counter of apiserver requests rejected due to an error in audit logging backend.",
              METRIC_COUNTER, 0);
    write_one(b, "seth_audit_events_dropped_total",
              "Audit events that were not recorded because the queue was full or the log could not "
              "be written.",
              METRIC_COUNTER, (double) st.n_dropped);
    write_one(b, "seth_audit_write_errors_total",
              "Attempts to write the audit log that failed; each is repeated.", METRIC_COUNTER,
              (double) st.n_errors);
}

/* ---- the store ------------------------------------------------------------------------------ */

typedef void write_count(struct buf *b, const struct kind *k, double n);

static void write_resource_objects(struct buf *b, const struct kind *k, double n)
{
    BUF_AUTO labels = {0};
    metrics_write_label(&labels, "group", k->group);
    metrics_write_label(&labels, "resource", k->plural);
    metrics_write_value(b, "apiserver_resource_objects", &labels, n);
}

static void write_storage_objects(struct buf *b, const struct kind *k, double n)
{
    BUF_AUTO labels = {0}, resource = {0};
    buf_printf(&resource, "%.*s%s%.*s", STR_ARG(k->plural), k->group.n ? "." : "",
               STR_ARG(k->group));
    metrics_write_label(&labels, "resource", buf_str(&resource));
    metrics_write_value(b, "apiserver_storage_objects", &labels, n);
}

static void write_counts(struct buf *b, struct store *s, const struct registry *r,
                         write_count *write)
{
    size_t position = 0;
    struct map_entry e;
    while (map_next(&r->collections, &position, &e))
        write(b, e.value, (double) store_count(s, e.key));
}

static void collect_store(const struct api_metrics *m, struct buf *b)
{
    struct store *s = api_store(m->options.api);
    struct store_stats st;
    CLEANUP(registry_unrefp) struct registry *r = api_registry(m->options.api);
    store_stats(s, &st);
    metrics_write_head(b, "apiserver_resource_objects",
                       "Number of stored objects at the time of last check split by kind.",
                       METRIC_GAUGE);
    write_counts(b, s, r, write_resource_objects);
    metrics_write_head(b, "apiserver_storage_objects",
                       "[DEPRECATED, consider using apiserver_resource_objects instead] Number of "
                       "stored objects at the time of last check split by kind.",
                       METRIC_GAUGE);
    write_counts(b, s, r, write_storage_objects);
    metrics_write_head(b, "apiserver_storage_size_bytes",
                       "Size of the storage database file physically allocated in bytes.",
                       METRIC_GAUGE);
    write_labelled(b, "apiserver_storage_size_bytes", "storage_cluster_id", STR("0"),
                   (double) (st.file_bytes + st.wal_bytes));
    write_one(b, "seth_store_revision", "The newest revision.", METRIC_GAUGE, (double) st.revision);
    write_one(b, "seth_store_writes_total", "Writes made durable.", METRIC_COUNTER,
              (double) st.n_writes);
    write_one(b, "seth_store_commits_total", "Commits, each of one or more writes.", METRIC_COUNTER,
              (double) st.n_commits);
}

/* ---- controllers ---------------------------------------------------------------------------- */

static void write_queue_values(struct buf *b, const struct queue_figures *list, size_t n)
{
    metrics_write_head(b, "workqueue_depth", "Current depth of workqueue", METRIC_GAUGE);
    for (size_t i = 0; i < n; i++)
        write_labelled(b, "workqueue_depth", "name", str_of(list[i].name), (double) list[i].depth);
    metrics_write_head(b, "workqueue_adds_total", "Total number of adds handled by workqueue",
                       METRIC_COUNTER);
    for (size_t i = 0; i < n; i++)
        write_labelled(b, "workqueue_adds_total", "name", str_of(list[i].name),
                       (double) list[i].n_adds);
    metrics_write_head(b, "workqueue_retries_total", "Total number of retries handled by workqueue",
                       METRIC_COUNTER);
    for (size_t i = 0; i < n; i++)
        write_labelled(b, "workqueue_retries_total", "name", str_of(list[i].name),
                       (double) list[i].n_retries);
}

static void write_queue_histogram(struct buf *b, const char *name, const char *queue,
                                  const struct queue_histogram *h)
{
    static const double bounds[QUEUE_FIGURES_BUCKETS] = {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3,
                                                         1e-2, 1e-1, 1,    10,   100,  1000};
    BUF_AUTO labels = {0};
    metrics_write_label(&labels, "name", str_of(queue));
    metrics_write_histogram(b, name, &labels,
                            &(struct metric_histogram){bounds, N_ELEMENTS(bounds), h->counts,
                                                       (double) h->sum_us / 1e6});
}

static void collect_queues(const struct api_metrics *m, struct buf *b)
{
    static const char waited[] = "workqueue_queue_duration_seconds";
    static const char worked[] = "workqueue_work_duration_seconds";
    struct queue_figures list[MAX_QUEUES];
    size_t n = m->get_queues ? m->get_queues(m->queues_ctx, list, MAX_QUEUES) : 0;
    n = MIN(n, (size_t) MAX_QUEUES);
    if (!n)
        return;
    write_queue_values(b, list, n);
    metrics_write_head(b, waited,
                       "How long in seconds an item stays in workqueue before being requested.",
                       METRIC_HISTOGRAM);
    for (size_t i = 0; i < n; i++)
        write_queue_histogram(b, waited, list[i].name, &list[i].waited);
    metrics_write_head(b, worked, "How long in seconds processing an item from workqueue takes.",
                       METRIC_HISTOGRAM);
    for (size_t i = 0; i < n; i++)
        write_queue_histogram(b, worked, list[i].name, &list[i].worked);
}

/* ---- health --------------------------------------------------------------------------------- */

static void write_check(struct buf *b, const struct health_check *c, const char *type, bool is_ok)
{
    BUF_AUTO labels = {0};
    metrics_write_label(&labels, "name", c->name);
    metrics_write_label(&labels, "type", str_of(type));
    metrics_write_value(b, "kubernetes_healthcheck", &labels, is_ok ? 1 : 0);
}

static void collect_health(const struct api_metrics *m, struct buf *b)
{
    static const struct {
        enum health_endpoint endpoint;
        const char *type;
    } endpoints[] = {
        {HEALTH_HEALTHZ, "healthz"}, {HEALTH_LIVEZ, "livez"}, {HEALTH_READYZ, "readyz"}};
    const struct health *h = m->options.health;
    if (!h)
        return;
    metrics_write_head(b, "kubernetes_healthcheck",
                       "This metric records the result of a single healthcheck.", METRIC_GAUGE);
    for (size_t i = 0; i < h->n_checks; i++) {
        char reason[HEALTH_REASON_BYTES] = "";
        const struct health_check *c = &h->checks[i];
        bool is_ok = !c->is_healthy || c->is_healthy(c->ctx, reason);
        for (size_t k = 0; k < N_ELEMENTS(endpoints); k++)
            if (c->endpoints & endpoints[k].endpoint)
                write_check(b, c, endpoints[k].type, is_ok);
    }
}

static void collect_build(struct buf *b)
{
    BUF_AUTO labels = {0};
    metrics_write_head(b, "kubernetes_build_info",
                       "A metric with a constant '1' value labeled by major, minor, git version, "
                       "git commit, git tree state, build date, Go version, and compiler from "
                       "which Kubernetes was built, and platform on which it is running.",
                       METRIC_GAUGE);
    metrics_write_label(&labels, "build_date", STR(RELEASE_BUILD_DATE));
    metrics_write_label(&labels, "compiler", STR(RELEASE_COMPILER));
    metrics_write_label(&labels, "git_commit", STR(""));
    metrics_write_label(&labels, "git_tree_state", STR(""));
    metrics_write_label(&labels, "git_version", STR(RELEASE_VERSION));
    metrics_write_label(&labels, "go_version", STR(""));
    metrics_write_label(&labels, "major", STR(RELEASE_MAJOR));
    metrics_write_label(&labels, "minor", STR(RELEASE_MINOR));
    metrics_write_label(&labels, "platform", STR(RELEASE_PLATFORM));
    metrics_write_value(b, "kubernetes_build_info", &labels, 1);
}

/* ---- the process ---------------------------------------------------------------------------- */

/* What /proc/self/stat says behind the name, which may hold anything. */
struct process_stat {
    unsigned long long start_ticks, virtual_bytes;
    long resident_pages;
};

static bool read_stat(struct process_stat *ret)
{
    char text[1024];
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        (void) close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    const char *at = strrchr(text, ')');
    /* Fields 3 to 21 are skipped, then starttime, vsize, rss. */
    return at && sscanf(at + 1,
                        " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
                        "%*d %llu %llu %ld",
                        &ret->start_ticks, &ret->virtual_bytes, &ret->resident_pages) == 3;
}

/* Newer kernels say it in the size of the directory; else it is counted. */
static double count_files(void)
{
    struct stat st;
    if (stat("/proc/self/fd", &st) == 0 && st.st_size > 0)
        return (double) st.st_size;
    double n = 0;
    DIR *d = opendir("/proc/self/fd");
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
        n += e->d_name[0] != '.';
    if (d)
        (void) closedir(d);
    return n;
}

static double seconds_of(clockid_t id)
{
    struct timespec t = {0};
    (void) clock_gettime(id, &t);
    return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}

static void collect_process(struct buf *b)
{
    struct process_stat st = {0};
    struct rlimit files = {0};
    write_one(b, "process_cpu_seconds_total", "Total user and system CPU time spent in seconds.",
              METRIC_COUNTER, seconds_of(CLOCK_PROCESS_CPUTIME_ID));
    write_one(b, "process_open_fds", "Number of open file descriptors.", METRIC_GAUGE,
              count_files());
    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        write_one(b, "process_max_fds", "Maximum number of open file descriptors.", METRIC_GAUGE,
                  (double) files.rlim_cur);
    if (!read_stat(&st))
        return;
    write_one(b, "process_resident_memory_bytes", "Resident memory size in bytes.", METRIC_GAUGE,
              (double) st.resident_pages * (double) sysconf(_SC_PAGESIZE));
    write_one(b, "process_virtual_memory_bytes", "Virtual memory size in bytes.", METRIC_GAUGE,
              (double) st.virtual_bytes);
    double age_s =
        seconds_of(CLOCK_BOOTTIME) - (double) st.start_ticks / (double) sysconf(_SC_CLK_TCK);
    write_one(b, "process_start_time_seconds",
              "Start time of the process since unix epoch in seconds.", METRIC_GAUGE,
              seconds_of(CLOCK_REALTIME) - age_s);
}

void metrics_collect(void *ctx, struct buf *b)
{
    const struct api_metrics *m = ctx;
    collect_fairness(m, b);
    collect_listener(m, b);
    collect_audit(m, b);
    if (m->options.api)
        collect_store(m, b);
    collect_queues(m, b);
    collect_health(m, b);
    collect_build(b);
    collect_process(b);
}
