/* SPDX-License-Identifier: Apache-2.0 */
/* System adapters: DevicePortConfig. */
#include "zedagent/parse_wireless.h"
#include "zedagent/ports.h"

#define MAX_COST 255
enum { DHCP_STATIC = 1, DHCP_NONE = 2, DHCP_CLIENT = 4 };
enum { ORIGIN_CONTROLLER = 1, ORIGIN_BOOTSTRAP = 2, ORIGIN_LOC = 6, ORIGIN_LPS = 7 };

/* ---- one port as JSON -------------------------------------------------------------------------
 */

static void copy_member(struct gotype *g, const char *name, const struct json *from)
{
    struct json *value = json_get(from, str_of(name));
    const bool is_empty =
        !value || value->type == JSON_NULL || (value->type == JSON_STRING && !value->n) ||
        (value->type == JSON_BOOL && !value->b) || (json_is_container(value) && !value->n);
    if (!is_empty)
        gotype_value(g, name, value);
}

static void write_network(struct gotype *g, const struct json *network)
{
    const struct json *proxy = json_get(network, STR("Proxy"));
    static const char *const own[] = {"Gateway",
                                      "DomainName",
                                      "NTPServers",
                                      "DNSServers",
                                      "IgnoreDhcpNtpServers",
                                      "IgnoreDhcpIPAddresses",
                                      "IgnoreDhcpGateways",
                                      "IgnoreDhcpDNSConfig"};
    for (size_t i = 0; i < N_ELEMENTS(own); i++)
        copy_member(g, own[i], network);
    JSON_FOR_EACH_MEMBER (proxy, m)
        copy_member(g, arena_strz(g->arena, json_str(&m->key)), proxy);
}

static struct json *bond_value(struct parse *p, const struct port *port)
{
    struct gotype g = gotype_sparse(p->arena);
    struct json members = json_array();
    for (const struct port_lower *m = port->members; m; m = m->next)
        json_push(p->arena, &members, gotype_string(p->arena, m->label));
    gotype_value(&g, "AggregatedPorts", &members);
    gotype_int(&g, "Mode", port->bond_mode);
    gotype_int(&g, "LacpRate", port->lacp_rate);
    gotype_value(&g, "MIIMonitor", port->mii);
    gotype_value(&g, "ARPMonitor", port->arp);
    return g.object;
}

static void write_link(struct parse *p, struct gotype *g, const struct port *port)
{
    struct gotype vlan = gotype_sparse(p->arena);
    gotype_int(g, "L2Type", port->link);
    if (port->link == PORT_VLAN) {
        gotype_text(&vlan, "ParentPort", port->parent);
        gotype_int(&vlan, "ID", port->vlan_id);
        gotype_value(g, "VLAN", vlan.object);
    } else if (port->link == PORT_BOND) {
        gotype_value(g, "Bond", bond_value(p, port));
    }
}

static int origin_of(enum parse_source source)
{
    switch (source) {
    case PARSE_CONTROLLER:
    case PARSE_SAVED:
        return ORIGIN_CONTROLLER;
    case PARSE_BOOTSTRAP:
        return ORIGIN_BOOTSTRAP;
    case PARSE_LOC:
        return ORIGIN_LOC;
    case PARSE_LPS:
        return ORIGIN_LPS;
    default:
        return 0;
    }
}

struct json *port_value(struct parse *p, const struct port *port)
{
    struct gotype g = gotype_sparse(p->arena), source = gotype_sparse(p->arena);
    gotype_text(&g, "IfName", port->ifname);
    gotype_text(&g, "USBAddr", port->usb);
    gotype_text(&g, "PCIAddr", port->pci);
    gotype_text(&g, "Phylabel", port->phylabel);
    gotype_text(&g, "Logicallabel", port->label);
    gotype_value(&g, "SharedLabels", port->shared_labels);
    gotype_text(&g, "Alias", port->alias);
    gotype_bool(&g, "AllowLocalModifications", port->allows_local_changes);
    gotype_uuid(&g, "NetworkUUID", port->network);
    gotype_bool(&g, "IsMgmt", port->is_management);
    gotype_bool(&g, "IsL3Port", port->is_l3);
    gotype_bool(&g, "InvalidConfig", port->error.n > 0);
    gotype_int(&g, "Cost", port->cost);
    gotype_int(&g, "MTU", port->mtu);
    gotype_int(&g, "Dhcp", port->dhcp);
    gotype_text(&g, "AddrSubnet", port->subnet_text);
    gotype_int(&g, "Type", json_get_int(port->addressing, STR("Type"), 0));
    if (port->addressing)
        write_network(&g, port->addressing);
    write_link(p, &g, port);
    gotype_value(&g, "WirelessCfg", port->wireless);
    gotype_value(&g, "PNAC", port->pnac);
    gotype_time(&g, "LastFailed", port->error.n ? p->now_us : 0);
    gotype_text(&g, "LastError", port->error);
    gotype_int(&source, "Origin", origin_of(p->source));
    gotype_time(&source, "SubmittedAt", p->received_us);
    gotype_value(&g, "ConfigSource", source.object);
    return g.object;
}

