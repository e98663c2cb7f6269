/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol-independent half of an exchange: what a handler calls. */
#include <assert.h>

#include "base/alloc.h"
#include "http/http_internal.h"

/* Kept for reuse, with their arenas of one block each. */
#define MAX_SPARES 256

/* ---- life --------------------------------------------------------------------------------- */

static struct http_exchange *exchange_new(void)
{
    struct http_exchange *x = NEW(struct http_exchange);
    list_init(&x->link);
    x->in.arena = arena_new();
    return x;
}

void exchange_free(struct http_exchange *x)
{
    arena_free(x->in.arena);
    message_done(&x->in);
    slice_queue_done(&x->out);
    mem_free(x);
}

struct http_exchange *exchange_acquire(struct http_connection *c)
{
    struct http_server *h = c->server;
    struct list *spare = list_pop_first(&h->spares);
    struct http_exchange *x =
        spare ? CONTAINER_OF(spare, struct http_exchange, link) : exchange_new();
    h->n_spares -= spare != NULL;
    h->n_exchanges++;
    c->n_exchanges++;
    x->connection = c;
    x->state = EXCHANGE_GATHERING;
    x->since_ms = loop_now_ms(h->options.loop);
    list_append(&c->exchanges, &x->link);
    return x;
}

static void exchange_reset(struct http_exchange *x)
{
    arena_reset(x->in.arena);
    message_reset(&x->in);
    slice_queue_reset(&x->out);
    *x = (struct http_exchange){.link = x->link, .in = x->in, .out = x->out};
}

void exchange_release(struct http_exchange *x)
{
    struct http_connection *c = x->connection;
    struct http_server *h = c->server;
    list_remove(&x->link);
    c->n_exchanges--;
    h->n_exchanges--;
    if (h->n_spares >= MAX_SPARES) {
        exchange_free(x);
        return;
    }
    exchange_reset(x);
    /* In front: the warmest memory is used next. */
    list_append(h->spares.next, &x->link);
    h->n_spares++;
}

static bool is_with_handler(const struct http_exchange *x)
{
    return x->state == EXCHANGE_OPEN || x->state == EXCHANGE_STREAMING;
}

void exchange_cut(struct http_exchange *x)
{
    bool tells = is_with_handler(x) && x->on_closed;
    x->state = EXCHANGE_ENDED;
    if (tells)
        x->on_closed(x->closed_arg);
}

void exchange_drained(struct http_exchange *x)
{
    if (x->state == EXCHANGE_STREAMING && x->on_drained)
        x->on_drained(x->drained_arg);
}

/* ---- the request -------------------------------------------------------------------------- */

static enum http_method parse_method(struct str text)
{
    static const struct {
        struct str text;
        enum http_method method;
    } methods[] = {
        {{"GET", 3}, HTTP_GET},         {{"POST", 4}, HTTP_POST}, {{"PUT", 3}, HTTP_PUT},
        {{"PATCH", 5}, HTTP_PATCH},     {{"HEAD", 4}, HTTP_HEAD}, {{"DELETE", 6}, HTTP_DELETE},
        {{"OPTIONS", 7}, HTTP_OPTIONS},
    };
    for (size_t i = 0; i < N_ELEMENTS(methods); i++)
        if (str_eq(methods[i].text, text))
            return methods[i].method;
    return HTTP_OTHER;
}

static void fill_request(struct http_exchange *x)
{
    struct http_connection *c = x->connection;
    x->request = (struct http_request){
        .method = parse_method(x->in.method),
        .method_text = x->in.method,
        .path = x->in.target,
        .query = STR(""),
        .authority = x->in.authority,
        .headers = x->in.headers,
        .n_headers = x->in.n_headers,
        .body = buf_str(&x->in.body),
        .peer = stream_peer(c->stream),
        .is_http2 = c->protocol == &protocol_http2,
    };
}

void exchange_deliver(struct http_exchange *x)
{
    struct str path, query;
    int r = message_split_target(&x->in, &path, &query);
    fill_request(x);
    if (r < 0) {
        exchange_refuse(x, 400, STR("malformed request target"));
        return;
    }
    x->request.path = path;
    x->request.query = query;
    x->state = EXCHANGE_OPEN;
    struct http_server *h = x->connection->server;
    h->options.on_request(h->options.ctx, x);
}

