/* SPDX-License-Identifier: Apache-2.0 */
#include "http/h2.h"

#include <assert.h>
#include <errno.h>
#include <nghttp2/nghttp2.h>

#include "base/alloc.h"
#include "http/bucket.h"

#define H2_STREAM_WINDOW_BYTES (256 * 1024)
#define H2_CONNECTION_WINDOW_BYTES (16 * 1024 * 1024)
/* All unanswered bodies of one connection together; what comes on top is told to try again. */
#define H2_GATHERED_BYTES ((size_t) 32 * 1024 * 1024)
/* Streams reset, by whichever side, of a peer that has not shown who it is. */
#define H2_STRANGER_RESET_BURST 1000
#define H2_STRANGER_RESETS_PER_SECOND 33
/* Frames that carry nothing: pings, settings, windows, priorities, data of a few bytes. */
#define H2_EMPTY_BURST 10000
#define H2_EMPTY_PER_SECOND 1000
#define H2_SMALL_DATA_BYTES 64
/* A reader moves two windows, the stream's and the connection's, for each frame of data it gets. */
#define H2_EMPTY_PER_DATA 2
#define H2_FRAME_HEAD_BYTES 9

struct h2 {
    nghttp2_session *session;
    struct h2_limits limits;
    const struct h2_events *events;
    void *ctx;
    struct h2_stream *reading;  /* whose head is being read */
    struct h2_stream *trailing; /* whose trailers are */
    size_t gathered_bytes;
    size_t pulled_bytes, budget_bytes;
    struct bucket resets, empties;
};

/* ---- memory ------------------------------------------------------------------------------- */

static void *on_malloc(size_t n, void *arg)
{
    (void) arg;
    return mem_alloc(n);
}

static void on_free(void *p, void *arg)
{
    (void) arg;
    mem_free(p);
}

static void *on_calloc(size_t n, size_t size, void *arg)
{
    (void) arg;
    size_t bytes;
    return __builtin_mul_overflow(n, size, &bytes) ? NULL : mem_zalloc(bytes);
}

static void *on_realloc(void *p, size_t n, void *arg)
{
    (void) arg;
    return mem_realloc(p, n);
}

static nghttp2_mem h2_memory = {NULL, on_malloc, on_free, on_calloc, on_realloc};

/* ---- what a peer may not do without end ---------------------------------------------------- */

static int charge(struct h2 *h, struct bucket *b)
{
    if (bucket_take(b))
        return 0;
    return nghttp2_session_terminate_session(h->session, NGHTTP2_ENHANCE_YOUR_CALM);
}

static bool is_empty(const nghttp2_frame_hd *head)
{
    switch (head->type) {
    case NGHTTP2_HEADERS:
    case NGHTTP2_CONTINUATION:
    case NGHTTP2_RST_STREAM:
        return false;
    case NGHTTP2_DATA:
        return head->length < H2_SMALL_DATA_BYTES && !(head->flags & NGHTTP2_FLAG_END_STREAM);
    default:
        return true;
    }
}

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *head, void *arg)
{
    (void) session;
    struct h2 *h = arg;
    if (head->type == NGHTTP2_RST_STREAM)
        return charge(h, &h->resets);
    return is_empty(head) ? charge(h, &h->empties) : 0;
}

/* Who breaks a rule on purpose has its stream reset by us instead, and would begin another. */
static int on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    (void) session;
    struct h2 *h = arg;
    return frame->hd.type == NGHTTP2_RST_STREAM ? charge(h, &h->resets) : 0;
}

void h2_trust(struct h2 *h)
{
    if (h->resets.burst >= h->limits.reset_burst)
        return;
    h->resets.n_left += h->limits.reset_burst - h->resets.burst;
    h->resets.burst = h->limits.reset_burst;
    h->resets.per_second = h->limits.resets_per_second;
}

/* ---- requests ----------------------------------------------------------------------------- */

