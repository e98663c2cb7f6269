/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 as far as these servers answer it: a Content-Length, one request at a time. */
#include "load.h"

#include "base/alloc.h"

struct http1 {
    struct flight *flight;
    size_t n_body_left;
    bool is_in_body;
};

static void http1_open(struct connection *c)
{
    c->session = NEW(struct http1);
}

static void http1_close(struct connection *c)
{
    mem_free(c->session);
}

static void http1_collect(struct connection *c)
{
    struct http1 *h = c->session;
    struct flight *f = c->out.n ? NULL : load_start(c);
    if (!f)
        return;
    const struct request *r = f->request;
    h->flight = f;
    buf_append_str(&c->out, r->method);
    buf_append_char(&c->out, ' ');
    buf_append_str(&c->out, r->path);
    buf_append_str(
        &c->out,
        STR(" HTTP/1.1\r\nHost: localhost\r\nUser-Agent: load\r\nAccept: application/json\r\n"));
    if (c->load->options.authorization)
        buf_printf(&c->out, "Authorization: %s\r\n", c->load->options.authorization);
    if (r->body.n)
        buf_printf(&c->out, "Content-Type: %.*s\r\nContent-Length: %zu\r\n",
                   STR_ARG(r->content_type), r->body.n);
    buf_append_str(&c->out, STR("\r\n"));
    buf_append_str(&c->out, r->body);
}

/* The length that a head announces. */
static size_t content_length(struct str head)
{
    struct str line;
    int64_t n = 0;
    while (str_split(&head, '\n', &line)) {
        struct str name;
        if (str_split(&line, ':', &name) && str_eq_nocase(name, STR("content-length")))
            return str_to_i64(str_trim(line), &n) == 0 ? (size_t) n : 0;
    }
    load_die("answer", "without Content-Length");
    return 0;
}

/* 304 never has a body, whatever its head says. */
static size_t body_length(int status, struct str head)
{
    return status == 304 ? 0 : content_length(head);
}

static bool take_head(struct connection *c)
{
    struct http1 *h = c->session;
    int64_t status = 0;
    ptrdiff_t end = str_find_str(buf_str(&c->in), STR("\r\n\r\n"));
    if (end < 0)
        return false;
    struct str head = str_range(c->in.p, (size_t) end);
    if (!h->flight || str_to_i64(str_sub(head, 9, 12), &status) < 0)
        load_die("answer", "is no HTTP/1.1");
    h->flight->status = (int) status;
    h->n_body_left = body_length((int) status, head);
    h->is_in_body = true;
    buf_consume(&c->in, (size_t) end + 4);
    return true;
}

static void http1_receive(struct connection *c, struct str bytes)
{
    struct http1 *h = c->session;
    buf_append_str(&c->in, bytes);
    while (h->is_in_body || take_head(c)) {
        size_t n = MIN(h->n_body_left, c->in.n);
        if (n)
            load_body(c, h->flight, str_range(c->in.p, n));
        buf_consume(&c->in, n);
        h->n_body_left -= n;
        if (h->n_body_left)
            return;
        h->is_in_body = false;
        load_finish(c, TAKE(h->flight));
    }
}

const struct protocol load_http1 = {"http/1.1", http1_open, http1_close, http1_receive,
                                    http1_collect};
