/* SPDX-License-Identifier: Apache-2.0 */
/* Session tickets (RFC 5077, RFC 8446 4.6.1): the session travels sealed at the client, so any loop
 * can take it up. Keys change by the clock; the one before stays good for taking up, not for
 * sealing. */
#include <assert.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/params.h>

#include "base/clock.h"
#include "base/random.h"
#include "net/tls_internal.h"

/* A ticket lives two hours (OpenSSL's session timeout), so two keys of this age cover every valid
 * one. */
#define TICKET_KEY_LIFE_US ((int64_t) 6 * 3600 * 1000 * 1000)

static void ticket_key_make(struct tls_ticket_key *k)
{
    random_bytes(k->name, sizeof(k->name));
    random_bytes(k->cipher_key, sizeof(k->cipher_key));
    random_bytes(k->mac_key, sizeof(k->mac_key));
    k->made_at_us = clock_system.monotonic_us(&clock_system);
}

void tls_tickets_init(struct tls_tickets *t)
{
    pthread_mutex_init(&t->lock, NULL);
    t->cipher = EVP_CIPHER_fetch(NULL, "AES-256-CBC", NULL);
    assert(t->cipher);
    ticket_key_make(&t->current);
    ticket_key_make(&t->previous); /* seals nothing, but its name must not be all zeros */
}

void tls_tickets_done(struct tls_tickets *t)
{
    EVP_CIPHER_free(t->cipher);
    OPENSSL_cleanse(&t->current, sizeof(t->current));
    OPENSSL_cleanse(&t->previous, sizeof(t->previous));
    pthread_mutex_destroy(&t->lock);
}

static struct tls_ticket_key key_for_sealing(struct tls_tickets *t)
{
    pthread_mutex_lock(&t->lock);
    int64_t now_us = clock_system.monotonic_us(&clock_system);
    if (now_us - t->current.made_at_us > TICKET_KEY_LIFE_US) {
        t->previous = t->current;
        ticket_key_make(&t->current);
    }
    struct tls_ticket_key k = t->current;
    pthread_mutex_unlock(&t->lock);
    return k;
}

/* 0 unknown, 1 current, 2 previous: the values OpenSSL wants, 2 asking for a fresh ticket. */
static int key_by_name(struct tls_tickets *t, const unsigned char *name,
                       struct tls_ticket_key *ret_key)
{
    int which = 0;
    pthread_mutex_lock(&t->lock);
    if (memcmp(name, t->current.name, TLS_TICKET_NAME_BYTES) == 0) {
        *ret_key = t->current;
        which = 1;
    } else if (memcmp(name, t->previous.name, TLS_TICKET_NAME_BYTES) == 0) {
        *ret_key = t->previous;
        which = 2;
    }
    pthread_mutex_unlock(&t->lock);
    return which;
}

static bool set_mac_key(EVP_MAC_CTX *mac, struct tls_ticket_key *k)
{
    char digest[] = "SHA256";
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, k->mac_key, sizeof(k->mac_key)),
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end(),
    };
    return EVP_MAC_CTX_set_params(mac, params) == 1;
}

static int on_ticket(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
                     EVP_MAC_CTX *mac, int is_sealing)
{
    struct tls_tickets *t = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    struct tls_ticket_key k = {0};
    int r = 1;
    if (is_sealing) {
        k = key_for_sealing(t);
        memcpy(name, k.name, sizeof(k.name));
        random_bytes(iv, (size_t) EVP_CIPHER_get_iv_length(t->cipher));
    } else {
        r = key_by_name(t, name, &k);
        /* Clients of TLS 1.3 use a ticket once (RFC 8446 C.4) and need another for the next time.
         */
        if (r == 1 && SSL_version(ssl) == TLS1_3_VERSION)
            r = 2;
    }
    if (r > 0 && (EVP_CipherInit_ex2(cipher, t->cipher, k.cipher_key, iv, is_sealing, NULL) != 1 ||
                  !set_mac_key(mac, &k)))
        r = -1;
    OPENSSL_cleanse(&k, sizeof(k));
    return r;
}

/* ---- the client's certificate in a ticket -------------------------------------------------- */

/* OpenSSL parses the certificate of a session each time it is taken up, and its key with it: more
 * work than all the rest of such a handshake. Where nobody is verified by it the ticket carries the
 * bytes alone. */

