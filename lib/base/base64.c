/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

#include <errno.h>

static const char *const alphabets[] = {
    [BASE64_STANDARD] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    [BASE64_URL] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
};

struct str base64_encode(struct arena *a, struct str bytes, enum base64_alphabet alphabet)
{
    const char *digits = alphabets[alphabet];
    const unsigned char *p = (const unsigned char *) bytes.p;
    char *out = arena_alloc(a, (bytes.n + 2) / 3 * 4 + 1);
    char *to = out;
    for (size_t i = 0; i < bytes.n; i += 3) {
        size_t n = MIN(bytes.n - i, (size_t) 3);
        uint32_t word = (uint32_t) p[i] << 16;
        word |= n > 1 ? (uint32_t) p[i + 1] << 8 : 0;
        word |= n > 2 ? p[i + 2] : 0;
        *to++ = digits[word >> 18];
        *to++ = digits[(word >> 12) & 63];
        if (n > 1)
            *to++ = digits[(word >> 6) & 63];
        else if (alphabet == BASE64_STANDARD)
            *to++ = '=';
        if (n > 2)
            *to++ = digits[word & 63];
        else if (alphabet == BASE64_STANDARD)
            *to++ = '=';
    }
    *to = '\0';
    return str_range(out, (size_t) (to - out));
}

static int digit_value(char c, enum base64_alphabet alphabet)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    const char *digits = alphabets[alphabet];
    return c == digits[62] ? 62 : c == digits[63] ? 63 : -1;
}

/* The padding from `at` on must be just what `n_digits` digits ask for. */
static bool is_padding(struct str text, size_t at, size_t n_digits, size_t *ret_bad_at)
{
    size_t n_wanted = (4 - n_digits % 4) % 4;
    for (; at < text.n; at++) {
        if (text.p[at] == '\n' || text.p[at] == '\r')
            continue;
        *ret_bad_at = at;
        if (text.p[at] != '=' || n_wanted == 0 || n_wanted == 3)
            return false;
        n_wanted--;
    }
    *ret_bad_at = text.n;
    return n_wanted == 0;
}

int base64_decode(struct arena *a, struct str text, enum base64_alphabet alphabet,
                  struct str *ret_bytes, size_t *ret_bad_at)
{
    size_t ignored = 0;
    size_t *bad_at = ret_bad_at ? ret_bad_at : &ignored;
    unsigned char *out = arena_alloc(a, text.n / 4 * 3 + 4);
    size_t n_out = 0, n_digits = 0, at = 0;
    uint32_t word = 0;
    for (; at < text.n && text.p[at] != '='; at++) {
        if (text.p[at] == '\n' || text.p[at] == '\r')
            continue;
        int value = digit_value(text.p[at], alphabet);
        if (value < 0) {
            *bad_at = at;
            return -EINVAL;
        }
        word = word << 6 | (uint32_t) value;
        n_digits++;
        if (n_digits % 4 != 1)
            out[n_out++] = (unsigned char) (word >> (6 - 2 * ((n_digits - 1) % 4)));
    }
    bool complete = alphabet == BASE64_STANDARD ? is_padding(text, at, n_digits, bad_at)
                                                : n_digits % 4 != 1 && at == text.n;
    if (!complete) {
        *bad_at = MIN(*bad_at, text.n);
        return -EINVAL;
    }
    out[n_out] = '\0';
    *ret_bytes = str_range((char *) out, n_out);
    return 0;
}
