/* SPDX-License-Identifier: Apache-2.0 */
/* The server over real sockets and TLS, on a loop of its own thread, with blocking clients. What
 * needs no socket is tested on fake ones; here it is whether the parts fit. */
#include <arpa/inet.h>
#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "http/http.h"
#include "net/tls.h"
#include "pki/pki.h"
#include "test.h"

#define BIG_BYTES ((size_t) 4 * 1024 * 1024)
#define N_EVENTS 3

/* ---- server ------------------------------------------------------------------------------- */

struct server {
    struct loop *loop;
    struct http_server *http;
    struct listener *listener;
    struct tls_config *tls;
    struct loop_timer *timer; /* sends the events of /stream */
    struct http_exchange *streaming;
    int n_events;
    pthread_t thread;
    int port;
};

static void on_stream_closed(void *arg)
{
    struct server *s = arg;
    s->streaming = NULL;
}

static void on_event(void *arg)
{
    struct server *s = arg;
    if (!s->streaming)
        return;
    if (s->n_events++ == N_EVENTS) {
        http_end(TAKE(s->streaming));
        return;
    }
    struct slice event = slice_static(STR("event\n"));
    http_send(s->streaming, &event, 1);
    loop_timer_start(s->timer, 1, 0);
}

static void reply(struct http_exchange *x, struct slice body)
{
    const struct http_header header = {STR("Content-Type"), STR("text/plain")};
    http_reply(x, 200, &header, 1, &body, 1);
}

static void on_request(void *ctx, struct http_exchange *x)
{
    struct server *s = ctx;
    const struct http_request *r = http_request(x);
    if (str_is(r->path, "/echo")) {
        reply(x, slice_copy(r->body));
    } else if (str_is(r->path, "/big")) {
        char *big = mem_alloc(BIG_BYTES);
        memset(big, 'b', BIG_BYTES);
        reply(x, slice_adopt(big, BIG_BYTES));
    } else if (str_is(r->path, "/stream")) {
        s->streaming = x;
        s->n_events = 0;
        http_on_closed(x, on_stream_closed, s);
        http_start(x, 200, NULL, 0);
        loop_timer_start(s->timer, 1, 0);
    } else {
        reply(x, slice_copy(r->peer->address));
    }
}

static void *on_accept(void *arg, struct stream *stream, const struct stream_events **ret_events)
{
    struct server *s = arg;
    return http_server_accept(s->http, stream, ret_events);
}

static void *run_loop(void *arg)
{
    struct server *s = arg;
    loop_run(s->loop);
    return NULL;
}

static struct tls_config *make_tls(void)
{
    char directory[] = "/tmp/test_http.XXXXXX", certificate[64], key[64];
    assert_non_null(mkdtemp(directory));
    (void) snprintf(certificate, sizeof(certificate), "%s/cert.pem", directory);
    (void) snprintf(key, sizeof(key), "%s/key.pem", directory);
    struct pki_key *k = pki_key_new();
    const struct str name = STR("localhost");
    struct pki_cert *c = pki_cert_new(
        &(struct pki_cert_options){
            .common_name = name, .names = &name, .n_names = 1, .for_server = true, .valid_days = 1},
        k, NULL, NULL);
    assert_int_equal(pki_key_save(k, key), 0);
    assert_int_equal(pki_cert_save(c, certificate), 0);
    struct tls_config *tls = NULL;
    char *error = NULL;
    assert_int_equal(
        tls_config_new(&(struct tls_files){.certificate = certificate, .key = key}, &tls, &error),
        0);
    pki_cert_free(c);
    pki_key_free(k);
    (void) unlink(certificate);
    (void) unlink(key);
    (void) rmdir(directory);
    return tls;
}

static void server_start(struct server *s)
{
    (void) signal(SIGPIPE, SIG_IGN);
    *s = (struct server){.loop = loop_new(), .tls = make_tls()};
    s->http = http_server_new(
        &(struct http_server_options){.loop = s->loop, .on_request = on_request, .ctx = s});
    s->timer = loop_timer_new(s->loop, on_event, s);
    const struct listener_options o = {
        .address = "127.0.0.1",
        .tls = s->tls,
        .loops = &s->loop,
        .n_loops = 1,
        .handshake_timeout_ms = 60 * 1000,
        .on_accept = on_accept,
        .arg = s,
    };
    char *error = NULL;
    assert_int_equal(listener_new(&o, &s->listener, &error), 0);
    s->port = listener_port(s->listener);
    assert_int_equal(pthread_create(&s->thread, NULL, run_loop, s), 0);
}

static void on_drained(void *arg)
{
    struct server *s = arg;
    http_server_free(s->http);
    loop_timer_free(s->timer);
    listener_free(s->listener);
    loop_stop(s->loop);
}

static void begin_drain(void *arg)
{
    struct server *s = arg;
    listener_close(s->listener);
    http_server_drain(s->http, on_drained, s);
}

