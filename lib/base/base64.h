/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 (RFC 4648), standard alphabet with padding and URL alphabet without. */
#pragma once

#include "base/arena.h"

enum base64_alphabet { BASE64_STANDARD, BASE64_URL };

struct str base64_encode(struct arena *a, struct str bytes, enum base64_alphabet alphabet);
/* Strict as Go's decoders are, but line breaks are skipped. -EINVAL on anything else;
 * *ret_bad_at (may be NULL) is then the offset of the first offending byte. */
int base64_decode(struct arena *a, struct str text, enum base64_alphabet alphabet,
                  struct str *ret_bytes, size_t *ret_bad_at);
