/* SPDX-License-Identifier: Apache-2.0 */
/* Keys, certificates, digests. The only module, with net/tls, that knows OpenSSL. */
#pragma once

#include "base/arena.h"
#include "base/str.h"

#define SHA256_BYTES 32
#define SHA512_BYTES 64
void pki_sha256(struct str data, unsigned char out[SHA256_BYTES]);
void pki_sha512(struct str data, unsigned char out[SHA512_BYTES]);
/* RFC 2104. */
void pki_hmac_sha256(struct str key, struct str data, unsigned char out[SHA256_BYTES]);
/* SHA-1 is for the WebSocket handshake alone (RFC 6455 4.2.2). */
void pki_sha1(struct str data, unsigned char out[20]);
/* The key of WPA-PSK as wpa_passphrase derives it (IEEE 802.11, J.4). Slow by design. -EINVAL. */
#define WIFI_KEY_BYTES 32
int pki_wifi_key(struct str passphrase, struct str ssid, unsigned char out[WIFI_KEY_BYTES]);
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
    int64_t backdate_s;          /* valid from so long ago; 0: a minute */
};
/* issuer NULL: self-signed with key. NULL when a name does not fit a certificate (common name and
 * organization: 1 to 64 characters of UTF-8). */
struct pki_cert *pki_cert_new(const struct pki_cert_options *o, const struct pki_key *key,
                              const struct pki_cert *issuer, const struct pki_key *issuer_key);
/* For a key that somebody else has, such as a TPM: its SubjectPublicKeyInfo. NULL also when it is
 * none. */
struct pki_cert *pki_cert_new_for(const struct pki_cert_options *o, struct str public_der,
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

/* ---- public keys and what devices sign ---------------------------------------------------- */

/* The public key of a certificate, for verifying; usable from any thread at once. NULL: no EC key,
 * or not on P-256, P-384 or P-521. What takes one takes NULL for a key that fits nothing. */
struct pki_public;
struct pki_public *pki_cert_public(const struct pki_cert *c);
struct pki_public *pki_public_of_key(const struct pki_key *k);
void pki_public_free(struct pki_public *p);
DEFINE_CLEANUP(struct pki_public *, pki_public_free)
bool pki_public_is_p256(const struct pki_public *p);
/* ECDSA with SHA-256 of the message, raw r||s each of the curve's size: exactly that long. 0 or
 * -EKEYREJECTED. */
int pki_verify_raw(const struct pki_public *p, struct str message, struct str signature);
/* The same with an ASN.1 DER signature. */
int pki_verify_der(const struct pki_public *p, struct str message, struct str signature);
#define PKI_RAW_SIGNATURE_BYTES 64
/* With a P-256 key. 0 or -EIO. From any thread. */
int pki_sign_raw(const struct pki_key *k, struct str message,
                 unsigned char out[PKI_RAW_SIGNATURE_BYTES]);
/* key times public as X || Y, each 32 bytes. -EINVAL: not both on P-256. */
int pki_ecdh_point(const struct pki_key *k, const struct pki_public *p, unsigned char out[64]);
/* AES-256 in cipher feedback of 128 bits; out has n bytes and may be in. */
void pki_aes256_cfb(bool encrypt, const unsigned char key[32], const unsigned char iv[16],
                    const void *in, size_t n, void *out);

struct str pki_cert_der(struct arena *a, const struct pki_cert *c);
/* The key it is for: SubjectPublicKeyInfo, also of kinds that pki_cert_public() does not take. On
 * P-256 it ends with X and Y. */
struct str pki_cert_public_der(struct arena *a, const struct pki_cert *c);
/* SHA-256 of the DER. */
void pki_cert_fingerprint(const struct pki_cert *c, unsigned char out[SHA256_BYTES]);
int64_t pki_cert_not_before(const struct pki_cert *c);
/* It may sign certificates. */
bool pki_cert_is_authority(const struct pki_cert *c);
/* The issuer's key signed it, names match and the issuer may sign certificates. Dates are not
 * looked at. */
bool pki_cert_is_signed_by(const struct pki_cert *c, const struct pki_cert *issuer);
/* This key signed it; names and what the key is meant for are not looked at. */
bool pki_cert_is_signed_with(const struct pki_cert *c, const struct pki_public *key);

/* A certificate as people write it into specs and devices into messages: PEM, base64 of PEM, base64
 * of that again, or base64 of DER. More certificates behind the first are ignored. -EINVAL with
 * *ret_reason (static) saying what is wrong. */
int pki_cert_decode(struct str text, struct pki_cert **ret_cert, const char **ret_reason);
/* The fingerprint of the certificate that pki_cert_decode() would find, without reading it: that
 * takes OpenSSL a good part of a millisecond. What is no certificate may have one, too. */
int pki_cert_decode_fingerprint(struct str text, unsigned char out[SHA256_BYTES]);
