/* SPDX-License-Identifier: Apache-2.0 */
/* IPv4 networks as numbers. */
#include <arpa/inet.h>
#include <errno.h>

#include "composer/composer_internal.h"

#define ADDRESS_TEXT_MAX INET6_ADDRSTRLEN

static bool to_text(struct str s, char text[ADDRESS_TEXT_MAX])
{
    if (s.n == 0 || s.n >= ADDRESS_TEXT_MAX || memchr(s.p, 0, s.n))
        return false;
    memcpy(text, s.p, s.n);
    text[s.n] = 0;
    return true;
}

int address_parse(struct str s, uint32_t *ret)
{
    char text[ADDRESS_TEXT_MAX];
    struct in_addr address;
    if (!to_text(s, text) || inet_pton(AF_INET, text, &address) != 1)
        return -EINVAL;
    *ret = ntohl(address.s_addr);
    return 0;
}

bool address_is_valid(struct str s, bool *ret_is_v6)
{
    char text[ADDRESS_TEXT_MAX];
    struct in6_addr v6;
    uint32_t v4;
    if (address_parse(s, &v4) == 0) {
        *ret_is_v6 = false;
        return true;
    }
    *ret_is_v6 = true;
    return to_text(s, text) && inet_pton(AF_INET6, text, &v6) == 1;
}

int subnet_parse(struct str text, struct subnet *ret, uint32_t *ret_host)
{
    const ptrdiff_t slash = str_find(text, '/');
    uint32_t address;
    int64_t length;
    if (slash < 0 || address_parse(str_sub(text, 0, (size_t) slash), &address) < 0 ||
        str_to_i64(str_from(text, (size_t) slash + 1), &length) < 0 || length < 1 || length > 32)
        return -EINVAL;
    const uint32_t mask = UINT32_MAX << (32 - length);
    *ret = (struct subnet){address & mask, (unsigned) length};
    if (ret_host)
        *ret_host = address & ~mask ? address : 0;
    return 0;
}

char *address_text(struct arena *a, uint32_t address)
{
    return arena_strz(a, arena_printf(a, "%u.%u.%u.%u", address >> 24, address >> 16 & 255,
                                      address >> 8 & 255, address & 255));
}

char *subnet_text(struct arena *a, const struct subnet *s)
{
    return arena_strz(a, arena_printf(a, "%s/%u", address_text(a, s->first), s->length));
}

uint32_t subnet_last(const struct subnet *s)
{
    return s->length >= 32 ? s->first : s->first | UINT32_MAX >> s->length;
}

bool subnet_has(const struct subnet *s, uint32_t address)
{
    return s->length && address >= s->first && address <= subnet_last(s);
}

bool subnet_overlaps(const struct subnet *a, const struct subnet *b)
{
    return a->length && b->length && a->first <= subnet_last(b) && b->first <= subnet_last(a);
}
