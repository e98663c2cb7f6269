/* SPDX-License-Identifier: Apache-2.0 */
/* The AuthContainer of API v2: a payload and who signed it. */
#pragma once

#include "base/arena.h"
#include "pki/pki.h"

#define ENVELOPE_HASH_BYTES 32
#define ENVELOPE_SHORT_HASH_BYTES 16
/* Of senderCert: base64 of a PEM file, which may hold several certificates. */
#define ENVELOPE_MAX_CERT_BYTES ((size_t) 64 * 1024)

/* Strings point into the bytes that were parsed. */
struct envelope {
    struct str payload;     /* empty when absent */
    struct str sender_hash; /* of the sender's certificate: 16 or 32 bytes, or empty */
    struct str signature;
    struct str sender_cert; /* base64 text of PEM; only in a registration */
    int algorithm;          /* HashAlgorithm: 1 first 16 bytes of SHA-256, 2 all 32 */
};

/* -EBADMSG: no AuthContainer. Only the form is checked: see envelope_check_form(). */
int envelope_parse(struct str bytes, struct envelope *ret);
/* That the hash's length is the algorithm's, and that there is a signature: 0 or -EINVAL. */
int envelope_check_form(const struct envelope *e);
/* The signature is over SHA-256 of the payload alone, raw r||s of exactly the curve's size (DER is
 * refused). 0, or -EKEYREJECTED. From any thread. */
int envelope_verify(const struct envelope *e, const struct pki_public *key);

/* A signing identity, from which envelopes are made: the hash is over the PEM bytes as GET certs
 * delivers them. */
struct envelope_signer {
    const struct pki_key *key;
    unsigned char cert_hash[ENVELOPE_HASH_BYTES];
    struct str sender_cert; /* base64 text of PEM, as a registration carries; absent: none */
};
/* An AuthContainer of the payload; NULL p: signing failed. From any thread. */
struct str envelope_seal(struct arena *a, const struct envelope_signer *s, struct str payload);
