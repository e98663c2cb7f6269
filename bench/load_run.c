/* SPDX-License-Identifier: Apache-2.0 */
#include "load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"

#define READ_BYTES ((size_t) 64 * 1024)
#define STALL_MS 15000
#define EVENTS_AT_ONCE 256

void load_die(const char *what, const char *why)
{
    fprintf(stderr, "load: %s: %s\n", what, why ? why : "failed");
    exit(1);
}

int64_t load_now_us(void)
{
    return clock_system.monotonic_us(&clock_system);
}

double load_server_cpu_s(const struct load *l)
{
    clockid_t id;
    struct timespec t = {0};
    if (l->options.server_pid &&
        (clock_getcpuclockid(l->options.server_pid, &id) != 0 || clock_gettime(id, &t) != 0))
        load_die("the server's CPU time", strerror(errno));
    return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}

/* ---- requests ----------------------------------------------------------------------------- */

static bool is_due(const struct load *l)
{
    if (l->n_sent >= l->n_wanted)
        return false;
    size_t rate = l->options.updates_per_second;
    return !l->options.n_watchers ||
           load_now_us() >= l->start_us + (int64_t) (l->n_sent * 1000000 / rate);
}

static struct flight *free_flight(struct connection *c)
{
    for (size_t i = 0; i < c->n_flights; i++)
        if (!c->flights[i].request)
            return &c->flights[i];
    return NULL;
}

static const struct request *watch_request(struct load *l)
{
    static struct request r;
    r = (struct request){.method = STR("GET"), .path = str_of(l->options.watch_path)};
    return &r;
}

struct flight *load_start(struct connection *c)
{
    struct load *l = c->load;
    if (c->n_under_way == c->n_flights || (c->is_watcher ? !c->n_watches_wanted : !is_due(l)))
        return NULL;
    struct flight *f = free_flight(c);
    *f = (struct flight){.is_watch = c->is_watcher, .start_us = load_now_us()};
    c->n_under_way++;
    if (c->is_watcher) {
        c->n_watches_wanted--;
        f->request = watch_request(l);
        return f;
    }
    f->index = l->n_sent++;
    f->request = &l->requests[f->index % l->n_requests_given];
    if (l->sent_us)
        l->sent_us[f->index] = f->start_us;
    return f;
}

/* The first answer that is no success is shown: it says what is wrong with the setup. */
static void show_failure(struct load *l, const struct flight *f, struct str body)
{
    if (l->n_failed == 0)
        fprintf(stderr, "load: %.*s %.*s: %d %.*s\n", STR_ARG(f->request->method),
                STR_ARG(f->request->path), f->status, STR_ARG(str_sub(body, 0, 2000)));
}

static bool is_failure(const struct flight *f)
{
    return f->status >= 300 && f->status != 304;
}

static void count_events(struct load *l, struct flight *f, struct str bytes)
{
    const char *end = bytes.p + bytes.n;
    for (const char *p = bytes.p; (p = memchr(p, '\n', (size_t) (end - p))); p++) {
        size_t k = f->n_events++;
        if (k >= l->n_wanted)
            load_die("watch", "more events than updates");
        l->event_us[l->n_events++] = (uint32_t) (l->now_us - l->sent_us[k]);
    }
}

void load_body(struct connection *c, struct flight *f, struct str bytes)
{
    struct load *l = c->load;
    l->n_bytes += bytes.n;
    if (is_failure(f))
        show_failure(l, f, bytes);
    else if (f->is_watch)
        count_events(l, f, bytes);
    else if (l->answers)
        buf_append_str(&l->answers[f->index], bytes);
}

void load_finish(struct connection *c, struct flight *f)
{
    struct load *l = c->load;
    if (f->is_watch)
        load_die("watch", "ended early");
    l->n_failed += is_failure(f);
    l->latency_us[f->index] = (uint32_t) (l->now_us - f->start_us);
    l->n_done++;
    f->request = NULL;
    c->n_under_way--;
}

/* ---- connections -------------------------------------------------------------------------- */

int load_connect(const struct load_options *o)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t) o->port)};
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || inet_pton(AF_INET, o->address, &a.sin_addr) != 1 ||
        connect(fd, (struct sockaddr *) &a, sizeof(a)) < 0)
        load_die("connect", strerror(errno));
    (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return fd;
}

static void open_connection(struct load *l, struct connection *c)
{
    unsigned char alpn[16];
    c->load = l;
    c->protocol = l->options.is_http1 ? &load_http1 : &load_http2;
    c->fd = load_connect(&l->options);
    c->ssl = SSL_new(l->tls);
    alpn[0] = (unsigned char) strlen(c->protocol->name);
    memcpy(alpn + 1, c->protocol->name, alpn[0]);
    (void) SSL_set_alpn_protos(c->ssl, alpn, alpn[0] + 1U);
    (void) SSL_set_fd(c->ssl, c->fd);
    if (SSL_connect(c->ssl) != 1)
        load_die("handshake", "failed");
    (void) fcntl(c->fd, F_SETFL, O_NONBLOCK);
    c->flights = mem_zalloc(c->n_flights * sizeof(struct flight));
    c->protocol->open(c);
    struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c};
    if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, c->fd, &e) < 0)
        load_die("epoll_ctl", strerror(errno));
}

