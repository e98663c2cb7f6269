/* SPDX-License-Identifier: Apache-2.0 */
#include "nim/status.h"

#include <arpa/inet.h>

#include "base/base64.h"
#include "nim/links.h"
#include "nim/overlay.h"

enum network_type { IPV4_ONLY = 5, IPV6 = 6, IPV6_ONLY = 7 };
/* Taken over from the configuration as they are. */
static const char *const copied[] = {"IfName",
                                     "Phylabel",
                                     "Logicallabel",
                                     "SharedLabels",
                                     "Alias",
                                     "IsMgmt",
                                     "IsL3Port",
                                     "InvalidConfig",
                                     "Cost",
                                     "Dhcp",
                                     "Type",
                                     "WirelessCfg",
                                     "PNAC",
                                     "Proxies",
                                     "Exceptions",
                                     "Pacfile",
                                     "NetworkProxyEnable",
                                     "NetworkProxyURL",
                                     "pubsub-large-ProxyCertPEM",
                                     "L2Type",
                                     "VLAN",
                                     "Bond"};

const struct machine_interface *status_find_interface(const struct machine_interface *list,
                                                      size_t n, struct str name)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(list[i].name, name))
            return &list[i];
    return NULL;
}

/* ---- addresses as Go writes them ----------------------------------------------------------- */

static size_t address_bytes(struct str text, unsigned char ret[16])
{
    char z[INET6_ADDRSTRLEN];
    if (text.n == 0 || text.n >= sizeof(z))
        return 0;
    memcpy(z, text.p, text.n);
    z[text.n] = 0;
    if (inet_pton(AF_INET, z, ret) == 1)
        return 4;
    return inet_pton(AF_INET6, z, ret) == 1 ? 16 : 0;
}

static bool is_ipv6(struct str address)
{
    return str_find(address, ':') >= 0;
}

static void mask_bytes(unsigned bits, size_t n, unsigned char ret[16])
{
    for (size_t i = 0; i < n; i++) {
        const unsigned here = bits > i * 8 ? MIN(bits - (unsigned) i * 8, 8u) : 0;
        ret[i] = (unsigned char) (0xff00u >> here);
    }
}

static struct json write_mask(struct arena *a, const struct machine_address *address)
{
    unsigned char bytes[16], mask[16] = {0};
    const size_t n = address_bytes(address->text, bytes);
    mask_bytes(address->prefix_bits, n, mask);
    return json_string(base64_encode(a, str_range((const char *) mask, n), BASE64_STANDARD));
}

/* Go's net.IPNet. */
static struct json write_subnet(struct arena *a, const struct machine_address *address)
{
    unsigned char bytes[16], mask[16] = {0};
    char text[INET6_ADDRSTRLEN];
    const size_t n = address_bytes(address->text, bytes);
    if (n == 0)
        return json_null();
    mask_bytes(address->prefix_bits, n, mask);
    for (size_t i = 0; i < n; i++)
        bytes[i] &= mask[i];
    (void) inet_ntop(n == 4 ? AF_INET : AF_INET6, bytes, text, sizeof(text));
    struct json to = json_object();
    json_set(a, &to, STR("IP"), json_string(arena_str(a, str_of(text))));
    json_set(a, &to, STR("Mask"), write_mask(a, address));
    return to;
}

bool status_parse_subnet(struct str text, struct machine_address *ret)
{
    unsigned char bytes[16];
    int64_t bits = 0;
    const ptrdiff_t slash = str_find(text, '/');
    if (slash < 0 || str_to_i64(str_from(text, (size_t) slash + 1), &bits) < 0)
        return false;
    const struct str address = str_sub(text, 0, (size_t) slash);
    const size_t n = address_bytes(address, bytes);
    if (n == 0 || bits < 0 || bits > (int64_t) n * 8)
        return false;
    *ret = (struct machine_address){.text = address, .prefix_bits = (unsigned) bits};
    return true;
}

/* ---- lists of configuration and machine ---------------------------------------------------- */

static void add_once(struct arena *a, struct json *list, struct str text)
{
    if (text.n == 0 || str_is(text, "0.0.0.0") || str_is(text, "::"))
        return;
    JSON_FOR_EACH_ITEM (list, item)
        if (str_eq(json_str(item), text))
            return;
    json_push(a, list, json_string(arena_str(a, text)));
}

static void add_all(struct arena *a, struct json *list, const struct json *from)
{
    JSON_FOR_EACH_ITEM (from, item)
        add_once(a, list, json_str(item));
}

