/* SPDX-License-Identifier: Apache-2.0 */
#include "controllerconn/metrics.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "json/json.h"

struct uplink_metrics {
    struct uplink_interface_counters *items; /* by name */
    size_t n;
};

struct uplink_metrics *uplink_metrics_new(void)
{
    return NEW(struct uplink_metrics);
}

void uplink_metrics_free(struct uplink_metrics *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->n; i++) {
        for (size_t k = 0; k < m->items[i].n_urls; k++)
            mem_free((char *) m->items[i].urls[k].url.p);
        mem_free(m->items[i].urls);
        mem_free((char *) m->items[i].interface.p);
    }
    mem_free(m->items);
    mem_free(m);
}

static struct str copy(struct str s)
{
    return str_range(s.n ? mem_dup(s.p, s.n) : mem_strdup(""), s.n);
}

/* Makes room at `at` of n items for one more, zeroed. */
static void *open_gap(void *items, size_t n, size_t at, size_t item_bytes)
{
    char *p = mem_realloc_array(items, n + 1, item_bytes);
    memmove(p + (at + 1) * item_bytes, p + at * item_bytes, (n - at) * item_bytes);
    memset(p + at * item_bytes, 0, item_bytes);
    return p;
}

static struct uplink_interface_counters *interface_of(struct uplink_metrics *m, struct str name)
{
    size_t at = 0;
    while (at < m->n && str_cmp(m->items[at].interface, name) < 0)
        at++;
    if (at < m->n && str_eq(m->items[at].interface, name))
        return &m->items[at];
    if (m->n >= UPLINK_METRICS_MAX_INTERFACES)
        return NULL;
    m->items = open_gap(m->items, m->n++, at, sizeof(m->items[0]));
    m->items[at].interface = copy(name);
    return &m->items[at];
}

static struct uplink_url_counters *url_of(struct uplink_interface_counters *c, struct str url)
{
    size_t at = 0;
    while (at < c->n_urls && str_cmp(c->urls[at].url, url) < 0)
        at++;
    if (at < c->n_urls && str_eq(c->urls[at].url, url))
        return &c->urls[at];
    if (c->n_urls >= UPLINK_METRICS_MAX_URLS)
        return NULL;
    c->urls = open_gap(c->urls, c->n_urls++, at, sizeof(c->urls[0]));
    c->urls[at].url = copy(url);
    return &c->urls[at];
}

void uplink_metrics_success(struct uplink_metrics *m, struct str interface, int64_t wall_us,
                            const struct uplink_success *s)
{
    struct uplink_interface_counters *c = interface_of(m, interface);
    if (!c)
        return;
    c->successes++;
    c->last_success_us = wall_us;
    struct uplink_url_counters *u = url_of(c, s->url);
    if (!u)
        return;
    u->sent_messages++;
    u->sent_bytes += s->sent_bytes;
    u->received_messages++;
    u->received_bytes += s->received_bytes;
    u->time_spent_ms += (uint64_t) MAX(s->time_spent_ms, 0);
    u->resumed_sessions += s->is_resumed;
}

void uplink_metrics_failure(struct uplink_metrics *m, struct str interface, int64_t wall_us,
                            struct str url)
{
    struct uplink_interface_counters *c = interface_of(m, interface);
    if (!c)
        return;
    c->failures++;
    c->last_failure_us = wall_us;
    struct uplink_url_counters *u = url_of(c, url);
    if (u)
        u->tried_messages++;
}

void uplink_metrics_auth_failure(struct uplink_metrics *m)
{
    struct uplink_interface_counters *c = interface_of(m, STR(""));
    if (c)
        c->auth_failures++;
}

const struct uplink_interface_counters *uplink_metrics_get(const struct uplink_metrics *m,
                                                           struct str interface)
{
    for (size_t i = 0; i < m->n; i++)
        if (str_eq(m->items[i].interface, interface))
            return &m->items[i];
    return NULL;
}

uint64_t uplink_metrics_changes(const struct uplink_metrics *m)
{
    uint64_t n = 0;
    for (size_t i = 0; i < m->n; i++)
        n += m->items[i].successes + m->items[i].failures + m->items[i].auth_failures;
    return n;
}

/* Go's zero time stands for never. */
static void write_time(struct buf *to, const char *name, int64_t wall_us)
{
    char text[CLOCK_MICROS_BYTES] = "0001-01-01T00:00:00Z";
    if (wall_us != 0)
        clock_format_micros(wall_us, text);
    buf_printf(to, "\"%s\":\"%s\",", name, text);
}

static void write_url(struct buf *to, const struct uplink_url_counters *u)
{
    json_write_str(to, u->url);
    buf_printf(to,
               ":{\"TryMsgCount\":%" PRIu64 ",\"TryByteCount\":%" PRIu64
               ",\"SentMsgCount\":%" PRIu64 ",\"SentByteCount\":%" PRIu64
               ",\"RecvMsgCount\":%" PRIu64 ",\"RecvByteCount\":%" PRIu64
               ",\"TotalTimeSpent\":%" PRIu64 ",\"SessionResume\":%" PRIu64 "}",
               u->tried_messages, u->tried_bytes, u->sent_messages, u->sent_bytes,
               u->received_messages, u->received_bytes, u->time_spent_ms, u->resumed_sessions);
}

static void write_interface(struct buf *to, const struct uplink_interface_counters *c)
{
    json_write_str(to, c->interface);
    buf_printf(to, ":{\"FailureCount\":%" PRIu64 ",\"SuccessCount\":%" PRIu64 ",", c->failures,
               c->successes);
    write_time(to, "LastFailure", c->last_failure_us);
    write_time(to, "LastSuccess", c->last_success_us);
    buf_append_str(to, STR("\"URLCounters\":{"));
    for (size_t i = 0; i < c->n_urls; i++) {
        if (i > 0)
            buf_append_char(to, ',');
        write_url(to, &c->urls[i]);
    }
    buf_printf(to, "},\"AuthFailCount\":%" PRIu64 "}", c->auth_failures);
}

void uplink_metrics_write(const struct uplink_metrics *m, struct buf *to)
{
    buf_append_char(to, '{');
    for (size_t i = 0; i < m->n; i++) {
        if (i > 0)
            buf_append_char(to, ',');
        write_interface(to, &m->items[i]);
    }
    buf_append_char(to, '}');
}