/* Waits for the connections to end by themselves. */
static void server_stop(struct server *s)
{
    loop_post(s->loop, begin_drain, s);
    (void) pthread_join(s->thread, NULL);
    loop_free(s->loop);
    tls_config_free(s->tls);
}

/* ---- client ------------------------------------------------------------------------------- */

struct client {
    SSL_CTX *ctx;
    SSL *ssl;
    int fd;
};

static void client_open(struct client *c, int port, struct str alpn)
{
    c->ctx = SSL_CTX_new(TLS_client_method());
    (void) SSL_CTX_set_alpn_protos(c->ctx, (const unsigned char *) alpn.p, (unsigned) alpn.n);
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t) port),
                                   .sin_addr = {htonl(INADDR_LOOPBACK)}};
    assert_int_equal(connect(c->fd, (const struct sockaddr *) &to, sizeof(to)), 0);
    c->ssl = SSL_new(c->ctx);
    (void) SSL_set_fd(c->ssl, c->fd);
    assert_int_equal(SSL_connect(c->ssl), 1);
}

static void client_close(struct client *c)
{
    (void) SSL_shutdown(c->ssl);
    SSL_free(c->ssl);
    SSL_CTX_free(c->ctx);
    (void) close(c->fd);
}

static void client_send(struct client *c, struct str bytes)
{
    assert_int_equal(SSL_write(c->ssl, bytes.p, (int) bytes.n), (int) bytes.n);
}

/* Until the text has come, or the end of the connection. */
static void client_receive_until(struct client *c, struct buf *b, const char *text)
{
    while (str_find_str(buf_str(b), str_of(text)) < 0) {
        int n = SSL_read(c->ssl, buf_reserve(b, 64 * 1024), 64 * 1024);
        if (n <= 0)
            return;
        b->n += (size_t) n;
    }
}

static size_t count(struct str s, struct str what)
{
    size_t n = 0;
    for (ptrdiff_t at; (at = str_find_str(s, what)) >= 0; n++)
        s = str_from(s, (size_t) at + what.n);
    return n;
}

#define HTTP1_ALPN STR("\x08http/1.1")
#define HTTP2_ALPN STR("\x02h2")

/* ---- HTTP/1.1 ----------------------------------------------------------------------------- */

