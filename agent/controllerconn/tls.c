/* SPDX-License-Identifier: Apache-2.0 */
#include <curl/curl.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "controllerconn/ports.h"
#include "controllerconn/tls_internal.h"
#include "pki/openssl.h"

#define MAX_PEM_BYTES ((size_t) 1024 * 1024)

/* What pillar offers below TLS 1.3. */
#define TLS12_SUITES "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES128-GCM-SHA256"
/* A device talks to one controller, at times to another. */
#define MAX_SESSIONS 4

struct uplink_trust {
    X509_STORE *store;
    SSL_CTX *ctx; /* of connections that we carry: making one is a fifth of a request's work */
    unsigned n_refs;
};

struct session {
    char *host;
    unsigned port;
    SSL_SESSION *last;
};

struct uplink_tls {
    struct uplink_trust *trust;
    X509 *cert;
    STACK_OF(X509) * chain;
    EVP_PKEY *key;
    CURLSH *share;
    struct session sessions[MAX_SESSIONS]; /* the newest first */
    unsigned n_refs;
};

/* ---- trust --------------------------------------------------------------------------------- */

static int add_roots(X509_STORE *store, struct str pem)
{
    if (pem.n == 0 || pem.n > MAX_PEM_BYTES)
        return -EINVAL;
    BIO_AUTO *bio = BIO_new_mem_buf(pem.p, (int) pem.n);
    size_t n = 0;
    for (;; n++) {
        X509_AUTO *cert = PEM_read_bio_X509(bio, NULL, pki_no_passphrase, NULL);
        if (!cert)
            break;
        if (X509_STORE_add_cert(store, cert) != 1)
            return pki_openssl_error(NULL);
    }
    /* The end of the text is told as "no start line"; anything else is damage. */
    const bool is_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    ERR_clear_error();
    return n > 0 && is_end ? 0 : -EINVAL;
}

/* Whether a directory has what c_rehash makes: files named by the hash of a subject. */
static bool is_hashed(const char *path)
{
    DIR *d = opendir(path);
    bool is_found = false;
    for (const struct dirent *e; d && !is_found && (e = readdir(d));)
        is_found = strlen(e->d_name) == 10 && strspn(e->d_name, "0123456789abcdef") == 8 &&
                   str_ends_with(str_of(e->d_name), STR(".0"));
    if (d)
        (void) closedir(d);
    return is_found;
}

/* One file with all anchors of a machine costs megabytes for the one or two that are needed; of a
 * hashed directory OpenSSL reads those alone. */
static int add_system(X509_STORE *store)
{
    const char *named = getenv(X509_get_default_cert_dir_env());
    const char *directory = named ? named : X509_get_default_cert_dir();
    if (getenv(X509_get_default_cert_file_env()) || !is_hashed(directory))
        return X509_STORE_set_default_paths(store) == 1 ? 0 : pki_openssl_error(NULL);
    X509_LOOKUP *lookup = X509_STORE_add_lookup(store, X509_LOOKUP_hash_dir());
    return lookup && X509_LOOKUP_add_dir(lookup, directory, X509_FILETYPE_PEM) == 1
               ? 0
               : pki_openssl_error(NULL);
}

static int on_session(SSL *ssl, SSL_SESSION *session);

static SSL_CTX *context_new(X509_STORE *store)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    if (!ctx || SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1 ||
        SSL_CTX_set_cipher_list(ctx, TLS12_SUITES) != 1) {
        SSL_CTX_free(ctx);
        return NULL;
    }
    SSL_CTX_set1_cert_store(ctx, store);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(ctx, 1);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(ctx, on_session);
    return ctx;
}

int uplink_trust_new(const struct uplink_trust_options *o, struct uplink_trust **ret_trust,
                     size_t *ret_which)
{
    CLEANUP(uplink_trust_unrefp) struct uplink_trust *t = NEW(struct uplink_trust);
    t->n_refs = 1;
    t->store = X509_STORE_new();
    t->ctx = t->store ? context_new(t->store) : NULL;
    if (!t->ctx)
        return pki_openssl_error(NULL);
    const int r = o->with_system ? add_system(t->store) : 0;
    if (r < 0)
        return r;
    for (size_t i = 0; i < o->n_pem; i++) {
        *ret_which = i;
        if (add_roots(t->store, o->pem[i]) < 0)
            return -EINVAL;
    }
    *ret_trust = TAKE(t);
    return 0;
}

struct uplink_trust *uplink_trust_ref(struct uplink_trust *t)
{
    t->n_refs++;
    return t;
}

void uplink_trust_unref(struct uplink_trust *t)
{
    if (!t || --t->n_refs > 0)
        return;
    SSL_CTX_free(t->ctx);
    X509_STORE_free(t->store);
    mem_free(t);
}

/* ---- sessions ------------------------------------------------------------------------------ */

static void session_drop(struct session *s)
{
    SSL_SESSION_free(s->last);
    mem_free(s->host);
    *s = (struct session){0};
}

static bool session_is_with(const struct session *s, const char *host, unsigned port)
{
    return s->host && s->port == port && strcmp(s->host, host) == 0;
}

/* Its place, which is then the first; a new one has the place of who was not there for longest. */
static struct session *session_find(struct uplink_tls *t, const char *host, unsigned port)
{
    size_t at = 0;
    while (at < MAX_SESSIONS - 1 && !session_is_with(&t->sessions[at], host, port))
        at++;
    struct session found = t->sessions[at];
    if (!session_is_with(&found, host, port))
        session_drop(&found);
    memmove(&t->sessions[1], &t->sessions[0], at * sizeof(found));
    t->sessions[0] = found;
    return &t->sessions[0];
}