static struct h2_stream *find(struct h2 *h, int32_t id)
{
    return nghttp2_session_get_stream_user_data(h->session, id);
}

static void drop_body(struct h2 *h, struct h2_stream *s)
{
    h->gathered_bytes -= s->gathered_bytes;
    s->gathered_bytes = 0;
    buf_done(&s->in->body);
}

static void refuse(struct h2 *h, struct h2_stream *s, int status, struct str reason)
{
    if (s->refusal)
        return;
    s->refusal = status;
    drop_body(h, s);
    h->events->on_refused(h->ctx, s, status, reason);
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct h2 *h = arg;
    h->reading = h->trailing = NULL;
    if (frame->hd.type != NGHTTP2_HEADERS)
        return 0;
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) {
        h->trailing = find(h, frame->hd.stream_id);
        return 0;
    }
    struct h2_stream *s = h->events->on_open(h->ctx);
    s->id = frame->hd.stream_id;
    h->reading = s;
    return nghttp2_session_set_stream_user_data(session, s->id, s);
}

static void add_pseudo(struct message *m, struct str name, struct str value)
{
    if (str_eq(name, STR(":method")))
        m->method_span = message_add_span(m, value);
    else if (str_eq(name, STR(":path")))
        m->target_span = message_add_span(m, value);
    else if (str_eq(name, STR(":authority")))
        m->authority_span = message_add_span(m, value);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t n_name, const uint8_t *value, size_t n_value, uint8_t flags, void *arg)
{
    (void) session;
    (void) frame;
    (void) flags;
    struct h2 *h = arg;
    struct str n = str_range((const char *) name, n_name);
    struct str v = str_range((const char *) value, n_value);
    struct h2_stream *s = h->reading;
    if (h->trailing) /* nobody reads them */
        h2_rules_trailer(&h->trailing->rules, n, v);
    if (!s)
        return 0;
    h2_rules_header(&s->rules, n, v);
    /* The rest of a head that is too large is decoded, for HPACK's sake, and dropped. */
    size_t cost = n_name + n_value + MESSAGE_HEADER_OVERHEAD;
    if (s->in->n_fields >= h->limits.headers)
        cost = h->limits.header_bytes + 1;
    if (message_charge(s->in, cost, h->limits.header_bytes) < 0)
        return 0;
    if (n.n > 0 && n.p[0] == ':')
        add_pseudo(s->in, n, v);
    else
        message_add_header(s->in, n, v);
    return 0;
}

/* A malformed request is not answered (RFC 9113 8.1.1). */
static int reset_malformed(struct h2 *h, struct h2_stream *s)
{
    if (s->is_malformed)
        return 0;
    s->is_malformed = true;
    drop_body(h, s);
    return nghttp2_submit_rst_stream(h->session, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_PROTOCOL_ERROR);
}

static void finish_head(struct h2 *h, struct h2_stream *s)
{
    message_finish(s->in);
    if (s->in->authority.n == 0) {
        struct str host = message_header(s->in, STR("host"));
        s->in->authority = host.p ? host : STR("");
    }
    if (s->in->head_bytes > h->limits.header_bytes) {
        refuse(h, s, 431, STR("request headers too large"));
        return;
    }
    int64_t length = 0;
    struct str text = message_header(s->in, STR("content-length"));
    if (text.p && (str_to_i64(text, &length) < 0 || length > (int64_t) h->limits.body_bytes))
        refuse(h, s, 413, STR("request body too large"));
}

