/* SPDX-License-Identifier: Apache-2.0 */
#include <nghttp2/nghttp2.h>

#include "load.h"

#define WINDOW_BYTES (1 << 30)
#define GATHER_BYTES ((size_t) 16 * 1024)
#define FRAME_HEAD_BYTES 9

static int on_header(nghttp2_session *s, const nghttp2_frame *frame, const uint8_t *name,
                     size_t n_name, const uint8_t *value, size_t n_value, uint8_t flags, void *user)
{
    (void) flags;
    (void) user;
    int64_t status = 0;
    struct flight *f = nghttp2_session_get_stream_user_data(s, frame->hd.stream_id);
    if (f && str_is(str_range((const char *) name, n_name), ":status") &&
        str_to_i64(str_range((const char *) value, n_value), &status) == 0)
        f->status = (int) status;
    return 0;
}

static int on_frame(nghttp2_session *s, const nghttp2_frame *frame, void *user)
{
    struct connection *c = user;
    struct flight *f = nghttp2_session_get_stream_user_data(s, frame->hd.stream_id);
    if (f && f->is_watch && frame->hd.type == NGHTTP2_HEADERS && f->status == 200 &&
        !f->has_answer) {
        f->has_answer = true;
        c->load->n_watches_open++;
    }
    return 0;
}

static int on_data(nghttp2_session *s, uint8_t flags, int32_t stream, const uint8_t *data, size_t n,
                   void *user)
{
    (void) flags;
    struct flight *f = nghttp2_session_get_stream_user_data(s, stream);
    if (f)
        load_body(user, f, str_range((const char *) data, n));
    return 0;
}

static int on_close(nghttp2_session *s, int32_t stream, uint32_t error, void *user)
{
    struct flight *f = nghttp2_session_get_stream_user_data(s, stream);
    if (error)
        load_die("stream", nghttp2_http2_strerror(error));
    if (f)
        load_finish(user, f);
    return 0;
}

static ssize_t read_body(nghttp2_session *s, int32_t stream, uint8_t *out, size_t n_max,
                         uint32_t *flags, nghttp2_data_source *source, void *user)
{
    (void) s;
    (void) stream;
    (void) user;
    struct flight *f = source->ptr;
    struct str rest = str_from(f->request->body, f->n_sent);
    size_t n = MIN(rest.n, n_max);
    memcpy(out, rest.p, n);
    f->n_sent += n;
    if (n == rest.n)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t) n;
}

static void http2_open(struct connection *c)
{
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_session *s = NULL;
    (void) nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    (void) nghttp2_session_client_new(&s, callbacks, c);
    nghttp2_session_callbacks_del(callbacks);
    const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_BYTES},
                                               {NGHTTP2_SETTINGS_ENABLE_PUSH, 0}};
    (void) nghttp2_submit_settings(s, NGHTTP2_FLAG_NONE, settings, N_ELEMENTS(settings));
    (void) nghttp2_session_set_local_window_size(s, NGHTTP2_FLAG_NONE, 0, WINDOW_BYTES);
    c->session = s;
}

static void http2_close(struct connection *c)
{
    nghttp2_session_del(c->session);
}

static nghttp2_nv field(const char *name, struct str value)
{
    return (nghttp2_nv){(uint8_t *) (uintptr_t) name, (uint8_t *) (uintptr_t) value.p, strlen(name),
                        value.n, NGHTTP2_NV_FLAG_NO_COPY_NAME};
}

/* The library keeps the stream; what its headers are on the wire is rewrite()'s affair. */
static void submit(struct connection *c, struct flight *f)
{
    const struct request *r = f->request;
    const nghttp2_nv headers[] = {field(":method", r->method), field(":scheme", STR("https")),
                                  field(":authority", STR("localhost")), field(":path", r->path)};
    nghttp2_data_provider body = {.source.ptr = f, .read_callback = read_body};
    f->stream = nghttp2_submit_request(c->session, NULL, headers, N_ELEMENTS(headers),
                                       r->body.n ? &body : NULL, f);
    if (f->stream < 0)
        load_die("request", nghttp2_strerror(f->stream));
}

static void encode_request(struct connection *c, const struct request *r, struct buf *b)
{
    struct hpack *h = &c->hpack;
    const char *authorization = c->load->options.authorization;
    char length[24];
    hpack_encode(h, b, STR(":method"), r->method, true);
    hpack_encode(h, b, STR(":scheme"), STR("https"), true);
    hpack_encode(h, b, STR(":authority"), STR("localhost"), true);
    hpack_encode(h, b, STR(":path"), r->path, c->load->n_requests_given == 1);
    hpack_encode(h, b, STR("user-agent"), STR("load"), true);
    hpack_encode(h, b, STR("accept"), STR("application/json"), true);
    if (authorization)
        hpack_encode(h, b, STR("authorization"), str_of(authorization), true);
    if (r->body.n) {
        (void) snprintf(length, sizeof(length), "%zu", r->body.n);
        hpack_encode(h, b, STR("content-type"), r->content_type, true);
        hpack_encode(h, b, STR("content-length"), str_of(length), false);
    }
}

/* Appends a HEADERS frame with the library's flags and stream and our own compression. */
static void rewrite(struct connection *c, const uint8_t *frame)
{
    int32_t stream = (int32_t) (((uint32_t) frame[5] << 24 | (uint32_t) frame[6] << 16 |
                                 (uint32_t) frame[7] << 8 | frame[8]) &
                                INT32_MAX);
    const struct flight *f = nghttp2_session_get_stream_user_data(c->session, stream);
    size_t at = c->out.n;
    buf_append(&c->out, frame, FRAME_HEAD_BYTES);
    encode_request(c, f->request, &c->out);
    size_t n = c->out.n - at - FRAME_HEAD_BYTES;
    c->out.p[at] = (char) (n >> 16);
    c->out.p[at + 1] = (char) (n >> 8);
    c->out.p[at + 2] = (char) n;
}

static void http2_collect(struct connection *c)
{
    struct flight *f;
    while ((f = load_start(c)))
        submit(c, f);
    while (c->out.n < GATHER_BYTES) {
        const uint8_t *p = NULL;
        ssize_t n = nghttp2_session_mem_send(c->session, &p);
        if (n < 0)
            load_die("send", nghttp2_strerror((int) n));
        if (n == 0)
            return;
        if (n > FRAME_HEAD_BYTES && p[3] == NGHTTP2_HEADERS)
            rewrite(c, p);
        else
            buf_append(&c->out, p, (size_t) n);
    }
}

static void http2_receive(struct connection *c, struct str bytes)
{
    ssize_t n = nghttp2_session_mem_recv(c->session, (const uint8_t *) bytes.p, bytes.n);
    if (n < 0)
        load_die("receive", nghttp2_strerror((int) n));
}

const struct protocol load_http2 = {"h2", http2_open, http2_close, http2_receive, http2_collect};
