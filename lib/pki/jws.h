/* SPDX-License-Identifier: Apache-2.0 */
/* Signed tokens (RFC 7515 compact form) and public keys as JSON documents write them, over OpenSSL.
 * The algorithm belongs to the key, never to the token. Parsing of the JSON inside is the
 * caller's. */
#pragma once

#include "pki/pki.h"

enum jws_algorithm { JWS_RS256, JWS_ES256 };
struct str jws_algorithm_name(enum jws_algorithm alg); /* "RS256" */

struct jws_key; /* a public key with its algorithm; immutable, from any thread */

/* From the base64url members of a JWK. NULL when they are no sound key (RSA below 2048 bits, or
 * above 8192, an exponent that is even or below 3, a point not on P-256). */
struct jws_key *jws_key_rsa(struct str n, struct str e);
struct jws_key *jws_key_p256(struct str x, struct str y);
/* The public half of one of our own (P-256: ES256; RSA: RS256). */
struct jws_key *jws_key_of(const struct pki_key *k);
/* From PEM: a public key, a private one, or a certificate. */
struct jws_key *jws_key_pem(struct str pem);
void jws_key_free(struct jws_key *k);
enum jws_algorithm jws_key_algorithm(const struct jws_key *k);
/* The members a JWK of it has: kty, and n, e or crv, x, y (base64url, in the arena). */
struct jws_key_members {
    struct str kty, crv, x, y, n, e;
};
struct jws_key_members jws_key_describe(struct arena *a, const struct jws_key *k);
/* base64url of the SHA-256 of its DER SubjectPublicKeyInfo: the "kid" kube-apiserver gives. */
struct str jws_key_id(struct arena *a, const struct jws_key *k);

#define JWS_MAX_BYTES ((size_t) 16 * 1024)

/* The three parts of a compact token, decoded header and payload in the arena. -EINVAL: it is none
 * (size, parts, alphabet, padding, non-canonical trailing bits). */
struct jws {
    struct str header, payload;
    struct str signed_text; /* header.payload as sent */
    struct str signature;   /* decoded */
};
int jws_split(struct arena *a, struct str token, struct jws *ret);
/* True when the signature is that key's. Constant work for a given key. */
bool jws_verify(const struct jws_key *k, const struct jws *t);
/* The compact token for header and payload texts; header must already name the key's algorithm. */
struct str jws_sign(struct arena *a, const struct pki_key *k, struct str header,
                    struct str payload);
