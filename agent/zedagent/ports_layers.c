/* SPDX-License-Identifier: Apache-2.0 */
/* What is below system adapters: the device's model, access control, bonds, VLANs. */
#include "zedagent/ports.h"

#define MAX_INTERFACE_NAME 15

struct str port_io_label(const Eve__Config__PhysicalIO *io)
{
    const struct str label = pb_text(io->logicallabel);
    return label.n ? label : pb_text(io->phylabel);
}

struct str port_io_address(const Eve__Config__PhysicalIO *io, const char *key)
{
    struct str found = STR("");
    for (size_t i = 0; i < io->n_phyaddrs; i++)
        if (str_eq_nocase(pb_text(io->phyaddrs[i]->key), str_of(key)))
            found = pb_text(io->phyaddrs[i]->value);
    return found;
}

void port_fail(struct port *port, struct str error)
{
    port->error = error;
}

const Eve__Config__PhysicalIO *port_model_physical(const struct port_model *m, struct str label)
{
    return map_get(&m->physical, label);
}

struct port_layer *port_layer_find(struct port_layer *list, struct str label)
{
    for (; list; list = list->next)
        if (str_eq(list->port.label, label))
            return list;
    return NULL;
}

static bool is_ethernet(const Eve__Config__PhysicalIO *io)
{
    return io->ptype == EVE__COMMON__PHY_IO_TYPE__PhyIoNetEth ||
           io->ptype == EVE__COMMON__PHY_IO_TYPE__PhyIoNetEthPF;
}

static struct port_access *access_of(struct parse *p, const Eve__Config__PNAC *c,
                                     const struct json *profile)
{
    struct port_access *access = ARENA_NEW(p->arena, struct port_access);
    struct gotype g = gotype_sparse(p->arena);
    const struct str name = pb_text(c->cert_enrollment_profile_name);
    const struct str problem = json_get_str(json_get(profile, STR("ParsingError")), STR("Error"));
    const struct str label = pb_text(c->logicallabel);
    if (c->eap_method != EVE__CONFIG__EAPMETHOD__EAP_METHOD_TLS)
        access->error = arena_printf(
            p->arena,
            "PNAC config with logical label \"%.*s\" uses unsupported EAP method %d; only EAP-TLS "
            "is supported",
            STR_ARG(label), (int) c->eap_method);
    if (!profile)
        access->error = arena_printf(p->arena,
                                     "PNAC config with logical label \"%.*s\" references "
                                     "non-existent certificate enrollment profile \"%.*s\"",
                                     STR_ARG(label), STR_ARG(name));
    else if (problem.n)
        access->error =
            arena_printf(p->arena,
                         "PNAC config with logical label \"%.*s\" references certificate "
                         "enrollment profile \"%.*s\" which has parsing error: %.*s",
                         STR_ARG(label), STR_ARG(name), STR_ARG(problem));
    gotype_bool(&g, "Enabled", true);
    gotype_text(&g, "EAPIdentity", pb_text(c->eap_identity));
    gotype_int(&g, "EAPMethod", c->eap_method);
    gotype_text(&g, "CertEnrollmentProfileName", name);
    access->value = g.object;
    return access;
}

static void add_access(struct port_model *m)
{
    struct parse *p = m->parse;
    const struct json *profiles = p->config->n_pnacs ? parse_scep(p) : NULL;
    for (size_t i = 0; i < p->config->n_pnacs; i++) {
        const Eve__Config__PNAC *c = p->config->pnacs[i];
        const struct str label = pb_text(c->logicallabel);
        const Eve__Config__PhysicalIO *io = port_model_physical(m, label);
        if (!label.n || map_get(&m->pnacs, label) || !io || !is_ethernet(io))
            continue;
        (void) map_put(
            &m->pnacs, label,
            access_of(p, c, json_get(profiles, pb_text(c->cert_enrollment_profile_name))));
    }
}

