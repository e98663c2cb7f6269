/* SPDX-License-Identifier: Apache-2.0 */
#include "controllerconn/proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "controllerconn/url.h"

/* An address as 16 bytes; IPv4 mapped. */
struct ip {
    unsigned char bytes[16];
    bool is_v4;
};

static bool parse_ip(struct str text, struct ip *ret)
{
    char z[INET6_ADDRSTRLEN];
    if (text.n > 2 && text.p[0] == '[' && text.p[text.n - 1] == ']')
        text = str_sub(text, 1, text.n - 1);
    if (text.n == 0 || text.n >= sizeof(z))
        return false;
    memcpy(z, text.p, text.n);
    z[text.n] = 0;
    memset(ret, 0, sizeof(*ret));
    ret->is_v4 = inet_pton(AF_INET, z, ret->bytes + 12) == 1;
    if (ret->is_v4)
        memset(ret->bytes + 10, 0xff, 2);
    return ret->is_v4 || inet_pton(AF_INET6, z, ret->bytes) == 1;
}

static bool is_loopback(struct str host)
{
    struct ip ip;
    if (str_eq_nocase(host, STR("localhost")))
        return true;
    if (!parse_ip(host, &ip))
        return false;
    return ip.is_v4 ? ip.bytes[12] == 127
                    : IN6_IS_ADDR_LOOPBACK((const struct in6_addr *) ip.bytes);
}

static bool is_in_network(const struct ip *ip, struct str cidr)
{
    const ptrdiff_t slash = str_find(cidr, '/');
    struct ip network;
    int64_t bits;
    if (!parse_ip(str_sub(cidr, 0, (size_t) slash), &network) || network.is_v4 != ip->is_v4 ||
        str_to_i64(str_from(cidr, (size_t) slash + 1), &bits) < 0 || bits < 0 ||
        bits > (network.is_v4 ? 32 : 128))
        return false;
    const size_t n = (size_t) bits + (network.is_v4 ? 96 : 0);
    if (memcmp(ip->bytes, network.bytes, n / 8) != 0)
        return false;
    const unsigned rest = n % 8;
    return rest == 0 || ((ip->bytes[n / 8] ^ network.bytes[n / 8]) >> (8 - rest)) == 0;
}

/* Takes a port off the end of an entry, where there is one and only one colon or brackets. */
static struct str split_port(struct str entry, int64_t *ret_port)
{
    const ptrdiff_t colon = str_find_last(entry, ':');
    const bool has_brackets = entry.n > 0 && entry.p[0] == '[';
    *ret_port = 0;
    if (colon < 0 || (!has_brackets && str_find(entry, ':') != colon) ||
        str_to_i64(str_from(entry, (size_t) colon + 1), ret_port) < 0)
        return entry;
    return str_sub(entry, 0, (size_t) colon);
}

static bool is_domain_of(struct str host, struct str entry)
{
    bool matches_itself = true;
    if (str_starts_with(entry, STR("*.")))
        entry = str_from(entry, 1);
    if (str_starts_with(entry, STR("."))) {
        matches_itself = false;
        entry = str_from(entry, 1);
    }
    if (entry.n == 0 || host.n < entry.n)
        return false;
    const size_t before = host.n - entry.n;
    if (!str_eq_nocase(str_from(host, before), entry))
        return false;
    return before == 0 ? matches_itself : host.p[before - 1] == '.';
}

static bool is_entry_of(struct str entry, struct str host, unsigned port)
{
    struct ip ip, other;
    const bool is_ip = parse_ip(host, &ip);
    if (str_is(entry, "*"))
        return true;
    if (str_find(entry, '/') >= 0)
        return is_ip && is_in_network(&ip, entry);
    int64_t only_port;
    const struct str name = split_port(entry, &only_port);
    if (only_port != 0 && only_port != (int64_t) port)
        return false;
    if (parse_ip(name, &other))
        return is_ip && memcmp(ip.bytes, other.bytes, sizeof(ip.bytes)) == 0;
    return !is_ip && is_domain_of(host, name);
}

bool uplink_proxy_is_excepted(struct str exceptions, struct str host, unsigned port)
{
    struct str part;
    if (is_loopback(host))
        return true;
    while (str_split(&exceptions, ',', &part)) {
        part = str_trim(part);
        if (part.n > 0 && is_entry_of(part, host, port))
            return true;
    }
    return false;
}

static struct str proxy_url(struct arena *a, const struct uplink_proxy *p)
{
    const struct str scheme = str_find_str(p->server, STR("://")) >= 0 ? STR("") : STR("http://");
    return p->port ? arena_printf(a, "%.*s%.*s:%u", STR_ARG(scheme), STR_ARG(p->server), p->port)
                   : arena_printf(a, "%.*s%.*s", STR_ARG(scheme), STR_ARG(p->server));
}

struct str uplink_proxy_explicit(struct arena *a, const struct uplink_port *port, struct str url)
{
    struct uplink_url u;
    if (uplink_url_parse(url, &u) < 0)
        return STR_NONE;
    const int wanted = uplink_url_is_secure(&u) ? UPLINK_PROXY_HTTPS : UPLINK_PROXY_HTTP;
    for (size_t i = 0; i < port->n_proxies; i++) {
        const struct uplink_proxy *p = &port->proxies[i];
        if (p->type == wanted && p->server.n > 0)
            return uplink_proxy_is_excepted(port->exceptions, u.host, u.port) ? STR_NONE
                                                                              : proxy_url(a, p);
    }
    return STR_NONE;
}

struct str uplink_proxy_of_answer(struct arena *a, struct str answer)
{
    struct str first = STR_NONE, word = STR_NONE, server = STR_NONE;
    if (!str_split(&answer, ';', &first))
        return STR_NONE;
    first = str_trim(first);
    if (str_starts_with(first, STR("DIRECT")) || !str_split(&first, ' ', &word))
        return STR_NONE;
    first = str_trim(first);
    struct uplink_url u;
    if (!str_split(&first, ' ', &server) || server.n == 0)
        return STR_NONE;
    const struct str proxy = arena_join(a, (const struct str[]){STR("http://"), server}, 2);
    return uplink_url_parse(proxy, &u) < 0 ? STR_NONE : proxy;
}