/* What has come of the request is whole so far: held against the rules. Trailers are its end. */
static void check(struct h2 *h, struct h2_stream *s, bool is_last)
{
    if (s == h->reading)
        h2_rules_end_head(&s->rules);
    if (s == h->trailing && !is_last)
        s->rules.is_broken = true;
    if (is_last)
        h2_rules_end(&s->rules);
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    (void) session;
    struct h2 *h = arg;
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
        return 0;
    struct h2_stream *s = find(h, frame->hd.stream_id);
    if (!s)
        return 0;
    bool is_last = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
    bool is_head = s == h->reading;
    check(h, s, is_last);
    h->reading = h->trailing = NULL;
    if (s->rules.is_broken)
        return reset_malformed(h, s);
    if (is_last)
        s->is_complete = true;
    if (is_head)
        finish_head(h, s);
    if (is_last && !s->refusal)
        h->events->on_request(h->ctx, s);
    return 0;
}

static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p,
                         size_t n, void *arg)
{
    (void) flags;
    struct h2 *h = arg;
    struct h2_stream *s = find(h, id);
    if (!s)
        return 0;
    h2_rules_data(&s->rules, n);
    if (s->rules.is_broken)
        return reset_malformed(h, s);
    if (s->refusal)
        return 0;
    if (n > h->limits.body_bytes - s->in->body.n) {
        refuse(h, s, 413, STR("request body too large"));
        return 0;
    }
    if (n > H2_GATHERED_BYTES - h->gathered_bytes) {
        s->refusal = 503;
        drop_body(h, s);
        return nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id, NGHTTP2_REFUSED_STREAM);
    }
    buf_append(&s->in->body, p, n);
    s->gathered_bytes += n;
    h->gathered_bytes += n;
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *arg)
{
    (void) session;
    (void) code;
    struct h2 *h = arg;
    struct h2_stream *s = find(h, id);
    if (!s)
        return 0;
    if (s == h->reading)
        h->reading = NULL;
    if (s == h->trailing)
        h->trailing = NULL;
    h->gathered_bytes -= s->gathered_bytes;
    h->events->on_close(h->ctx, s);
    return 0;
}

/* ---- answers ------------------------------------------------------------------------------ */

/* Promises bytes of the stream's queue; send_data() then takes them without a copy. */
static ssize_t read_data(nghttp2_session *session, int32_t id, uint8_t *unused, size_t room,
                         uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    (void) session;
    (void) id;
    (void) unused;
    (void) arg;
    struct h2_stream *s = source->ptr;
    size_t n = MIN(room, s->out->n_bytes);
    if (n == 0 && !s->is_ended) {
        s->is_deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (n == s->out->n_bytes && s->is_ended)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t) n;
}

static void output(struct h2 *h, const void *p, size_t n)
{
    h->pulled_bytes += n;
    h->events->on_output(h->ctx, str_range(p, n));
}

static int send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head, size_t n,
                     nghttp2_data_source *source, void *arg)
{
    (void) session;
    (void) frame;
    struct h2 *h = arg;
    struct h2_stream *s = source->ptr;
    if (h->pulled_bytes >= h->budget_bytes)
        return NGHTTP2_ERR_WOULDBLOCK;
    output(h, head, H2_FRAME_HEAD_BYTES);
    bucket_add(&h->empties, H2_EMPTY_PER_DATA);
    bool had_bytes = n > 0;
    while (n > 0) {
        struct str front = slice_queue_front(s->out);
        size_t n_now = MIN(front.n, n);
        output(h, front.p, n_now);
        slice_queue_consume(s->out, n_now);
        n -= n_now;
    }
    if (had_bytes && s->out->n_bytes == 0 && !s->is_ended)
        h->events->on_drained(h->ctx, s);
    return 0;
}

static nghttp2_nv make_pair(struct str name, struct str value)
{
    return (nghttp2_nv){
        .name = (uint8_t *) name.p,
        .namelen = name.n,
        .value = (uint8_t *) value.p,
        .valuelen = value.n,
        .flags = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE,
    };
}

