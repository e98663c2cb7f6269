/* SPDX-License-Identifier: Apache-2.0 */
/* Network instances: NetworkInstanceConfig. */
#include "zedagent/parse_internal.h"

#define MIN_SUBNET 8
#define LARGE_SUBNET 16
#define MAX_DYNAMIC_ADDRESSES 255 /* that one instance hands out */
#define TYPE_SWITCH EVE__CONFIG__ZNETWORK_INST_TYPE__ZnetInstSwitch

struct instance {
    struct str error; /* the newest counts */
    struct subnet subnet;
    struct address gateway, start, end;
    struct json *dns, *routes, *access_ports; /* NULL: none */
};

static void fail(struct instance *i, struct str error)
{
    i->error = error;
}

static struct str read_servers(struct parse *p, const Eve__Common__Ipspec *s, struct instance *i)
{
    for (size_t k = 0; k < s->n_dns; k++) {
        struct address server;
        if (!address_parse(str_of(s->dns[k]), &server))
            return arena_printf(p->arena, "invalid DNS IP (%s)", s->dns[k]);
        if (server.n != i->subnet.base.n)
            return arena_printf(p->arena,
                                "IP version mismatch between subnet (%.*s) and DNS server (%s)",
                                STR_ARG(subnet_text(p->arena, &i->subnet)), s->dns[k]);
        i->dns = i->dns ? i->dns : json_new(p->arena, json_array());
        json_push(p->arena, i->dns, json_string(address_text(p->arena, &server)));
    }
    return STR_NONE;
}

static struct str read_gateway(struct parse *p, struct str text, struct instance *i)
{
    if (!text.n)
        return STR_NONE;
    if (!address_parse(text, &i->gateway))
        return arena_printf(p->arena, "invalid gateway IP (%.*s)", STR_ARG(text));
    if (i->gateway.n != i->subnet.base.n)
        return arena_printf(p->arena,
                            "IP version mismatch between subnet (%.*s) and gateway (%.*s)",
                            STR_ARG(subnet_text(p->arena, &i->subnet)), STR_ARG(text));
    return STR_NONE;
}

static struct str read_range(struct parse *p, const Eve__Common__IpRange *r, struct instance *i)
{
    const struct str start = r ? pb_text(r->start) : STR(""), end = r ? pb_text(r->end) : STR("");
    if (!start.n)
        return STR_NONE;
    if (!address_parse(start, &i->start))
        return arena_printf(p->arena, "invalid DHCP range start IP (%.*s)", STR_ARG(start));
    if (!address_parse(end, &i->end) && end.n)
        return arena_printf(p->arena, "invalid DHCP range end IP (%.*s)", STR_ARG(end));
    if (!subnet_contains(&i->subnet, &i->start))
        return arena_printf(p->arena, "DHCP range start IP (%.*s) is not within the subnet (%.*s)",
                            STR_ARG(start), STR_ARG(subnet_text(p->arena, &i->subnet)));
    if (i->end.n && !subnet_contains(&i->subnet, &i->end))
        return arena_printf(p->arena, "DHCP range end IP (%.*s) is not within the subnet (%.*s)",
                            STR_ARG(end), STR_ARG(subnet_text(p->arena, &i->subnet)));
    if (i->end.n && address_cmp(&i->start, &i->end) > 0)
        return arena_printf(p->arena, "DHCP range start IP (%.*s) is greater than end IP (%.*s)",
                            STR_ARG(start), STR_ARG(end));
    return STR_NONE;
}

/* Gateway first, then a range that leaves room for addresses that are not handed out. */
static struct str set_defaults(struct parse *p, struct instance *i)
{
    const uint64_t n = subnet_count(&i->subnet);
    const struct address last = address_add(&i->subnet.base, (int64_t) n - 1);
    if (n < MIN_SUBNET)
        return arena_printf(p->arena,
                            "subnet is too small (only %llu available IP addresses, need %d)",
                            (unsigned long long) n, MIN_SUBNET);
    if (!i->gateway.n)
        i->gateway = address_add(&i->subnet.base, 1);
    if (!i->start.n)
        i->start =
            address_add(&i->subnet.base, n >= LARGE_SUBNET && !i->end.n ? (int64_t) n / 2 : 2);
    if (!i->end.n)
        i->end = address_add(&i->subnet.base, (int64_t) n - 2);
    if (address_cmp(&i->start, &i->subnet.base) == 0)
        i->start = address_add(&i->start, 1);
    if (address_cmp(&i->start, &i->gateway) == 0)
        i->start = address_add(&i->gateway, 1);
    if (i->subnet.base.n == 4 && address_cmp(&i->end, &last) == 0)
        i->end = address_add(&i->end, -1);
    if (address_cmp(&i->gateway, &i->start) >= 0 && address_cmp(&i->gateway, &i->end) <= 0)
        return arena_printf(p->arena, "gateway(%.*s) inside Dhcp Range",
                            STR_ARG(address_text(p->arena, &i->gateway)));
    if (address_distance(&i->start, &i->end) > MAX_DYNAMIC_ADDRESSES)
        i->end = address_add(&i->start, MAX_DYNAMIC_ADDRESSES);
    return STR_NONE;
}