static void close_connection(struct connection *c)
{
    c->protocol->close(c);
    SSL_free(c->ssl);
    (void) close(c->fd);
    buf_done(&c->in);
    buf_done(&c->out);
    mem_free(c->flights);
}

static void read_all(struct connection *c)
{
    static char bytes[READ_BYTES];
    int n;
    while ((n = SSL_read(c->ssl, bytes, (int) sizeof(bytes))) > 0) {
        c->load->now_us = load_now_us();
        c->protocol->receive(c, str_range(bytes, (size_t) n));
    }
    if (SSL_get_error(c->ssl, n) != SSL_ERROR_WANT_READ)
        load_die("read", "the server closed a connection");
}

static void write_all(struct connection *c)
{
    c->protocol->collect(c);
    while (c->out.n) {
        int n = SSL_write(c->ssl, c->out.p, (int) c->out.n);
        if (n <= 0 && SSL_get_error(c->ssl, n) != SSL_ERROR_WANT_WRITE)
            load_die("write", "the server closed a connection");
        if (n <= 0)
            return;
        buf_consume(&c->out, (size_t) n);
        if (!c->out.n)
            c->protocol->collect(c);
    }
}

/* ---- the loop ----------------------------------------------------------------------------- */

static bool is_over(const struct load *l)
{
    if (l->options.n_watchers && l->n_wanted)
        return l->n_done >= l->n_wanted && l->n_events >= l->n_wanted * l->options.n_watchers;
    return l->n_wanted ? l->n_done >= l->n_wanted : l->n_watches_open >= l->options.n_watchers;
}

/* Paced writes are due by the clock, not by an event. */
static int wait_ms(const struct load *l)
{
    return l->options.n_watchers && l->n_wanted && l->n_sent < l->n_wanted ? 1 : STALL_MS;
}

static void turn(struct load *l)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    int timeout = wait_ms(l), n = epoll_wait(l->epoll, events, EVENTS_AT_ONCE, timeout);
    if (n == 0 && timeout == STALL_MS)
        load_die("stalled", "nothing was received for a long time");
    for (int i = 0; i < n; i++) {
        struct connection *c = events[i].data.ptr;
        if (events[i].events & EPOLLIN)
            read_all(c);
        write_all(c);
    }
    if (timeout != STALL_MS)
        write_all(&l->connections[l->n_connections - 1]);
}

static void run_part(struct load *l, size_t n_wanted)
{
    l->n_wanted = n_wanted;
    l->n_sent = l->n_done = l->n_failed = 0;
    l->n_bytes = 0;
    double cpu_s = load_server_cpu_s(l);
    l->start_us = load_now_us();
    for (size_t i = 0; i < l->n_connections; i++)
        write_all(&l->connections[i]);
    while (!is_over(l))
        turn(l);
    l->seconds = (double) (load_now_us() - l->start_us) / 1e6;
    l->cpu_s = load_server_cpu_s(l) - cpu_s;
}

/* Watches are spread evenly; the last connection writes. */
static void lay_out(struct load *l)
{
    struct load_options *o = &l->options;
    l->n_connections = o->n_connections + (o->n_watchers ? 1 : 0);
    l->connections = mem_zalloc(l->n_connections * sizeof(struct connection));
    for (size_t i = 0; i < l->n_connections; i++)
        l->connections[i].n_flights = o->is_http1 ? 1 : o->n_streams;
    for (size_t i = 0; o->n_watchers && i < o->n_connections; i++) {
        struct connection *c = &l->connections[i];
        c->is_watcher = true;
        c->n_flights = o->n_watchers / o->n_connections + (i < o->n_watchers % o->n_connections);
        c->n_watches_wanted = c->n_flights;
    }
}

void load_run(struct load *l)
{
    const struct load_options *o = &l->options;
    lay_out(l);
    l->latency_us = mem_zalloc(MAX(o->n_requests, o->n_warm_up) * sizeof(uint32_t));
    if (o->n_watchers) {
        l->sent_us = mem_zalloc(o->n_requests * sizeof(int64_t));
        l->event_us = mem_zalloc(o->n_requests * o->n_watchers * sizeof(uint32_t));
    }
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    for (size_t i = 0; i < l->n_connections; i++)
        open_connection(l, &l->connections[i]);
    if (o->n_warm_up || o->n_watchers)
        run_part(l, o->n_watchers ? 0 : o->n_warm_up);
    if (o->answers)
        l->answers = mem_zalloc(o->n_requests * sizeof(struct buf));
    run_part(l, o->n_requests);
}

void load_done(struct load *l)
{
    for (size_t i = 0; l->answers && i < l->options.n_requests; i++)
        buf_done(&l->answers[i]);
    mem_free(l->answers);
    for (size_t i = 0; i < l->n_connections; i++)
        close_connection(&l->connections[i]);
    (void) close(l->epoll);
    mem_free(l->connections);
    mem_free(l->latency_us);
    mem_free(l->sent_us);
    mem_free(l->event_us);
    SSL_CTX_free(l->tls);
}
