/* SPDX-License-Identifier: Apache-2.0 */
#include "zedagent/parse_local.h"

#include "zedagent/parse_wireless.h"
#include "zedagent/ports.h"

enum { DHCP_STATIC = 1, DHCP_CLIENT = 4 };
#define MAX_PROXY_PORT 65535

/* The port at hand. */
struct wish {
    struct parse *parse;
    const Eve__Profile__NetworkPortConfig *port;
    struct str label;
};

#define REFUSE(w, format, ...) \
    arena_printf((w)->parse->arena, "port \"%.*s\": " format, STR_ARG((w)->label), ##__VA_ARGS__)

/* ---- sizes ---------------------------------------------------------------------------------- */

/* Of what ends up in files and on command lines of others. */
static bool is_name(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char) s.p[i] <= ' ' || s.p[i] == 0x7f)
            return false;
    return s.n <= PARSE_LOCAL_MAX_NAME_BYTES;
}

static struct str check_list(const struct wish *w, const char *what, char *const *texts, size_t n)
{
    if (n > PARSE_LOCAL_MAX_SERVERS)
        return REFUSE(w, "too many of %s (%zu)", what, n);
    for (size_t i = 0; i < n; i++)
        if (!texts[i][0] || !is_name(pb_text(texts[i])))
            return REFUSE(w, "invalid %s", what);
    return STR_NONE;
}

static struct str check_lists(const struct wish *w)
{
    const Eve__Profile__NetworkPortConfig *p = w->port;
    const struct {
        const char *what;
        char *const *texts;
        size_t n;
    } lists[] = {{"static IP address", p->ip_addresses, p->n_ip_addresses},
                 {"gateway", p->gateways, p->n_gateways},
                 {"DNS server", p->dns_servers, p->n_dns_servers},
                 {"NTP server", p->ntp_servers, p->n_ntp_servers}};
    for (size_t i = 0; i < N_ELEMENTS(lists); i++) {
        const struct str error = check_list(w, lists[i].what, lists[i].texts, lists[i].n);
        if (error.n)
            return error;
    }
    if (!is_name(pb_text(p->dns_domain)))
        return REFUSE(w, "invalid DNS domain");
    return STR_NONE;
}

static struct str check_proxy(const struct wish *w)
{
    const Eve__Common__ProxyConfig *c = w->port->proxy_config;
    if (!c)
        return STR_NONE;
    if (c->n_proxies > PARSE_LOCAL_MAX_SERVERS || c->n_proxycertpem > PARSE_LOCAL_MAX_SERVERS)
        return REFUSE(w, "too many proxies");
    for (size_t i = 0; i < c->n_proxies; i++) {
        const Eve__Common__ProxyServer *s = c->proxies[i];
        if (!is_name(pb_text(s->server)) || s->port > MAX_PROXY_PORT || (int) s->proto < 0 ||
            (int) s->proto > EVE__COMMON__PROXY_PROTO__PROXY_OTHER)
            return REFUSE(w, "invalid proxy");
    }
    for (size_t i = 0; i < c->n_proxycertpem; i++)
        if (c->proxycertpem[i].len > PARSE_LOCAL_MAX_CERTIFICATE_BYTES)
            return REFUSE(w, "too large a proxy certificate");
    if (pb_text(c->exceptions).n > PARSE_LOCAL_MAX_TEXT_BYTES ||
        pb_text(c->networkproxyurl).n > PARSE_LOCAL_MAX_TEXT_BYTES ||
        pb_text(c->pacfile).n > PARSE_LOCAL_MAX_SCRIPT_BYTES)
        return REFUSE(w, "too long a proxy configuration");
    return STR_NONE;
}

static struct str check_mtu(const struct wish *w)
{
    const unsigned mtu = w->port->mtu;
    if (mtu && mtu < PARSE_MIN_MTU)
        return REFUSE(w, "MTU (%u) is too small", mtu);
    if (mtu > PARSE_MAX_MTU)
        return REFUSE(w, "MTU (%u) is too large", mtu);
    return STR_NONE;
}

/* ---- addresses ------------------------------------------------------------------------------ */