static struct str read_addressing(struct parse *p, const Eve__Common__Ipspec *s, struct instance *i)
{
    const struct str subnet = s ? pb_text(s->subnet) : STR("");
    struct str error;
    if (!subnet.n)
        return STR("missing network instance subnet");
    if (!subnet_parse(subnet, NULL, &i->subnet))
        return arena_printf(p->arena, "invalid subnet (%.*s): invalid CIDR address: %.*s",
                            STR_ARG(subnet), STR_ARG(subnet));
    error = read_servers(p, s, i);
    if (!error.n)
        error = read_gateway(p, pb_text(s->gateway), i);
    if (!error.n)
        error = read_range(p, s->dhcprange, i);
    return error.n ? error : set_defaults(p, i);
}

static bool is_zero(const struct address *a)
{
    static const unsigned char zero[ADDRESS_MAX_BYTES];
    return memcmp(a->bytes, zero, a->n) == 0;
}

static struct str read_route(struct parse *p, const Eve__Config__IPRoute *r, struct json **ret)
{
    struct gotype g = gotype_new(p->arena), probe = gotype_new(p->arena);
    const struct str network = pb_text(r->destination_network), gateway = pb_text(r->gateway);
    struct subnet destination;
    struct address via = {0};
    struct json *custom;
    const struct str error = parse_probe(p, r->probe ? r->probe->custom_probe : NULL, &custom);
    if (!network.n)
        return STR("missing destination network address");
    if (!subnet_parse(network, NULL, &destination))
        return arena_printf(p->arena, "destination network is invalid: invalid CIDR address: %.*s",
                            STR_ARG(network));
    if (!gateway.n && !pb_text(r->port).n)
        return STR("missing both gateway IP address and port label");
    if (gateway.n && !address_parse(gateway, &via))
        return STR("gateway IP address is invalid");
    if (gateway.n && is_zero(&via))
        return STR("gateway IP address is all-zeroes");
    if (error.n)
        return arena_printf(p->arena, "invalid connectivity probe config: %.*s", STR_ARG(error));
    gotype_bool(&probe, "EnabledGwPing", r->probe && r->probe->enable_gw_ping);
    gotype_int(&probe, "GwPingMaxCost", r->probe ? r->probe->gw_ping_max_cost & 0xFF : 0);
    gotype_value(&probe, "UserDefinedProbe", custom);
    gotype_subnet(&g, "DstNetwork", &destination);
    gotype_address(&g, "Gateway", &via);
    gotype_text(&g, "OutputPortLabel", pb_text(r->port));
    gotype_value(&g, "PortProbe", probe.object);
    gotype_bool(&g, "PreferLowerCost", r->prefer_lower_cost);
    gotype_bool(&g, "PreferStrongerWwanSignal", r->prefer_stronger_wwan_signal);
    *ret = g.object;
    return STR_NONE;
}

static void read_routes(struct parse *p, const Eve__Config__NetworkInstanceConfig *c,
                        struct instance *i)
{
    for (size_t k = 0; k < c->n_static_routes; k++) {
        struct json *route = NULL;
        const struct str error = read_route(p, c->static_routes[k], &route);
        if (error.n) {
            fail(i, arena_printf(p->arena, "Invalid IP route (%.*s): %.*s",
                                 STR_ARG(pb_text(c->static_routes[k]->destination_network)),
                                 STR_ARG(error)));
            continue;
        }
        i->routes = i->routes ? i->routes : json_new(p->arena, json_array());
        json_push(p->arena, i->routes, *route);
    }
}

static void read_access_ports(struct parse *p, const Eve__Config__NetworkInstanceConfig *c,
                              struct instance *i)
{
    for (size_t k = 0; k < c->n_vlan_access_ports; k++) {
        const Eve__Config__VlanAccessPort *port = c->vlan_access_ports[k];
        struct gotype g = gotype_new(p->arena);
        if (port->vlan_id < 1 || port->vlan_id > PARSE_MAX_VLAN) {
            fail(i,
                 arena_printf(p->arena, "Invalid VLAN access port config: VLAN ID out of range: %u",
                              port->vlan_id));
            continue;
        }
        gotype_int(&g, "VlanID", port->vlan_id);
        gotype_text(&g, "PortLabel", pb_text(port->access_port));
        i->access_ports = i->access_ports ? i->access_ports : json_new(p->arena, json_array());
        json_push(p->arena, i->access_ports, *g.object);
    }
}