/* Names are lower case on the wire (RFC 9113 8.2.1); values carry no control characters. */
static nghttp2_nv copy_pair(struct arena *a, const struct http_header *from)
{
    char *name = arena_alloc(a, from->name.n + from->value.n);
    char *value = name + from->name.n;
    for (size_t i = 0; i < from->name.n; i++) {
        char c = from->name.p[i];
        name[i] = c >= 'A' && c <= 'Z' ? (char) (c | 0x20) : c;
    }
    for (size_t i = 0; i < from->value.n; i++) {
        char c = from->value.p[i];
        value[i] = (unsigned char) c < ' ' || c == 0x7f ? ' ' : c;
    }
    nghttp2_nv pair = make_pair(str_range(name, from->name.n), str_range(value, from->value.n));
    if (from->is_unique)
        pair.flags |= NGHTTP2_NV_FLAG_NO_INDEX;
    return pair;
}

static struct str format_length(struct h2_stream *s, uint64_t length)
{
    char *end = s->length_text + sizeof(s->length_text), *p = end;
    do {
        *--p = (char) ('0' + length % 10);
        length /= 10;
    } while (length);
    return str_range(p, (size_t) (end - p));
}

static struct str format_status(struct h2_stream *s, int status)
{
    assert(status >= 200 && status <= 999);
    s->status_text[0] = (char) ('0' + status / 100);
    s->status_text[1] = (char) ('0' + status / 10 % 10);
    s->status_text[2] = (char) ('0' + status % 10);
    return str_range(s->status_text, 3);
}

void h2_answer(struct h2 *h, struct h2_stream *s, const struct h2_answer *a)
{
    struct arena *arena = s->in->arena;
    nghttp2_nv *pairs = arena_alloc(arena, (a->n_headers + 3) * sizeof(*pairs));
    size_t n = 0;
    pairs[n++] = make_pair(STR(":status"), format_status(s, a->status));
    for (size_t i = 0; i < a->n_headers; i++)
        if (!message_is_framing_header(a->headers[i].name))
            pairs[n++] = copy_pair(arena, &a->headers[i]);
    if (a->has_length)
        pairs[n++] = make_pair(STR("content-length"), format_length(s, a->length));
    if (a->date.n)
        pairs[n++] = make_pair(STR("date"), a->date);
    const nghttp2_data_provider body = {.source = {.ptr = s}, .read_callback = read_data};
    /* Fails only on a stream that is closing; on_close follows then. */
    (void) nghttp2_submit_response(h->session, s->id, pairs, n, a->has_body ? &body : NULL);
}

void h2_send(struct h2 *h, struct h2_stream *s)
{
    if (!s->is_deferred)
        return;
    s->is_deferred = false;
    (void) nghttp2_session_resume_data(h->session, s->id);
}

void h2_reset(struct h2 *h, struct h2_stream *s)
{
    (void) nghttp2_submit_rst_stream(h->session, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_INTERNAL_ERROR);
}

void h2_stop(struct h2 *h, struct h2_stream *s)
{
    (void) nghttp2_submit_rst_stream(h->session, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_NO_ERROR);
}

/* ---- the connection ----------------------------------------------------------------------- */

