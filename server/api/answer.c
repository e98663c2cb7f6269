/* SPDX-License-Identifier: Apache-2.0 */
/* From what came out of a visit to HTTP. */
#include "api/visit.h"
#include "base/alloc.h"
#include "base/random.h"
#include "http/gzip.h"

/* As kube-apiserver: smaller answers are not worth it. */
#define GZIP_MIN_BYTES ((size_t) 128 * 1024)

static void add_header(struct answer_headers *h, const char *name, struct str value)
{
    if (value.n && h->n < ANSWER_MAX_HEADERS)
        h->list[h->n++] = (struct http_header){str_of(name), value};
}

/* id lives as long as the headers. */
static void add_common(struct answer_headers *h, struct str id, struct str content_type,
                       struct str cache_control)
{
    h->list[h->n++] = (struct http_header){STR("Audit-Id"), id, .is_unique = true};
    add_header(h, "Cache-Control", cache_control.n ? cache_control : STR("no-cache, private"));
    add_header(h, "Content-Type", content_type);
}

static void add_visit(struct answer_headers *h, const struct visit *v, struct str content_type,
                      struct str cache_control)
{
    add_common(h, str_of(v->record.id), content_type, cache_control);
}

/* RFC 7234 5.5: a warning's text is a quoted string. */
static struct str warning_value(struct arena *a, struct str text)
{
    BUF_AUTO b = {0};
    buf_append_str(&b, STR("299 - \""));
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '"' || text.p[i] == '\\')
            buf_append_char(&b, '\\');
        if ((unsigned char) text.p[i] >= 0x20)
            buf_append_char(&b, text.p[i]);
    }
    buf_append_char(&b, '"');
    return arena_str(a, buf_str(&b));
}

static size_t total_bytes(const struct slice *slices, size_t n)
{
    size_t total = 0;
    for (size_t i = 0; i < n; i++)
        total += slices[i].s.n;
    return total;
}

/* What the visit refers to may go with the exchange: it is finished first. */
static void reply(struct visit *v, int code, const struct answer_headers *h, struct slice *body,
                  size_t n_slices)
{
    struct http_exchange *x = v->exchange;
    visit_finish(v, code, total_bytes(body, n_slices));
    http_reply(x, code, h->list, h->n, body, n_slices);
}

static struct slice take_text(struct buf *text)
{
    size_t n = text->n;
    return slice_adopt(buf_take(text), n);
}

/* ---- failures ----------------------------------------------------------------------------- */

static void add_failure(struct answer_headers *h, struct arena *a, const struct status *st)
{
    if (st->retry_after_s)
        add_header(h, "Retry-After", arena_printf(a, "%d", st->retry_after_s));
    if (st->code == 403 || st->code == 400)
        add_header(h, "X-Content-Type-Options", STR("nosniff"));
}

void visit_reply_status(struct visit *v, const struct status *st)
{
    struct answer_headers h = {.n = 0};
    struct buf b = {0};
    add_visit(&h, v, STR("application/json"), STR_NONE);
    add_failure(&h, v->arena, st);
    status_write(&b, st);
    v->record.failure = st;
    struct slice body = take_text(&b);
    reply(v, st->code, &h, &body, 1);
}

void answer_refused(struct http_exchange *x, const struct status *st)
{
    char id[UUID_TEXT_BYTES];
    struct answer_headers h = {.n = 0};
    struct buf b = {0};
    random_uuid(id);
    add_common(&h, str_of(id), STR("application/json"), STR_NONE);
    add_failure(&h, http_arena(x), st);
    status_write(&b, st);
    struct slice body = take_text(&b);
    http_reply(x, st->code, h.list, h.n, &body, 1);
}

void visit_reply_not_found_text(struct visit *v)
{
    struct answer_headers h = {.n = 0};
    struct slice s = slice_static(STR("404 page not found\n"));
    add_visit(&h, v, STR("text/plain; charset=utf-8"), STR_NONE);
    add_header(&h, "X-Content-Type-Options", STR("nosniff"));
    reply(v, 404, &h, &s, 1);
}

/* ---- documents ---------------------------------------------------------------------------- */

void visit_reply_document(struct visit *v, struct document_reply *d)
{
    struct answer_headers h = {.n = 0};
    add_visit(&h, v, d->content_type, d->cache_control);
    add_header(&h, "ETag", d->etag);
    add_header(&h, "Expires", d->expires);
    add_header(&h, "Location", d->location);
    if (d->vary_accept)
        add_header(&h, "Vary", STR("Accept"));
    if (d->is_gzip)
        add_header(&h, "Content-Encoding", STR("gzip"));
    if (d->no_sniff)
        add_header(&h, "X-Content-Type-Options", STR("nosniff"));
    reply(v, d->status, &h, &d->body, d->body.s.n ? 1 : 0);
}

