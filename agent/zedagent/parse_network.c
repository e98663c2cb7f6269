/* SPDX-License-Identifier: Apache-2.0 */
/* Networks that ports belong to: NetworkXObjectConfig. */
#include "zedagent/parse_internal.h"

#include "zedagent/parse_wireless.h"

/* NetworkType as pillar numbers it; the API has other numbers for the single families. */
enum { TYPE_NOOP = 0, TYPE_V4 = 4, TYPE_V4_ONLY = 5, TYPE_V6 = 6, TYPE_V6_ONLY = 7 };

static int network_type(int api_type)
{
    switch (api_type) {
    case EVE__COMMON__NETWORK_TYPE__NETWORKTYPENOOP:
        return TYPE_NOOP;
    case EVE__COMMON__NETWORK_TYPE__V4:
        return TYPE_V4;
    case EVE__COMMON__NETWORK_TYPE__V6:
        return TYPE_V6;
    case EVE__COMMON__NETWORK_TYPE__V4Only:
        return TYPE_V4_ONLY;
    case EVE__COMMON__NETWORK_TYPE__V6Only:
        return TYPE_V6_ONLY;
    default:
        return -1;
    }
}

struct json *parse_proxy(struct arena *a, const Eve__Common__ProxyConfig *c)
{
    struct gotype g = gotype_new(a);
    struct json servers = c->n_proxies ? json_array() : json_null();
    for (size_t i = 0; i < c->n_proxies; i++) {
        struct gotype server = gotype_new(a);
        const int type = c->proxies[i]->proto;
        gotype_int(&server, "type", type >= 0 && type <= 255 ? type : 0);
        gotype_text(&server, "server", pb_text(c->proxies[i]->server));
        gotype_int(&server, "port", c->proxies[i]->port);
        json_push(a, &servers, *server.object);
    }
    gotype_value(&g, "Proxies", &servers);
    gotype_text(&g, "Exceptions", pb_text(c->exceptions));
    gotype_text(&g, "Pacfile", pb_text(c->pacfile));
    gotype_bool(&g, "NetworkProxyEnable", c->networkproxyenable);
    gotype_text(&g, "NetworkProxyURL", pb_text(c->networkproxyurl));
    gotype_text(&g, "WpadURL", STR(""));
    gotype_value(&g, "pubsub-large-ProxyCertPEM",
                 parse_bytes_list(a, c->proxycertpem, c->n_proxycertpem));
    return g.object;
}

/* What an ipspec says, read as far as it makes sense. */
struct addressing {
    int dhcp;
    struct str domain;
    struct subnet subnet;
    struct address gateway, range_start, range_end;
    struct json *ntp, *dns; /* NULL: none */
    bool ignores_ntp, ignores_addresses, ignores_dns, ignores_gateways;
};

static struct json *ntp_servers(struct parse *p, const Eve__Common__Ipspec *s)
{
    struct json *list = NULL;
    if (!pb_text(s->ntp).n)
        return NULL;
    list = json_new(p->arena, json_array());
    json_push(p->arena, list, gotype_string(p->arena, pb_text(s->ntp)));
    for (size_t i = 0; i < s->n_more_ntp; i++)
        json_push(p->arena, list, gotype_string(p->arena, str_of(s->more_ntp[i])));
    return list;
}

static bool is_other_family(const struct subnet *s, const struct address *a)
{
    return s->base.n && s->base.n != a->n;
}