/* NetworkType as pillar numbers it; -1: there is no such. */
static int type_of(Eve__Profile__IPVersion v)
{
    switch ((int) v) {
    case EVE__PROFILE__IPVERSION__IP_VERSION_UNSPECIFIED:
        return 4;
    case EVE__PROFILE__IPVERSION__IP_VERSION_DUAL_STACK:
        return 8;
    case EVE__PROFILE__IPVERSION__IP_VERSION_IPV4_ONLY:
        return 5;
    case EVE__PROFILE__IPVERSION__IP_VERSION_IPV6_ONLY:
        return 7;
    default:
        return -1;
    }
}

static struct str read_address(const struct wish *w, struct port *port, struct subnet *ret)
{
    const Eve__Profile__NetworkPortConfig *p = w->port;
    if (p->n_ip_addresses > 1)
        return REFUSE(w, "multiple static IP addresses are not supported");
    if (p->n_ip_addresses == 0)
        return STR_NONE;
    const struct str text = pb_text(p->ip_addresses[0]);
    if (!subnet_parse(text, NULL, ret))
        return REFUSE(w, "invalid IP address \"%.*s\": invalid CIDR address: %.*s", STR_ARG(text),
                      STR_ARG(text));
    port->subnet_text = text;
    return STR_NONE;
}

static struct str read_gateway(const struct wish *w, const struct subnet *subnet, struct gotype *g)
{
    const Eve__Profile__NetworkPortConfig *p = w->port;
    struct address gateway = {0};
    if (p->n_gateways > 1)
        return REFUSE(w, "multiple static IP gateways are not supported");
    if (p->n_gateways == 1) {
        const struct str text = pb_text(p->gateways[0]);
        if (!address_parse(text, &gateway))
            return REFUSE(w, "invalid gateway IP address \"%.*s\"", STR_ARG(text));
        /* By itself a machine could not tell why there is no route. */
        if (!p->use_dhcp && subnet->base.n && subnet->base.n != gateway.n)
            return REFUSE(w, "IP version mismatch between address and gateway (%.*s)",
                          STR_ARG(text));
    }
    if (p->without_default_route)
        (void) address_parse(STR("0.0.0.0"), &gateway);
    if (gateway.n)
        gotype_address(g, "Gateway", &gateway);
    return STR_NONE;
}

static struct str read_dns(const struct wish *w, struct gotype *g)
{
    const Eve__Profile__NetworkPortConfig *p = w->port;
    struct json servers = json_array();
    for (size_t i = 0; i < p->n_dns_servers; i++) {
        struct address server;
        const struct str text = pb_text(p->dns_servers[i]);
        if (!address_parse(text, &server))
            return REFUSE(w, "invalid DNS server IP address \"%.*s\"", STR_ARG(text));
        json_push(g->arena, &servers, json_string(address_text(g->arena, &server)));
    }
    if (servers.n)
        gotype_value(g, "DNSServers", json_new(g->arena, servers));
    gotype_text(g, "DomainName", pb_text(p->dns_domain));
    return STR_NONE;
}

static void write_rest(const struct wish *w, struct gotype *g)
{
    const Eve__Profile__NetworkPortConfig *p = w->port;
    const Eve__Common__DhcpOptionsIgnore *ignore = p->dhcp_options_ignore;
    if (p->n_ntp_servers)
        gotype_texts(g, "NTPServers", p->ntp_servers, p->n_ntp_servers);
    gotype_bool(g, "IgnoreDhcpNtpServers", ignore && ignore->ntp_server_exclusively);
    gotype_bool(g, "IgnoreDhcpIPAddresses", ignore && ignore->ip_addresses_exclusively);
    gotype_bool(g, "IgnoreDhcpGateways", ignore && ignore->gateways_exclusively);
    gotype_bool(g, "IgnoreDhcpDNSConfig", ignore && ignore->dns_config_exclusively);
    if (p->proxy_config)
        gotype_value(g, "Proxy", parse_proxy(g->arena, p->proxy_config));
}

