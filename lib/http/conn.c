/* SPDX-License-Identifier: Apache-2.0 */
/* A connection, whatever its protocol: the stream's events in, phases, output, and what keeps a
 * peer honest. */
#include "base/alloc.h"
#include "base/log.h"
#include "http/http_internal.h"

void conn_set_phase(struct http_connection *c, enum connection_phase phase)
{
    if (c->phase == PHASE_CLOSING || (c->phase == phase && phase != PHASE_IDLE))
        return;
    c->phase = phase;
    c->phase_since_ms = loop_now_ms(c->server->options.loop);
    list_remove(&c->link);
    list_append(&c->server->phases[phase], &c->link);
}

void conn_write(struct http_connection *c, const void *p, size_t n)
{
    c->n_written += n;
    stream_write(c->stream, p, n);
}

void conn_write_queue(struct http_connection *c, struct slice_queue *q, size_t n)
{
    while (n > 0 && q->n_bytes > 0) {
        struct str front = slice_queue_front(q);
        size_t n_now = MIN(front.n, n);
        conn_write(c, front.p, n_now);
        slice_queue_consume(q, n_now);
        n -= n_now;
    }
}

size_t conn_pending(const struct http_connection *c)
{
    return conn_is_closing(c) ? 0 : stream_pending(c->stream);
}

size_t conn_room(const struct http_connection *c)
{
    size_t pending = conn_pending(c);
    return pending >= HTTP_STREAM_PENDING_BYTES ? 0 : HTTP_STREAM_PENDING_BYTES - pending;
}

void conn_schedule(struct http_connection *c)
{
    loop_defer(c->server->options.loop, &c->turn);
}

void conn_close(struct http_connection *c, bool after_flush)
{
    if (conn_is_closing(c) && after_flush)
        return;
    conn_set_phase(c, PHASE_CLOSING);
    stream_close(c->stream, after_flush);
}

/* ---- what keeps a peer honest ------------------------------------------------------------- */

static bool is_stalled(struct http_connection *c, int64_t now_ms)
{
    size_t untaken = stream_untaken(c->stream);
    uint64_t taken = c->n_written - MIN((uint64_t) untaken, c->n_written);
    if (untaken == 0 || c->seen_taken_ms == 0 || taken >= c->seen_taken + c->owed_bytes) {
        c->seen_taken = taken;
        c->owed_bytes = MIN(untaken, HTTP_STALL_LEAST_BYTES);
        c->seen_taken_ms = now_ms;
        return false;
    }
    return now_ms - c->seen_taken_ms >= HTTP_STALL_TIMEOUT_MS;
}

/* False when the peer has been asked and did not answer. */
static bool is_alive(struct http_connection *c, int64_t now_ms)
{
    if (c->pinged_ms)
        return now_ms - c->pinged_ms < HTTP_PONG_TIMEOUT_MS;
    if (now_ms - c->received_ms >= HTTP_PING_AFTER_MS) {
        c->pinged_ms = now_ms;
        c->protocol->ping(c);
    }
    return true;
}

void conn_sweep(struct http_connection *c, int64_t now_ms)
{
    if (is_stalled(c, now_ms) || (c->protocol->ping && !is_alive(c, now_ms))) {
        log_debug("closing a connection whose peer is silent",
                  LOG_STR("peer", stream_peer(c->stream)->address));
        conn_close(c, /* after_flush= */ false);
        return;
    }
    c->protocol->on_sweep(c, now_ms);
}

/* ---- the stream's events ------------------------------------------------------------------ */

static void on_turn(struct loop_deferred *d)
{
    struct http_connection *c = CONTAINER_OF(d, struct http_connection, turn);
    if (!conn_is_closing(c))
        c->protocol->on_turn(c);
}

static void on_open(void *ctx, struct stream *s, struct str alpn)
{
    (void) s;
    struct http_connection *c = ctx;
    c->received_ms = loop_now_ms(c->server->options.loop);
    conn_set_phase(c, PHASE_HEADER);
    if (str_is(alpn, "h2"))
        http2_open(c);
    else
        http1_open(c);
    if (c->server->is_draining)
        c->protocol->drain(c);
}

static void on_bytes(void *ctx, struct str bytes)
{
    struct http_connection *c = ctx;
    if (conn_is_closing(c))
        return;
    c->received_ms = loop_now_ms(c->server->options.loop);
    c->pinged_ms = 0;
    c->protocol->on_bytes(c, bytes);
}

static void on_drained(void *ctx)
{
    struct http_connection *c = ctx;
    if (c->protocol && !conn_is_closing(c))
        c->protocol->on_drained(c);
}

static void on_closed(void *ctx, int error)
{
    (void) error;
    struct http_connection *c = ctx;
    conn_set_phase(c, PHASE_CLOSING);
    LIST_FOR_EACH (&c->exchanges, item)
        exchange_cut(CONTAINER_OF(item, struct http_exchange, link));
    while (!list_is_empty(&c->exchanges))
        exchange_release(CONTAINER_OF(c->exchanges.next, struct http_exchange, link));
    if (c->protocol)
        c->protocol->done(c);
    loop_undefer(c->server->options.loop, &c->turn);
    server_forget(c);
    mem_free(c);
}

const struct stream_events conn_events = {
    .on_open = on_open,
    .on_bytes = on_bytes,
    .on_drained = on_drained,
    .on_closed = on_closed,
};

void *http_server_accept(struct http_server *h, struct stream *s,
                         const struct stream_events **ret_events)
{
    if (h->is_draining || h->is_freed)
        return NULL;
    struct http_connection *c = NEW(struct http_connection);
    c->server = h;
    c->stream = s;
    c->turn.fn = on_turn;
    c->phase = PHASE_OPENING;
    list_init(&c->exchanges);
    list_init(&c->link);
    list_append(&h->phases[PHASE_OPENING], &c->link);
    server_remember(c);
    *ret_events = &conn_events;
    return c;
}
