/* SPDX-License-Identifier: Apache-2.0 */
#include "client_http2.h"

#include <assert.h>
#include <stdio.h>

#include "base/alloc.h"

struct client_answer *client_answer(struct client *c, int32_t id)
{
    size_t i = (size_t) (id - 1) / 2;
    assert(i < CLIENT_MAX_STREAMS);
    return &c->answers[i];
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t n_name, const uint8_t *value, size_t n_value, uint8_t flags, void *arg)
{
    (void) session;
    (void) flags;
    struct client_answer *a = client_answer(arg, frame->hd.stream_id);
    struct str n = str_range((const char *) name, n_name);
    size_t used = strlen(a->headers);
    if (str_is(n, ":status"))
        (void) snprintf(a->status, sizeof(a->status), "%.*s", (int) n_value, value);
    else if (!str_is(n, "date"))
        (void) snprintf(a->headers + used, sizeof(a->headers) - used, "%.*s=%.*s;", (int) n_name,
                        name, (int) n_value, value);
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n,
                   void *arg)
{
    (void) session;
    (void) flags;
    buf_append(&client_answer(arg, id)->body, p, n);
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    (void) session;
    struct client *c = arg;
    if (frame->hd.type == NGHTTP2_GOAWAY) {
        c->n_goaways++;
        c->goaway_last_id = frame->goaway.last_stream_id;
    }
    c->n_pings += frame->hd.type == NGHTTP2_PING && !(frame->hd.flags & NGHTTP2_FLAG_ACK);
    bool may_end = frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS;
    if (may_end && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        client_answer(c, frame->hd.stream_id)->has_ended = true;
    return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error_code, void *arg)
{
    (void) session;
    struct client_answer *a = client_answer(arg, id);
    a->is_closed = true;
    a->error_code = error_code;
    return 0;
}

static ssize_t read_upload(nghttp2_session *session, int32_t id, uint8_t *to, size_t room,
                           uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    (void) session;
    (void) source;
    struct client_answer *a = client_answer(arg, id);
    size_t n = MIN(room, a->upload.n);
    if (n == 0 && a->is_stuck)
        return NGHTTP2_ERR_DEFERRED;
    memcpy(to, a->upload.p, n);
    a->upload = str_from(a->upload, n);
    if (a->upload.n == 0 && !a->is_stuck)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t) n;
}

struct client *client_new(struct stream *s, bool no_window_update)
{
    struct client *c = NEW(struct client);
    c->stream = s;
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_option *option = NULL;
    (void) nghttp2_session_callbacks_new(&callbacks);
    (void) nghttp2_option_new(&option);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_option_set_no_auto_window_update(option, no_window_update);
    /* What the server forbids is to be tried. */
    nghttp2_option_set_no_http_messaging(option, 1);
    (void) nghttp2_session_client_new2(&c->session, callbacks, c, option);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    (void) nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, NULL, 0);
    client_run(c);
    return c;
}

void client_free(struct client *c)
{
    nghttp2_session_del(c->session);
    for (size_t i = 0; i < CLIENT_MAX_STREAMS; i++)
        buf_done(&c->answers[i].body);
    mem_free(c);
}

static bool hear(struct client *c)
{
    struct str heard = fake_stream_state(c->stream).output;
    if (heard.n == 0 || c->is_deaf)
        return false;
    ssize_t n = nghttp2_session_mem_recv(c->session, (const uint8_t *) heard.p, heard.n);
    assert(n == (ssize_t) heard.n);
    (void) n;
    fake_stream_forget_output(c->stream);
    return true;
}

static bool talk(struct client *c)
{
    struct buf words = {0};
    const uint8_t *p = NULL;
    for (ssize_t n; (n = nghttp2_session_mem_send(c->session, &p)) > 0;)
        buf_append(&words, p, (size_t) n);
    bool talked = words.n > 0;
    if (talked && fake_stream_state(c->stream).is_open)
        fake_stream_feed(c->stream, buf_str(&words));
    buf_done(&words);
    return talked;
}

void client_run(struct client *c)
{
    bool went_on;
    do {
        went_on = hear(c);
        went_on |= talk(c);
    } while (went_on);
}

static nghttp2_nv make_pair(struct str name, struct str value)
{
    return (nghttp2_nv){(uint8_t *) name.p, (uint8_t *) value.p, name.n, value.n,
                        NGHTTP2_NV_FLAG_NONE};
}

int32_t client_request(struct client *c, const char *method, const char *path, struct str upload,
                       const struct http_header *extra, size_t n_extra)
{
    nghttp2_nv *pairs = mem_alloc((n_extra + 4) * sizeof(*pairs));
    size_t n = 0;
    pairs[n++] = make_pair(STR(":method"), str_of(method));
    pairs[n++] = make_pair(STR(":scheme"), STR("https"));
    pairs[n++] = make_pair(STR(":authority"), STR("a"));
    pairs[n++] = make_pair(STR(":path"), str_of(path));
    for (size_t i = 0; i < n_extra; i++)
        pairs[n++] = make_pair(extra[i].name, extra[i].value);
    const nghttp2_data_provider body = {.read_callback = read_upload};
    int32_t id = nghttp2_submit_request(c->session, NULL, pairs, n, upload.p ? &body : NULL, NULL);
    assert(id > 0);
    client_answer(c, id)->upload = upload;
    mem_free(pairs);
    return id;
}
