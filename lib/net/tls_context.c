/* SPDX-License-Identifier: Apache-2.0 */
/* One SSL_CTX per loop: OpenSSL's locks and counters in it are then never contended. */
#include <openssl/err.h>

#include "base/alloc.h"
#include "net/tls_internal.h"
#include "pki/openssl.h"

/* AES-128 first: the same strength in practice and the fewest cycles where the CPU has AES; a
 * client that prefers ChaCha20 gets it. TLS 1.2 keeps to what RFC 9113 9.2.2 allows for HTTP/2. */
#define TLS13_SUITES "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384"
#define TLS12_CIPHERS \
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:" \
    "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305:" \
    "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384"

struct tls_context {
    struct tls_config *config;
    SSL_CTX *ctx;
    unsigned generation;
};

/* ---- callbacks ------------------------------------------------------------------------------ */

static bool alpn_offers(struct str offered, struct str protocol)
{
    while (offered.n) {
        size_t n = (unsigned char) offered.p[0];
        struct str name = str_sub(offered, 1, 1 + n);
        if (str_eq(name, protocol))
            return true;
        offered = str_from(offered, 1 + n);
    }
    return false;
}

static int on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_n,
                   const unsigned char *in, unsigned in_n, void *arg)
{
    (void) ssl, (void) arg;
    static const struct str protocols[] = {{"h2", 2}, {"http/1.1", 8}};
    struct str offered = str_range((const char *) in, in_n);
    for (size_t i = 0; i < N_ELEMENTS(protocols); i++) {
        if (!alpn_offers(offered, protocols[i]))
            continue;
        *out = (const unsigned char *) protocols[i].p;
        *out_n = (unsigned char) protocols[i].n;
        return SSL_TLSEXT_ERR_OK;
    }
    /* RFC 7301 3.2 wants the handshake to fail; but who offers HTTP/1.0 is served by HTTP/1.1. */
    return alpn_offers(offered, STR("http/1.0")) ? SSL_TLSEXT_ERR_NOACK
                                                 : SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* A certificate that does not verify is no reason to end the handshake: the verdict stays in the
 * session (SSL_get_verify_result) and the layer above answers in words. */
static int on_verify(X509_STORE_CTX *store_ctx, void *arg)
{
    (void) arg;
    if (X509_verify_cert(store_ctx) != 1 && X509_STORE_CTX_get_error(store_ctx) == X509_V_OK)
        X509_STORE_CTX_set_error(store_ctx, X509_V_ERR_UNSPECIFIED);
    ERR_clear_error();
    return 1;
}

/* Nobody is trusted by a certificate of their own making: the verdict marks it as the layer above's
 * to judge. */
static int on_verify_any(X509_STORE_CTX *store_ctx, void *arg)
{
    (void) arg;
    X509_STORE_CTX_set_error(store_ctx, X509_V_ERR_APPLICATION_VERIFICATION);
    return 1;
}

/* ---- building ------------------------------------------------------------------------------- */

static bool set_protocol(SSL_CTX *ctx)
{
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    /* One read(2) takes header and body of a record, and of the next ones. */
    SSL_CTX_set_read_ahead(ctx, 1);
    SSL_CTX_set_alpn_select_cb(ctx, on_alpn, NULL);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    return SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) &&
           SSL_CTX_set_ciphersuites(ctx, TLS13_SUITES) &&
           SSL_CTX_set_cipher_list(ctx, TLS12_CIPHERS);
}

/* A ticket says "this client was verified": by these authorities. So they are the context a session
 * is bound to, and with others it is not taken up. */
static bool set_session_context(SSL_CTX *ctx, const STACK_OF(X509) * cas)
{
    BUF_AUTO fingerprints = {0};
    for (int i = 0; i < sk_X509_num(cas); i++) {
        unsigned char print[SHA256_BYTES];
        unsigned n = 0;
        if (!X509_digest(sk_X509_value(cas, i), EVP_sha256(), print, &n))
            return false;
        buf_append(&fingerprints, print, n);
    }
    unsigned char id[SHA256_BYTES];
    pki_sha256(buf_str(&fingerprints), id);
    _Static_assert(sizeof(id) <= SSL_MAX_SID_CTX_LENGTH, "fits");
    return SSL_CTX_set_session_id_context(ctx, id, sizeof(id));
}

static bool set_client_cas(SSL_CTX *ctx, const STACK_OF(X509) * cas)
{
    X509_STORE *store = SSL_CTX_get_cert_store(ctx);
    for (int i = 0; i < sk_X509_num(cas); i++)
        if (!X509_STORE_add_cert(store, sk_X509_value(cas, i)) ||
            !SSL_CTX_add_client_CA(ctx, sk_X509_value(cas, i)))
            return false;
    /* What the file names is trusted, be it a root or not; as in Go. */
    X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_cert_verify_callback(ctx, on_verify, NULL);
    return true;
}

static void set_any_client(SSL_CTX *ctx)
{
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_cert_verify_callback(ctx, on_verify_any, NULL);
    tls_tickets_keep_certificate(ctx);
}

SSL_CTX *tls_server_ctx_new(const struct tls_material *m, struct tls_tickets *tickets)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    if (!ctx || !set_protocol(ctx) ||
        !SSL_CTX_use_cert_and_key(ctx, m->leaf, m->key, m->chain, 1) ||
        !set_session_context(ctx, m->client_cas) ||
        (m->client_cas && !set_client_cas(ctx, m->client_cas))) {
        SSL_CTX_free(ctx);
        return NULL;
    }
    if (m->takes_any_client)
        set_any_client(ctx);
    tls_tickets_install(tickets, ctx);
    return ctx;
}

/* ---- one loop's ----------------------------------------------------------------------------- */

struct tls_context *tls_context_new(struct tls_config *c)
{
    struct tls_context *t = NEW(struct tls_context);
    tls_config_ref(c);
    t->config = c;
    /* Behind on purpose: the first accept builds the context. */
    t->generation = atomic_load(&c->generation) - 1;
    return t;
}

void tls_context_free(struct tls_context *t)
{
    if (!t)
        return;
    SSL_CTX_free(t->ctx);
    tls_config_free(t->config);
    mem_free(t);
}

/* The generation is read first: a reload in between only makes the next connection look again. */
static void follow_config(struct tls_context *t)
{
    unsigned generation = atomic_load(&t->config->generation);
    if (generation == t->generation)
        return;
    struct tls_material *m = tls_config_material(t->config);
    SSL_CTX *fresh = tls_server_ctx_new(m, &t->config->tickets);
    tls_material_unref(m);
    if (!fresh) {
        (void) pki_openssl_error(NULL); /* memory; the old one goes on */
        return;
    }
    SSL_CTX_free(t->ctx);
    t->ctx = fresh;
    t->generation = generation;
}

SSL *tls_context_accept(struct tls_context *t, int fd)
{
    follow_config(t);
    SSL *ssl = t->ctx ? SSL_new(t->ctx) : NULL;
    if (!ssl || !SSL_set_fd(ssl, fd)) {
        (void) pki_openssl_error(NULL);
        SSL_free(ssl);
        return NULL;
    }
    SSL_set_accept_state(ssl);
    return ssl;
}
