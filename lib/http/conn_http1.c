/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 on a connection: one exchange at a time; what is pipelined behind it waits unparsed. */
#include "http/http_internal.h"

/* Beyond this, reading stops until the present exchange is over. */
#define MAX_UNPARSED_BYTES ((size_t) 64 * 1024)
/* One chunk of a streamed answer. */
#define MAX_CHUNK_BYTES ((size_t) 64 * 1024)

void http1_open(struct http_connection *c)
{
    const struct h1_limits limits = {
        .header_bytes = c->server->limits.header_bytes,
        .headers = c->server->limits.headers,
        .body_bytes = c->server->limits.body_bytes,
    };
    c->protocol = &protocol_http1;
    c->http1.parser = h1_new(&limits);
}

static void http1_done(struct http_connection *c)
{
    h1_free(c->http1.parser);
    buf_done(&c->http1.unparsed);
}

/* ---- requests in -------------------------------------------------------------------------- */

static bool can_read(const struct http_connection *c)
{
    const struct http_exchange *x = c->http1.current;
    return c->protocol == &protocol_http1 && !conn_is_closing(c) &&
           (!x || x->state == EXCHANGE_GATHERING);
}

static void refuse(struct http_connection *c, int status, struct str reason)
{
    conn_set_phase(c, PHASE_BUSY);
    exchange_refuse(c->http1.current, status, reason);
}

static void handle_progress(struct http_connection *c, enum h1_progress progress)
{
    struct str reason;
    switch (progress) {
    case H1_IDLE:
        return;
    case H1_HEAD:
        conn_set_phase(c, PHASE_HEADER);
        return;
    case H1_BODY:
        conn_set_phase(c, PHASE_BODY);
        if (h1_take_expect_continue(c->http1.parser))
            conn_write(c, H1_CONTINUE.p, H1_CONTINUE.n);
        return;
    case H1_REQUEST:
        c->http1.closes = c->server->is_draining || !h1_keeps_alive(c->http1.parser);
        conn_set_phase(c, PHASE_BUSY);
        exchange_deliver(c->http1.current);
        return;
    case H1_REFUSED: {
        int status = h1_refusal(c->http1.parser, &reason);
        refuse(c, status, reason);
        return;
    }
    }
}

/* Returns what was left unread. */
static struct str read_requests(struct http_connection *c, struct str input)
{
    c->http1.is_reading = true;
    while (input.n > 0 && can_read(c)) {
        if (!c->http1.current) {
            c->http1.current = exchange_acquire(c);
            h1_begin(c->http1.parser, &c->http1.current->in);
        }
        size_t n_consumed = 0;
        enum h1_progress progress = h1_feed(c->http1.parser, input, &n_consumed);
        input = str_from(input, n_consumed);
        handle_progress(c, progress);
    }
    c->http1.is_reading = false;
    return input;
}

static void read_unparsed(struct http_connection *c)
{
    struct buf *unparsed = &c->http1.unparsed;
    struct str left = read_requests(c, buf_str(unparsed));
    buf_consume(unparsed, unparsed->n - left.n);
    if (unparsed->n == 0)
        buf_done(unparsed);
    if (!conn_is_closing(c))
        stream_pause_reading(c->stream, unparsed->n >= MAX_UNPARSED_BYTES);
}

static void http1_bytes(struct http_connection *c, struct str bytes)
{
    struct buf *unparsed = &c->http1.unparsed;
    if (unparsed->n > 0) {
        buf_append_str(unparsed, bytes);
        read_unparsed(c);
        return;
    }
    struct str left = read_requests(c, bytes);
    if (left.n == 0 || conn_is_closing(c))
        return;
    buf_append_str(unparsed, left);
    if (c->protocol != &protocol_http1)
        conn_schedule(c);
    stream_pause_reading(c->stream, unparsed->n >= MAX_UNPARSED_BYTES);
}

/* ---- answers out -------------------------------------------------------------------------- */

static void finish_exchange(struct http_connection *c)
{
    exchange_release(TAKE(c->http1.current));
    if (c->http1.closes) {
        conn_close(c, /* after_flush= */ true);
        return;
    }
    conn_set_phase(c, PHASE_IDLE);
    if (c->http1.unparsed.n > 0 && !c->http1.is_reading)
        conn_schedule(c);
}

static void write_chunk(struct http_connection *c, struct slice_queue *q, size_t n)
{
    char head[H1_CHUNK_HEAD_BYTES];
    conn_write(c, head, h1_chunk_head(n, head));
    conn_write_queue(c, q, n);
    conn_write(c, H1_CHUNK_END.p, H1_CHUNK_END.n);
}