static struct json write_dns_servers(struct arena *a, const struct json *port,
                                     const struct machine_interface *i)
{
    struct json list = json_array();
    add_all(a, &list, json_get(port, STR("DNSServers")));
    if (i && !json_get_bool(port, STR("IgnoreDhcpDNSConfig"), false))
        for (size_t n = 0; n < i->n_dns_servers; n++)
            add_once(a, &list, i->dns_servers[n]);
    if (list.n == 0 && json_get_int(port, STR("Dhcp"), 0) == MACHINE_STATIC)
        add_once(a, &list, json_get_str(port, STR("Gateway")));
    return list;
}

static struct json write_routers(struct arena *a, const struct json *port,
                                 const struct machine_interface *i)
{
    struct json list = json_array();
    add_once(a, &list, json_get_str(port, STR("Gateway")));
    if (i && !json_get_bool(port, STR("IgnoreDhcpGateways"), false))
        for (size_t n = 0; n < i->n_routers; n++)
            add_once(a, &list, i->routers[n]);
    return list;
}

static bool is_wanted(const struct json *port, bool is_v6)
{
    const int64_t type = json_get_int(port, STR("Type"), 0);
    return !(type == IPV4_ONLY && is_v6) && !(type == IPV6_ONLY && !is_v6);
}

static void add_place(struct arena *a, struct json *item, const struct status_inputs *in,
                      struct str interface, struct str address)
{
    for (size_t i = 0; i < in->n_places; i++) {
        const struct status_place *p = &in->places[i];
        if (!p->geo || !str_is(interface, p->port) || !str_is(address, p->address))
            continue;
        json_set(a, item, STR("Geo"), *json_parse_quick(a, arena_str(a, str_of(p->geo))));
        json_set(a, item, STR("LastGeoTimestamp"), dpc_time(a, p->found_us));
    }
}

static void add_addresses(struct arena *a, struct json *list, const struct status_inputs *in,
                          const struct json *port, const struct machine_interface *i, bool is_v6)
{
    if (!is_wanted(port, is_v6))
        return;
    for (size_t n = 0; n < i->n_addresses; n++) {
        if (is_ipv6(i->addresses[n].text) != is_v6)
            continue;
        struct json item = json_object();
        json_set(a, &item, STR("Addr"), json_string(arena_str(a, i->addresses[n].text)));
        json_set(a, &item, STR("Mask"), write_mask(a, &i->addresses[n]));
        add_place(a, &item, in, i->name, i->addresses[n].text);
        json_push(a, list, item);
    }
}

/* Those of a link that is down lead nowhere and are left out: every service then takes another
 * port at once instead of waiting for an answer. */
static struct json write_addresses(struct arena *a, const struct status_inputs *in,
                                   const struct json *port, const struct machine_interface *i)
{
    struct json list = json_array();
    if (!i || !i->is_up)
        return list;
    const int64_t type = json_get_int(port, STR("Type"), 0);
    const bool begins_v6 = type == IPV6 || type == IPV6_ONLY;
    add_addresses(a, &list, in, port, i, begins_v6);
    add_addresses(a, &list, in, port, i, !begins_v6);
    return list;
}

static void write_subnets(struct arena *a, struct json *to, const struct machine_interface *i)
{
    struct json v4 = json_null(), v6 = json_array();
    for (size_t n = 0; i && n < i->n_addresses; n++) {
        const struct json net = write_subnet(a, &i->addresses[n]);
        if (is_ipv6(i->addresses[n].text))
            json_push(a, &v6, net);
        else if (v4.type == JSON_NULL)
            v4 = net;
    }
    json_set(a, to, STR("IPv4Subnet"), v4);
    json_set(a, to, STR("IPv6Subnets"), v6);
}

/* ---- a port -------------------------------------------------------------------------------- */

static void write_configured(struct arena *a, struct json *to, const struct json *port)
{
    struct machine_address address;
    const bool is_static = status_parse_subnet(json_get_str(port, STR("AddrSubnet")), &address);
    json_set(a, to, STR("ConfiguredSubnet"), is_static ? write_subnet(a, &address) : json_null());
    json_set(a, to, STR("ConfiguredIP"),
             json_string(is_static ? arena_str(a, address.text) : STR("")));
    json_set(a, to, STR("IgnoredDhcpIPs"),
             json_bool(json_get_bool(port, STR("IgnoreDhcpIPAddresses"), false)));
    json_set(a, to, STR("PciLong"),
             json_string(json_get_str(port, STR("PCIAddr")).n ? json_get_str(port, STR("PCIAddr"))
                                                              : STR("")));
    struct json ntp = json_array();
    add_all(a, &ntp, json_get(port, STR("NTPServers")));
    json_set(a, to, STR("NtpServers"), ntp);
}