static void add_lower(struct arena *a, struct port_lower **list, struct str label)
{
    struct port_lower *l = ARENA_NEW(a, struct port_lower);
    l->label = label;
    while (*list)
        list = &(*list)->next;
    *list = l;
}

static void append_layer(struct port_layer **list, struct port_layer *l)
{
    while (*list)
        list = &(*list)->next;
    *list = l;
}

static void name_layer(struct parse *p, struct port *port, const char *what, struct str interface)
{
    port->ifname = interface.n ? interface : port->label;
    if (port->ifname.n > MAX_INTERFACE_NAME)
        port_fail(port, arena_printf(p->arena, "%s interface name too long: %.*s", what,
                                     STR_ARG(port->ifname)));
}

static void monitor_bond(struct parse *p, struct port *port, const Eve__Config__BondAdapter *c)
{
    struct gotype mii = gotype_sparse(p->arena), arp = gotype_sparse(p->arena);
    struct json targets = json_array();
    if (c->monitoring_case == EVE__CONFIG__BOND_ADAPTER__MONITORING_MII && c->mii) {
        gotype_bool(&mii, "Enabled", true);
        gotype_int(&mii, "Interval", c->mii->interval);
        gotype_int(&mii, "UpDelay", c->mii->updelay);
        gotype_int(&mii, "DownDelay", c->mii->downdelay);
    } else if (c->monitoring_case == EVE__CONFIG__BOND_ADAPTER__MONITORING_ARP && c->arp) {
        gotype_bool(&arp, "Enabled", true);
        gotype_int(&arp, "Interval", c->arp->interval);
        for (size_t i = 0; i < c->arp->n_ip_targets; i++) {
            struct address target;
            if (address_parse(str_of(c->arp->ip_targets[i]), &target))
                json_push(p->arena, &targets, json_string(address_text(p->arena, &target)));
            else
                port_fail(port,
                          arena_printf(p->arena,
                                       "Bond ARP monitoring configured with invalid target: %s",
                                       c->arp->ip_targets[i]));
        }
        gotype_value(&arp, "IPTargets", &targets);
    }
    port->mii = mii.object;
    port->arp = arp.object;
}

static void fill_bond(struct port_model *m, struct port_layer *l, const Eve__Config__BondAdapter *c)
{
    struct parse *p = m->parse;
    for (size_t i = 0; i < MIN(c->n_lower_layer_names, PARSE_MAX_PORTS); i++) {
        const struct str name = str_of(c->lower_layer_names[i]);
        const Eve__Config__PhysicalIO *io = port_model_physical(m, name);
        if (!io) {
            port_fail(&l->port,
                      arena_printf(p->arena,
                                   "Bond interface %.*s referencing non-existing physical adapter "
                                   "%.*s",
                                   STR_ARG(l->port.label), STR_ARG(name)));
        } else if (!parse_is_network_io(io->ptype)) {
            port_fail(&l->port,
                      arena_printf(p->arena, "Bond %.*s is attached to a non-network adapter %.*s",
                                   STR_ARG(l->port.label), STR_ARG(name)));
        } else {
            add_lower(p->arena, &l->port.members, port_io_label(io));
            add_lower(p->arena, &l->physical, port_io_label(io));
        }
    }
    if (!l->port.error.n && !l->port.members)
        port_fail(&l->port, arena_printf(p->arena, "Missing all lower-layer adapters for bond %.*s",
                                         STR_ARG(l->port.label)));
}