#define SESSION_PEER_TAG 3 /* of SSL_SESSION in DER: the peer's certificate */

/* What has the tag among the elements of a session; absent if none has. */
static struct str session_element(struct str elements, int wanted)
{
    const unsigned char *p = (const unsigned char *) elements.p, *end = p + elements.n;
    while (p < end) {
        const unsigned char *content = p;
        long n = 0;
        int tag = 0, class = 0;
        if (ASN1_get_object(&content, &n, &tag, &class, end - p) & 0x80)
            break;
        if (class == V_ASN1_CONTEXT_SPECIFIC && tag == wanted)
            return str_range((const char *) p, (size_t) (content + n - p));
        p = content + n;
    }
    return (struct str){0};
}

static struct str session_elements(const unsigned char *der, int n_der)
{
    long n = 0;
    int tag = 0, class = 0;
    const bool is_sequence = !(ASN1_get_object(&der, &n, &tag, &class, n_der) & 0x80);
    return is_sequence ? str_range((const char *) der, (size_t) n) : (struct str){0};
}

/* The session is read again, in place, from what it is made of. */
static bool session_set_elements(SSL_SESSION *session, struct str before, struct str after)
{
    const int n = (int) (before.n + after.n), n_der = ASN1_object_size(1, n, V_ASN1_SEQUENCE);
    unsigned char *der = OPENSSL_malloc((size_t) n_der), *p = der;
    if (!der)
        return false;
    ASN1_put_object(&p, 1, n, V_ASN1_SEQUENCE, V_ASN1_UNIVERSAL);
    memcpy(p, before.p, before.n);
    memcpy(p + before.n, after.p, after.n);
    const SSL_CIPHER *cipher = SSL_SESSION_get0_cipher(session);
    const unsigned char *begin = der;
    const bool is_read = d2i_SSL_SESSION(&session, &begin, n_der);
    OPENSSL_clear_free(der, (size_t) n_der);
    return is_read && SSL_SESSION_set_cipher(session, cipher) == 1;
}

static bool session_drop_peer(SSL_SESSION *session)
{
    unsigned char *der = NULL;
    const int n_der = i2d_SSL_SESSION(session, &der);
    if (n_der <= 0)
        return false;
    const struct str all = session_elements(der, n_der);
    const struct str peer = session_element(all, SESSION_PEER_TAG);
    const size_t begin = peer.n > 0 ? (size_t) (peer.p - all.p) : 0;
    const bool is_dropped = peer.n > 0 && session_set_elements(session, str_sub(all, 0, begin),
                                                               str_from(all, begin + peer.n));
    OPENSSL_clear_free(der, (size_t) n_der);
    return is_dropped;
}

/* Before a ticket is sealed. Zero: there is none, and the client comes again with a whole
 * handshake. */
static int on_ticket_wanted(SSL *ssl, void *arg)
{
    (void) arg;
    const X509 *peer = SSL_get0_peer_certificate(ssl);
    if (!peer || SSL_version(ssl) != TLS1_3_VERSION)
        return 1;
    SSL_SESSION *session = SSL_get0_session(ssl);
    unsigned char *der = NULL;
    const int n = i2d_X509(peer, &der);
    const bool is_kept = n > 0 && SSL_SESSION_set1_ticket_appdata(session, der, (size_t) n) == 1 &&
                         session_drop_peer(session);
    OPENSSL_free(der);
    ERR_clear_error();
    return is_kept;
}

void tls_tickets_keep_certificate(SSL_CTX *ctx)
{
    (void) SSL_CTX_set_session_ticket_cb(ctx, on_ticket_wanted, NULL, NULL);
}

struct str tls_ticket_certificate(const SSL *ssl)
{
    SSL_SESSION *session = SSL_get0_session(ssl);
    void *der = NULL;
    size_t n = 0;
    if (!session || SSL_SESSION_get0_ticket_appdata(session, &der, &n) != 1)
        return (struct str){0};
    return str_range(der, n);
}

/* ---- of a context -------------------------------------------------------------------------- */

void tls_tickets_install(struct tls_tickets *t, SSL_CTX *ctx)
{
    SSL_CTX_set_app_data(ctx, t);
    SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx, on_ticket);
    (void) SSL_CTX_set_num_tickets(ctx, 1);
}
