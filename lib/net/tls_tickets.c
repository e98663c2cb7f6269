/* SPDX-License-Identifier: Apache-2.0 */
/* Session tickets (RFC 5077, RFC 8446 4.6.1): the session travels sealed at the client, so any loop
 * can take it up. Keys change by the clock; the one before stays good for taking up, not for
 * sealing. */
#include <assert.h>
#include <openssl/core_names.h>
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

void tls_tickets_install(struct tls_tickets *t, SSL_CTX *ctx)
{
    SSL_CTX_set_app_data(ctx, t);
    SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx, on_ticket);
    (void) SSL_CTX_set_num_tickets(ctx, 1);
}
