/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "pki/openssl.h"

/* Of the test's own doing: no need for more than to stop here. */
#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "# %s:%d: %s\n", __FILE__, __LINE__, #condition); \
            abort(); \
        } \
    } while (0)

/* ---- authority and files -------------------------------------------------------------------- */

static struct identity issue(const struct pki_cert_options *o, const struct identity *ca)
{
    struct identity i = {.key = pki_key_new()};
    i.cert = pki_cert_new(o, i.key, ca ? ca->cert : NULL, ca ? ca->key : NULL);
    CHECK(i.cert);
    return i;
}

struct identity identity_ca(const char *name)
{
    return issue(
        &(struct pki_cert_options){.common_name = str_of(name), .is_ca = true, .valid_days = 2},
        NULL);
}

struct identity identity_client(const struct identity *ca, const char *name, const char *group,
                                int64_t valid_days)
{
    struct str organization = str_of(group);
    return issue(&(struct pki_cert_options){.common_name = str_of(name),
                                            .organizations = &organization,
                                            .n_organizations = group ? 1 : 0,
                                            .for_client = true,
                                            .valid_days = valid_days},
                 ca);
}

struct identity identity_server(const struct identity *ca, const char *name)
{
    const struct str names[] = {STR("localhost"), STR("127.0.0.1")};
    return issue(&(struct pki_cert_options){.common_name = str_of(name),
                                            .names = names,
                                            .n_names = 2,
                                            .for_server = true,
                                            .valid_days = 1},
                 ca);
}

void identity_done(struct identity *i)
{
    pki_cert_free(i->cert);
    pki_key_free(i->key);
    *i = (struct identity){0};
}

void server_install(struct server *s, const struct identity *i, const struct identity *client_ca)
{
    CHECK(pki_cert_save(i->cert, s->certificate_path) == 0);
    CHECK(pki_key_save(i->key, s->key_path) == 0);
    CHECK(pki_cert_save(client_ca->cert, s->ca_path) == 0);
}

static void make_files(struct server *s)
{
    snprintf(s->directory, sizeof(s->directory), "/tmp/seth-net-XXXXXX");
    CHECK(mkdtemp(s->directory));
    snprintf(s->certificate_path, sizeof(s->certificate_path), "%s/tls.crt", s->directory);
    snprintf(s->key_path, sizeof(s->key_path), "%s/tls.key", s->directory);
    snprintf(s->ca_path, sizeof(s->ca_path), "%s/ca.crt", s->directory);
    s->ca = identity_ca("test-ca");
    s->server_identity = identity_server(&s->ca, "first");
    server_install(s, &s->server_identity, &s->ca);
}

static void remove_files(struct server *s)
{
    CHECK(unlink(s->certificate_path) == 0);
    CHECK(unlink(s->key_path) == 0);
    CHECK(unlink(s->ca_path) == 0);
    CHECK(rmdir(s->directory) == 0);
    identity_done(&s->ca);
    identity_done(&s->server_identity);
}

/* ---- events of a connection ----------------------------------------------------------------- */

static void lock(struct server *s)
{
    pthread_mutex_lock(&s->lock);
}