/* Gives the stream what it takes of the answer, and ends the exchange when that was all. */
static void pump(struct http_connection *c)
{
    struct http_exchange *x = c->http1.current;
    bool is_chunked = c->http1.framing == H1_CHUNKED;
    for (size_t room = conn_room(c); x->out.n_bytes > 0 && room > 0; room = conn_room(c)) {
        if (is_chunked)
            write_chunk(c, &x->out, MIN(x->out.n_bytes, MAX_CHUNK_BYTES));
        else
            conn_write_queue(c, &x->out, room);
    }
    if (x->state != EXCHANGE_ENDED || x->out.n_bytes > 0)
        return;
    if (is_chunked && x->sends_body)
        conn_write(c, H1_LAST_CHUNK.p, H1_LAST_CHUNK.n);
    finish_exchange(c);
}

static enum h1_framing choose_framing(const struct http_connection *c, const struct answer *a)
{
    if (!a->allows_body)
        return H1_NO_BODY;
    if (a->has_length)
        return H1_LENGTH;
    return h1_is_http10(c->http1.parser) ? H1_UNTIL_CLOSE : H1_CHUNKED;
}

static void http1_answer(struct http_exchange *x, const struct answer *a)
{
    struct http_connection *c = x->connection;
    if (conn_is_closing(c))
        return;
    c->http1.framing = choose_framing(c, a);
    c->http1.closes |= c->http1.framing == H1_UNTIL_CLOSE || c->server->is_draining;
    const struct h1_answer head = {
        .status = a->status,
        .headers = a->headers,
        .n_headers = a->n_headers,
        .framing = c->http1.framing,
        .length = a->length,
        .date = server_date(c->server),
        .closes = c->http1.closes,
        .says_keep_alive = h1_is_http10(c->http1.parser),
    };
    struct buf *scratch = &c->server->scratch;
    buf_reset(scratch);
    h1_write_head(scratch, &head);
    conn_write(c, scratch->p, scratch->n);
    if (x->state == EXCHANGE_ENDED)
        pump(c);
}

static void http1_send(struct http_exchange *x, const struct slice *slices, size_t n)
{
    slice_queue_append(&x->out, slices, n);
    conn_schedule(x->connection);
}

static void http1_end(struct http_exchange *x)
{
    if (!conn_is_closing(x->connection))
        pump(x->connection);
}

static void http1_abort(struct http_exchange *x)
{
    conn_close(x->connection, /* after_flush= */ false);
}

static size_t http1_pending(const struct http_exchange *x)
{
    return x->out.n_bytes + conn_pending(x->connection);
}

static bool is_answering(const struct http_connection *c)
{
    return c->http1.current && c->http1.current->state >= EXCHANGE_STREAMING;
}

static void http1_turn(struct http_connection *c)
{
    if (is_answering(c))
        pump(c);
    if (c->http1.unparsed.n > 0 && can_read(c))
        read_unparsed(c);
}

static void http1_drained(struct http_connection *c)
{
    if (is_answering(c))
        pump(c);
    if (is_answering(c) && c->http1.current->out.n_bytes == 0 && conn_pending(c) == 0)
        exchange_drained(c->http1.current);
}

/* ---- time --------------------------------------------------------------------------------- */

static void http1_timeout(struct http_connection *c)
{
    struct http_exchange *x = c->http1.current;
    if ((c->phase == PHASE_HEADER || c->phase == PHASE_BODY) && x && x->state == EXCHANGE_GATHERING)
        refuse(c, 408, STR("timed out waiting for the request"));
    else
        conn_close(c, /* after_flush= */ true);
}

static void http1_sweep(struct http_connection *c, int64_t now_ms)
{
    (void) c;
    (void) now_ms;
}

static void http1_drain(struct http_connection *c)
{
    c->http1.closes = true;
    if (c->phase == PHASE_IDLE || (c->phase == PHASE_HEADER && !c->http1.current))
        conn_close(c, /* after_flush= */ true);
}

const struct protocol protocol_http1 = {
    .on_bytes = http1_bytes,
    .on_turn = http1_turn,
    .on_drained = http1_drained,
    .answer = http1_answer,
    .send = http1_send,
    .end = http1_end,
    .abort = http1_abort,
    .pending = http1_pending,
    .on_timeout = http1_timeout,
    .on_sweep = http1_sweep,
    .drain = http1_drain,
    .done = http1_done,
};
