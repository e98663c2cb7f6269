/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "base/alloc.h"
#include "net/tls_internal.h"
#include "pki/openssl.h"

/* ---- reading the files ---------------------------------------------------------------------- */

static int fail(int r, const char *what, const char *path, const char *reason, char **ret_error)
{
    BUF_AUTO text = {0};
    buf_printf(&text, "%s '%s': %s", what, path, reason);
    *ret_error = buf_take(&text);
    return r;
}

static int fail_openssl(const char *what, const char *path, char **ret_error)
{
    const char *reason = NULL;
    int r = pki_openssl_error(&reason);
    return fail(r, what, path, reason, ret_error);
}

static BIO *open_file(const char *path, struct buf *content, const char *what, int *ret_r,
                      char **ret_error)
{
    *ret_r = pki_file_read(path, content);
    if (*ret_r < 0) {
        (void) fail(*ret_r, what, path, strerrordesc_np(-*ret_r), ret_error);
        return NULL;
    }
    return BIO_new_mem_buf(content->p ? content->p : "", (int) content->n);
}

/* Every certificate of a PEM file, at least one. */
static int read_certs(const char *path, const char *what, STACK_OF(X509) * *ret_certs,
                      char **ret_error)
{
    BUF_AUTO content = {0};
    int r = 0;
    BIO_AUTO *bio = open_file(path, &content, what, &r, ret_error);
    if (r < 0)
        return r;
    STACK_OF(X509) *certs = sk_X509_new_null();
    X509 *x = NULL;
    while (bio && (x = PEM_read_bio_X509(bio, NULL, pki_no_passphrase, NULL))) {
        (void) X509_check_purpose(x, -1, 0); /* reads its extensions now, not in every thread */
        sk_X509_push(certs, x);
    }
    /* The end of the file shows as "no start line"; anything else is a damaged certificate. */
    unsigned long last = ERR_peek_last_error();
    bool is_end = ERR_GET_LIB(last) == ERR_LIB_PEM && ERR_GET_REASON(last) == PEM_R_NO_START_LINE;
    if (sk_X509_num(certs) == 0 || !is_end) {
        sk_X509_pop_free(certs, X509_free);
        return fail_openssl(what, path, ret_error);
    }
    ERR_clear_error();
    *ret_certs = certs;
    return 0;
}

static int read_key(const char *path, EVP_PKEY **ret_key, char **ret_error)
{
    BUF_AUTO content = {0};
    int r = 0;
    BIO_AUTO *bio = open_file(path, &content, "key", &r, ret_error);
    if (r < 0)
        return r;
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, pki_no_passphrase, NULL) : NULL;
    if (content.n)
        OPENSSL_cleanse(content.p, content.n);
    if (!key)
        return fail_openssl("key", path, ret_error);
    *ret_key = key;
    return 0;
}

/* ---- material ------------------------------------------------------------------------------- */

void tls_material_unref(struct tls_material *m)
{
    if (!m || atomic_fetch_sub(&m->refs, 1) != 1)
        return;
    X509_free(m->leaf);
    sk_X509_pop_free(m->chain, X509_free);
    EVP_PKEY_free(m->key);
    sk_X509_pop_free(m->client_cas, X509_free);
    mem_free(m);
}
DEFINE_CLEANUP(struct tls_material *, tls_material_unref)

/* Builds a context once, so that what cannot serve is refused here and not at the next connection.
 */
static int check_material(struct tls_config *c, const struct tls_material *m, char **ret_error)
{
    SSL_CTX *trial = tls_server_ctx_new(m, &c->tickets);
    if (!trial)
        return fail_openssl("certificate", c->certificate_path, ret_error);
    SSL_CTX_free(trial);
    return 0;
}

static int load_material(struct tls_config *c, struct tls_material **ret_material, char **ret_error)
{
    CLEANUP(tls_material_unrefp) struct tls_material *m = NEW(struct tls_material);
    atomic_init(&m->refs, 1);
    m->takes_any_client = c->takes_any_client;
    int r = read_certs(c->certificate_path, "certificate", &m->chain, ret_error);
    if (r < 0)
        return r;
    m->leaf = sk_X509_shift(m->chain);
    r = read_key(c->key_path, &m->key, ret_error);
    if (r < 0)
        return r;
    if (X509_check_private_key(m->leaf, m->key) != 1)
        return fail_openssl("key", c->key_path, ret_error);
    if (c->client_ca_path) {
        r = read_certs(c->client_ca_path, "client CA", &m->client_cas, ret_error);
        if (r < 0)
            return r;
    }
    r = check_material(c, m, ret_error);
    if (r < 0)
        return r;
    *ret_material = TAKE(m);
    return 0;
}

/* ---- configuration -------------------------------------------------------------------------- */

static char *strdup_or_null(const char *s)
{
    return s ? mem_strdup(s) : NULL;
}

int tls_config_new(const struct tls_files *files, struct tls_config **ret_config, char **ret_error)
{
    struct tls_config *c = NEW(struct tls_config);
    atomic_init(&c->refs, 1);
    pthread_mutex_init(&c->lock, NULL);
    tls_tickets_init(&c->tickets);
    c->certificate_path = mem_strdup(files->certificate);
    c->key_path = mem_strdup(files->key);
    c->client_ca_path = strdup_or_null(files->client_ca);
    c->takes_any_client = files->takes_any_client;
    int r = load_material(c, &c->material, ret_error);
    if (r < 0) {
        tls_config_free(c);
        return r;
    }
    *ret_config = c;
    return 0;
}

void tls_config_ref(struct tls_config *c)
{
    atomic_fetch_add(&c->refs, 1);
}

void tls_config_free(struct tls_config *c)
{
    if (!c || atomic_fetch_sub(&c->refs, 1) != 1)
        return;
    tls_material_unref(c->material);
    tls_tickets_done(&c->tickets);
    pthread_mutex_destroy(&c->lock);
    mem_free(c->certificate_path);
    mem_free(c->key_path);
    mem_free(c->client_ca_path);
    mem_free(c);
}

struct tls_material *tls_config_material(struct tls_config *c)
{
    pthread_mutex_lock(&c->lock);
    struct tls_material *m = c->material;
    atomic_fetch_add(&m->refs, 1);
    pthread_mutex_unlock(&c->lock);
    return m;
}

int tls_config_reload(struct tls_config *c, char **ret_error)
{
    struct tls_material *fresh = NULL;
    int r = load_material(c, &fresh, ret_error);
    if (r < 0)
        return r;
    pthread_mutex_lock(&c->lock);
    struct tls_material *old = c->material;
    c->material = fresh;
    atomic_fetch_add(&c->generation, 1);
    pthread_mutex_unlock(&c->lock);
    tls_material_unref(old);
    return 0;
}
