/* SPDX-License-Identifier: Apache-2.0 */
/* Keys, certificates, digests. The only module, with net/tls, that knows OpenSSL. */
#pragma once

#include "base/arena.h"
#include "base/str.h"

#define SHA256_BYTES 32
#define SHA512_BYTES 64
void pki_sha256(struct str data, unsigned char out[SHA256_BYTES]);
void pki_sha512(struct str data, unsigned char out[SHA512_BYTES]);
/* SHA-1 is for the WebSocket handshake alone (RFC 6455 4.2.2). */
void pki_sha1(struct str data, unsigned char out[20]);
struct str pki_hex(struct arena *a, const unsigned char *p, size_t n);

struct pki_key;  /* a private key */
struct pki_cert; /* a certificate */

/* ECDSA P-256. */
struct pki_key *pki_key_new(void);
int pki_key_load(const char *path, struct pki_key **ret_key);
/* 0600, written whole or not at all. */
int pki_key_save(const struct pki_key *k, const char *path);
struct str pki_key_pem(struct arena *a, const struct pki_key *k);
void pki_key_free(struct pki_key *k);
DEFINE_CLEANUP(struct pki_key *, pki_key_free)

struct pki_cert_options {
    struct str common_name;
    const struct str *organizations;
    size_t n_organizations;
    const struct str *names; /* SANs: DNS names and IP addresses */
    size_t n_names;
    bool is_ca, for_server, for_client;
    int64_t valid_days, valid_s; /* added up */
};
/* issuer NULL: self-signed with key. NULL when a name does not fit a certificate (common name and
 * organization: 1 to 64 characters of UTF-8). */
struct pki_cert *pki_cert_new(const struct pki_cert_options *o, const struct pki_key *key,
                              const struct pki_cert *issuer, const struct pki_key *issuer_key);
int pki_cert_load(const char *path, struct pki_cert **ret_cert);
int pki_cert_parse(struct str pem_or_der, struct pki_cert **ret_cert);
int pki_cert_save(const struct pki_cert *c, const char *path);
struct str pki_cert_pem(struct arena *a, const struct pki_cert *c);
struct str pki_cert_common_name(struct arena *a, const struct pki_cert *c);
/* Organizations of the subject, in order; returns their number. */
size_t pki_cert_organizations(struct arena *a, const struct pki_cert *c, struct str **ret_names);
int64_t pki_cert_not_after(const struct pki_cert *c); /* seconds since 1970 */
bool pki_cert_has_name(const struct pki_cert *c, struct str dns_or_ip);
void pki_cert_free(struct pki_cert *c);
DEFINE_CLEANUP(struct pki_cert *, pki_cert_free)