/* ---- from system adapters to ports ------------------------------------------------------------
 */

struct ports {
    struct port *first, **end;
};

static void add_port(struct ports *to, struct port *port)
{
    *to->end = port;
    to->end = &port->next;
}

static void take_physical(const struct port_model *m, struct port *port,
                          const Eve__Config__PhysicalIO *io)
{
    const struct port_access *access = map_get(&m->pnacs, port_io_label(io));
    port->phylabel = pb_text(io->phylabel);
    port->ifname = port_io_address(io, "ifname");
    port->usb = port_io_address(io, "usbaddr");
    port->pci = port_io_address(io, "pcilong");
    /* A modem may be known by its address alone. */
    if (!port->ifname.n &&
        (io->ptype != EVE__COMMON__PHY_IO_TYPE__PhyIoNetWWAN || (!port->usb.n && !port->pci.n)))
        port->ifname = port_io_label(io);
    if (!access)
        return;
    port->pnac = access->value;
    if (access->error.n)
        port_fail(port, access->error);
}

static void add_below(const struct port_model *m, struct ports *to, const struct port_layer *l)
{
    struct arena *a = m->parse->arena;
    for (const struct port_lower *lower = l->physical; lower; lower = lower->next) {
        struct port *port = ARENA_NEW(a, struct port);
        port->label = lower->label;
        take_physical(m, port, port_model_physical(m, lower->label));
        add_port(to, port);
    }
    if (l->below) {
        struct port *port = ARENA_NEW(a, struct port);
        *port = l->below->port;
        port->next = NULL;
        add_port(to, port);
        add_below(m, to, l->below);
    }
}

static void take_layer(const struct port_model *m, struct port *port, const struct port_layer *l)
{
    struct parse *p = m->parse;
    port->ifname = l->port.ifname;
    port->link = l->port.link;
    port->parent = l->port.parent;
    port->vlan_id = l->port.vlan_id;
    port->members = l->port.members;
    port->bond_mode = l->port.bond_mode;
    port->lacp_rate = l->port.lacp_rate;
    port->mii = l->port.mii;
    port->arp = l->port.arp;
    if (l->port.error.n)
        port_fail(port, arena_printf(p->arena, "Lower-layer adapter %.*s has an error (%.*s)",
                                     STR_ARG(l->port.label), STR_ARG(l->port.error)));
}

static void check_dhcp(struct parse *p, struct port *port, const Eve__Config__SystemAdapter *s)
{
    if (port->dhcp == DHCP_CLIENT || (port->dhcp == DHCP_NONE && !port->is_management) ||
        (port->dhcp == DHCP_STATIC && pb_text(s->addr).n))
        return;
    if (port->dhcp == DHCP_STATIC)
        port_fail(port,
                  arena_printf(p->arena,
                               "Port %.*s configured with static IP config but IP address is not "
                               "defined",
                               STR_ARG(port->label)));
    else if (port->dhcp == DHCP_NONE)
        port_fail(port, arena_printf(p->arena,
                                     "Port %.*s configured as Management port with an unsupported "
                                     "DHCP type %d. Client and static are the only allowed DHCP "
                                     "modes for management ports.",
                                     STR_ARG(port->label), DHCP_NONE));
    else
        port_fail(port, arena_printf(p->arena, "Port %.*s configured with unknown DHCP type %d",
                                     STR_ARG(port->label), port->dhcp));
}

static void take_network(struct parse *p, struct port *port, const Eve__Config__SystemAdapter *s,
                         const struct parse_network *network)
{
    const struct parse_network n = *network;
    struct address address;
    port->network = json_get_str(n.value, STR("UUID"));
    port->addressing = n.value;
    port->dhcp = n.dhcp;
    port->mtu = n.mtu;
    port->wireless = n.is_wireless ? json_get(n.value, STR("WirelessCfg")) : NULL;
    if (n.error.n)
        port_fail(port, arena_printf(
                            p->arena, "Network %.*s assigned to port %.*s has invalid config: %.*s",
                            STR_ARG(port->network), STR_ARG(port->label), STR_ARG(n.error)));
    if (n.subnet.base.n && address_parse(pb_text(s->addr), &address))
        port->subnet_text = arena_printf(p->arena, "%.*s/%u",
                                         STR_ARG(address_text(p->arena, &address)), n.subnet.bits);
    if (!n.error.n)
        check_dhcp(p, port, s);
}