TEST(http1_serves_pipelined_and_streamed_answers)
{
    struct server s;
    server_start(&s);
    struct client c;
    client_open(&c, s.port, HTTP1_ALPN);
    client_send(&c, STR("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /stream HTTP/1.1\r\nHost: a\r\n\r\n"
                        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nlast"));
    BUF_AUTO got = {0};
    client_receive_until(&c, &got, "\r\n\r\nlast");
    assert_int_equal(count(buf_str(&got), STR("HTTP/1.1 200 OK\r\n")), 3);
    assert_int_equal(count(buf_str(&got), STR("\r\n\r\n127.0.0.1")), 1);
    assert_int_equal(count(buf_str(&got), STR("event\n")), N_EVENTS);
    assert_int_equal(count(buf_str(&got), STR("\r\n0\r\n\r\n")), 1);
    client_close(&c);
    server_stop(&s);
}

TEST(http1_large_answer_arrives_whole)
{
    struct server s;
    server_start(&s);
    struct client c;
    client_open(&c, s.port, HTTP1_ALPN);
    client_send(&c, STR("GET /big HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
    BUF_AUTO got = {0};
    client_receive_until(&c, &got, "never");
    ptrdiff_t head = str_find_str(buf_str(&got), STR("\r\n\r\n"));
    assert_int_equal(got.n - (size_t) head - 4, BIG_BYTES);
    client_close(&c);
    server_stop(&s);
}

TEST(http1_client_that_sends_too_much_sees_why)
{
    struct server s;
    server_start(&s);
    struct client c;
    client_open(&c, s.port, HTTP1_ALPN);
    client_send(&c, STR("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n"));
    char *part = mem_zalloc(16 * 1024);
    for (int i = 0; i < 16; i++)
        (void) SSL_write(c.ssl, part, 16 * 1024);
    BUF_AUTO got = {0};
    client_receive_until(&c, &got, "never");
    assert_true(str_starts_with(buf_str(&got), STR("HTTP/1.1 413 ")));
    assert_true(str_ends_with(buf_str(&got), STR("413 request body too large\n")));
    mem_free(part);
    client_close(&c);
    server_stop(&s);
}

/* ---- HTTP/2 ------------------------------------------------------------------------------- */

#define MAX_ANSWERS 128

struct session {
    struct client client;
    nghttp2_session *h2;
    struct str upload;
    size_t n_body[MAX_ANSWERS]; /* by (stream id - 1) / 2 */
    size_t n_closed, n_failed;
    bool has_goaway;
};

static int on_data(nghttp2_session *h2, uint8_t flags, int32_t id, const uint8_t *p, size_t n,
                   void *arg)
{
    (void) h2;
    (void) flags;
    (void) p;
    struct session *s = arg;
    s->n_body[(id - 1) / 2] += n;
    return 0;
}

static int on_close(nghttp2_session *h2, int32_t id, uint32_t code, void *arg)
{
    (void) h2;
    (void) id;
    struct session *s = arg;
    s->n_closed++;
    s->n_failed += code != NGHTTP2_NO_ERROR;
    return 0;
}

static int on_frame(nghttp2_session *h2, const nghttp2_frame *frame, void *arg)
{
    (void) h2;
    struct session *s = arg;
    s->has_goaway |= frame->hd.type == NGHTTP2_GOAWAY;
    return 0;
}

static ssize_t read_upload(nghttp2_session *h2, int32_t id, uint8_t *to, size_t room,
                           uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    (void) h2;
    (void) id;
    (void) source;
    struct session *s = arg;
    size_t n = MIN(room, s->upload.n);
    memcpy(to, s->upload.p, n);
    s->upload = str_from(s->upload, n);
    if (s->upload.n == 0)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t) n;
}

static void session_open(struct session *s, int port)
{
    *s = (struct session){0};
    client_open(&s->client, port, HTTP2_ALPN);
    nghttp2_session_callbacks *callbacks = NULL;
    (void) nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    (void) nghttp2_session_client_new(&s->h2, callbacks, s);
    nghttp2_session_callbacks_del(callbacks);
    (void) nghttp2_submit_settings(s->h2, NGHTTP2_FLAG_NONE, NULL, 0);
}

static void session_close(struct session *s)
{
    nghttp2_session_del(s->h2);
    client_close(&s->client);
}

static int32_t session_request(struct session *s, const char *method, const char *path,
                               bool uploads)
{
    const struct str words[][2] = {{STR(":method"), str_of(method)},
                                   {STR(":scheme"), STR("https")},
                                   {STR(":authority"), STR("a")},
                                   {STR(":path"), str_of(path)}};
    nghttp2_nv pairs[N_ELEMENTS(words)];
    for (size_t i = 0; i < N_ELEMENTS(words); i++)
        pairs[i] = (nghttp2_nv){(uint8_t *) words[i][0].p, (uint8_t *) words[i][1].p, words[i][0].n,
                                words[i][1].n, 0};
    const nghttp2_data_provider body = {.read_callback = read_upload};
    return nghttp2_submit_request(s->h2, NULL, pairs, N_ELEMENTS(words), uploads ? &body : NULL,
                                  NULL);
}

static bool session_talk(struct session *s)
{
    const uint8_t *p = NULL;
    for (ssize_t n; (n = nghttp2_session_mem_send(s->h2, &p)) > 0;)
        if (SSL_write(s->client.ssl, p, (int) n) != (int) n)
            return false;
    uint8_t heard[16 * 1024];
    int n = SSL_read(s->client.ssl, heard, sizeof(heard));
    return n > 0 && nghttp2_session_mem_recv(s->h2, heard, (size_t) n) == n;
}

TEST(http2_serves_many_streams)
{
    struct server s;
    server_start(&s);
    struct session c;
    session_open(&c, s.port);
    int32_t big = session_request(&c, "GET", "/big", false);
    int32_t stream = session_request(&c, "GET", "/stream", false);
    for (int i = 0; i < 98; i++)
        (void) session_request(&c, "GET", "/", false);
    while (c.n_closed < 100)
        assert_true(session_talk(&c));
    assert_int_equal(c.n_failed, 0);
    assert_int_equal(c.n_body[(big - 1) / 2], BIG_BYTES);
    assert_int_equal(c.n_body[(stream - 1) / 2], N_EVENTS * 6);
    assert_int_equal(c.n_body[50], sizeof("127.0.0.1") - 1);
    session_close(&c);
    server_stop(&s);
}

TEST(http2_takes_an_upload)
{
    struct server s;
    server_start(&s);
    struct session c;
    session_open(&c, s.port);
    size_t n = 2 * 1024 * 1024;
    char *upload = mem_zalloc(n);
    c.upload = str_range(upload, n);
    int32_t id = session_request(&c, "POST", "/echo", true);
    while (c.n_closed < 1)
        assert_true(session_talk(&c));
    assert_int_equal(c.n_failed, 0);
    assert_int_equal(c.n_body[(id - 1) / 2], n);
    mem_free(upload);
    session_close(&c);
    server_stop(&s);
}

TEST(drain_ends_open_streams_and_says_goodbye)
{
    struct server s;
    server_start(&s);
    struct session c;
    session_open(&c, s.port);
    (void) session_request(&c, "GET", "/stream", false);
    while (c.n_body[0] == 0)
        assert_true(session_talk(&c));
    loop_post(s.loop, begin_drain, &s);
    while (session_talk(&c))
        ;
    assert_true(c.has_goaway);
    assert_int_equal(c.n_closed, 1);
    assert_int_equal(c.n_failed, 0);
    session_close(&c);
    (void) pthread_join(s.thread, NULL);
    loop_free(s.loop);
    tls_config_free(s.tls);
}
