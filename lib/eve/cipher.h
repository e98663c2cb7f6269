/* SPDX-License-Identifier: Apache-2.0 */
/* Object encryption: parts of a configuration that only one device can open. The key is SHA-256 of
 * both coordinates of an ECDH point, the cipher AES-256-CFB with a random IV for each block. */
#pragma once

#include "base/arena.h"
#include "eve/common.pb-c.h"
#include "eve/config.pb-c.h"
#include "pki/pki.h"

#define CIPHER_KEY_BYTES 32
#define CIPHER_IV_BYTES 16

/* One side's key with the other's certificate; the hashes name the two certificates in a context
 * exactly as they were published. */
struct cipher_pair {
    unsigned char key[CIPHER_KEY_BYTES];
    struct str context_id; /* a UUID made of both hashes: same pair, same id */
    struct str device_cert_hash, controller_cert_hash;
};
/* -EINVAL: not both on P-256. Strings in the arena. */
int cipher_pair(struct arena *a, const struct pki_key *controller_key,
                struct str controller_cert_hash, const struct pki_public *device_key,
                struct str device_cert_hash, struct cipher_pair *ret);

Eve__Common__CipherContext *cipher_context(struct arena *a, const struct cipher_pair *p);
/* An IV made of what is sealed: same content in the same place, same block, with nothing kept. It
 * is sound for the reason that makes synthetic IVs sound (RFC 5297): under one key two different
 * contents never share an IV but by a collision of HMAC-SHA256, and who does not have the key
 * cannot tell it from a random one. What repeating gives away, that a content is the same as
 * before, the block says anyway: it carries SHA-256 of its plaintext. */
void cipher_synthetic_iv(struct arena *a, const struct cipher_pair *p, struct str identity,
                         struct str plaintext, unsigned char ret[CIPHER_IV_BYTES]);
/* Plaintext is not empty. iv NULL: random. */
Eve__Common__CipherBlock *cipher_seal(struct arena *a, const struct cipher_pair *p,
                                      struct str plaintext, const unsigned char *iv);
/* 0; -EBADMSG: the block is malformed or its content does not match its hash. */
int cipher_open(struct arena *a, const struct cipher_pair *p, const Eve__Common__CipherBlock *block,
                struct str *ret_plaintext);

/* After a rotation: every block of the configuration that `from` opens is sealed again with `to`,
 * its context replaced; the same configuration gives the same bytes. Returns how many; negative
 * when one cannot be opened. */
int cipher_reseal(struct arena *a, Eve__Config__EdgeDevConfig *config,
                  const struct cipher_pair *from, const struct cipher_pair *to);
