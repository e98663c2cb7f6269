/* SPDX-License-Identifier: Apache-2.0 */
/* The pieces of a line of JSON, written where there is room already: a line is made for each
 * request, so that is seen to once for the worst case. Each function returns where it ended. */
#pragma once

#include "base/buf.h"

static inline char *put(char *to, struct str s)
{
    memcpy(to, s.p, s.n);
    return to + s.n;
}

#define PUT(to, literal) ((to) = put((to), STR(literal)))

/* ---- texts --------------------------------------------------------------------------------- */

#define PUT_ESCAPE_BYTES 6 /* \u0000 */
/* What put_text() may take. */
static inline size_t put_text_bound(struct str s)
{
    return PUT_ESCAPE_BYTES * s.n + 2;
}

typedef signed char put_lanes __attribute__((vector_size(16)));

/* A byte that may go as it is is ASCII, no control character, no quote and no backslash. Signed
 * bytes outside of ASCII are below the control characters. */
static inline put_lanes put_unclean(put_lanes x)
{
    return (x < 0x20) | (x == '"') | (x == '\\');
}

static inline bool put_is_zero(put_lanes x)
{
    uint64_t halves[2];
    memcpy(halves, &x, sizeof(x));
    return !(halves[0] | halves[1]);
}

/* The same of eight bytes, nonzero when one is not clean. A borrow is taken only from a byte that
 * is not, so it finds none that is not there. */
static inline uint64_t put_unclean_word(uint64_t x)
{
    const uint64_t ones = 0x0101010101010101u, highs = 0x8080808080808080u;
    uint64_t quote = (x ^ (ones * '"')) - ones, backslash = (x ^ (ones * '\\')) - ones;
    return ((x - ones * 0x20) | quote | backslash | x) & highs;
}

/* Short texts are loaded from both ends, so that none is walked through byte by byte. */
static inline bool put_clean_short(char *to, struct str s)
{
    uint64_t first = 0, last = 0;
    if (s.n >= 8) {
        memcpy(&first, s.p, 8);
        memcpy(&last, s.p + s.n - 8, 8);
        memcpy(to, &first, 8);
        memcpy(to + s.n - 8, &last, 8);
        return !(put_unclean_word(first) | put_unclean_word(last));
    }
    if (s.n >= 4) {
        memcpy(&first, s.p, 4);
        memcpy(&last, s.p + s.n - 4, 4);
        memcpy(to, &first, 4);
        memcpy(to + s.n - 4, &last, 4);
        return !put_unclean_word(first << 32 | last);
    }
    if (!s.n)
        return true;
    const char middle = s.p[s.n / 2], end = s.p[s.n - 1];
    to[0] = s.p[0];
    to[s.n / 2] = middle;
    to[s.n - 1] = end;
    first = 0x2020202020000000u | (unsigned char) to[0] | (uint64_t) (unsigned char) middle << 8 |
            (uint64_t) (unsigned char) end << 16;
    return !put_unclean_word(first);
}

/* Copies; false when something is not clean, and the copy is then no good. */
static inline bool put_clean(char *to, struct str s)
{
    put_lanes x, found = {0};
    if (s.n < 16)
        return put_clean_short(to, s);
    for (size_t i = 0; i + 16 < s.n; i += 16) {
        memcpy(&x, s.p + i, sizeof(x));
        found |= put_unclean(x);
        memcpy(to + i, &x, sizeof(x));
    }
    memcpy(&x, s.p + s.n - 16, sizeof(x)); /* may overlap what went before */
    memcpy(to + s.n - 16, &x, sizeof(x));
    return put_is_zero(found | put_unclean(x));
}

/* What put_text() writes of a text that is not clean: escaped, and U+FFFD for what is no UTF-8. */
char *put_escaped(char *to, struct str s);
/* Appends it with U+FFFD for what is no UTF-8. */
void put_mended(struct buf *b, struct str s);

static inline char *put_text(char *to, struct str s)
{
    *to++ = '"';
    to = put_clean(to, s) ? to + s.n : put_escaped(to, s);
    *to++ = '"';
    return to;
}

/* key is `,"name":` with whatever goes before; nothing is written without a value. */
static inline char *put_member(char *to, struct str key, struct str value)
{
    return value.n ? put_text(put(to, key), value) : to;
}

#define PUT_MEMBER(to, key, value) ((to) = put_member((to), STR(key), (value)))

/* ---- lists and numbers --------------------------------------------------------------------- */

static inline char *put_list(char *to, const struct str *items, size_t n)
{
    *to++ = '[';
    for (size_t i = 0; i < n; i++) {
        if (i)
            *to++ = ',';
        to = put_text(to, items[i]);
    }
    *to++ = ']';
    return to;
}

static inline size_t put_list_bound(const struct str *items, size_t n)
{
    size_t bound = 2;
    for (size_t i = 0; i < n; i++)
        bound += put_text_bound(items[i]) + 1;
    return bound;
}

static inline void put_two_digits(char *to, uint32_t value)
{
    to[0] = (char) ('0' + value / 10);
    to[1] = (char) ('0' + value % 10);
}
