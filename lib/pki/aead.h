/* SPDX-License-Identifier: Apache-2.0 */
/* Authenticated encryption of small texts under one long-lived key: XAES-256-GCM
 * (c2sp.org/XAES-256-GCM). From any thread. */
#pragma once

#include "base/buf.h"

#define AEAD_KEY_BYTES 32
#define AEAD_NONCE_BYTES 24
#define AEAD_TAG_BYTES 16
/* What a sealed text is longer than the plain one. */
#define AEAD_OVERHEAD_BYTES (AEAD_NONCE_BYTES + AEAD_TAG_BYTES)
#define AEAD_MAX_BYTES ((size_t) 1 << 30)

/* Appends a fresh nonce, the ciphertext and the tag. `bound` is authenticated, not kept: opening
 * needs the same. -EFBIG: longer than AEAD_MAX_BYTES; -ENOMEM. On failure *to is as it was. */
int aead_seal(const unsigned char key[AEAD_KEY_BYTES], struct str bound, struct str plain,
              struct buf *to);
/* The same with a nonce given, for known answers alone: none may serve twice under one key. */
int aead_seal_with(const unsigned char key[AEAD_KEY_BYTES],
                   const unsigned char nonce[AEAD_NONCE_BYTES], struct str bound, struct str plain,
                   struct buf *to);
/* Appends the plain text. -EBADMSG: not sealed with this key and `bound`, or changed since. */
int aead_open(const unsigned char key[AEAD_KEY_BYTES], struct str bound, struct str sealed,
              struct buf *to);
