/* SPDX-License-Identifier: Apache-2.0 */
/* A growing run of bytes, for building. `p` always has a NUL after its n bytes once anything was
 * appended; {0} is a valid empty buf. */
#pragma once

#include <stdarg.h>

#include "base/str.h"

struct buf {
    char *p;
    size_t n;
    size_t capacity;
};

void buf_done(struct buf *b);
/* Empties it and keeps the memory. */
void buf_reset(struct buf *b);
/* Makes room for n_more bytes and returns where they go; the caller then adds to b->n. */
char *buf_reserve(struct buf *b, size_t n_more);
void buf_append(struct buf *b, const void *p, size_t n);
void buf_append_str(struct buf *b, struct str s);
void buf_append_char(struct buf *b, char c);
void buf_printf(struct buf *b, const char *format, ...) PRINTF_LIKE(2, 3);
void buf_vprintf(struct buf *b, const char *format, va_list args) PRINTF_LIKE(2, 0);
/* Drops the first n bytes. */
void buf_consume(struct buf *b, size_t n);
/* Hands the memory (NUL-terminated) to the caller and leaves b empty. */
char *buf_take(struct buf *b);

static inline struct str buf_str(const struct buf *b)
{
    return str_range(b->p ? b->p : "", b->n);
}

#define BUF_AUTO CLEANUP(buf_done) struct buf
