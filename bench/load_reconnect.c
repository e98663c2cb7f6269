/* SPDX-License-Identifier: Apache-2.0 */
/* A connection for each request, as EVE's devices make them, one after the other; the next one
 * resumes the session of the last if that is asked for. */
#include <unistd.h>

#include "base/alloc.h"
#include "load.h"

static void handshake(struct load *l, struct connection *c, SSL_SESSION *session)
{
    static const unsigned char alpn[] = "\x08http/1.1";
    c->fd = load_connect(&l->options);
    c->ssl = SSL_new(l->tls);
    (void) SSL_set_alpn_protos(c->ssl, alpn, sizeof(alpn) - 1);
    (void) SSL_set_fd(c->ssl, c->fd);
    if (session)
        (void) SSL_set_session(c->ssl, session);
    if (SSL_connect(c->ssl) != 1)
        load_die("handshake", "failed");
    if (session && !SSL_session_reused(c->ssl))
        load_die("handshake", "the session was not resumed");
}

static void exchange(struct load *l, struct connection *c)
{
    char bytes[16 * 1024];
    size_t n_before = l->n_done;
    load_http1.collect(c);
    if (SSL_write(c->ssl, c->out.p, (int) c->out.n) != (int) c->out.n)
        load_die("write", "failed");
    buf_consume(&c->out, c->out.n);
    while (l->n_done == n_before) {
        int n = SSL_read(c->ssl, bytes, sizeof(bytes));
        if (n <= 0)
            load_die("read", "the server closed the connection");
        l->now_us = load_now_us();
        load_http1.receive(c, str_range(bytes, (size_t) n));
    }
}

static void one_request(struct load *l, SSL_SESSION **session)
{
    struct flight flight = {0};
    struct connection c = {.load = l, .flights = &flight, .n_flights = 1};
    handshake(l, &c, *session);
    load_http1.open(&c);
    exchange(l, &c);
    if (l->options.is_resuming) {
        SSL_SESSION_free(*session);
        *session = SSL_get1_session(c.ssl);
    }
    load_http1.close(&c);
    (void) SSL_shutdown(c.ssl);
    SSL_free(c.ssl);
    (void) close(c.fd);
    buf_done(&c.in);
    buf_done(&c.out);
}

static void run_part(struct load *l, size_t n_wanted)
{
    SSL_SESSION *session = NULL;
    l->n_wanted = n_wanted;
    l->n_sent = l->n_done = l->n_failed = 0;
    l->n_bytes = 0;
    double cpu_s = load_server_cpu_s(l);
    l->start_us = load_now_us();
    while (l->n_done < l->n_wanted)
        one_request(l, &session);
    l->seconds = (double) (load_now_us() - l->start_us) / 1e6;
    l->cpu_s = load_server_cpu_s(l) - cpu_s;
    SSL_SESSION_free(session);
}

void load_reconnect(struct load *l)
{
    l->latency_us = mem_zalloc(MAX(l->options.n_requests, l->options.n_warm_up) * sizeof(uint32_t));
    if (l->options.n_warm_up)
        run_part(l, l->options.n_warm_up);
    run_part(l, l->options.n_requests);
}
