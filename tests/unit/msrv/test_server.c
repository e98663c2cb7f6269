/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets: applications are threads that ask and wait, the server runs on the test's own loop. */
#include "test.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "desk.h"

/* The loopback network is all ours: device.c knows these, too. */
#define WEB_HERE "127.0.1.2"
#define DB_HERE "127.0.1.3"

struct shop {
    struct desk desk;
    struct msrv_listener *listener;
    int port;
    void (*play)(struct shop *s);
    struct msrv_count count; /* taken when the play is over */
    const char *failed;
};

static int listen_at(struct msrv *m, const char *address, int port, struct msrv_listener **ret)
{
    return msrv_listen(m, &(struct msrv_place){.network = "net", .address = address, .port = port},
                       ret);
}

static int connect_from(const char *address, int port)
{
    struct sockaddr_in from = {.sin_family = AF_INET};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t) port)};
    inet_pton(AF_INET, address, &from.sin_addr);
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval patience = {.tv_sec = 60};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (bind(fd, (struct sockaddr *) &from, sizeof(from)) < 0 ||
        connect(fd, (struct sockaddr *) &to, sizeof(to)) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void send_all(int fd, struct str bytes)
{
    while (bytes.n > 0) {
        ssize_t n = send(fd, bytes.p, bytes.n, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        bytes = str_from(bytes, (size_t) n);
    }
}

/* To the end; false when the end is none, but a reset. */
static bool receive_all(int fd, struct buf *out)
{
    for (;;) {
        ssize_t n = recv(fd, buf_reserve(out, 65536), 65536, 0);
        if (n <= 0)
            return n == 0;
        out->n += (size_t) n;
        out->p[out->n] = '\0';
    }
}

static bool ask(struct shop *s, const char *address, struct str request, struct buf *out)
{
    int fd = connect_from(address, s->port);
    buf_reset(out);
    if (fd < 0)
        return false;
    send_all(fd, request);
    bool is_good = receive_all(fd, out);
    close(fd);
    return is_good;
}

#define HOSTNAME STR("GET /eve/v1/hostname HTTP/1.1\r\nHost: x\r\n\r\n")
#define EXPECT(s, condition) \
    do { \
        if (!(condition) && !(s)->failed) \
            (s)->failed = #condition; \
    } while (0)

static void count_and_stop(void *arg)
{
    struct shop *s = arg;
    s->count = msrv_count(s->desk.msrv);
    loop_stop(s->desk.loop);
}

static void *run_play(void *arg)
{
    struct shop *s = arg;
    s->play(s);
    loop_post(s->desk.loop, count_and_stop, s);
    return NULL;
}

static void run(struct shop *s, void (*play)(struct shop *s))
{
    pthread_t thread;
    desk_init(&s->desk);
    s->play = play;
    assert_int_equal(listen_at(s->desk.msrv, "127.0.0.1", 0, &s->listener), 0);
    s->port = msrv_listener_port(s->listener);
    assert_int_equal(pthread_create(&thread, NULL, run_play, s), 0);
    loop_run(s->desk.loop);
    pthread_join(thread, NULL);
    desk_done(&s->desk);
    if (s->failed)
        fail_msg("not so: %s", s->failed);
}

/* ---- plays ---------------------------------------------------------------------------------- */

static void ask_twice(struct shop *s)
{
    BUF_AUTO out = {0};
    EXPECT(s, ask(s, WEB_HERE, HOSTNAME, &out));
    EXPECT(s, strstr(out.p, "\r\n\r\n" WEB_UUID "\n"));
    EXPECT(s, strstr(out.p, "Connection: close\r\n"));
    EXPECT(s, ask(s, DB_HERE, HOSTNAME, &out));
    EXPECT(s, strstr(out.p, "\r\n\r\n" DB_UUID "\n"));
    EXPECT(s, ask(s, "127.0.9.9", HOSTNAME, &out));
    EXPECT(s, str_starts_with(buf_str(&out), STR("HTTP/1.1 204 ")));
}

TEST(the_source_address_tells_who_asks)
{
    struct shop s = {0};
    run(&s, ask_twice);
    assert_int_equal(s.count.n_answered, 3);
}

#define LARGE_BYTES ((size_t) 3 * 1024 * 1024 + 17)

static void download(struct shop *s)
{
    BUF_AUTO file = {0}, out = {0};
    for (size_t i = 0; i < LARGE_BYTES; i++)
        buf_append_char(&file, (char) (i * 2654435761u >> 13));
    device_write(&s->desk.device, s->desk.device.blob_path, file.p, file.n);
    EXPECT(s, ask(s, WEB_HERE,
                  STR("GET /eve/app-custom-blobs/my%20blob HTTP/1.1\r\nHost: x\r\n\r\n"), &out));
    ptrdiff_t end = str_find_str(buf_str(&out), STR("\r\n\r\n"));
    EXPECT(s, end > 0 && str_eq(str_from(buf_str(&out), (size_t) end + 4), buf_str(&file)));
}

TEST(a_large_file_arrives_whole)
{
    struct shop s = {0};
    run(&s, download);
}

static void send_too_much(struct shop *s)
{
    BUF_AUTO request = {0}, out = {0};
    size_t n = (size_t) 200 * 1024;
    buf_printf(&request,
               "POST /eve/v1/kubeconfig HTTP/1.1\r\nHost: x\r\nContent-Type: "
               "application/json\r\nContent-Length: %zu\r\n\r\n",
               n);
    memset(buf_reserve(&request, n), 'x', n);
    request.n += n;
    EXPECT(s, ask(s, WEB_HERE, buf_str(&request), &out));
    EXPECT(s, str_starts_with(buf_str(&out), STR("HTTP/1.1 500 ")));
}

TEST(whoever_sends_too_much_still_reads_the_answer)
{
    struct shop s = {0};
    run(&s, send_too_much);
}

static void wait_for_continue(struct shop *s)
{
    BUF_AUTO out = {0};
    char line[64] = {0};
    int fd = connect_from(WEB_HERE, s->port);
    send_all(fd, STR("POST /eve/v1/kubeconfig HTTP/1.1\r\nHost: x\r\nContent-Type: "
                     "application/json\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"));
    EXPECT(s, recv(fd, line, H1_CONTINUE.n, MSG_WAITALL) == (ssize_t) H1_CONTINUE.n);
    EXPECT(s, strcmp(line, H1_CONTINUE.p) == 0);
    send_all(fd, STR("{}"));
    EXPECT(s, receive_all(fd, &out));
    EXPECT(s, str_starts_with(buf_str(&out), STR("HTTP/1.1 200 ")));
    close(fd);
}

TEST(a_client_that_waits_is_told_to_go_on)
{
    struct shop s = {0};
    run(&s, wait_for_continue);
}

#define N_IDLE 200

static void crowd(struct shop *s)
{
    int idle[N_IDLE];
    BUF_AUTO out = {0};
    for (int i = 0; i < N_IDLE; i++) {
        idle[i] = connect_from(WEB_HERE, s->port);
        send_all(idle[i], STR("GET /eve/v1/hos"));
    }
    EXPECT(s, ask(s, DB_HERE, HOSTNAME, &out));
    EXPECT(s, out.p && strstr(out.p, DB_UUID));
    /* Its own, too, at the cost of its oldest. */
    EXPECT(s, ask(s, WEB_HERE, HOSTNAME, &out));
    EXPECT(s, out.p && strstr(out.p, WEB_UUID));
    for (int i = 0; i < N_IDLE; i++)
        close(idle[i]);
}

TEST(a_crowd_of_one_application_does_not_stop_another)
{
    struct shop s = {0};
    run(&s, crowd);
    assert_true(s.count.n_evicted >= N_IDLE - MSRV_MAX_CONNECTIONS_PER_ADDRESS);
}

struct later {
    struct shop *shop;
    int64_t by_us;
};

static void advance(void *arg)
{
    struct later *l = arg;
    l->shop->desk.device.clock.now_us += l->by_us;
}

static void dawdle(struct shop *s)
{
    BUF_AUTO out = {0};
    int fd = connect_from(WEB_HERE, s->port);
    send_all(fd, STR("GET /eve/v1/hostname HTTP/1.1\r\nHo"));
    /* Surely accepted when a later one is answered. */
    EXPECT(s, ask(s, DB_HERE, HOSTNAME, &out));
    struct later later = {s, (int64_t) MSRV_READ_TIMEOUT_MS * 1000};
    loop_post(s->desk.loop, advance, &later);
    buf_reset(&out);
    (void) receive_all(fd, &out);
    EXPECT(s, out.n == 0);
    close(fd);
}

TEST(a_request_that_does_not_come_is_given_up)
{
    struct shop s = {0};
    run(&s, dawdle);
    assert_int_equal(s.count.n_timeouts, 1);
}

static void ask_and_leave(struct shop *s)
{
    for (int i = 0; i < 20; i++) {
        int fd = connect_from(WEB_HERE, s->port);
        send_all(fd, i % 2
                         ? STR("GET /eve/v1/diag HTTP/1.1\r\nHost: x\r\n\r\n")
                         : STR("GET /eve/app-custom-blobs/my%20blob HTTP/1.1\r\nHost: x\r\n\r\n"));
        struct linger at_once = {.l_onoff = 1};
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
        close(fd);
    }
}

/* The server goes while workers are busy: what they hold is freed, as the sanitizer sees. */
TEST(whoever_leaves_early_leaves_nothing_behind)
{
    struct shop s = {0};
    run(&s, ask_and_leave);
}

/* ---- the exporter --------------------------------------------------------------------------- */

struct exporter {
    int fd, port;
    struct str answer;
    char request[1024];
    pthread_t thread;
};

static void *serve_once(void *arg)
{
    struct exporter *e = arg;
    int fd = accept(e->fd, NULL, NULL);
    ssize_t n = 0;
    while (n >= 0 && !strstr(e->request, "\r\n\r\n")) {
        ssize_t got = recv(fd, e->request + n, sizeof(e->request) - 1 - (size_t) n, 0);
        if (got <= 0)
            break;
        n += got;
    }
    send_all(fd, e->answer);
    close(fd);
    return NULL;
}

static void exporter_start(struct exporter *e, struct str answer)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(at);
    *e = (struct exporter){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .answer = answer};
    bind(e->fd, (struct sockaddr *) &at, sizeof(at));
    listen(e->fd, 8);
    getsockname(e->fd, (struct sockaddr *) &at, &n);
    e->port = ntohs(at.sin_port);
    pthread_create(&e->thread, NULL, serve_once, e);
}

static void exporter_stop(struct exporter *e)
{
    pthread_join(e->thread, NULL);
    close(e->fd);
}

/* clang-format off */
static const struct {
    const char *answer;
    const char *begins, *ends;
} exported[] = {
    {"HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nX-Other: y\r\n\r\nup 1\n", "HTTP/1.1 200 ", "\r\n\r\nup 1\n"},
    {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcde", "HTTP/1.1 200 ", "\r\n\r\nabc"},
    {"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 503 ", "\r\n\r\n"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "HTTP/1.1 502 ", "Bad Gateway\n"},
    {"nonsense\r\n\r\n", "HTTP/1.1 502 ", "Bad Gateway\n"},
    {"", "HTTP/1.1 502 ", "Bad Gateway\n"},
};
/* clang-format on */

static void ask_exporter(struct shop *s)
{
    BUF_AUTO out = {0};
    for (size_t i = 0; i < N_ELEMENTS(exported); i++) {
        struct exporter e;
        exporter_start(&e, str_of(exported[i].answer));
        s->desk.msrv->options.exporter_port = e.port;
        EXPECT(s, ask(s, "127.0.9.9",
                      STR("GET /metrics/?a=b HTTP/1.1\r\nHost: x\r\nAccept: text/plain\r\n\r\n"),
                      &out));
        exporter_stop(&e);
        EXPECT(s, str_starts_with(buf_str(&out), str_of(exported[i].begins)));
        EXPECT(s, str_ends_with(buf_str(&out), str_of(exported[i].ends)));
        EXPECT(s, strstr(e.request, "GET /metrics?a=b HTTP/1.0\r\n"));
        EXPECT(s, strstr(e.request, "accept: text/plain\r\n"));
        EXPECT(s, strstr(e.request, "X-Forwarded-For: 127.0.9.9\r\n"));
        EXPECT(s, !strstr(out.p, "X-Other"));
    }
    /* Nobody listens there any more. */
    EXPECT(s, ask(s, "127.0.9.9", STR("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), &out));
    EXPECT(s, str_starts_with(buf_str(&out), STR("HTTP/1.1 502 ")));
}

TEST(metrics_are_the_exporters)
{
    struct shop s = {0};
    run(&s, ask_exporter);
}

/* ---- listeners ------------------------------------------------------------------------------ */

TEST(a_listener_needs_an_ipv4_address)
{
    struct desk d;
    struct msrv_listener *l = NULL;
    desk_init(&d);
    assert_true(listen_at(d.msrv, "::1", 0, &l) < 0);
    assert_true(listen_at(d.msrv, "localhost", 0, &l) < 0);
    assert_true(listen_at(d.msrv, "127.0.0.1", 70000, &l) < 0);
    assert_true(listen_at(d.msrv, "203.0.113.1", 0, &l) < 0);
    assert_null(l);
    struct msrv_place elsewhere = {.network = "net", .interface = "none", .address = "127.0.0.1"};
    assert_true(msrv_listen(d.msrv, &elsewhere, &l) < 0);
    assert_int_equal(listen_at(d.msrv, "127.0.0.1", 0, &l), 0);
    struct msrv_listener *other = NULL;
    assert_true(listen_at(d.msrv, "127.0.0.1", msrv_listener_port(l), &other) < 0);
    msrv_unlisten(l);
    desk_done(&d);
}