static struct str read_range(struct parse *p, const Eve__Common__IpRange *r, struct addressing *to)
{
    const struct str start = r ? pb_text(r->start) : STR(""), end = r ? pb_text(r->end) : STR("");
    if (!start.n)
        return STR_NONE;
    if (!address_parse(start, &to->range_start))
        return arena_printf(p->arena, "invalid DHCP range start IP (%.*s)", STR_ARG(start));
    if (!address_parse(end, &to->range_end) && end.n)
        return arena_printf(p->arena, "invalid DHCP range end IP (%.*s)", STR_ARG(end));
    if (to->range_end.n && to->range_end.n != to->range_start.n)
        return arena_printf(p->arena,
                            "IP version mismatch between DHCP range start (%.*s) and end (%.*s)",
                            STR_ARG(start), STR_ARG(end));
    if (!to->subnet.base.n)
        return STR_NONE;
    if (!subnet_contains(&to->subnet, &to->range_start))
        return arena_printf(p->arena, "DHCP range start IP (%.*s) is not within the subnet (%.*s)",
                            STR_ARG(start), STR_ARG(subnet_text(p->arena, &to->subnet)));
    if (to->range_end.n && !subnet_contains(&to->subnet, &to->range_end))
        return arena_printf(p->arena, "DHCP range end IP (%.*s) is not within the subnet (%.*s)",
                            STR_ARG(end), STR_ARG(subnet_text(p->arena, &to->subnet)));
    if (to->range_end.n && address_cmp(&to->range_start, &to->range_end) > 0)
        return arena_printf(p->arena, "DHCP range start IP (%.*s) is greater than end IP (%.*s)",
                            STR_ARG(start), STR_ARG(end));
    return STR_NONE;
}

static struct str read_dns(struct parse *p, const Eve__Common__Ipspec *s, struct addressing *to)
{
    for (size_t i = 0; i < s->n_dns; i++) {
        struct address server;
        if (!address_parse(str_of(s->dns[i]), &server))
            return arena_printf(p->arena, "invalid DNS IP (%s)", s->dns[i]);
        if (is_other_family(&to->subnet, &server))
            return arena_printf(p->arena,
                                "IP version mismatch between subnet (%.*s) and DNS server (%s)",
                                STR_ARG(subnet_text(p->arena, &to->subnet)), s->dns[i]);
        to->dns = to->dns ? to->dns : json_new(p->arena, json_array());
        json_push(p->arena, to->dns, json_string(address_text(p->arena, &server)));
    }
    return STR_NONE;
}

/* An error in words, absent: none. */
static struct str read_addressing(struct parse *p, const Eve__Common__Ipspec *s,
                                  struct addressing *to)
{
    const Eve__Common__DhcpOptionsIgnore *ignore = s->dhcp_options_ignore;
    const struct str subnet = pb_text(s->subnet), gateway = pb_text(s->gateway);
    struct str error;
    to->dhcp = s->dhcp;
    to->domain = pb_text(s->domain);
    if (subnet.n && !subnet_parse(subnet, NULL, &to->subnet))
        return arena_printf(p->arena, "invalid subnet (%.*s): invalid CIDR address: %.*s",
                            STR_ARG(subnet), STR_ARG(subnet));
    if (gateway.n && !address_parse(gateway, &to->gateway))
        return arena_printf(p->arena, "invalid gateway IP (%.*s)", STR_ARG(gateway));
    if (gateway.n && is_other_family(&to->subnet, &to->gateway))
        return arena_printf(p->arena,
                            "IP version mismatch between subnet (%.*s) and gateway (%.*s)",
                            STR_ARG(subnet_text(p->arena, &to->subnet)), STR_ARG(gateway));
    to->ntp = ntp_servers(p, s);
    to->ignores_addresses = ignore && ignore->ip_addresses_exclusively;
    to->ignores_gateways = ignore && ignore->gateways_exclusively;
    to->ignores_dns = ignore && ignore->dns_config_exclusively;
    to->ignores_ntp = ignore && ignore->ntp_server_exclusively;
    error = read_dns(p, s, to);
    return error.n ? error : read_range(p, s->dhcprange, to);
}