static void unlock_changed(struct server *s)
{
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void copy_text(char *to, size_t size, struct str from)
{
    snprintf(to, size, "%.*s", STR_ARG(from));
}

static void on_open(void *ctx, struct stream *stream, struct str alpn)
{
    struct connection *c = ctx;
    const struct stream_peer *peer = stream_peer(stream);
    lock(c->server);
    c->is_open = true;
    copy_text(c->alpn, sizeof(c->alpn), alpn);
    copy_text(c->address, sizeof(c->address), peer->address);
    copy_text(c->common_name, sizeof(c->common_name), peer->common_name);
    c->n_organizations = peer->n_organizations;
    if (peer->n_organizations)
        copy_text(c->organization, sizeof(c->organization), peer->organizations[0]);
    c->has_certificate = peer->has_certificate;
    c->certificate_rejected = peer->certificate_rejected;
    c->n_certificate_bytes = peer->certificate.n;
    pki_sha256(peer->certificate, c->certificate_print);
    unlock_changed(c->server);
}

static void answer_and_close(struct connection *c, size_t n)
{
    char *answer = mem_alloc(n);
    fill_pattern(answer, n);
    stream_pause_reading(c->stream, true);
    connection_write(c, answer, n);
    connection_close(c, true);
    mem_free(answer);
}

static void on_bytes(void *ctx, struct str bytes)
{
    struct connection *c = ctx;
    const struct server_options *o = &c->server->options;
    lock(c->server);
    buf_append_str(&c->input, bytes);
    unlock_changed(c->server);
    if (o->echoes)
        connection_write(c, bytes.p, bytes.n);
    if (o->pauses_at_input)
        stream_pause_reading(c->stream, true);
    if (o->answers_and_closes_bytes)
        answer_and_close(c, o->answers_and_closes_bytes);
}

static void on_drained(void *ctx)
{
    struct connection *c = ctx;
    lock(c->server);
    c->n_drained++;
    unlock_changed(c->server);
}

static void on_closed(void *ctx, int error)
{
    struct connection *c = ctx;
    lock(c->server);
    c->n_closed++;
    c->error = error;
    c->stream = NULL;
    c->closed_inside_call = c->is_in_call;
    unlock_changed(c->server);
}

static const struct stream_events events = {on_open, on_bytes, on_drained, on_closed};

static void *on_accept(void *arg, struct stream *stream, const struct stream_events **ret_events)
{
    struct server *s = arg;
    lock(s);
    if (s->options.refuses) {
        s->n_refused++;
        unlock_changed(s);
        return NULL;
    }
    CHECK(s->n_connections < FIXTURE_MAX_CONNECTIONS);
    struct connection *c = &s->connections[s->n_connections++];
    c->server = s;
    c->stream = stream;
    c->loop = stream_loop(stream);
    unlock_changed(s);
    if (s->options.greeting)
        connection_write(c, s->options.greeting, strlen(s->options.greeting));
    if (s->options.starts_paused)
        stream_pause_reading(stream, true);
    *ret_events = &events;
    return c;
}

void connection_write(struct connection *c, const void *p, size_t n)
{
    c->is_in_call = true;
    stream_write(c->stream, p, n);
    c->is_in_call = false;
}

void connection_close(struct connection *c, bool after_flush)
{
    c->is_in_call = true;
    stream_close(c->stream, after_flush);
    c->is_in_call = false;
}

/* ---- asking from the test's thread ---------------------------------------------------------- */

struct call {
    struct server *server;
    void (*fn)(void *arg);
    void *arg;
    bool is_done;
};

static void run_call(void *arg)
{
    struct call *call = arg;
    call->fn(call->arg);
    lock(call->server);
    call->is_done = true;
    unlock_changed(call->server);
}

static bool call_is_done(void *arg)
{
    return ((struct call *) arg)->is_done;
}

void server_call(struct server *s, struct loop *l, void (*fn)(void *arg), void *arg)
{
    struct call call = {s, fn, arg, false};
    loop_post(l, run_call, &call);
    server_wait(s, call_is_done, &call);
}

void server_wait(struct server *s, bool (*holds)(void *arg), void *arg)
{
    pthread_mutex_lock(&s->lock);
    while (!holds(arg))
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

struct pause {
    struct connection *connection;
    bool is_paused;
};

static void run_pause(void *arg)
{
    struct pause *p = arg;
    stream_pause_reading(p->connection->stream, p->is_paused);
}

void connection_pause(struct connection *c, bool is_paused)
{
    struct pause p = {c, is_paused};
    server_call(c->server, c->loop, run_pause, &p);
}

struct pending {
    struct connection *connection;
    size_t n;
};

static void run_pending(void *arg)
{
    struct pending *p = arg;
    p->n = stream_pending(p->connection->stream);
}

size_t connection_pending(struct connection *c)
{
    struct pending p = {c, 0};
    server_call(c->server, c->loop, run_pending, &p);
    return p.n;
}

struct connection_counts connection_counts(struct connection *c)
{
    pthread_mutex_lock(&c->server->lock);
    struct connection_counts counts = {c->input.n, c->n_drained, c->n_closed};
    pthread_mutex_unlock(&c->server->lock);
    return counts;
}

struct awaited {
    struct server *server;
    size_t n;
    struct connection *connection;
};

static bool connection_is_there(void *arg)
{
    struct awaited *a = arg;
    struct connection *c = &a->server->connections[a->n];
    return a->server->n_connections > a->n && (c->is_open || c->n_closed);
}

struct connection *server_connection(struct server *s, size_t i)
{
    server_wait(s, connection_is_there, &(struct awaited){.server = s, .n = i});
    return &s->connections[i];
}

static bool is_closed(void *arg)
{
    return ((struct connection *) arg)->n_closed > 0;
}

void connection_wait_closed(struct connection *c)
{
    server_wait(c->server, is_closed, c);
}

static bool has_input(void *arg)
{
    struct awaited *a = arg;
    return a->connection->input.n >= a->n;
}

void connection_wait_input(struct connection *c, size_t n_bytes)
{
    server_wait(c->server, has_input, &(struct awaited){.connection = c, .n = n_bytes});
}

static bool has_drained(void *arg)
{
    struct awaited *a = arg;
    return a->connection->n_drained >= (int) a->n;
}

void connection_wait_drained(struct connection *c, int n_drained)
{
    server_wait(c->server, has_drained,
                &(struct awaited){.connection = c, .n = (size_t) n_drained});
}

/* ---- life of the server --------------------------------------------------------------------- */

static void *run_loop(void *arg)
{
    loop_run(arg);
    return NULL;
}

static bool listen_at(struct server *s, const struct server_options *o)
{
    struct listener_options lo = {
        .address = o->address ? o->address : "127.0.0.1",
        .tls = s->tls,
        .loops = s->loops,
        .n_loops = o->n_loops,
        .max_connections = o->max_connections,
        .max_connections_per_address = o->max_connections_per_address,
        .max_handshakes = o->max_handshakes,
        .handshake_timeout_ms = o->handshake_timeout_ms ? o->handshake_timeout_ms : 60 * 1000,
        .on_accept = on_accept,
        .arg = s,
    };
    char *error = NULL;
    if (listener_new(&lo, &s->listener, &error) < 0) {
        mem_free(error);
        return false;
    }
    s->port = listener_port(s->listener);
    return true;
}

bool server_start(struct server *s, const struct server_options *o)
{
    memset(s, 0, sizeof(*s));
    s->options = *o;
    s->options.n_loops = MAX(o->n_loops, (size_t) 1);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    make_files(s);
    struct tls_files files = {s->certificate_path, s->key_path,
                              o->has_no_client_ca || o->takes_any_client ? NULL : s->ca_path,
                              o->takes_any_client};
    char *error = NULL;
    CHECK(tls_config_new(&files, &s->tls, &error) == 0);
    for (size_t i = 0; i < s->options.n_loops; i++)
        s->loops[i] = loop_new();
    bool ok = listen_at(s, &s->options);
    for (size_t i = 0; i < s->options.n_loops; i++)
        CHECK(pthread_create(&s->threads[i], NULL, run_loop, s->loops[i]) == 0);
    if (!ok)
        server_stop(s);
    return ok;
}

static void close_listener(void *arg)
{
    listener_close(arg);
}

static void free_listener(void *arg)
{
    listener_free(arg);
}

static void close_connection(void *arg)
{
    struct connection *c = arg;
    if (c->stream)
        stream_close(c->stream, false);
}

static void do_nothing(void *arg)
{
    (void) arg;
}

/* Listener first, so that no connection comes after the last was closed; a socket on its way to
 * another loop was posted before our call there. */
static void close_everything(struct server *s)
{
    server_call(s, s->loops[0], close_listener, s->listener);
    for (size_t i = 0; i < s->options.n_loops; i++)
        server_call(s, s->loops[i], do_nothing, NULL);
    for (size_t i = 0; i < s->n_connections; i++)
        server_call(s, s->connections[i].loop, close_connection, &s->connections[i]);
    for (size_t i = 0; i < s->n_connections; i++)
        connection_wait_closed(&s->connections[i]);
    server_call(s, s->loops[0], free_listener, s->listener);
}

void server_stop(struct server *s)
{
    if (s->listener)
        close_everything(s);
    for (size_t i = 0; i < s->options.n_loops; i++) {
        loop_stop(s->loops[i]);
        pthread_join(s->threads[i], NULL);
    }
    for (size_t i = 0; i < s->options.n_loops; i++)
        loop_free(s->loops[i]);
    for (size_t i = 0; i < s->n_connections; i++) {
        CHECK(s->connections[i].n_closed == 1);
        CHECK(!s->connections[i].closed_inside_call);
        buf_done(&s->connections[i].input);
    }
    tls_config_free(s->tls);
    remove_files(s);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->changed);
}

/* ---- client --------------------------------------------------------------------------------- */

static int on_new_session(SSL *ssl, SSL_SESSION *session)
{
    struct client *c = SSL_get_app_data(ssl);
    SSL_SESSION_free(c->session);
    c->session = session;
    return 1;
}

static X509 *x509_of(const struct pki_cert *cert)
{
    ARENA_AUTO a = arena_new();
    struct str pem = pki_cert_pem(a, cert);
    BIO_AUTO *bio = BIO_new_mem_buf(pem.p, (int) pem.n);
    return PEM_read_bio_X509(bio, NULL, NULL, NULL);
}

static EVP_PKEY *pkey_of(const struct pki_key *key)
{
    ARENA_AUTO a = arena_new();
    struct str pem = pki_key_pem(a, key);
    BIO_AUTO *bio = BIO_new_mem_buf(pem.p, (int) pem.n);
    return PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
}

static void use_identity(SSL_CTX *ctx, const struct identity *i)
{
    X509_AUTO *x509 = x509_of(i->cert);
    EVP_PKEY_AUTO *pkey = pkey_of(i->key);
    CHECK(SSL_CTX_use_cert_and_key(ctx, x509, pkey, NULL, 1) == 1);
}

int client_connect_tcp(int port, const struct client_options *o)
{
    const char *address = o->address ? o->address : "127.0.0.1";
    bool is_v6 = strchr(address, ':');
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t) port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t) port)};
    CHECK(inet_pton(is_v6 ? AF_INET6 : AF_INET, address,
                    is_v6 ? (void *) &v6.sin6_addr : (void *) &v4.sin_addr) == 1);
    int fd = socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    if (o->receive_buffer_bytes)
        CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &o->receive_buffer_bytes,
                         sizeof(o->receive_buffer_bytes)) == 0);
    const struct sockaddr *to = is_v6 ? (struct sockaddr *) &v6 : (struct sockaddr *) &v4;
    if (connect(fd, to, is_v6 ? sizeof(v6) : sizeof(v4)) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void set_cork(int fd, int is_corked)
{
    CHECK(setsockopt(fd, IPPROTO_TCP, TCP_CORK, &is_corked, sizeof(is_corked)) == 0);
}

void client_uncork(struct client *c)
{
    set_cork(c->fd, 0);
}

bool client_handshake(struct client *c, int fd, const struct client_options *o)
{
    *c = (struct client){.fd = fd, .ctx = SSL_CTX_new(TLS_client_method())};
    SSL_CTX_set_session_cache_mode(c->ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(c->ctx, on_new_session);
    if (o->identity)
        use_identity(c->ctx, o->identity);
    if (o->max_version)
        SSL_CTX_set_max_proto_version(c->ctx, o->max_version);
    if (o->max_version && o->max_version < TLS1_2_VERSION) {
        /* Else the client itself would not even try. */
        SSL_CTX_set_security_level(c->ctx, 0);
        SSL_CTX_set_min_proto_version(c->ctx, o->max_version);
    }
    c->ssl = SSL_new(c->ctx);
    SSL_set_app_data(c->ssl, c);
    if (o->alpn.n)
        CHECK(SSL_set_alpn_protos(c->ssl, (const unsigned char *) o->alpn.p,
                                  (unsigned) o->alpn.n) == 0);
    if (o->session)
        CHECK(SSL_set_session(c->ssl, o->session) == 1);
    CHECK(SSL_set_fd(c->ssl, fd) == 1);
    if (o->is_corked)
        set_cork(fd, 1);
    return SSL_connect(c->ssl) == 1;
}

bool client_open(struct client *c, int port, const struct client_options *o)
{
    int fd = client_connect_tcp(port, o);
    CHECK(fd >= 0);
    return client_handshake(c, fd, o);
}

void client_send(struct client *c, const void *p, size_t n)
{
    size_t sent = 0;
    CHECK(SSL_write_ex(c->ssl, p, n, &sent) == 1 && sent == n);
}

size_t client_receive(struct client *c, void *p, size_t n)
{
    size_t at = 0;
    while (at < n) {
        size_t got = 0;
        if (SSL_read_ex(c->ssl, (char *) p + at, n - at, &got) != 1)
            break;
        at += got;
    }
    return at;
}

int client_read_end(struct client *c)
{
    char byte = 0;
    int r = SSL_read(c->ssl, &byte, 1);
    return SSL_get_error(c->ssl, r);
}

void client_server_name(struct client *c, char *name, size_t size)
{
    X509 *x509 = SSL_get0_peer_certificate(c->ssl);
    CHECK(x509);
    ARENA_AUTO a = arena_new();
    struct pki_cert *cert = pki_cert_of_x509(x509);
    copy_text(name, size, pki_cert_common_name(a, cert));
    pki_cert_free(cert);
}

void client_abort(struct client *c)
{
    SSL_free(c->ssl);
    SSL_CTX_free(c->ctx);
    SSL_SESSION_free(c->session);
    close(c->fd);
}

void client_close(struct client *c)
{
    (void) SSL_shutdown(c->ssl);
    /* A ticket left unread would make the close a reset. */
    char ignored[4096];
    while (recv(c->fd, ignored, sizeof(ignored), MSG_DONTWAIT) > 0)
        ;
    client_abort(c);
}

void fill_pattern(char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (char) ((i >> 8) ^ i);
}
