/* SPDX-License-Identifier: Apache-2.0 */
#include "base/uuid.h"

#include <errno.h>

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char) (c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int uuid_parse(struct str text, struct uuid *ret)
{
    size_t n = 0;
    if (text.n != UUID_TEXT_BYTES - 1)
        return -EINVAL;
    for (size_t i = 0; i < text.n;) {
        if (i == 8 || i == 13 || i == 18 || i == 23) {
            if (text.p[i++] != '-')
                return -EINVAL;
            continue;
        }
        int high = digit(text.p[i]), low = digit(text.p[i + 1]);
        if (high < 0 || low < 0)
            return -EINVAL;
        ret->bytes[n++] = (unsigned char) (high << 4 | low);
        i += 2;
    }
    return 0;
}

void uuid_text(const struct uuid *u, char out[UUID_TEXT_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < sizeof(u->bytes); i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *out++ = '-';
        *out++ = digits[u->bytes[i] >> 4];
        *out++ = digits[u->bytes[i] & 15];
    }
    *out = '\0';
}

bool uuid_is_zero(const struct uuid *u)
{
    static const struct uuid zero;
    return uuid_eq(u, &zero);
}