static void refuse_in_plain_text(struct http_exchange *x, int status, struct str reason)
{
    const struct http_header header = {STR("Content-Type"), STR("text/plain; charset=utf-8")};
    struct buf b = {0};
    buf_printf(&b, "%d %.*s\n", status, STR_ARG(reason));
    size_t n = b.n;
    struct slice body = slice_adopt(buf_take(&b), n);
    http_reply(x, status, &header, 1, &body, 1);
}

void exchange_refuse(struct http_exchange *x, int status, struct str reason)
{
    if (x->state != EXCHANGE_GATHERING)
        return;
    const struct http_server_options *o = &x->connection->server->options;
    fill_request(x);
    x->state = EXCHANGE_OPEN;
    x->connection->http1.closes = true;
    if (o->on_refused)
        o->on_refused(o->ctx, x, status, reason);
    else
        refuse_in_plain_text(x, status, reason);
}

struct str http_request_header(const struct http_request *r, struct str lower_name)
{
    for (size_t i = 0; i < r->n_headers; i++)
        if (str_eq(r->headers[i].name, lower_name))
            return r->headers[i].value;
    return STR_NONE;
}

const struct http_request *http_request(const struct http_exchange *x)
{
    return &x->request;
}

struct arena *http_arena(struct http_exchange *x)
{
    return x->in.arena;
}

struct loop *http_loop(struct http_exchange *x)
{
    return x->connection->server->options.loop;
}

void http_trust_peer(struct http_exchange *x)
{
    struct http_connection *c = x->connection;
    if (c->protocol->trust && !conn_is_closing(c))
        c->protocol->trust(c);
}

/* ---- the answer --------------------------------------------------------------------------- */

static void unref_all(const struct slice *slices, size_t n)
{
    for (size_t i = 0; i < n; i++)
        slice_unref(slices[i]);
}

static bool allows_body(int status)
{
    return status != 204 && status != 304;
}

void http_reply(struct http_exchange *x, int status, const struct http_header *headers,
                size_t n_headers, struct slice *body, size_t n_slices)
{
    if (x->state != EXCHANGE_OPEN) {
        unref_all(body, n_slices);
        return;
    }
    uint64_t length = 0;
    for (size_t i = 0; i < n_slices; i++)
        length += body[i].s.n;
    x->sends_body = allows_body(status) && x->request.method != HTTP_HEAD && length > 0;
    if (x->sends_body)
        slice_queue_append(&x->out, body, n_slices);
    else
        unref_all(body, n_slices);
    x->state = EXCHANGE_ENDED;
    const struct answer a = {
        .status = status,
        .headers = headers,
        .n_headers = n_headers,
        .allows_body = allows_body(status),
        .has_length = allows_body(status),
        .length = length,
    };
    x->connection->protocol->answer(x, &a);
}

void http_start(struct http_exchange *x, int status, const struct http_header *headers,
                size_t n_headers)
{
    if (x->state != EXCHANGE_OPEN)
        return;
    x->sends_body = allows_body(status) && x->request.method != HTTP_HEAD;
    x->state = EXCHANGE_STREAMING;
    const struct answer a = {
        .status = status,
        .headers = headers,
        .n_headers = n_headers,
        .allows_body = allows_body(status),
    };
    x->connection->protocol->answer(x, &a);
}

void http_start_websocket(struct http_exchange *x, struct str protocol)
{
    if (x->state != EXCHANGE_OPEN)
        return;
    assert(http_request_wants_websocket(&x->request));
    x->sends_body = true;
    x->state = EXCHANGE_STREAMING;
    websocket_open(x, protocol);
}

void http_send(struct http_exchange *x, struct slice *slices, size_t n_slices)
{
    if (x->state != EXCHANGE_STREAMING || !x->sends_body || conn_is_closing(x->connection)) {
        unref_all(slices, n_slices);
        return;
    }
    x->connection->protocol->send(x, slices, n_slices);
}

void http_end(struct http_exchange *x)
{
    if (x->state != EXCHANGE_STREAMING)
        return;
    x->state = EXCHANGE_ENDED;
    x->connection->protocol->end(x);
}

size_t http_pending(const struct http_exchange *x)
{
    return x->connection->protocol->pending(x);
}

void http_abort(struct http_exchange *x)
{
    if (!is_with_handler(x))
        return;
    x->state = EXCHANGE_ENDED;
    x->connection->protocol->abort(x);
}

void http_on_closed(struct http_exchange *x, void (*on_closed)(void *arg), void *arg)
{
    x->on_closed = on_closed;
    x->closed_arg = arg;
}

void http_on_drained(struct http_exchange *x, void (*on_drained)(void *arg), void *arg)
{
    x->on_drained = on_drained;
    x->drained_arg = arg;
}