static unsigned read_mtu(struct parse *p, unsigned mtu, struct instance *i)
{
    if (mtu && mtu < PARSE_MIN_MTU)
        fail(i, arena_printf(p->arena, "MTU (%u) is too small", mtu));
    else if (mtu > PARSE_MAX_MTU)
        fail(i, arena_printf(p->arena, "MTU (%u) is too large", mtu));
    else
        return mtu;
    return 0;
}

static struct json *ntp_servers(struct parse *p, const Eve__Common__Ipspec *s)
{
    struct json *list = NULL;
    if (!s || !pb_text(s->ntp).n)
        return NULL;
    list = json_new(p->arena, json_array());
    json_push(p->arena, list, gotype_string(p->arena, pb_text(s->ntp)));
    return list;
}

static void write_addressing(struct parse *p, struct gotype *g,
                             const Eve__Config__NetworkInstanceConfig *c, const struct instance *i,
                             bool has_addresses)
{
    struct gotype range = gotype_new(p->arena);
    gotype_address(&range, "Start", &i->start);
    gotype_address(&range, "End", &i->end);
    gotype_subnet(g, "Subnet", &i->subnet);
    gotype_address(g, "Gateway", &i->gateway);
    gotype_text(g, "DomainName", has_addresses && c->ip ? pb_text(c->ip->domain) : STR(""));
    gotype_value(g, "NtpServers", has_addresses ? ntp_servers(p, c->ip) : NULL);
    gotype_value(g, "DnsServers", i->dns);
    gotype_value(g, "DhcpRange", range.object);
    gotype_value(g, "DnsNameToIPList",
                 has_addresses ? parse_host_names(p, c->dns, c->n_dns, NULL) : NULL);
    gotype_bool(g, "PropagateConnRoutes", c->propagate_connected_routes);
    gotype_value(g, "StaticRoutes", i->routes);
}

static struct json *instance_value(struct parse *p, const Eve__Config__NetworkInstanceConfig *c)
{
    struct gotype g = gotype_new(p->arena), stp = gotype_new(p->arena);
    struct instance i = {0};
    /* Controllers give switches an address type that means nothing there. */
    const int address_type = c->insttype == TYPE_SWITCH ? 0 : (int) c->iptype;
    struct str error;
    if (c->insttype == TYPE_SWITCH)
        read_access_ports(p, c, &i);
    if (address_type) {
        error = read_addressing(p, c->ip, &i);
        if (error.n)
            fail(&i, arena_printf(p->arena, "Invalid IP configuration: %.*s", STR_ARG(error)));
        read_routes(p, c, &i);
    }
    const unsigned mtu = read_mtu(p, c->mtu, &i);
    gotype_uuid(&g, "UUID", pb_text(c->uuidandversion->uuid));
    gotype_text(&g, "Version", pb_text(c->uuidandversion->version));
    gotype_text(&g, "DisplayName", pb_text(c->displayname));
    gotype_int(&g, "Type", c->insttype);
    gotype_bool(&g, "Activate", c->activate);
    gotype_text(&g, "PortLabel", c->port ? pb_text(c->port->name) : STR(""));
    gotype_int(&g, "IpType", address_type);
    write_addressing(p, &g, c, &i, address_type != 0);
    gotype_bool(&g, "EnableFlowlog", !c->disable_flowlog);
    gotype_text(&stp, "PortsWithBpduGuard",
                c->stp ? pb_text(c->stp->ports_with_bpdu_guard) : STR(""));
    gotype_value(&g, "STPConfig", stp.object);
    gotype_value(&g, "VlanAccessPorts", i.access_ports);
    gotype_bool(&g, "ForwardLLDP", c->forward_lldp);
    gotype_int(&g, "MTU", mtu);
    gotype_error(&g, i.error, p->now_us);
    return g.object;
}

struct json *parse_network_instances(struct parse *p)
{
    struct json *all = json_new(p->arena, json_object());
    for (size_t k = 0; k < p->config->n_networkinstances; k++) {
        const Eve__Config__NetworkInstanceConfig *c = p->config->networkinstances[k];
        const struct json id = gotype_uuid_value(
            p->arena, c->uuidandversion ? pb_text(c->uuidandversion->uuid) : STR(""));
        if (!str_eq(json_str(&id), PARSE_NIL_UUID))
            json_append_member(p->arena, all, json_str(&id), *instance_value(p, c));
    }
    return all;
}
