/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include <errno.h>
#include <strings.h>

#include "base/alloc.h"

char *str_dup(struct str s)
{
    char *z = mem_alloc(s.n + 1);
    if (s.n)
        memcpy(z, s.p, s.n);
    z[s.n] = 0;
    return z;
}

int str_cmp(struct str a, struct str b)
{
    size_t n = MIN(a.n, b.n);
    int order = n ? memcmp(a.p, b.p, n) : 0;
    if (order != 0)
        return order;
    return a.n < b.n ? -1 : a.n > b.n;
}

bool str_eq_nocase(struct str a, struct str b)
{
    return a.n == b.n && (a.n == 0 || strncasecmp(a.p, b.p, a.n) == 0);
}

bool str_starts_with(struct str s, struct str prefix)
{
    return s.n >= prefix.n && str_eq(str_range(s.p, prefix.n), prefix);
}

bool str_ends_with(struct str s, struct str suffix)
{
    return s.n >= suffix.n && str_eq(str_from(s, s.n - suffix.n), suffix);
}

ptrdiff_t str_find(struct str s, char c)
{
    const char *at = s.n ? memchr(s.p, c, s.n) : NULL;
    return at ? at - s.p : -1;
}

ptrdiff_t str_find_last(struct str s, char c)
{
    const char *at = s.n ? memrchr(s.p, c, s.n) : NULL;
    return at ? at - s.p : -1;
}

ptrdiff_t str_find_str(struct str s, struct str needle)
{
    if (needle.n == 0)
        return 0;
    const char *at = s.n ? memmem(s.p, s.n, needle.p, needle.n) : NULL;
    return at ? at - s.p : -1;
}

struct str str_from(struct str s, size_t from)
{
    return str_sub(s, from, s.n);
}

struct str str_sub(struct str s, size_t from, size_t to)
{
    to = MIN(to, s.n);
    from = MIN(from, to);
    return s.p ? str_range(s.p + from, to - from) : s;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct str str_trim(struct str s)
{
    while (s.n > 0 && is_blank(s.p[0]))
        s = str_from(s, 1);
    while (s.n > 0 && is_blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

bool str_split(struct str *rest, char sep, struct str *ret_part)
{
    if (!rest->p || rest->n == 0)
        return false;
    ptrdiff_t at = str_find(*rest, sep);
    if (at < 0) {
        *ret_part = *rest;
        *rest = STR_NONE;
        return true;
    }
    *ret_part = str_sub(*rest, 0, (size_t) at);
    *rest = str_from(*rest, (size_t) at + 1);
    return true;
}

int str_to_i64(struct str s, int64_t *ret_value)
{
    bool negative = s.n > 0 && s.p[0] == '-';
    if (s.n > 0 && (s.p[0] == '-' || s.p[0] == '+'))
        s = str_from(s, 1);
    if (s.n == 0)
        return -EINVAL;
    int64_t value = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return -EINVAL;
        int digit = s.p[i] - '0';
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, negative ? -digit : digit, &value))
            return -ERANGE;
    }
    *ret_value = value;
    return 0;
}

/* Length of the UTF-8 sequence at p, or 0 when it is none (RFC 3629: no surrogates, no overlongs).
 */
static size_t utf8_sequence(const unsigned char *p, size_t n)
{
    if (p[0] < 0x80)
        return 1;
    size_t length = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || length > n)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
    bool surrogate = p[0] == 0xed && p[1] > 0x9f;
    bool too_large = p[0] == 0xf4 && p[1] > 0x8f;
    return overlong || surrogate || too_large ? 0 : length;
}

bool str_is_utf8(struct str s)
{
    const unsigned char *p = (const unsigned char *) s.p;
    for (size_t i = 0; i < s.n;) {
        size_t length = utf8_sequence(p + i, s.n - i);
        if (length == 0)
            return false;
        i += length;
    }
    return true;
}
