/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 on a connection: many exchanges at once; frames are gathered and written once per turn. */
#include "http/http_internal.h"

static struct http_exchange *exchange_of(struct h2_stream *s)
{
    return CONTAINER_OF(s, struct http_exchange, h2);
}

/* ---- what the session finds --------------------------------------------------------------- */

static struct h2_stream *on_open(void *ctx)
{
    struct http_connection *c = ctx;
    conn_set_phase(c, PHASE_BUSY);
    struct http_exchange *x = exchange_acquire(c);
    x->h2.in = &x->in;
    x->h2.out = &x->out;
    return &x->h2;
}

static void on_request(void *ctx, struct h2_stream *s)
{
    (void) ctx;
    exchange_deliver(exchange_of(s));
}

static void on_refused(void *ctx, struct h2_stream *s, int status, struct str reason)
{
    (void) ctx;
    exchange_refuse(exchange_of(s), status, reason);
}

static void on_drained(void *ctx, struct h2_stream *s)
{
    (void) ctx;
    exchange_drained(exchange_of(s));
}

static void on_close(void *ctx, struct h2_stream *s)
{
    struct http_connection *c = ctx;
    struct http_exchange *x = exchange_of(s);
    exchange_cut(x);
    exchange_release(x);
    if (c->n_exchanges > 0)
        return;
    conn_set_phase(c, PHASE_IDLE);
    if (c->server->is_draining) {
        h2_shutdown(c->h2);
        conn_schedule(c);
    }
}

static void on_output(void *ctx, struct str bytes)
{
    conn_write(ctx, bytes.p, bytes.n);
}

static const struct h2_events session_events = {
    .on_open = on_open,
    .on_request = on_request,
    .on_refused = on_refused,
    .on_drained = on_drained,
    .on_close = on_close,
    .on_output = on_output,
};

/* ---- driving it --------------------------------------------------------------------------- */

static void http2_turn(struct http_connection *c)
{
    size_t room = conn_room(c);
    if (room > 0 && h2_pull(c->h2, room) < 0)
        conn_close(c, /* after_flush= */ false);
    else if (h2_is_over(c->h2))
        conn_close(c, /* after_flush= */ true);
}

void http2_open(struct http_connection *c)
{
    const struct h2_limits limits = {
        .header_bytes = c->server->limits.header_bytes,
        .body_bytes = c->server->limits.body_bytes,
        .headers = c->server->limits.headers,
        .streams = c->server->limits.streams,
        .reset_burst = c->server->limits.reset_burst,
        .resets_per_second = c->server->limits.resets_per_second,
    };
    c->protocol = &protocol_http2;
    c->h2 = h2_new(&limits, &session_events, c, loop_now_ms(c->server->options.loop));
    if (stream_peer(c->stream)->has_certificate)
        h2_trust(c->h2);
    conn_schedule(c);
}

static void http2_done(struct http_connection *c)
{
    h2_free(c->h2);
}

static void http2_bytes(struct http_connection *c, struct str bytes)
{
    int r = h2_feed(c->h2, bytes, loop_now_ms(c->server->options.loop));
    if (r < 0) {
        (void) h2_pull(c->h2, HTTP_STREAM_PENDING_BYTES);
        conn_close(c, /* after_flush= */ true);
        return;
    }
    if (c->phase == PHASE_HEADER)
        conn_set_phase(c, PHASE_IDLE);
    http2_turn(c);
}

static void http2_answer(struct http_exchange *x, const struct answer *a)
{
    struct http_connection *c = x->connection;
    if (conn_is_closing(c))
        return;
    const struct h2_answer head = {
        .status = a->status,
        .headers = a->headers,
        .n_headers = a->n_headers,
        .date = server_date(c->server),
        .has_length = a->has_length,
        .length = a->length,
        .has_body = x->sends_body,
    };
    x->h2.is_ended = x->state == EXCHANGE_ENDED;
    h2_answer(c->h2, &x->h2, &head);
    conn_schedule(c);
}

