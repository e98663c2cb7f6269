/* SPDX-License-Identifier: Apache-2.0 */
/* TLS as net's own files see it: what a configuration was read from, its ticket keys, and the
 * context each loop makes of it. */
#pragma once

#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "net/tls.h"

/* ---- ticket keys --------------------------------------------------------------------------- */

#define TLS_TICKET_NAME_BYTES 16
#define TLS_TICKET_KEY_BYTES 32

struct tls_ticket_key {
    unsigned char name[TLS_TICKET_NAME_BYTES];
    unsigned char cipher_key[TLS_TICKET_KEY_BYTES];
    unsigned char mac_key[TLS_TICKET_KEY_BYTES];
    int64_t made_at_us;
};

/* Shared by every context of a configuration, so that a client may come back on any loop. */
struct tls_tickets {
    pthread_mutex_t lock;
    struct tls_ticket_key current, previous; /* under lock */
    EVP_CIPHER *cipher;
};

void tls_tickets_init(struct tls_tickets *t);
void tls_tickets_done(struct tls_tickets *t);
/* t outlives the context and its connections. */
void tls_tickets_install(struct tls_tickets *t, SSL_CTX *ctx);
/* For contexts that verify nobody: tickets of TLS 1.3 carry a client's certificate as bytes, and
 * the session has no other. */
void tls_tickets_keep_certificate(SSL_CTX *ctx);
struct str tls_ticket_certificate(const SSL *ssl);

/* ---- configuration -------------------------------------------------------------------------- */

/* What the files held, parsed; immutable and shared. */
struct tls_material {
    atomic_uint refs;
    X509 *leaf;
    STACK_OF(X509) * chain;
    EVP_PKEY *key;
    STACK_OF(X509) * client_cas; /* NULL: client certificates are not asked for */
    bool takes_any_client;
};

struct tls_config {
    atomic_uint refs; /* the owner's and one per context */
    char *certificate_path, *key_path, *client_ca_path;
    bool takes_any_client;
    struct tls_tickets tickets;
    atomic_uint generation; /* counts reloads */
    pthread_mutex_t lock;
    struct tls_material *material; /* under lock */
};

void tls_config_ref(struct tls_config *c);
/* The caller gets a reference. */
struct tls_material *tls_config_material(struct tls_config *c);
void tls_material_unref(struct tls_material *m);

/* ---- contexts ------------------------------------------------------------------------------- */

/* One loop's. Follows the reloads of its configuration. */
struct tls_context;

/* A server context over the material, or NULL with the reason in OpenSSL's queue. */
SSL_CTX *tls_server_ctx_new(const struct tls_material *m, struct tls_tickets *tickets);

struct tls_context *tls_context_new(struct tls_config *c);
void tls_context_free(struct tls_context *t);
/* A server session over the socket, to be freed before the context; NULL for want of memory. */
SSL *tls_context_accept(struct tls_context *t, int fd);
