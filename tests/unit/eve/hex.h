/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes written as hex, for vectors. */
#pragma once

#include "base/arena.h"

static inline struct str from_hex(struct arena *a, const char *hex)
{
    size_t n = strlen(hex) / 2;
    char *bytes = arena_alloc(a, n + 1);
    for (size_t i = 0; i < n; i++) {
        unsigned value = 0;
        for (size_t k = 2 * i; k < 2 * i + 2; k++)
            value =
                value << 4 | (unsigned) (hex[k] <= '9' ? hex[k] - '0' : (hex[k] | 0x20) - 'a' + 10);
        bytes[i] = (char) value;
    }
    bytes[n] = '\0';
    return str_range(bytes, n);
}