static void write_addressing(struct gotype *g, const struct addressing *d)
{
    struct gotype range = gotype_new(g->arena);
    gotype_int(g, "Dhcp", d->dhcp);
    gotype_subnet(g, "Subnet", &d->subnet);
    gotype_address(g, "Gateway", &d->gateway);
    gotype_text(g, "DomainName", d->domain);
    gotype_value(g, "NTPServers", d->ntp);
    gotype_bool(g, "IgnoreDhcpIPAddresses", d->ignores_addresses);
    gotype_bool(g, "IgnoreDhcpGateways", d->ignores_gateways);
    gotype_bool(g, "IgnoreDhcpDNSConfig", d->ignores_dns);
    gotype_bool(g, "IgnoreDhcpNtpServers", d->ignores_ntp);
    gotype_value(g, "DNSServers", d->dns);
    gotype_address(&range, "Start", &d->range_start);
    gotype_address(&range, "End", &d->range_end);
    gotype_value(g, "DhcpRange", range.object);
}

/* What is to be said about the network, in the order in which EVE finds it; absent: nothing. */
static struct str find_error(struct parse *p, const Eve__Config__NetworkConfig *n, int type,
                             const struct str *parts, struct str bad_host)
{
    const struct json id = gotype_uuid_value(p->arena, pb_text(n->id));
    if (type < 0)
        return arena_printf(p->arena, "Unknown Network type (%d)", (int) n->type);
    if (str_eq(json_str(&id), PARSE_NIL_UUID) && !str_eq(pb_text(n->id), PARSE_NIL_UUID))
        return arena_printf(p->arena, "Malformed UUID ignored: %.*s", STR_ARG(pb_text(n->id)));
    if (parts[0].n)
        return parts[0];
    if (!n->ip && type != TYPE_NOOP)
        return STR("Missing IP configuration");
    if (parts[1].n)
        return arena_printf(p->arena, "Invalid IP configuration: %.*s", STR_ARG(parts[1]));
    if (bad_host.p)
        return arena_printf(p->arena, "Invalid DNS entry address (%.*s)", STR_ARG(bad_host));
    if (n->mtu && n->mtu < PARSE_MIN_MTU)
        return arena_printf(p->arena, "MTU (%u) is too small", n->mtu);
    if (n->mtu > PARSE_MAX_MTU)
        return arena_printf(p->arena, "MTU (%u) is too large", n->mtu);
    return STR_NONE;
}

struct parse_network parse_one_network(struct parse *p, const Eve__Config__NetworkConfig *n)
{
    struct gotype g = gotype_new(p->arena);
    struct addressing addressing = {0};
    struct json *wireless, *hosts;
    struct str bad_host = STR_NONE, parts[2];
    const int type = network_type(n->type);
    struct parse_network ret = {.type = MAX(type, 0)};
    parts[0] = parse_wireless(p, pb_text(n->id), n->wireless, &wireless, &ret.is_wireless);
    parts[1] = n->ip ? read_addressing(p, n->ip, &addressing) : STR_NONE;
    hosts = parse_host_names(p, n->dns, n->n_dns, &bad_host);
    ret.error = find_error(p, n, type, parts, bad_host);
    ret.subnet = addressing.subnet;
    ret.dhcp = addressing.dhcp;
    ret.mtu = n->mtu == 0 || (n->mtu >= PARSE_MIN_MTU && n->mtu <= PARSE_MAX_MTU) ? n->mtu : 0;
    gotype_uuid(&g, "UUID", pb_text(n->id));
    gotype_int(&g, "Type", ret.type);
    write_addressing(&g, &addressing);
    gotype_value(&g, "DNSNameToIPList", hosts);
    gotype_value(&g, "Proxy", n->entproxy ? parse_proxy(p->arena, n->entproxy) : NULL);
    gotype_value(&g, "WirelessCfg", wireless);
    gotype_int(&g, "MTU", ret.mtu);
    gotype_error(&g, ret.error, p->now_us);
    ret.value = g.object;
    return ret;
}

struct json *parse_networks(struct parse *p)
{
    struct json *all = json_new(p->arena, json_object());
    for (size_t i = 0; i < p->config->n_networks; i++) {
        const struct parse_network n = parse_one_network(p, p->config->networks[i]);
        json_append_member(p->arena, all, json_get_str(n.value, STR("UUID")), *n.value);
    }
    return all;
}