static void set_addressing(const struct port_model *m, struct port *port,
                           const Eve__Config__SystemAdapter *s)
{
    struct parse *p = m->parse;
    const struct str id = pb_text(s->networkuuid), addr = pb_text(s->addr);
    const struct json canonical = gotype_uuid_value(p->arena, id);
    const struct parse_network *network = map_get(&m->networks, json_str(&canonical));
    struct address ignored;
    port->dhcp = DHCP_NONE;
    if (addr.n && !address_parse(addr, &ignored))
        port_fail(port,
                  arena_printf(p->arena, "Port %.*s configured with invalid IP address (%.*s)",
                               STR_ARG(port->label), STR_ARG(addr)));
    if (id.n && !str_eq(id, PARSE_NIL_UUID)) {
        if (network)
            take_network(p, port, s, network);
        else
            port_fail(port, arena_printf(p->arena,
                                         "Port %.*s configured with unknown Network UUID (%.*s)",
                                         STR_ARG(port->label), STR_ARG(id)));
    } else if (port->is_management) {
        port_fail(port, arena_printf(p->arena,
                                     "Port %.*s configured as Management port but without Network "
                                     "assigned. Network is required for Management ports",
                                     STR_ARG(port->label)));
    }
}

/* Controllers of the past said "free" where others say what a port costs. */
static unsigned cost_of(const struct port_model *m, const Eve__Config__SystemAdapter *s,
                        const Eve__Config__PhysicalIO *io)
{
    const bool is_free = s->freeuplink || (io && io->usagepolicy && io->usagepolicy->freeuplink);
    const unsigned cost = MIN(s->cost, MAX_COST);
    return cost == 0 && !is_free && m->has_free_uplink ? 1 : cost;
}

static struct json *labels_of(struct parse *p, const Eve__Config__SystemAdapter *s)
{
    struct json *list = s->n_shared_labels ? json_new(p->arena, json_array()) : NULL;
    for (size_t i = 0; i < MIN(s->n_shared_labels, PARSE_MAX_PORTS); i++)
        json_push(p->arena, list, gotype_string(p->arena, str_of(s->shared_labels[i])));
    return list;
}

static void set_wireless_type(struct parse *p, struct port *port, const Eve__Config__PhysicalIO *io)
{
    if (port->wireless || !io)
        return;
    if (io->ptype == EVE__COMMON__PHY_IO_TYPE__PhyIoNetWLAN)
        port->wireless = parse_wireless_of_type(p->arena, PARSE_WIFI);
    else if (io->ptype == EVE__COMMON__PHY_IO_TYPE__PhyIoNetWWAN)
        port->wireless = parse_wireless_of_type(p->arena, PARSE_CELLULAR);
}

static struct str lower_name(const Eve__Config__SystemAdapter *s)
{
    const struct str lower = pb_text(s->lowerlayername);
    return lower.n ? lower : pb_text(s->name);
}

/* Its port and those below it. An error in words: there is nothing for it to stand on. */
static struct str add_adapter(const struct port_model *m, const Eve__Config__SystemAdapter *s,
                              bool has_uplinks, struct ports *to)
{
    struct parse *p = m->parse;
    const struct str lower = lower_name(s);
    const Eve__Config__PhysicalIO *io = port_model_physical(m, lower);
    const struct port_layer *bond = port_layer_find(m->bonds, lower);
    const struct port_layer *vlan = port_layer_find(m->vlans, lower);
    const struct port_layer *layer = vlan ? vlan : bond;
    struct port *port = ARENA_NEW(p->arena, struct port);
    if (!io && !layer)
        return arena_printf(p->arena, "missing lower-layer adapter %.*s", STR_ARG(lower));
    if ((io != NULL) + (bond != NULL) + (vlan != NULL) > 1)
        return arena_printf(p->arena, "multiple lower-layer adapters match label %.*s",
                            STR_ARG(lower));
    if (io && !parse_is_network_io(io->ptype))
        return arena_printf(p->arena, "physicalIO %.*s (phyLabel %.*s) is not a network adapter",
                            STR_ARG(lower), STR_ARG(pb_text(io->phylabel)));
    port->label = pb_text(s->name);
    port->shared_labels = labels_of(p, s);
    port->alias = pb_text(s->alias);
    port->allows_local_changes = s->allow_local_modifications;
    port->is_l3 = true;
    port->is_management = has_uplinks ? s->uplink : true;
    port->cost = has_uplinks ? cost_of(m, s, io) : 0;
    if (io) {
        take_physical(m, port, io);
    } else {
        take_layer(m, port, layer);
        add_below(m, to, layer);
    }
    set_addressing(m, port, s);
    set_wireless_type(p, port, io);
    add_port(to, port);
    return STR_NONE;
}

