/* SPDX-License-Identifier: Apache-2.0 */
/* Signed tokens as their own files see them. */
#pragma once

#include "pki/jws.h"
#include "pki/pki_internal.h"

#define JWS_P256_BYTES 32 /* of a coordinate, and of each half of a signature */

struct jws_key {
    EVP_PKEY *pkey;
    enum jws_algorithm algorithm;
};

/* base64url as RFC 7515 wants it and in no other spelling: -EINVAL on padding, line breaks, bits
 * left over. */
int jws_decode_part(struct arena *a, struct str text, struct str *ret_bytes);
