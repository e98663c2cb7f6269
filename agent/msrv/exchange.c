/* SPDX-License-Identifier: Apache-2.0 */
#include "msrv/msrv_internal.h"

static const struct h1_limits limits = {
    .header_bytes = MSRV_MAX_HEADER_BYTES,
    .headers = MSRV_MAX_HEADERS,
    .body_bytes = MSRV_MAX_BODY_BYTES,
};

void exchange_init(struct exchange *x, struct msrv *m, struct str network, struct str address,
                   int port)
{
    *x = (struct exchange){.msrv = m, .arena = arena_new_with(1024), .h1 = h1_new(&limits)};
    x->message.arena = x->arena;
    x->network = arena_str(x->arena, network);
    x->address = arena_str(x->arena, address);
    x->request = (struct request){
        .msrv = m,
        .arena = x->arena,
        .message = &x->message,
        .caller = arena_printf(x->arena, "%.*s:%d", STR_ARG(address), port),
    };
    h1_begin(x->h1, &x->message);
}

void exchange_done(struct exchange *x)
{
    h1_free(x->h1);
    message_done(&x->message);
    arena_free(x->arena);
}

/* An address is cut at its first colon, so nobody is known by an IPv6 one. */
static void find_caller(struct exchange *x)
{
    const struct msrv_options *o = &x->msrv->options;
    if (str_find(x->address, ':') >= 0 || !o->world->find_app)
        return;
    if (o->world->find_app(o->ctx, x->arena, x->network, x->address, &x->app) >= 0)
        x->request.app = &x->app;
}

/* The request is whole, or all of it but a body that is too large: whoever does not look at the
 * body does not mind. */
static enum exchange_step begin(struct exchange *x, bool is_body_cut)
{
    const struct msrv_options *o = &x->msrv->options;
    struct request *r = &x->request;
    struct str query;
    r->body = is_body_cut ? STR("") : buf_str(&x->message.body);
    r->is_body_cut = is_body_cut;
    if (message_split_target(&x->message, &r->path, &query) < 0) {
        answer_error(r, 400, STR("400 Bad Request"));
        return EXCHANGE_ANSWERED;
    }
    r->query = query;
    if (o->world->is_ready && !o->world->is_ready(o->ctx)) {
        answer_error(r, 503, STR("Service Unavailable"));
        return EXCHANGE_ANSWERED;
    }
    x->route = route_find(r);
    if (!x->route)
        return EXCHANGE_ANSWERED;
    find_caller(x);
    if (x->route->on_loop)
        x->route->on_loop(r);
    return r->answer.status || r->answer.is_proxied ? EXCHANGE_ANSWERED : EXCHANGE_TO_WORK;
}

static enum exchange_step refuse(struct exchange *x)
{
    struct str reason;
    int status = h1_refusal(x->h1, &reason);
    if (status == 413)
        return begin(x, /* is_body_cut= */ true);
    answer_error(&x->request, status, reason);
    return EXCHANGE_ANSWERED;
}

enum exchange_step exchange_feed(struct exchange *x, struct str bytes)
{
    while (bytes.n > 0) {
        size_t n_consumed = 0;
        enum h1_progress progress = h1_feed(x->h1, bytes, &n_consumed);
        if (progress == H1_REQUEST)
            return begin(x, /* is_body_cut= */ false);
        if (progress == H1_REFUSED)
            return refuse(x);
        bytes = str_from(bytes, n_consumed);
    }
    return h1_take_expect_continue(x->h1) ? EXCHANGE_CONTINUE : EXCHANGE_READING;
}

void exchange_work(struct exchange *x)
{
    x->route->on_worker(&x->request);
}

void exchange_finish(struct exchange *x)
{
    if (x->route->after)
        x->route->after(&x->request);
}
