/* SPDX-License-Identifier: Apache-2.0 */
/* A borrowed run of bytes: pointer and length, for reading. Not NUL-terminated, owns nothing; an
 * absent string has p == NULL, an empty one p != NULL and n == 0. */
#pragma once

#include <string.h>

#include "base/lang.h"

struct str {
    const char *p;
    size_t n;
};

#define STR(literal) ((struct str){"" literal, sizeof(literal) - 1})
#define STR_NONE ((struct str){NULL, 0})
/* For printf: "%.*s", STR_ARG(s). */
#define STR_ARG(s) (int) (s).n, (s).p ? (s).p : ""

static inline struct str str_of(const char *z)
{
    return z ? (struct str){z, strlen(z)} : STR_NONE;
}

static inline struct str str_range(const char *p, size_t n)
{
    return (struct str){p, n};
}

/* Names are short and mostly equal where they are compared: up to 16 bytes two loads, which may
 * overlap, cost less than a call. */
static inline bool str_has_bytes(const char *a, const char *b, size_t n)
{
    uint64_t x = 0, y = 0, last_x = 0, last_y = 0;
    if (n > 16)
        return memcmp(a, b, n) == 0;
    if (n >= 8) {
        memcpy(&x, a, 8);
        memcpy(&y, b, 8);
        memcpy(&last_x, a + n - 8, 8);
        memcpy(&last_y, b + n - 8, 8);
    } else if (n >= 4) {
        memcpy(&x, a, 4);
        memcpy(&y, b, 4);
        memcpy(&last_x, a + n - 4, 4);
        memcpy(&last_y, b + n - 4, 4);
    } else if (n > 0) {
        return a[0] == b[0] && a[n / 2] == b[n / 2] && a[n - 1] == b[n - 1];
    }
    return ((x ^ y) | (last_x ^ last_y)) == 0;
}

static inline bool str_eq(struct str a, struct str b)
{
    return a.n == b.n && str_has_bytes(a.p, b.p, a.n);
}

static inline bool str_is(struct str a, const char *z)
{
    return str_eq(a, str_of(z));
}

/* Unlike strchr() it finds no NUL in any set. */
static inline bool char_is_in(char c, const char *set)
{
    return c && strchr(set, c);
}

/* Byte order, shorter first on a common prefix. */
int str_cmp(struct str a, struct str b);
bool str_eq_nocase(struct str a, struct str b);
bool str_starts_with(struct str s, struct str prefix);
bool str_ends_with(struct str s, struct str suffix);
/* Index of the first occurrence, or -1. */
ptrdiff_t str_find(struct str s, char c);
ptrdiff_t str_find_last(struct str s, char c);
ptrdiff_t str_find_str(struct str s, struct str needle);
/* From byte `from` on (clamped), or the bytes [from, to). */
struct str str_from(struct str s, size_t from);
struct str str_sub(struct str s, size_t from, size_t to);
/* Without spaces, tabs, CR and LF at both ends. */
struct str str_trim(struct str s);
/* Takes the part before the next sep off *rest; false when *rest is exhausted. "a,,b" gives "a",
 * "", "b"; a separator at the end opens no further part, an empty *rest gives none. */
bool str_split(struct str *rest, char sep, struct str *ret_part);
/* Whole string, decimal with optional sign; -EINVAL when it is no number, -ERANGE when too large.
 */
int str_to_i64(struct str s, int64_t *ret_value);
bool str_is_utf8(struct str s);
/* On the heap, with a NUL behind it. An absent string gives an empty one. */
char *str_dup(struct str s);
