/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <stdio.h>

#include "base/alloc.h"

#define BUF_MIN_CAPACITY 64

void buf_done(struct buf *b)
{
    mem_free(b->p);
    *b = (struct buf){0};
}

void buf_reset(struct buf *b)
{
    b->n = 0;
    if (b->p)
        b->p[0] = '\0';
}

char *buf_reserve(struct buf *b, size_t n_more)
{
    size_t wanted = b->n + n_more + 1;
    if (wanted > b->capacity) {
        size_t capacity = MAX(b->capacity * 2, (size_t) BUF_MIN_CAPACITY);
        b->capacity = MAX(capacity, wanted);
        b->p = mem_realloc(b->p, b->capacity);
    }
    return b->p + b->n;
}

void buf_append(struct buf *b, const void *p, size_t n)
{
    char *to = buf_reserve(b, n);
    if (n)
        memcpy(to, p, n);
    b->n += n;
    b->p[b->n] = '\0';
}

void buf_append_str(struct buf *b, struct str s)
{
    buf_append(b, s.p, s.n);
}

void buf_append_char(struct buf *b, char c)
{
    buf_append(b, &c, 1);
}

void buf_vprintf(struct buf *b, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    if (n > 0) {
        char *to = buf_reserve(b, (size_t) n);
        (void) vsnprintf(to, (size_t) n + 1, format, again);
        b->n += (size_t) n;
    }
    va_end(again);
}

void buf_printf(struct buf *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    buf_vprintf(b, format, args);
    va_end(args);
}

void buf_consume(struct buf *b, size_t n)
{
    n = MIN(n, b->n);
    if (n == 0)
        return;
    memmove(b->p, b->p + n, b->n - n);
    b->n -= n;
    b->p[b->n] = '\0';
}

char *buf_take(struct buf *b)
{
    char *p = b->p ? b->p : mem_zalloc(1);
    /* What is taken is mostly kept: not with the room that was for more. */
    if (b->capacity > b->n + 1 + b->n / 8)
        p = mem_realloc(p, b->n + 1);
    *b = (struct buf){0};
    return p;
}
