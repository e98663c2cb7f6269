/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <stdio.h>

#include "base/alloc.h"

static void on_closed(void *arg)
{
    struct fixture *f = arg;
    f->n_closed++;
    f->held = NULL;
}

static void on_drained(void *arg)
{
    struct fixture *f = arg;
    f->n_drained++;
}

static void hold(struct fixture *f, struct http_exchange *x)
{
    f->held = x;
    http_on_closed(x, on_closed, f);
    http_on_drained(x, on_drained, f);
}

static void reply_text(struct http_exchange *x, struct str text)
{
    const struct http_header header = {STR("Content-Type"), STR("text/plain")};
    struct slice body = slice_copy(text);
    http_reply(x, 200, &header, 1, &body, 1);
}

static void reply_big(struct http_exchange *x)
{
    char *p = mem_alloc(FIXTURE_BIG_BYTES);
    memset(p, 'b', FIXTURE_BIG_BYTES);
    struct slice all = slice_adopt(p, FIXTURE_BIG_BYTES);
    struct slice parts[] = {slice_sub(all, 0, 1000), slice_sub(all, 1000, 1000),
                            slice_sub(all, 1000, FIXTURE_BIG_BYTES)};
    slice_unref(all);
    http_reply(x, 200, NULL, 0, parts, N_ELEMENTS(parts));
}

static void on_request(void *ctx, struct http_exchange *x)
{
    struct fixture *f = ctx;
    const struct http_request *r = http_request(x);
    f->n_requests++;
    (void) snprintf(f->last, sizeof(f->last), "%.*s %.*s?%.*s %.*s", STR_ARG(r->method_text),
                    STR_ARG(r->path), STR_ARG(r->query), STR_ARG(r->body));
    if (str_is(r->path, "/echo")) {
        reply_text(x, r->body);
    } else if (str_is(r->path, "/big")) {
        reply_big(x);
    } else if (str_is(r->path, "/none")) {
        http_reply(x, 204, NULL, 0, NULL, 0);
    } else if (str_is(r->path, "/hold")) {
        hold(f, x);
    } else if (str_is(r->path, "/stream")) {
        hold(f, x);
        http_start(x, 200, NULL, 0);
    } else if (str_is(r->path, "/websocket") && http_request_wants_websocket(r)) {
        hold(f, x);
        http_start_websocket(x, http_request_header(r, STR("sec-websocket-protocol")));
    } else {
        if (str_is(r->path, "/login"))
            http_trust_peer(x);
        reply_text(x, STR("hello"));
    }
}

static void on_refused(void *ctx, struct http_exchange *x, int status, struct str reason)
{
    (void) ctx;
    const struct http_header header = {STR("Content-Type"), STR("text/x-error")};
    struct buf b = {0};
    buf_printf(&b, "refused: %d %.*s", status, STR_ARG(reason));
    size_t n = b.n;
    struct slice body = slice_adopt(buf_take(&b), n);
    http_reply(x, status, &header, 1, &body, 1);
}

void fixture_init(struct fixture *f, const struct http_limits *limits)
{
    *f = (struct fixture){.loop = fake_loop_new()};
    const struct http_server_options o = {
        .loop = f->loop,
        .limits = limits,
        .on_request = on_request,
        .on_refused = on_refused,
        .ctx = f,
    };
    f->server = http_server_new(&o);
}

void fixture_done(struct fixture *f)
{
    http_server_free(f->server);
    fake_loop_turn(f->loop);
    fake_loop_free(f->loop);
}

void fixture_send(struct fixture *f, const char *text)
{
    struct slice s = slice_copy(str_of(text));
    http_send(f->held, &s, 1);
    fake_loop_turn(f->loop);
}
