/* SPDX-License-Identifier: Apache-2.0 */
/* WebSocket (RFC 6455) on a connection that began as HTTP/1.1: each http_send() is one text
 * message. What the peer sends is not for us: a watch has no input. */
#include <assert.h>
#include <wslay/wslay.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "http/http_internal.h"
#include "pki/pki.h"

#define MAX_INCOMING_BYTES (64 * 1024)
#define KEY_TEXT_BYTES 24 /* 16 bytes in base64 */
#define SHA1_BYTES 20

struct websocket {
    wslay_event_context_ptr context;
    struct str input; /* during on_bytes */
};

/* ---- the handshake ------------------------------------------------------------------------ */

static bool has_token(const struct http_request *r, struct str name, struct str token)
{
    for (size_t i = 0; i < r->n_headers; i++)
        if (str_eq(r->headers[i].name, name) && message_has_token(r->headers[i].value, token))
            return true;
    return false;
}

bool http_request_wants_websocket(const struct http_request *r)
{
    struct str key = http_request_header(r, STR("sec-websocket-key"));
    return !r->is_http2 && r->method == HTTP_GET &&
           has_token(r, STR("connection"), STR("upgrade")) &&
           has_token(r, STR("upgrade"), STR("websocket")) &&
           str_is(http_request_header(r, STR("sec-websocket-version")), "13") &&
           key.n == KEY_TEXT_BYTES && str_ends_with(key, STR("=="));
}

static struct str accept_key(struct arena *a, struct str key)
{
    struct str text = arena_printf(a, "%.*s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", STR_ARG(key));
    unsigned char digest[SHA1_BYTES];
    pki_sha1(text, digest);
    return base64_encode(a, str_range((const char *) digest, sizeof(digest)), BASE64_STANDARD);
}

static void write_acceptance(struct http_exchange *x, struct str protocol)
{
    struct http_connection *c = x->connection;
    struct arena *a = http_arena(x);
    struct str key = http_request_header(&x->request, STR("sec-websocket-key"));
    struct str line = STR("");
    if (protocol.n)
        line = arena_printf(a, "Sec-WebSocket-Protocol: %.*s\r\n", STR_ARG(protocol));
    struct str head = arena_printf(a,
                                   "HTTP/1.1 101 Switching Protocols\r\n"
                                   "Upgrade: websocket\r\n"
                                   "Connection: Upgrade\r\n"
                                   "Sec-WebSocket-Accept: %.*s\r\n"
                                   "%.*s\r\n",
                                   STR_ARG(accept_key(a, key)), STR_ARG(line));
    conn_write(c, head.p, head.n);
}

/* ---- what wslay asks for ------------------------------------------------------------------ */

static ssize_t on_recv(wslay_event_context_ptr context, uint8_t *to, size_t room, int flags,
                       void *arg)
{
    (void) flags;
    struct http_connection *c = arg;
    struct str *input = &c->websocket->input;
    size_t n = MIN(room, input->n);
    if (n == 0) {
        wslay_event_set_error(context, WSLAY_ERR_WOULDBLOCK);
        return -1;
    }
    memcpy(to, input->p, n);
    *input = str_from(*input, n);
    return (ssize_t) n;
}

static ssize_t on_send(wslay_event_context_ptr context, const uint8_t *p, size_t n, int flags,
                       void *arg)
{
    (void) flags;
    struct http_connection *c = arg;
    if (conn_room(c) == 0) {
        wslay_event_set_error(context, WSLAY_ERR_WOULDBLOCK);
        return -1;
    }
    conn_write(c, p, n);
    return (ssize_t) n;
}

static const struct wslay_event_callbacks callbacks = {.recv_callback = on_recv,
                                                       .send_callback = on_send};

/* ---- driving it --------------------------------------------------------------------------- */

void websocket_open(struct http_exchange *x, struct str protocol)
{
    struct http_connection *c = x->connection;
    if (conn_is_closing(c))
        return;
    write_acceptance(x, protocol);
    c->websocket = NEW(struct websocket);
    int r = wslay_event_context_server_init(&c->websocket->context, &callbacks, c);
    assert(r == 0); /* fails for want of memory alone */
    (void) r;
    wslay_event_config_set_max_recv_msg_length(c->websocket->context, MAX_INCOMING_BYTES);
    wslay_event_config_set_no_buffering(c->websocket->context, 1);
    c->protocol = &protocol_websocket;
    c->pinged_ms = 0;
}