/* As a network of the controller says it. */
static struct str read_addressing(const struct wish *w, struct port *port)
{
    struct gotype g = gotype_sparse(w->parse->arena);
    struct subnet subnet = {0};
    const int type = type_of(w->port->ip_version);
    if (type < 0)
        return REFUSE(w, "unrecognized IP version (%d)", (int) w->port->ip_version);
    gotype_int(&g, "Type", type);
    port->dhcp = w->port->use_dhcp ? DHCP_CLIENT : DHCP_STATIC;
    port->mtu = w->port->mtu;
    struct str error = read_address(w, port, &subnet);
    if (!error.n)
        error = read_gateway(w, &subnet, &g);
    if (!error.n)
        error = read_dns(w, &g);
    write_rest(w, &g);
    port->addressing = g.object;
    return error;
}

/* ---- ports ---------------------------------------------------------------------------------- */

static const struct json *find_port(const struct json *ports, struct str label)
{
    JSON_FOR_EACH_ITEM (ports, item)
        if (str_eq(json_get_str(item, STR("Logicallabel")), label))
            return item;
    return NULL;
}

static struct str read_wireless(const struct wish *w, struct port *port)
{
    const struct str error = parse_local_wireless(w->parse, w->port, &port->wireless);
    return error.n ? REFUSE(w, "%.*s", STR_ARG(error)) : STR_NONE;
}

static struct str read_settings(const struct wish *w, struct port *port)
{
    static struct str (*const checks[])(const struct wish *w) = {check_lists, check_proxy,
                                                                 check_mtu};
    for (size_t i = 0; i < N_ELEMENTS(checks); i++) {
        const struct str error = checks[i](w);
        if (error.n)
            return error;
    }
    const struct str error = read_addressing(w, port);
    return error.n ? error : read_wireless(w, port);
}

static struct str read_port(struct wish *w, const struct json *in_use, struct json *ports)
{
    struct arena *a = w->parse->arena;
    struct port port = {.label = w->label};
    if (!w->label.n)
        return STR("port configuration with undefined logical label");
    if (w->label.n > PARSE_LOCAL_MAX_NAME_BYTES)
        return STR("port configuration with too long a logical label");
    const struct json *own = find_port(in_use, w->label);
    if (!own)
        return arena_printf(a, "port with logical label \"%.*s\" not found in the current config",
                            STR_ARG(w->label));
    if (find_port(ports, w->label))
        return REFUSE(w, "configured more than once");
    port.ifname = json_get_str(own, STR("IfName"));
    port.usb = json_get_str(own, STR("USBAddr"));
    port.pci = json_get_str(own, STR("PCIAddr"));
    port.phylabel = json_get_str(own, STR("Phylabel"));
    const struct str error = read_settings(w, &port);
    if (!error.n)
        json_push(a, ports, *port_value(w->parse, &port));
    return error;
}

static struct str read_ports(struct parse *p, const Eve__Profile__LocalNetworkConfig *c,
                             const struct json *in_use, struct json *ret)
{
    if (c->n_ports > PARSE_LOCAL_MAX_PORTS)
        return arena_printf(p->arena, "too many ports (%zu)", c->n_ports);
    if (c->n_ports && !in_use)
        return STR("no network configuration is currently active");
    for (size_t i = 0; i < c->n_ports; i++) {
        struct wish w = {p, c->ports[i], pb_text(c->ports[i]->logical_label)};
        const struct str error = read_port(&w, in_use, ret);
        if (error.n)
            return error;
    }
    return STR_NONE;
}

struct str parse_local_network(struct arena *a, const Eve__Profile__LocalNetworkConfig *c,
                               const struct json *in_use, int64_t received_us, struct json **ret)
{
    struct parse p = {
        .arena = a, .source = PARSE_LPS, .now_us = received_us, .received_us = received_us};
    struct gotype g = gotype_sparse(a);
    struct json *ports = json_new(a, json_array());
    const struct str error = read_ports(&p, c, in_use, ports);
    if (error.n) {
        /* What was quoted need not be text. */
        const struct json words = gotype_string(a, error);
        return json_str(&words);
    }
    gotype_int(&g, "Version", 1);
    gotype_text(&g, "Key", STR("lps"));
    gotype_value(&g, "Ports", ports);
    *ret = g.object;
    return STR_NONE;
}
