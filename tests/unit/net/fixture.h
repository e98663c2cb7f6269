/* SPDX-License-Identifier: Apache-2.0 */
/* A TLS server on loops of its own threads that records what its connections see, and a blocking
 * OpenSSL client. The test's thread drives the client and asks the server by server_call(); only it
 * asserts. */
#pragma once

#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "net/stream.h"
#include "pki/pki.h"

#define FIXTURE_MAX_CONNECTIONS 64
#define FIXTURE_MAX_LOOPS 2

/* ---- authority and files -------------------------------------------------------------------- */

struct identity {
    struct pki_key *key;
    struct pki_cert *cert;
};

struct identity identity_ca(const char *name);
/* valid_days negative: expired. */
struct identity identity_client(const struct identity *ca, const char *name, const char *group,
                                int64_t valid_days);
struct identity identity_server(const struct identity *ca, const char *name);
void identity_done(struct identity *i);

/* ---- server --------------------------------------------------------------------------------- */

struct server;

struct connection {
    struct server *server;
    struct stream *stream; /* for the connection's loop; NULL when closed */
    struct loop *loop;
    /* Under the server's lock: */
    bool is_open;
    char alpn[16];
    char address[64], common_name[64], organization[64];
    bool has_certificate, certificate_rejected;
    unsigned char certificate_print[32]; /* SHA-256, where any is taken */
    size_t n_certificate_bytes;
    size_t n_organizations;
    struct buf input;
    int n_drained, n_closed, error;
    bool closed_inside_call;
    bool is_in_call;
};

struct server_options {
    const char *address; /* NULL: 127.0.0.1 */
    size_t n_loops;      /* 0: 1 */
    size_t max_connections, max_connections_per_address, max_handshakes;
    int64_t handshake_timeout_ms; /* 0: a minute */
    bool has_no_client_ca, takes_any_client;
    bool refuses;         /* on_accept returns NULL */
    const char *greeting; /* written in on_accept */
    bool echoes;
    bool starts_paused;   /* from on_accept on */
    bool pauses_at_input; /* each on_bytes pauses */
    /* Answers the first input with that many bytes and closes after flushing. */
    size_t answers_and_closes_bytes;
};

struct server {
    struct server_options options;
    char directory[64], certificate_path[96], key_path[96], ca_path[96];
    struct identity ca, server_identity;
    struct tls_config *tls;
    struct loop *loops[FIXTURE_MAX_LOOPS];
    pthread_t threads[FIXTURE_MAX_LOOPS];
    struct listener *listener;
    int port;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct connection connections[FIXTURE_MAX_CONNECTIONS];
    atomic_size_t n_connections; /* ever accepted */
    atomic_int n_refused;
};

/* false: the machine has no such address. */
bool server_start(struct server *s, const struct server_options *o);
void server_stop(struct server *s);
/* Writes the identity to the server's files. */
void server_install(struct server *s, const struct identity *i, const struct identity *client_ca);

/* Runs fn(arg) on the loop and waits for it. */
void server_call(struct server *s, struct loop *l, void (*fn)(void *arg), void *arg);
/* On its connection's loop; noting that calls are under way, so that an on_closed inside shows. */
void connection_write(struct connection *c, const void *p, size_t n);
void connection_close(struct connection *c, bool after_flush);
void connection_pause(struct connection *c, bool is_paused);
size_t connection_pending(struct connection *c);
/* While the server goes on; the connection's own fields are for when it has come to rest. */
struct connection_counts {
    size_t n_input;
    int n_drained, n_closed;
};
struct connection_counts connection_counts(struct connection *c);

/* Waits until holds(arg), asked under the lock whenever something changed. */
void server_wait(struct server *s, bool (*holds)(void *arg), void *arg);
/* The i-th accepted connection, once there and open (or closed). */
struct connection *server_connection(struct server *s, size_t i);
void connection_wait_closed(struct connection *c);
void connection_wait_input(struct connection *c, size_t n_bytes);
void connection_wait_drained(struct connection *c, int n_drained);

/* ---- client --------------------------------------------------------------------------------- */

struct client_options {
    const char *address; /* NULL: 127.0.0.1 */
    const struct identity *identity;
    int max_version; /* 0: newest */
    struct str alpn; /* wire format */
    SSL_SESSION *session;
    int receive_buffer_bytes;
    bool is_corked; /* nothing leaves by itself until client_uncork() */
};

struct client {
    SSL_CTX *ctx;
    SSL *ssl;
    int fd;
    SSL_SESSION *session; /* the newest ticket */
};

/* The TCP connection alone; -1 when refused. */
int client_connect_tcp(int port, const struct client_options *o);
/* Over a connected socket; false when the handshake fails. c is to be closed in either case. */
bool client_handshake(struct client *c, int fd, const struct client_options *o);
bool client_open(struct client *c, int port, const struct client_options *o);
void client_send(struct client *c, const void *p, size_t n);
void client_uncork(struct client *c);
/* Exactly n bytes; returns how many came before the end. */
size_t client_receive(struct client *c, void *p, size_t n);
/* SSL_ERROR_... of reading once more: SSL_ERROR_ZERO_RETURN after the server's close_notify. */
int client_read_end(struct client *c);
/* Common name of the server's certificate. */
void client_server_name(struct client *c, char *name, size_t size);
void client_close(struct client *c);
/* Without close_notify. */
void client_abort(struct client *c);
/* Repeating bytes that tell their position. */
void fill_pattern(char *p, size_t n);