static void websocket_done(struct http_connection *c)
{
    wslay_event_context_free(c->websocket->context);
    mem_free(c->websocket);
    protocol_http1.done(c);
}

static void flush(struct http_connection *c)
{
    wslay_event_context_ptr context = c->websocket->context;
    if (wslay_event_want_write(context) && wslay_event_send(context) != 0) {
        conn_close(c, /* after_flush= */ false);
        return;
    }
    /* The stream itself waits a moment for the peer's own end. */
    if (wslay_event_get_close_sent(context))
        conn_close(c, /* after_flush= */ true);
    /* Each ping makes a pong: who does not read is not read. */
    if (!conn_is_closing(c))
        stream_pause_reading(c->stream, conn_room(c) == 0);
}

static void websocket_bytes(struct http_connection *c, struct str bytes)
{
    wslay_event_context_ptr context = c->websocket->context;
    c->websocket->input = bytes;
    int r = wslay_event_recv(context);
    c->websocket->input = STR("");
    if (r != 0) {
        conn_close(c, /* after_flush= */ true);
        return;
    }
    if (wslay_event_get_close_received(context) || !wslay_event_get_read_enabled(context))
        exchange_cut(c->http1.current);
    flush(c);
}

static void websocket_turn(struct http_connection *c)
{
    if (c->http1.unparsed.n == 0) {
        flush(c);
        return;
    }
    struct buf early = c->http1.unparsed;
    c->http1.unparsed = (struct buf){0};
    websocket_bytes(c, buf_str(&early));
    buf_done(&early);
}

static void websocket_drained(struct http_connection *c)
{
    flush(c);
    if (!conn_is_closing(c) && protocol_websocket.pending(c->http1.current) == 0)
        exchange_drained(c->http1.current);
}

static void websocket_answer(struct http_exchange *x, const struct answer *a)
{
    (void) x;
    (void) a; /* the handshake was the answer */
}

static void queue_message(struct http_connection *c, uint8_t opcode, struct str text)
{
    const struct wslay_event_msg message = {opcode, (const uint8_t *) text.p, text.n};
    /* Refused once a close is under way: the message has no reader then. */
    (void) wslay_event_queue_msg(c->websocket->context, &message);
    conn_schedule(c);
}

static void websocket_send(struct http_exchange *x, const struct slice *slices, size_t n)
{
    struct buf text = {0};
    for (size_t i = 0; i < n; i++) {
        buf_append_str(&text, slices[i].s);
        slice_unref(slices[i]);
    }
    queue_message(x->connection, WSLAY_TEXT_FRAME, buf_str(&text));
    buf_done(&text);
}

static void websocket_end(struct http_exchange *x)
{
    struct http_connection *c = x->connection;
    if (conn_is_closing(c))
        return;
    (void) wslay_event_queue_close(c->websocket->context, WSLAY_CODE_NORMAL_CLOSURE, NULL, 0);
    conn_schedule(c);
}

static void websocket_abort(struct http_exchange *x)
{
    conn_close(x->connection, /* after_flush= */ false);
}

static size_t websocket_pending(const struct http_exchange *x)
{
    const struct http_connection *c = x->connection;
    return wslay_event_get_queued_msg_length(c->websocket->context) + conn_pending(c);
}

static void websocket_timeout(struct http_connection *c)
{
    conn_close(c, /* after_flush= */ true);
}

static void websocket_sweep(struct http_connection *c, int64_t now_ms)
{
    (void) c;
    (void) now_ms;
}

static void websocket_ping(struct http_connection *c)
{
    queue_message(c, WSLAY_PING, STR(""));
}

/* Its handler ends it, as it ends every streamed answer at a drain. */
static void websocket_drain(struct http_connection *c)
{
    c->http1.closes = true;
}

const struct protocol protocol_websocket = {
    .on_bytes = websocket_bytes,
    .on_turn = websocket_turn,
    .on_drained = websocket_drained,
    .answer = websocket_answer,
    .send = websocket_send,
    .end = websocket_end,
    .abort = websocket_abort,
    .pending = websocket_pending,
    .on_timeout = websocket_timeout,
    .on_sweep = websocket_sweep,
    .ping = websocket_ping,
    .drain = websocket_drain,
    .done = websocket_done,
};