static void write_live(struct arena *a, struct json *to, const struct status_inputs *in,
                       const struct json *port, const struct machine_interface *i)
{
    static const unsigned char no_mac[6] = {0};
    struct str domain = json_get_str(port, STR("DomainName"));
    if (i && domain.n == 0 && !json_get_bool(port, STR("IgnoreDhcpDNSConfig"), false))
        domain = i->domain;
    json_set(a, to, STR("DomainName"), json_string(domain.n ? arena_str(a, domain) : STR("")));
    json_set(a, to, STR("DNSServers"), write_dns_servers(a, port, i));
    json_set(a, to, STR("DefaultRouters"), write_routers(a, port, i));
    json_set(a, to, STR("AddrInfoList"), write_addresses(a, in, port, i));
    write_subnets(a, to, i);
    json_set(a, to, STR("Up"), json_bool(i && i->is_up));
    if (i && memcmp(i->mac, no_mac, sizeof(no_mac)) != 0)
        json_set(a, to, STR("MacAddr"),
                 json_string(base64_encode(a, str_range((const char *) i->mac, sizeof(i->mac)),
                                           BASE64_STANDARD)));
    json_set(a, to, STR("MTU"), json_int(i ? MIN(i->mtu, 65535u) : 0));
}

static void write_script(struct arena *a, struct json *to, const struct status_inputs *in)
{
    const struct str name = json_get_str(to, STR("IfName"));
    for (size_t i = 0; i < in->n_scripts; i++) {
        const struct status_script *s = &in->scripts[i];
        if (!str_is(name, s->port) || !s->pac)
            continue;
        json_set(a, to, STR("Pacfile"), json_string(arena_str(a, str_of(s->pac))));
        json_set(a, to, STR("WpadURL"), json_string(arena_str(a, str_of(s->url))));
    }
}

static void write_modem(struct arena *a, struct json *to, const struct status_inputs *in)
{
    const int64_t type = json_get_int(json_get(to, STR("WirelessCfg")), STR("WType"), 0);
    struct json status = json_object();
    json_set(a, &status, STR("WType"), json_int(type));
    JSON_FOR_EACH_ITEM (json_get(in->modems, STR("Networks")), item)
        if (type == 1 &&
            str_eq(json_get_str(item, STR("LogicalLabel")), json_get_str(to, STR("Logicallabel"))))
            json_set(a, &status, STR("Cellular"), *item);
    if (type != 0)
        json_set(a, to, STR("WirelessStatus"), status);
}

static void write_results(struct arena *a, struct json *to, const struct dpc_port *p)
{
    const struct dpc_results *r = &p->results;
    json_set(a, to, STR("LastFailed"), dpc_time_or_never(a, r->failed_us));
    json_set(a, to, STR("LastSucceeded"), dpc_time_or_never(a, r->succeeded_us));
    json_set(a, to, STR("LastError"), json_string(arena_str(a, str_of(r->error ? r->error : ""))));
    json_set(a, to, STR("LastWarning"),
             json_string(arena_str(a, str_of(r->warning ? r->warning : ""))));
}

static void write_source(struct arena *a, struct json *to, const struct json *port,
                         const struct dpc_port *p)
{
    struct json source = json_object();
    json_set(a, &source, STR("Origin"),
             json_int(json_get_int(json_get(port, STR("ConfigSource")), STR("Origin"), 0)));
    json_set(a, &source, STR("SubmittedAt"), dpc_time_or_never(a, p->submitted_us));
    json_set(a, to, STR("ConfigSource"), source);
}