static void add_bonds(struct port_model *m)
{
    struct parse *p = m->parse;
    for (size_t i = 0; i < MIN(p->config->n_bonds, PARSE_MAX_PORTS); i++) {
        const Eve__Config__BondAdapter *c = p->config->bonds[i];
        struct port_layer *l = ARENA_NEW(p->arena, struct port_layer);
        l->port.link = PORT_BOND;
        l->port.label = pb_text(c->logicallabel);
        if (!l->port.label.n)
            continue;
        name_layer(p, &l->port, "Bond", pb_text(c->interface_name));
        if (str_is(l->port.ifname, "bond0"))
            port_fail(&l->port, STR("interface name \"bond0\" is reserved"));
        l->port.bond_mode = c->bond_mode;
        l->port.lacp_rate = c->lacp_rate;
        monitor_bond(p, &l->port, c);
        fill_bond(m, l, c);
        append_layer(&m->bonds, l);
    }
}

static void attach_vlan(struct port_model *m, struct port_layer *l, struct str lower)
{
    struct parse *p = m->parse;
    const Eve__Config__PhysicalIO *io = port_model_physical(m, lower);
    struct port_layer *bond = io ? NULL : port_layer_find(m->bonds, lower);
    if (io && !parse_is_network_io(io->ptype)) {
        port_fail(&l->port,
                  arena_printf(p->arena, "VLAN %.*s is attached to a non-network adapter %.*s",
                               STR_ARG(l->port.label), STR_ARG(port_io_label(io))));
    } else if (io) {
        l->port.parent = port_io_label(io);
        add_lower(p->arena, &l->physical, l->port.parent);
    } else if (bond) {
        l->port.parent = bond->port.label;
        l->below = bond;
        if (bond->port.error.n)
            port_fail(&l->port,
                      arena_printf(p->arena,
                                   "VLAN %.*s is attached to bond %.*s which has an error (%.*s)",
                                   STR_ARG(l->port.label), STR_ARG(bond->port.label),
                                   STR_ARG(bond->port.error)));
    }
    if (!l->port.error.n && !l->port.parent.n)
        port_fail(&l->port, arena_printf(p->arena, "Missing lower-layer adapter for VLAN %.*s",
                                         STR_ARG(l->port.label)));
}

static void add_vlans(struct port_model *m)
{
    struct parse *p = m->parse;
    for (size_t i = 0; i < MIN(p->config->n_vlans, PARSE_MAX_PORTS); i++) {
        const Eve__Config__VlanAdapter *c = p->config->vlans[i];
        struct port_layer *l = ARENA_NEW(p->arena, struct port_layer);
        l->port.link = PORT_VLAN;
        l->port.label = pb_text(c->logicallabel);
        if (!l->port.label.n)
            continue;
        name_layer(p, &l->port, "VLAN", pb_text(c->interface_name));
        if (c->vlan_id < 1 || c->vlan_id > PARSE_MAX_VLAN)
            port_fail(&l->port, arena_printf(p->arena, "VLAN ID out of range: %u", c->vlan_id));
        l->port.vlan_id = MIN(c->vlan_id, 0xFFFF);
        attach_vlan(m, l, pb_text(c->lower_layer_name));
        append_layer(&m->vlans, l);
    }
}

static void add_networks(struct port_model *m)
{
    struct parse *p = m->parse;
    for (size_t i = 0; i < p->config->n_networks; i++) {
        struct parse_network *n = ARENA_NEW(p->arena, struct parse_network);
        *n = parse_one_network(p, p->config->networks[i]);
        (void) map_put(&m->networks, json_get_str(n->value, STR("UUID")), n);
    }
}

void port_model_init(struct port_model *m, struct parse *p)
{
    *m = (struct port_model){.parse = p};
    for (size_t i = 0; i < p->config->n_deviceiolist; i++) {
        Eve__Config__PhysicalIO *io = p->config->deviceiolist[i];
        (void) map_put(&m->physical, port_io_label(io), io);
        m->has_free_uplink |= io->usagepolicy && io->usagepolicy->freeuplink;
    }
    add_access(m);
    add_networks(m);
    add_bonds(m);
    add_vlans(m);
}

void port_model_done(struct port_model *m)
{
    map_done(&m->physical);
    map_done(&m->pnacs);
    map_done(&m->networks);
}
