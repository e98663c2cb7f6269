/* SPDX-License-Identifier: Apache-2.0 */
/* The server of one loop: its connections by phase, their deadlines, and the end of them all. */
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "http/http_internal.h"

#define TICK_MS 1000
/* Every so many ticks, idle and busy connections are looked at one by one. */
#define TICKS_PER_SWEEP 5

const struct http_limits http_default_limits = {
    .header_bytes = (size_t) 64 * 1024,
    .headers = 1000,
    .body_bytes = (size_t) 3 * 1024 * 1024,
    .streams = 250,
    .reset_burst = 20000,
    .resets_per_second = 2000,
    .header_timeout_ms = 32 * 1000,
    .body_timeout_ms = 60 * 1000,
    .idle_timeout_ms = 180 * 1000,
};

/* ---- deadlines ---------------------------------------------------------------------------- */

static int64_t phase_limit_ms(const struct http_server *h, enum connection_phase phase)
{
    switch (phase) {
    case PHASE_HEADER:
        return h->limits.header_timeout_ms;
    case PHASE_BODY:
        return h->limits.body_timeout_ms;
    case PHASE_IDLE:
        return h->limits.idle_timeout_ms;
    default:
        return 0;
    }
}

/* All connections of a phase have the same time, so the list is in the order of its deadlines. */
static void expire(struct http_server *h, enum connection_phase phase, int64_t now_ms)
{
    int64_t limit_ms = phase_limit_ms(h, phase);
    LIST_FOR_EACH (&h->phases[phase], item) {
        struct http_connection *c = CONTAINER_OF(item, struct http_connection, link);
        if (now_ms - c->phase_since_ms < limit_ms)
            break;
        c->protocol->on_timeout(c);
    }
}

static void sweep(struct http_server *h, enum connection_phase phase, int64_t now_ms)
{
    LIST_FOR_EACH (&h->phases[phase], item)
        conn_sweep(CONTAINER_OF(item, struct http_connection, link), now_ms);
}

static void on_tick(void *arg)
{
    struct http_server *h = arg;
    int64_t now_ms = loop_now_ms(h->options.loop);
    expire(h, PHASE_HEADER, now_ms);
    expire(h, PHASE_BODY, now_ms);
    expire(h, PHASE_IDLE, now_ms);
    if (++h->n_ticks % TICKS_PER_SWEEP == 0 || h->is_draining) {
        sweep(h, PHASE_BUSY, now_ms);
        sweep(h, PHASE_IDLE, now_ms);
    }
}

static void run_timer(struct http_server *h, bool on)
{
    if (h->is_timer_on == on || !h->timer)
        return;
    h->is_timer_on = on;
    if (on)
        loop_timer_start(h->timer, TICK_MS, TICK_MS);
    else
        loop_timer_stop(h->timer);
}

/* ---- the date ----------------------------------------------------------------------------- */

static void format_date(int64_t wall_s, char out[HTTP_DATE_BYTES])
{
    /* Not strftime(): a date on the wire is English in every locale. */
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    time_t t = (time_t) wall_s;
    struct tm tm;
    (void) gmtime_r(&t, &tm);
    struct buf b = {0};
    buf_printf(&b, "%.3s, %02d %.3s %04d %02d:%02d:%02d GMT", days + 3 * tm.tm_wday, tm.tm_mday,
               months + 3 * tm.tm_mon, tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
    memcpy(out, b.p, MIN(b.n + 1, (size_t) HTTP_DATE_BYTES));
    buf_done(&b);
}

struct str server_date(struct http_server *h)
{
    int64_t now_ms = loop_now_ms(h->options.loop);
    if (now_ms >= h->date_until_ms) {
        int64_t wall_ms = clock_system.wall_us(&clock_system) / 1000;
        format_date(wall_ms / 1000, h->date);
        h->date_until_ms = now_ms + 1000 - wall_ms % 1000;
    }
    return str_range(h->date, HTTP_DATE_BYTES - 1);
}

/* ---- life --------------------------------------------------------------------------------- */

struct http_server *http_server_new(const struct http_server_options *o)
{
    struct http_server *h = NEW(struct http_server);
    h->options = *o;
    h->limits = o->limits ? *o->limits : http_default_limits;
    h->timer = loop_timer_new(o->loop, on_tick, h);
    list_init(&h->spares);
    for (size_t i = 0; i < N_PHASES; i++)
        list_init(&h->phases[i]);
    return h;
}

static void server_free(struct http_server *h)
{
    loop_undefer(h->options.loop, &h->drained);
    buf_done(&h->scratch);
    for (struct list *item = list_pop_first(&h->spares); item; item = list_pop_first(&h->spares))
        exchange_free(CONTAINER_OF(item, struct http_exchange, link));
    mem_free(h);
}

static void on_all_gone(struct loop_deferred *d)
{
    struct http_server *h = CONTAINER_OF(d, struct http_server, drained);
    if (h->on_drained)
        h->on_drained(h->drained_arg);
}

void server_remember(struct http_connection *c)
{
    c->server->n_connections++;
    run_timer(c->server, true);
}

void server_forget(struct http_connection *c)
{
    struct http_server *h = c->server;
    list_remove(&c->link);
    if (--h->n_connections > 0)
        return;
    run_timer(h, false);
    if (h->is_freed)
        server_free(h);
    else if (h->is_draining)
        loop_defer(h->options.loop, &h->drained);
}

/* Of every connection in the phase; more may not come into it meanwhile. */
static void drain_phase(struct http_server *h, enum connection_phase phase)
{
    LIST_FOR_EACH (&h->phases[phase], item) {
        struct http_connection *c = CONTAINER_OF(item, struct http_connection, link);
        if (c->protocol)
            c->protocol->drain(c);
    }
}

void http_server_drain(struct http_server *h, void (*on_drained)(void *arg), void *arg)
{
    h->is_draining = true;
    h->on_drained = on_drained;
    h->drained_arg = arg;
    h->drained.fn = on_all_gone;
    for (enum connection_phase p = PHASE_HEADER; p <= PHASE_IDLE; p++)
        drain_phase(h, p);
    if (h->n_connections == 0)
        loop_defer(h->options.loop, &h->drained);
}

size_t http_server_connections(const struct http_server *h)
{
    return h->n_connections;
}

size_t http_server_exchanges(const struct http_server *h)
{
    return h->n_exchanges;
}

/* Handlers hear of it now, while what they refer to is there. */
static void cut_off(struct http_connection *c)
{
    LIST_FOR_EACH (&c->exchanges, item)
        exchange_cut(CONTAINER_OF(item, struct http_exchange, link));
    conn_close(c, /* after_flush= */ false);
}

void http_server_free(struct http_server *h)
{
    if (!h)
        return;
    h->is_freed = true;
    loop_timer_free(TAKE(h->timer));
    if (h->n_connections == 0) {
        server_free(h);
        return;
    }
    /* The server's memory goes with its last connection, whose stream closes later. */
    for (enum connection_phase p = N_PHASES; p-- > 0;)
        LIST_FOR_EACH (&h->phases[p], item)
            cut_off(CONTAINER_OF(item, struct http_connection, link));
}