/* ---- the whole --------------------------------------------------------------------------------
 */

/* Which system adapter stands on a label. */
static struct str adapter_on(const struct map *adapters, struct str label)
{
    const Eve__Config__SystemAdapter *s = map_get(adapters, label);
    return s ? pb_text(s->name) : STR_NONE;
}

/* A port below that has a system adapter of its own comes with that one, and goes by its name. */
static struct port *settle_names(const struct map *adapters, struct port *list)
{
    struct ports kept = {.end = &kept.first};
    while (list) {
        struct port *port = list;
        list = port->next;
        port->next = NULL;
        if (!port->is_l3 && map_get(adapters, port->label))
            continue;
        const struct str parent = adapter_on(adapters, port->parent);
        port->parent = parent.n ? parent : port->parent;
        for (struct port_lower *m = port->members; m; m = m->next) {
            const struct str name = adapter_on(adapters, m->label);
            m->label = name.n ? name : m->label;
        }
        add_port(&kept, port);
    }
    return kept.first;
}

/* The controller wants to know when no management port is any good. */
static struct str judge(struct parse *p, const struct port *list, struct str last_error)
{
    BUF_AUTO errors = {0};
    size_t n_management = 0;
    for (const struct port *port = list; port; port = port->next) {
        if (!port->is_management)
            continue;
        n_management++;
        if (!port->error.n)
            return last_error;
        buf_printf(&errors, "%.*s\n", STR_ARG(port->error));
    }
    if (!errors.n && last_error.n)
        buf_append_str(&errors, last_error);
    if (errors.n)
        return arena_printf(p->arena, "All management ports failed to parse: %.*s",
                            STR_ARG(buf_str(&errors)));
    return n_management ? STR("All management ports failed parser")
                        : STR("No management interfaces");
}

static struct json *whole_value(struct parse *p, const struct port *list, bool has_uplinks,
                                struct str error)
{
    struct gotype g = gotype_sparse(p->arena);
    struct json ports = json_array();
    const int64_t own_time = parse_timestamp_us(p->config);
    for (const struct port *port = list; port; port = port->next)
        json_push(p->arena, &ports, *port_value(p, port));
    gotype_int(&g, "Version", has_uplinks);
    gotype_text(&g, "Key", p->source == PARSE_BOOTSTRAP ? STR("bootstrap") : STR("zedagent"));
    gotype_time(&g, "TimePriority", own_time ? own_time : p->now_us);
    gotype_time(&g, "LastFailed", error.n ? p->now_us : 0);
    gotype_text(&g, "LastError", error);
    gotype_value(&g, "Ports", &ports);
    return g.object;
}

struct json *parse_ports(struct parse *p)
{
    struct json *all = json_new(p->arena, json_object());
    struct port_model m;
    struct ports ports = {.end = &ports.first};
    CLEANUP(map_done) struct map adapters = {0};
    struct str error = STR_NONE;
    bool has_uplinks = false;
    const size_t n = MIN(p->config->n_systemadapterlist, PARSE_MAX_PORTS);
    port_model_init(&m, p);
    for (size_t i = 0; i < n; i++) {
        Eve__Config__SystemAdapter *s = p->config->systemadapterlist[i];
        has_uplinks |= s->uplink;
        (void) map_put(&adapters, lower_name(s), s);
    }
    for (size_t i = 0; i < n; i++) {
        const struct str problem =
            add_adapter(&m, p->config->systemadapterlist[i], has_uplinks, &ports);
        error = problem.n ? problem : error;
    }
    struct port *list = port_validate(p, settle_names(&adapters, ports.first));
    error = judge(p, list, error);
    port_model_done(&m);
    /* Without a port there is nothing to try. */
    if (!list)
        return NULL;
    json_append_member(p->arena, all,
                       p->source == PARSE_BOOTSTRAP ? STR("bootstrap") : STR("zedagent"),
                       *whole_value(p, list, has_uplinks, error));
    return all;
}