static void http2_send(struct http_exchange *x, const struct slice *slices, size_t n)
{
    slice_queue_append(&x->out, slices, n);
    h2_send(x->connection->h2, &x->h2);
    conn_schedule(x->connection);
}

static void http2_end(struct http_exchange *x)
{
    if (conn_is_closing(x->connection))
        return;
    x->h2.is_ended = true;
    h2_send(x->connection->h2, &x->h2);
    conn_schedule(x->connection);
}

static void http2_abort(struct http_exchange *x)
{
    if (conn_is_closing(x->connection))
        return;
    h2_reset(x->connection->h2, &x->h2);
    conn_schedule(x->connection);
}

static size_t http2_pending(const struct http_exchange *x)
{
    return x->out.n_bytes;
}

/* ---- time --------------------------------------------------------------------------------- */

static void http2_timeout(struct http_connection *c)
{
    if (c->phase == PHASE_HEADER) {
        conn_close(c, /* after_flush= */ true);
        return;
    }
    h2_shutdown(c->h2);
    conn_schedule(c);
}

/* A reader is measured by what waited when last looked at, and by no more than the least rate.
 * While the connection is what holds its streams up, they are not: conn_sweep() judges it. */
static bool is_progress(const struct http_exchange *x)
{
    size_t now = x->out.n_bytes, then = x->seen_bytes;
    return now > then || conn_pending(x->connection) > 0 ||
           (then > 0 && then - now >= MIN(then, HTTP_STALL_LEAST_BYTES));
}

/* A request that does not arrive, or an answer that its reader leaves standing, holds memory for
 * nothing. */
static void sweep_exchange(struct http_exchange *x, int64_t now_ms)
{
    struct http_connection *c = x->connection;
    if (x->state == EXCHANGE_GATHERING) {
        if (now_ms - x->since_ms < c->server->limits.body_timeout_ms)
            return;
        x->h2.refusal = 408;
        exchange_refuse(x, 408, STR("timed out waiting for the request"));
        return;
    }
    if (x->state != EXCHANGE_ENDED || is_progress(x)) {
        x->seen_bytes = x->out.n_bytes;
        x->since_ms = now_ms;
        return;
    }
    bool overtook = !x->h2.is_complete && x->out.n_bytes == 0 && conn_pending(c) == 0;
    if (now_ms - x->since_ms < (overtook ? HTTP_STOP_AFTER_MS : HTTP_STALL_TIMEOUT_MS))
        return;
    if (overtook)
        h2_stop(c->h2, &x->h2);
    else
        h2_reset(c->h2, &x->h2);
    conn_schedule(c);
}

static void http2_sweep(struct http_connection *c, int64_t now_ms)
{
    LIST_FOR_EACH (&c->exchanges, item)
        sweep_exchange(CONTAINER_OF(item, struct http_exchange, link), now_ms);
    if (c->announced_ms && now_ms - c->announced_ms >= HTTP_SHUTDOWN_NOTICE_MS) {
        c->announced_ms = 0;
        h2_shutdown(c->h2);
        conn_schedule(c);
    }
}

static void http2_ping(struct http_connection *c)
{
    h2_ping(c->h2);
    conn_schedule(c);
}

static void http2_trust(struct http_connection *c)
{
    h2_trust(c->h2);
}

static void http2_drain(struct http_connection *c)
{
    if (c->n_exchanges == 0) {
        h2_shutdown(c->h2);
    } else {
        h2_announce_shutdown(c->h2);
        c->announced_ms = loop_now_ms(c->server->options.loop);
    }
    conn_schedule(c);
}

const struct protocol protocol_http2 = {
    .on_bytes = http2_bytes,
    .on_turn = http2_turn,
    .on_drained = http2_turn,
    .answer = http2_answer,
    .send = http2_send,
    .end = http2_end,
    .abort = http2_abort,
    .pending = http2_pending,
    .on_timeout = http2_timeout,
    .on_sweep = http2_sweep,
    .ping = http2_ping,
    .trust = http2_trust,
    .drain = http2_drain,
    .done = http2_done,
};