static struct json write_port(struct arena *a, const struct status_inputs *in,
                              const struct json *ports, size_t at, const struct dpc_port *p)
{
    const struct json *port = &ports->items[at];
    const struct machine_interface *i =
        status_find_interface(in->interfaces, in->n_interfaces, str_of(p->name));
    struct json to = json_object();
    for (size_t n = 0; n < N_ELEMENTS(copied); n++) {
        const struct json *value = json_get(port, str_of(copied[n]));
        if (value)
            json_set(a, &to, str_of(copied[n]), *value);
    }
    /* What others expect to be there even when it is zero. */
    json_set(a, &to, STR("IfName"), json_string(arena_str(a, str_of(p->name))));
    json_set(a, &to, STR("IsMgmt"), json_bool(p->is_management));
    json_set(a, &to, STR("IsL3Port"), json_bool(p->is_l3));
    json_set(a, &to, STR("Cost"), json_int(json_get_int(port, STR("Cost"), 0)));
    json_set(a, &to, STR("Dhcp"), json_int(p->dhcp));
    write_configured(a, &to, port);
    write_live(a, &to, in, port, i);
    if (i && i->bond_state)
        json_set(a, &to, STR("BondStatus"), links_bond_status(a, in, ports, i));
    write_script(a, &to, in);
    write_modem(a, &to, in);
    write_source(a, &to, port, p);
    write_results(a, &to, p);
    if (in->binds_device)
        json_set(a, &to, STR("BindsDevice"), json_bool(true));
    return to;
}

/* ---- the whole ----------------------------------------------------------------------------- */

/* Whatever of it is nearby's to say, with what was found of that. */
static struct dpc_port in_force(struct arena *a, const struct dpc *overlay,
                                const struct dpc_port *own, struct str *ret_error)
{
    const struct dpc_port *by = overlay_find(overlay, own, a, ret_error);
    struct dpc_port p = *own;
    if (!by)
        return p;
    p.dhcp = by->dhcp;
    p.submitted_us = by->submitted_us;
    p.has_invalid_config = by->has_invalid_config;
    p.results = by->results;
    return p;
}

static struct json write_silence(struct arena *a, const struct json *asked)
{
    struct json to = json_object();
    JSON_FOR_EACH_MEMBER (asked, m)
        json_set(a, &to, json_str(&m->key), m->value);
    /* There is no radio of ours that takes time to be silent. */
    json_set(a, &to, STR("ChangeInProgress"), json_bool(false));
    json_set(a, &to, STR("Imposed"), json_bool(json_get_bool(asked, STR("Imposed"), false)));
    return to;
}

struct json *status_write(struct arena *a, const struct status_inputs *in)
{
    const struct dpc *d = dpc_list_current(in->list);
    struct json *to = json_new(a, json_object());
    json_set(a, to, STR("DPCKey"), json_string(d ? arena_str(a, str_of(d->key)) : STR("")));
    json_set(a, to, STR("Version"), json_int(d ? d->version : 0));
    json_set(a, to, STR("Testing"), json_bool(in->is_testing));
    json_set(a, to, STR("State"), json_int(d ? d->state : NODE_NETWORK_NONE));
    json_set(a, to, STR("CurrentIndex"), json_int(in->list->current));
    json_set(a, to, STR("RadioSilence"), write_silence(a, in->radio_silence));
    struct json ports = json_array();
    const struct json *config = d ? overlay_config(a, d, in->overlay) : NULL;
    for (size_t i = 0; d && i < json_count(config) && i < d->n_ports; i++) {
        struct str error = STR_NONE;
        const struct dpc_port p = in_force(a, in->overlay, &d->ports[i], &error);
        struct json port = write_port(a, in, config, i, &p);
        if (error.n)
            json_set(a, &port, STR("LpsConfigError"), json_string(error));
        json_push(a, &ports, port);
    }
    json_set(a, to, STR("Ports"), ports);
    return to;
}

struct machine_port status_machine_port(struct arena *a, const struct json *port)
{
    const int64_t dhcp = json_get_int(port, STR("Dhcp"), 0),
                  mtu = json_get_int(port, STR("MTU"), 0);
    struct machine_port p = {.interface = json_get_str(port, STR("IfName")),
                             .mtu = mtu > 0 && mtu <= 65535 ? (unsigned) mtu : 0};
    if (dhcp == MACHINE_STATIC || dhcp == MACHINE_NONE || dhcp == MACHINE_DHCP)
        p.dhcp = (enum machine_dhcp) dhcp;
    if (!status_parse_subnet(json_get_str(port, STR("AddrSubnet")), &p.address))
        p.address = (struct machine_address){.text = STR_NONE};
    const struct str router = json_get_str(port, STR("Gateway"));
    p.router = str_is(router, "0.0.0.0") ? STR_NONE : router;
    const struct json *servers = json_get(port, STR("DNSServers"));
    struct str *list = ARENA_ARRAY(a, struct str, MAX(json_count(servers), 1));
    JSON_FOR_EACH_ITEM (servers, item)
        if (json_str(item).n > 0)
            list[p.n_dns_servers++] = json_str(item);
    p.dns_servers = list;
    return p;
}
