/* SPDX-License-Identifier: Apache-2.0 */
/* A load generator over TLS with a client certificate: connections on one thread, each with some
 * requests under way, over HTTP/1.1 or HTTP/2; or many watches that receive what one connection
 * writes. Cheap, so that the server is what is measured. */
#pragma once

#include <openssl/ssl.h>

#include "base/buf.h"
#include "load_hpack.h"

struct request {
    struct str method, path, content_type, body;
};

struct load_options {
    const char *address, *certificate, *key, *watch_path, *authorization, *answers;
    int port, server_pid;
    size_t n_connections, n_streams, n_requests, n_warm_up, n_watchers, updates_per_second;
    bool is_http1;
    bool is_reconnecting, is_resuming; /* HTTP/1.1, a connection for each request */
};

/* One request under way, or one watch. */
struct flight {
    size_t index;
    int64_t start_us;
    int32_t stream;
    int status;
    bool is_watch, has_answer;
    size_t n_events, n_sent;
    const struct request *request;
};

struct connection;

struct protocol {
    const char *name; /* in ALPN */
    void (*open)(struct connection *c);
    void (*close)(struct connection *c);
    void (*receive)(struct connection *c, struct str bytes);
    /* Starts what may start and appends what is to be sent to c->out. */
    void (*collect)(struct connection *c);
};

struct connection {
    struct load *load;
    int fd;
    SSL *ssl;
    const struct protocol *protocol;
    void *session;
    struct hpack hpack;
    struct buf in, out;
    struct flight *flights;
    size_t n_flights, n_under_way, n_watches_wanted;
    bool is_watcher;
};

struct load {
    struct load_options options;
    SSL_CTX *tls;
    int epoll;
    struct connection *connections;
    size_t n_connections;
    struct request *requests; /* sent in turn, again from the first when fewer than n_requests */
    size_t n_requests_given;
    size_t n_wanted, n_sent, n_done, n_failed;
    uint64_t n_bytes;
    int64_t start_us, now_us; /* now_us: when the bytes being looked at were read */
    uint32_t *latency_us;
    struct buf *answers; /* by request; NULL: nobody wants them */
    size_t n_watches_open, n_events;
    int64_t *sent_us;
    uint32_t *event_us;
    double cpu_s, seconds;
};

extern const struct protocol load_http1, load_http2;

void load_die(const char *what, const char *why);
int64_t load_now_us(void);
/* Connects all, runs the warm-up, then the measured part. */
void load_run(struct load *l);
/* The same, with a connection for each request. */
void load_reconnect(struct load *l);
void load_done(struct load *l);
int load_connect(const struct load_options *o);
/* The CPU time of the server, to the nanosecond. */
double load_server_cpu_s(const struct load *l);

/* For protocols: the next request if one is due, else NULL with nothing started. */
struct flight *load_start(struct connection *c);
void load_finish(struct connection *c, struct flight *f);
/* Bytes of an answer. */
void load_body(struct connection *c, struct flight *f, struct str bytes);
