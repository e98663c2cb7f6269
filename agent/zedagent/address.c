/* SPDX-License-Identifier: Apache-2.0 */
#include "zedagent/address.h"

#include <arpa/inet.h>

static const unsigned char mapped_prefix[12] = {[10] = 0xFF, [11] = 0xFF};

bool address_parse(struct str text, struct address *ret)
{
    char z[INET6_ADDRSTRLEN];
    *ret = (struct address){0};
    if (!text.n || text.n >= sizeof(z) || memchr(text.p, 0, text.n))
        return false;
    memcpy(z, text.p, text.n);
    z[text.n] = 0;
    if (inet_pton(AF_INET, z, ret->bytes) == 1) {
        ret->n = 4;
        return true;
    }
    if (inet_pton(AF_INET6, z, ret->bytes) != 1) {
        *ret = (struct address){0};
        return false;
    }
    ret->n = 16;
    if (memcmp(ret->bytes, mapped_prefix, sizeof(mapped_prefix)) == 0) {
        struct address v4 = {.n = 4};
        memcpy(v4.bytes, ret->bytes + sizeof(mapped_prefix), 4);
        *ret = v4;
    }
    return true;
}

struct str address_text(struct arena *a, const struct address *address)
{
    char z[INET6_ADDRSTRLEN];
    if (!address->n)
        return STR("<nil>");
    (void) inet_ntop(address->n == 4 ? AF_INET : AF_INET6, address->bytes, z, sizeof(z));
    return arena_str(a, str_of(z));
}

int address_cmp(const struct address *a, const struct address *b)
{
    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    return memcmp(a->bytes, b->bytes, a->n);
}

struct address address_add(const struct address *address, int64_t delta)
{
    struct address sum = *address;
    int64_t carry = delta;
    for (unsigned i = sum.n; i > 0 && carry; i--) {
        carry += sum.bytes[i - 1];
        sum.bytes[i - 1] = (unsigned char) (carry & 0xFF);
        carry >>= 8;
    }
    return sum;
}

static uint32_t number_of(const struct address *v4)
{
    return (uint32_t) v4->bytes[0] << 24 | (uint32_t) v4->bytes[1] << 16 |
           (uint32_t) v4->bytes[2] << 8 | v4->bytes[3];
}

uint32_t address_distance(const struct address *start, const struct address *end)
{
    if (start->n != 4 || end->n != 4)
        return 0;
    const uint32_t from = number_of(start), to = number_of(end);
    return from > to ? from - to : to - from;
}

bool subnet_parse(struct str text, struct address *ret_address, struct subnet *ret_subnet)
{
    const ptrdiff_t slash = str_find(text, '/');
    struct address address;
    int64_t bits;
    if (slash < 0 || !address_parse(str_sub(text, 0, (size_t) slash), &address))
        return false;
    const struct str count = str_from(text, (size_t) slash + 1);
    if (!count.n || count.p[0] < '0' || count.p[0] > '9' || str_to_i64(count, &bits) < 0 ||
        bits > address.n * 8)
        return false;
    if (ret_address)
        *ret_address = address;
    if (ret_subnet) {
        *ret_subnet = (struct subnet){.base = address, .bits = (unsigned) bits};
        for (unsigned i = (unsigned) bits; i < address.n * 8; i++)
            ret_subnet->base.bytes[i / 8] &= (unsigned char) ~(0x80 >> (i % 8));
    }
    return true;
}

struct str subnet_text(struct arena *a, const struct subnet *s)
{
    return arena_printf(a, "%.*s/%u", STR_ARG(address_text(a, &s->base)), s->bits);
}

bool subnet_contains(const struct subnet *s, const struct address *address)
{
    if (s->base.n != address->n)
        return false;
    for (unsigned i = 0; i < s->bits; i++)
        if ((s->base.bytes[i / 8] ^ address->bytes[i / 8]) & (0x80 >> (i % 8)))
            return false;
    return true;
}

uint64_t subnet_count(const struct subnet *s)
{
    const unsigned host_bits = s->base.n * 8 - s->bits;
    if (!s->bits)
        return 0;
    return host_bits >= 32 ? UINT32_MAX : (uint64_t) 1 << host_bits;
}
