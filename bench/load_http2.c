/* SPDX-License-Identifier: Apache-2.0 */
#include <nghttp2/nghttp2.h>

#include "load.h"

#define WINDOW_BYTES (1 << 30)
#define GATHER_BYTES ((size_t) 16 * 1024)
#define MAX_REQUEST_HEADERS 9

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

static void submit(struct connection *c, struct flight *f)
{
    const struct request *r = f->request;
    nghttp2_nv headers[MAX_REQUEST_HEADERS];
    char length[24];
    size_t n = 0;
    headers[n++] = field(":method", r->method);
    headers[n++] = field(":scheme", STR("https"));
    headers[n++] = field(":authority", STR("localhost"));
    headers[n++] = field(":path", r->path);
    headers[n++] = field("user-agent", STR("load"));
    headers[n++] = field("accept", STR("application/json"));
    if (c->load->options.authorization)
        headers[n++] = field("authorization", str_of(c->load->options.authorization));
    if (r->body.n) {
        (void) snprintf(length, sizeof(length), "%zu", r->body.n);
        headers[n++] = field("content-type", r->content_type);
        headers[n++] = field("content-length", str_of(length));
    }
    nghttp2_data_provider body = {.source.ptr = f, .read_callback = read_body};
    f->stream = nghttp2_submit_request(c->session, NULL, headers, n, r->body.n ? &body : NULL, f);
    if (f->stream < 0)
        load_die("request", nghttp2_strerror(f->stream));
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
