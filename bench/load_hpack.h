/* SPDX-License-Identifier: Apache-2.0 */
/* Header compression as Go's client does it: what stays the same is put into the table and is one
 * byte from then on, a bearer token too (nghttp2 would send it whole each time). */
#pragma once

#include "base/buf.h"

#define HPACK_MAX_ENTRIES 16

/* What one connection has sent. */
struct hpack {
    struct {
        struct str name, value;
    } entries[HPACK_MAX_ENTRIES];
    size_t n, n_bytes;
};

/* Strings that are kept live as long as the connection. is_steady: will come again. */
void hpack_encode(struct hpack *h, struct buf *b, struct str name, struct str value,
                  bool is_steady);