static nghttp2_session_callbacks *make_callbacks(void)
{
    nghttp2_session_callbacks *c = NULL;
    if (nghttp2_session_callbacks_new(&c) != 0)
        return NULL;
    nghttp2_session_callbacks_set_on_begin_headers_callback(c, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(c, on_header);
    nghttp2_session_callbacks_set_on_begin_frame_callback(c, on_begin_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(c, on_frame_send);
    nghttp2_session_callbacks_set_on_frame_recv_callback(c, on_frame_recv);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, on_data_chunk);
    nghttp2_session_callbacks_set_on_stream_close_callback(c, on_stream_close);
    nghttp2_session_callbacks_set_send_data_callback(c, send_data);
    return c;
}

static nghttp2_option *make_options(const struct h2_limits *limits)
{
    nghttp2_option *o = NULL;
    if (nghttp2_option_new(&o) != 0)
        return NULL;
    nghttp2_option_set_no_closed_streams(o, 1);
    nghttp2_option_set_no_http_messaging(o, 1); /* ours: h2_rules.c */
    /* Its own limit knows no trust; ours is reached before. */
    nghttp2_option_set_stream_reset_rate_limit(o, 2 * (uint64_t) limits->reset_burst,
                                               2 * (uint64_t) limits->resets_per_second);
    return o;
}

static void submit_settings(struct h2 *h)
{
    uint64_t window = (uint64_t) H2_STREAM_WINDOW_BYTES * h->limits.streams;
    window = MIN(window, (uint64_t) H2_CONNECTION_WINDOW_BYTES);
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, h->limits.streams},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, H2_STREAM_WINDOW_BYTES},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t) h->limits.header_bytes},
        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
    };
    (void) nghttp2_submit_settings(h->session, NGHTTP2_FLAG_NONE, settings, N_ELEMENTS(settings));
    (void) nghttp2_session_set_local_window_size(h->session, NGHTTP2_FLAG_NONE, 0,
                                                 (int32_t) window);
}

struct h2 *h2_new(const struct h2_limits *limits, const struct h2_events *events, void *ctx,
                  int64_t now_ms)
{
    struct h2 *h = NEW(struct h2);
    h->limits = *limits;
    h->events = events;
    h->ctx = ctx;
    bucket_init(&h->resets, MIN(limits->reset_burst, (uint32_t) H2_STRANGER_RESET_BURST),
                MIN(limits->resets_per_second, (uint32_t) H2_STRANGER_RESETS_PER_SECOND), now_ms);
    bucket_init(&h->empties, H2_EMPTY_BURST, H2_EMPTY_PER_SECOND, now_ms);
    nghttp2_session_callbacks *callbacks = make_callbacks();
    nghttp2_option *options = make_options(limits);
    int r = nghttp2_session_server_new3(&h->session, callbacks, h, options, &h2_memory);
    assert(r == 0); /* memory is the only reason to fail, and that aborts */
    (void) r;
    nghttp2_option_del(options);
    nghttp2_session_callbacks_del(callbacks);
    submit_settings(h);
    return h;
}

void h2_free(struct h2 *h)
{
    if (!h)
        return;
    nghttp2_session_del(h->session);
    mem_free(h);
}

int h2_feed(struct h2 *h, struct str bytes, int64_t now_ms)
{
    bucket_fill(&h->resets, now_ms);
    bucket_fill(&h->empties, now_ms);
    ssize_t n = nghttp2_session_mem_recv(h->session, (const uint8_t *) bytes.p, bytes.n);
    return n < 0 ? -EPROTO : 0;
}

int h2_pull(struct h2 *h, size_t budget_bytes)
{
    h->pulled_bytes = 0;
    h->budget_bytes = budget_bytes;
    while (h->pulled_bytes < budget_bytes) {
        const uint8_t *p = NULL;
        ssize_t n = nghttp2_session_mem_send(h->session, &p);
        if (n < 0)
            return -EPROTO;
        if (n == 0)
            return 0;
        output(h, p, (size_t) n);
    }
    return 0;
}

bool h2_wants_output(const struct h2 *h)
{
    return nghttp2_session_want_write(h->session);
}

bool h2_is_over(const struct h2 *h)
{
    return !nghttp2_session_want_read(h->session) && !nghttp2_session_want_write(h->session);
}

void h2_ping(struct h2 *h)
{
    (void) nghttp2_submit_ping(h->session, NGHTTP2_FLAG_NONE, NULL);
}

void h2_announce_shutdown(struct h2 *h)
{
    (void) nghttp2_submit_shutdown_notice(h->session);
}

void h2_shutdown(struct h2 *h)
{
    int32_t last = nghttp2_session_get_last_proc_stream_id(h->session);
    (void) nghttp2_submit_goaway(h->session, NGHTTP2_FLAG_NONE, last, NGHTTP2_NO_ERROR, NULL, 0);
}