/* A ticket has come: one reference to it is ours. */
static int on_session(SSL *ssl, SSL_SESSION *session)
{
    const struct uplink_tls_end *end = SSL_get_app_data(ssl);
    struct session *s = session_find(end->tls, end->host, end->port);
    SSL_SESSION_free(s->last);
    s->last = session;
    if (!s->host)
        s->host = mem_strdup(end->host);
    s->port = end->port;
    return 1;
}

/* ---- identity ------------------------------------------------------------------------------ */

static int read_certs(struct uplink_tls *t, struct str pem)
{
    if (pem.n > MAX_PEM_BYTES)
        return -EINVAL;
    BIO_AUTO *bio = BIO_new_mem_buf(pem.p, (int) pem.n);
    t->cert = PEM_read_bio_X509(bio, NULL, pki_no_passphrase, NULL);
    t->chain = sk_X509_new_null();
    if (!t->cert || !t->chain) {
        ERR_clear_error();
        return -EINVAL;
    }
    X509 *more;
    while ((more = PEM_read_bio_X509(bio, NULL, pki_no_passphrase, NULL)))
        if (sk_X509_push(t->chain, more) <= 0)
            X509_free(more);
    ERR_clear_error();
    return 0;
}

static int read_key(struct uplink_tls *t, const struct uplink_tls_options *o)
{
    if (o->key) {
        EVP_PKEY_up_ref(o->key);
        t->key = o->key;
    } else if (o->key_pem.n > 0 && o->key_pem.n <= MAX_PEM_BYTES) {
        BIO_AUTO *bio = BIO_new_mem_buf(o->key_pem.p, (int) o->key_pem.n);
        t->key = PEM_read_bio_PrivateKey(bio, NULL, pki_no_passphrase, NULL);
    }
    ERR_clear_error();
    if (!t->key)
        return -EINVAL;
    const int fits = EVP_PKEY_eq(X509_get0_pubkey(t->cert), t->key);
    ERR_clear_error();
    return fits == 1 ? 0 : -EKEYREJECTED;
}

int uplink_tls_new(const struct uplink_tls_options *o, struct uplink_tls **ret_tls)
{
    CLEANUP(uplink_tls_unrefp) struct uplink_tls *t = NEW(struct uplink_tls);
    t->n_refs = 1;
    t->trust = uplink_trust_ref(o->trust);
    if (o->cert_pem.n > 0) {
        int r = read_certs(t, o->cert_pem);
        if (r == 0)
            r = read_key(t, o);
        if (r < 0)
            return r;
    }
    t->share = curl_share_init();
    if (!t->share ||
        curl_share_setopt(t->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION) != CURLSHE_OK)
        return -ENOMEM;
    *ret_tls = TAKE(t);
    return 0;
}

struct uplink_tls *uplink_tls_ref(struct uplink_tls *t)
{
    t->n_refs++;
    return t;
}

void uplink_tls_unref(struct uplink_tls *t)
{
    if (!t || --t->n_refs > 0)
        return;
    if (t->share)
        (void) curl_share_cleanup(t->share);
    for (size_t i = 0; i < MAX_SESSIONS; i++)
        session_drop(&t->sessions[i]);
    uplink_trust_unref(t->trust);
    X509_free(t->cert);
    sk_X509_pop_free(t->chain, X509_free);
    EVP_PKEY_free(t->key);
    mem_free(t);
}

/* ---- of a connection ----------------------------------------------------------------------- */

static bool expect_host(const char *host, X509_VERIFY_PARAM *param)
{
    if (uplink_address_is_literal(str_of(host)))
        return X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1;
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT |
                                               X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return X509_VERIFY_PARAM_set1_host(param, host, 0) == 1;
}

int uplink_tls_apply(const struct uplink_tls *t, const char *host, struct ssl_ctx_st *ctx)
{
    SSL_CTX_set1_cert_store(ctx, t->trust->store);
    bool is_good = expect_host(host, SSL_CTX_get0_param(ctx)) &&
                   SSL_CTX_set_cipher_list(ctx, TLS12_SUITES) == 1;
    if (t->cert)
        is_good = is_good && SSL_CTX_use_certificate(ctx, t->cert) == 1 &&
                  SSL_CTX_set1_chain(ctx, t->chain) == 1 &&
                  SSL_CTX_use_PrivateKey(ctx, t->key) == 1;
    ERR_clear_error();
    return is_good ? 0 : -EINVAL;
}

/* Only in a whole handshake is the server interested in who we are. */
static int on_certificate_wanted(SSL *ssl, void *arg)
{
    const struct uplink_tls *t = arg;
    return !t->cert || SSL_use_cert_and_key(ssl, t->cert, t->key, t->chain, 1) == 1;
}

static bool prepare(SSL *ssl, struct uplink_tls_end *end, int fd)
{
    SSL_set_app_data(ssl, end);
    SSL_set_cert_cb(ssl, on_certificate_wanted, end->tls);
    SSL_set_connect_state(ssl);
    const struct session *s = session_find(end->tls, end->host, end->port);
    return SSL_set_fd(ssl, fd) == 1 && expect_host(end->host, SSL_get0_param(ssl)) &&
           (uplink_address_is_literal(str_of(end->host)) ||
            SSL_set_tlsext_host_name(ssl, end->host) == 1) &&
           (!s->last || SSL_set_session(ssl, s->last) == 1);
}

SSL *uplink_tls_begin(struct uplink_tls_end *end, int fd)
{
    SSL *ssl = SSL_new(end->tls->trust->ctx);
    if (ssl && !prepare(ssl, end, fd)) {
        SSL_free(ssl);
        ssl = NULL;
    }
    ERR_clear_error();
    return ssl;
}

void *uplink_tls_share(const struct uplink_tls *t)
{
    return t->share;
}
