/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/view.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "fleet/settings.h"

#define CLEAR "\033[H\033[J"
#define BOLD "\033[1m"
#define PLAIN "\033[0m"
#define MB 1e6

static double ms(int64_t us)
{
    return (double) us / 1000;
}

static double rate(const struct fleet_view *v, size_t endpoint, const struct fleet_tally *t)
{
    const uint64_t n = t->endpoints[endpoint].n_answered - v->before[endpoint];
    return v->seconds > 0 ? (double) n / v->seconds : 0;
}

static double cpu_percent(const struct fleet_view *v)
{
    return v->seconds > 0 ? (double) (v->usage.cpu_us - v->usage_before.cpu_us) / v->seconds / 10000
                          : 0;
}

static void put_devices(const struct fleet_view *v, struct buf *to)
{
    const struct fleet_population *p = &v->now->population;
    buf_printf(to, "devices  ");
    for (size_t i = 0; i < FLEET_STATES; i++)
        if (p->states[i] > 0)
            buf_printf(to, "  %s %zu", fleet_state_name((enum fleet_state) i), p->states[i]);
    if (p->n_restarts > 0)
        buf_printf(to, "  (%" PRIu64 " restarts)", p->n_restarts);
    buf_printf(to, "\napplications  %zu, running %zu, failed %zu\n", p->n_applications,
               p->n_running, p->n_failed);
    buf_printf(to, "waiting    info %zu, log files %zu\n", p->info_waiting, p->log_files_waiting);
}

static void put_process(const struct fleet_view *v, struct buf *to)
{
    const size_t n = v->now->population.states[FLEET_WAITING];
    const size_t n_devices = MAX(fleet_population_devices(&v->now->population) - n, (size_t) 1);
    const uint64_t grown = v->usage.rss_bytes - MIN(v->rss_at_begin, v->usage.rss_bytes);
    buf_printf(to, "process    RSS %.1f MB, %.1f KB for each device, CPU %.0f %%\n",
               (double) v->usage.rss_bytes / MB, (double) grown / 1000 / (double) n_devices,
               cpu_percent(v));
}

static void put_endpoint(struct buf *to, const char *name, double per_second,
                         const struct fleet_exchanges *x)
{
    const struct fleet_histogram *h = &x->latency;
    buf_printf(
        to, "%-14s %8.1f %10" PRIu64 " %8" PRIu64 " %8.1f %8.1f %8.1f %8.1f %7.0f%% %9.2f %9.2f\n",
        name, per_second, x->n_answered, x->n_failed, ms(fleet_histogram_at(h, 500)),
        ms(fleet_histogram_at(h, 900)), ms(fleet_histogram_at(h, 990)), ms((int64_t) h->max_us),
        x->n_answered ? 100.0 * (double) x->n_resumed / (double) x->n_answered : 0,
        (double) x->bytes_sent / MB, (double) x->bytes_received / MB);
}

static void put_endpoints(const struct fleet_view *v, const struct fleet_tally *t, struct buf *to)
{
    double all = 0;
    buf_printf(to, BOLD "%-14s %8s %10s %8s %8s %8s %8s %8s %8s %9s %9s" PLAIN "\n", "endpoint",
               "/s", "answers", "errors", "p50 ms", "p90", "p99", "max", "resumed", "MB sent",
               "received");
    for (size_t i = 0; i < FLEET_ENDPOINTS; i++) {
        all += rate(v, i, t);
        if (t->endpoints[i].n_started > 0)
            put_endpoint(to, fleet_endpoint_name((enum fleet_endpoint) i), rate(v, i, t),
                         &t->endpoints[i]);
    }
    struct fleet_exchanges *sum = NEW(struct fleet_exchanges);
    fleet_tally_sum(t, sum);
    put_endpoint(to, "all", all, sum);
    mem_free(sum);
}

static void put_errors(const struct fleet_tally *t, struct buf *to)
{
    uint64_t n_unheard = 0;
    buf_printf(to, "errors   ");
    for (size_t i = 1; i < FLEET_FAULTS; i++)
        if (t->faults[i] > 0)
            buf_printf(to, "  %s %" PRIu64, fleet_fault_name((enum uplink_fault) i), t->faults[i]);
    for (size_t i = 0; i < FLEET_HTTP_STATUSES; i++)
        if (t->http[i] > 0)
            buf_printf(to, "  HTTP %zu: %" PRIu64, i, t->http[i]);
    for (size_t i = 0; i < FLEET_ENDPOINTS; i++)
        n_unheard += t->endpoints[i].n_unheard;
    if (n_unheard || t->n_delayed)
        buf_printf(to, "  (on purpose: %" PRIu64 " lost, %" PRIu64 " delayed)", n_unheard,
                   t->n_delayed);
    buf_append_char(to, '\n');
}

void fleet_view_screen(const struct fleet_view *v, struct buf *to)
{
    struct fleet_tally *t = NEW(struct fleet_tally);
    fleet_sample_total(v->now, t);
    const unsigned s = (unsigned) v->elapsed_s;
    buf_printf(
        to, CLEAR BOLD "seth-fleet" PLAIN "  %zu devices of %.*s   %u:%02u:%02u   %s   speed %g\n",
        v->settings->n_devices, STR_ARG(v->settings->server), s / 3600, s / 60 % 60, s % 60,
        v->phase == FLEET_STEADY ? "steady" : "ramp", v->speed);
    put_devices(v, to);
    put_process(v, to);
    put_endpoints(v, t, to);
    put_errors(t, to);
    mem_free(t);
}

void fleet_view_line(const struct fleet_view *v, struct buf *to)
{
    struct fleet_tally *t = NEW(struct fleet_tally);
    fleet_sample_total(v->now, t);
    const struct fleet_population *p = &v->now->population;
    double all = 0;
    uint64_t n_failed = 0;
    for (size_t i = 0; i < FLEET_ENDPOINTS; i++) {
        all += rate(v, i, t);
        n_failed += t->endpoints[i].n_failed;
    }
    const struct fleet_histogram *config = &t->endpoints[FLEET_CONFIG].latency;
    buf_printf(to, "%.0f s %s:", v->elapsed_s, v->phase == FLEET_STEADY ? "steady" : "ramp");
    for (size_t i = 0; i < FLEET_STATES; i++)
        if (p->states[i] > 0)
            buf_printf(to, " %s %zu", fleet_state_name((enum fleet_state) i), p->states[i]);
    if (p->n_restarts > 0)
        buf_printf(to, "; restarts %" PRIu64, p->n_restarts);
    buf_printf(to,
               "; apps %zu/%zu; %.1f requests/s; config p50 %.1f p99 %.1f ms; %" PRIu64
               " errors; %.0f MB, CPU %.0f %%\n",
               p->n_running, p->n_applications, all, ms(fleet_histogram_at(config, 500)),
               ms(fleet_histogram_at(config, 990)), n_failed, (double) v->usage.rss_bytes / MB,
               cpu_percent(v));
    mem_free(t);
}