void visit_reply_text(struct visit *v, int code, struct str content_type, struct str body)
{
    struct answer_headers h = {.n = 0};
    struct slice s = slice_copy(body);
    add_visit(&h, v, content_type, STR_NONE);
    reply(v, code, &h, &s, 1);
}

void visit_start_stream(struct visit *v, struct str content_type)
{
    struct answer_headers h = {.n = 0};
    add_visit(&h, v, content_type, STR_NONE);
    http_start(v->exchange, 200, h.list, h.n);
}

/* ---- calls -------------------------------------------------------------------------------- */

/* Replaces the slices by one compressed when it pays and the client takes it. */
static bool compress(struct http_exchange *x, struct call_reply *r)
{
    struct str accepted = http_request_header(http_request(x), STR("accept-encoding"));
    struct slice packed = {0};
    if (!accepted.n || total_bytes(r->body, r->n_slices) < GZIP_MIN_BYTES ||
        !media_accepts_gzip(accepted) || http_gzip(r->body, r->n_slices, &packed) < 0)
        return false;
    for (size_t i = 0; i < r->n_slices; i++)
        slice_unref(r->body[i]);
    r->body[0] = packed;
    r->n_slices = 1;
    return true;
}

/* Whoever takes nothing but protobuf can at least read that we do not write it. */
static bool is_refused_protobuf(const struct call *c)
{
    return c->status.code == 406 && c->registry && media_names_protobuf(c->in.accept);
}

static void write_failure(struct call *c, struct buf *b)
{
    BUF_AUTO text = {0};
    if (!is_refused_protobuf(c)) {
        status_write(b, &c->status);
        return;
    }
    status_write(&text, &c->status);
    protobuf_write_status(b, c->registry->protobuf, json_parse_quick(c->arena, buf_str(&text)));
}

static void reply_failed_call(struct visit *v, struct answer_headers *h)
{
    struct call *c = &v->call;
    struct buf b = {0};
    if (c->status.retry_after_s)
        add_header(h, "Retry-After", arena_printf(c->arena, "%d", c->status.retry_after_s));
    write_failure(c, &b);
    v->record.failure = &c->status;
    struct slice body = take_text(&b);
    reply(v, c->status.code, h, &body, 1);
}

/* What the audit log is to show of the answer: its text, before it is compressed. */
static void keep_response(struct visit *v)
{
    const struct call_reply *r = &v->call.reply;
    if (v->record.level < AUDIT_REQUEST_RESPONSE)
        return;
    BUF_AUTO text = {0};
    /* What is too long is not shown: no need to copy more than shows it. */
    for (size_t i = 0; i < r->n_slices && text.n <= AUDIT_MAX_BODY_BYTES; i++)
        buf_append_str(&text, r->body[i].s);
    v->record.response_body = arena_str(v->arena, buf_str(&text));
}

static void on_watch_end(void *arg)
{
    visit_end_stream(arg);
}

void visit_reply_call(struct visit *v)
{
    struct call *c = &v->call;
    struct answer_headers h = {.n = 0};
    struct str failure_type = is_refused_protobuf(c) ? STR("application/vnd.kubernetes.protobuf")
                                                     : STR("application/json");
    add_visit(&h, v, c->status.code ? failure_type : c->reply.content_type, STR_NONE);
    for (const struct call_warning *w = c->warnings; w; w = w->next)
        add_header(&h, "Warning", warning_value(c->arena, w->text));
    v->record.annotations = c->annotations;
    if (c->status.code) {
        reply_failed_call(v, &h);
    } else if (c->reply.watch) {
        v->record.code = 200;
        visit_begin_stream(v);
        watch_begin(v->door->hub, v->exchange,
                    &(struct watch_start){.request = c->reply.watch,
                                          .headers = h.list,
                                          .n_headers = h.n,
                                          .meter = api_metrics_watch(v->door->metrics, c->kind),
                                          .on_end = on_watch_end,
                                          .arg = v});
    } else {
        keep_response(v);
        if (compress(v->exchange, &c->reply)) {
            add_header(&h, "Content-Encoding", STR("gzip"));
            add_header(&h, "Vary", STR("Accept-Encoding"));
        }
        size_t n_slices = c->reply.n_slices;
        c->reply.n_slices = 0; /* taken over */
        reply(v, c->reply.code, &h, c->reply.body, n_slices);
    }
}
