/* SPDX-License-Identifier: Apache-2.0 */
#include "resources/addresses.h"

#include <arpa/inet.h>

#include "api/names.h"

#define PORT_MAX 65535

bool ip_address_parse(struct str text, struct ip_address *ret)
{
    char z[INET6_ADDRSTRLEN];
    struct ip_address a = {.version = str_find(text, ':') >= 0 ? 6 : 4};
    if (text.n >= sizeof(z) || (text.n && memchr(text.p, '\0', text.n)))
        return false;
    if (text.n)
        memcpy(z, text.p, text.n);
    z[text.n] = '\0';
    if (inet_pton(a.version == 6 ? AF_INET6 : AF_INET, z, a.bytes) != 1)
        return false;
    *ret = a;
    return true;
}

bool ip_network_parse(struct str text, struct ip_network *ret)
{
    struct ip_network n = {.n_bits = 0};
    const ptrdiff_t slash = str_find(text, '/');
    int64_t bits = 0;
    if (slash <= 0 || !ip_address_parse(str_sub(text, 0, (size_t) slash), &n.address))
        return false;
    const struct str length = str_from(text, (size_t) slash + 1);
    if (!length.n || length.p[0] < '0' || length.p[0] > '9' || str_to_i64(length, &bits) < 0 ||
        bits > (n.address.version == 6 ? 128 : 32))
        return false;
    n.n_bits = (unsigned) bits;
    *ret = n;
    return true;
}

bool ip_network_has(const struct ip_network *n, const struct ip_address *a)
{
    if (n->address.version != a->version)
        return false;
    const size_t n_whole = n->n_bits / 8, rest = n->n_bits % 8;
    const unsigned char mask = (unsigned char) (0xff00u >> rest);
    return memcmp(n->address.bytes, a->bytes, n_whole) == 0 &&
           (rest == 0 || ((n->address.bytes[n_whole] ^ a->bytes[n_whole]) & mask) == 0);
}

/* "host", "host:8080", "[::1]:8080" */
static bool split_host(struct str authority, struct url_parts *ret)
{
    const bool is_bracketed = authority.n && authority.p[0] == '[';
    const ptrdiff_t close = str_find(authority, ']');
    if (is_bracketed && close < 0)
        return false;
    ret->host = is_bracketed ? str_sub(authority, 1, (size_t) close) : authority;
    struct str rest = is_bracketed ? str_from(authority, (size_t) close + 1) : STR_NONE;
    const ptrdiff_t colon = is_bracketed ? -1 : str_find(authority, ':');
    if (colon >= 0) {
        ret->host = str_sub(authority, 0, (size_t) colon);
        rest = str_from(authority, (size_t) colon);
    }
    if (!rest.n)
        return ret->host.n > 0;
    return ret->host.n > 0 && rest.p[0] == ':' && str_to_i64(str_from(rest, 1), &ret->port) == 0 &&
           ret->port >= 1 && ret->port <= PORT_MAX;
}

bool url_split(struct str text, struct url_parts *ret)
{
    const ptrdiff_t colon = str_find_str(text, STR("://"));
    struct url_parts u = {.port = 0};
    if (colon <= 0)
        return false;
    u.scheme = str_sub(text, 0, (size_t) colon);
    const struct str behind = str_from(text, (size_t) colon + 3);
    size_t n = 0;
    while (n < behind.n && !strchr("/?#", behind.p[n]))
        n++;
    u.rest = str_from(behind, n);
    const struct str authority = str_sub(behind, 0, n);
    if (str_find(authority, '@') >= 0 || !split_host(authority, &u))
        return false;
    *ret = u;
    return true;
}

bool host_is_valid(struct arena *a, struct str host)
{
    struct ip_address address;
    if (ip_address_parse(host, &address))
        return true;
    char *lower = arena_strz(a, host);
    for (size_t i = 0; i < host.n; i++)
        lower[i] = (char) (lower[i] >= 'A' && lower[i] <= 'Z' ? lower[i] + 32 : lower[i]);
    return name_subdomain(a, str_range(lower, host.n)).n == 0;
}
