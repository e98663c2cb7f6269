/* SPDX-License-Identifier: Apache-2.0 */
/* Ports against each other: collisions, references between layers, shared labels. */
#include "zedagent/ports.h"

#define FOR_EACH_PORT(list, item) for (struct port * (item) = (list); (item); (item) = (item)->next)

static bool is_same(struct parse *p, const struct port *a, const struct port *b)
{
    return json_equal(port_value(p, a), port_value(p, b));
}

static struct str find_collision(struct parse *p, const struct port *a, const struct port *b)
{
    if (str_eq(a->label, b->label))
        return arena_printf(p->arena,
                            "Port collides with another port with the same logical label (%.*s)",
                            STR_ARG(a->label));
    if (a->ifname.n && str_eq(a->ifname, b->ifname))
        return arena_printf(p->arena,
                            "Port collides with another port with the same interface name (%.*s)",
                            STR_ARG(a->ifname));
    if (!a->ifname.n && str_eq(a->pci, b->pci) && str_eq(a->usb, b->usb))
        return arena_printf(
            p->arena, "Port collides with another port with the same physical address (%.*s, %.*s)",
            STR_ARG(a->pci), STR_ARG(a->usb));
    return STR_NONE;
}

/* Two system adapters may stand on the same port below: it comes twice then, and stays once. */
static struct port *drop_equal(struct parse *p, struct port *list)
{
    struct port *kept = NULL, **end = &kept;
    size_t n = 0;
    while (list && n < PARSE_MAX_PORTS) {
        struct port *port = list;
        bool is_known = false;
        list = port->next;
        port->next = NULL;
        FOR_EACH_PORT(kept, other)
        {
            is_known = str_eq(port->label, other->label) && is_same(p, port, other);
            if (is_known)
                break;
            const struct str error = find_collision(p, port, other);
            if (!error.n)
                continue;
            port_fail(port, error);
            port_fail(other, error);
            break;
        }
        if (is_known)
            continue;
        *end = port;
        end = &port->next;
        n++;
    }
    return kept;
}

static bool stands_on(const struct port *upper, struct str label)
{
    if (upper->link == PORT_VLAN)
        return str_eq(upper->parent, label);
    for (const struct port_lower *m = upper->members; m; m = m->next)
        if (str_eq(m->label, label))
            return true;
    return false;
}

/* Who stands on it. */
struct uppers {
    const struct port *bonds[2], *vlan;
    size_t n_bonds;
    bool has_same_vlan;
    unsigned same_vlan;
};

static struct uppers find_uppers(struct port *list, struct str label)
{
    struct uppers u = {0};
    unsigned char used[0x10000 / 8] = {0}; /* one bit for each identifier */
    FOR_EACH_PORT(list, upper)
    {
        if (!stands_on(upper, label))
            continue;
        if (upper->link == PORT_BOND) {
            if (u.n_bonds < 2)
                u.bonds[u.n_bonds] = upper;
            u.n_bonds++;
            continue;
        }
        u.vlan = u.vlan ? u.vlan : upper;
        unsigned char *byte = &used[upper->vlan_id / 8];
        const unsigned char bit = (unsigned char) (1 << (upper->vlan_id % 8));
        if (*byte & bit) {
            u.has_same_vlan = true;
            u.same_vlan = upper->vlan_id;
        }
        *byte |= bit;
    }
    return u;
}

static void check_layers(struct parse *p, struct port *list)
{
    FOR_EACH_PORT(list, port)
    {
        const struct uppers u = find_uppers(list, port->label);
        if (u.n_bonds > 1)
            port_fail(port,
                      arena_printf(p->arena,
                                   "Port %.*s is aggregated by multiple bond interfaces (%.*s, "
                                   "%.*s, ...)",
                                   STR_ARG(port->label), STR_ARG(u.bonds[0]->label),
                                   STR_ARG(u.bonds[1]->label)));
        else if (u.n_bonds && u.vlan)
            port_fail(port,
                      arena_printf(p->arena,
                                   "Port %.*s is referenced by both bond (%.*s) and VLAN (%.*s)",
                                   STR_ARG(port->label), STR_ARG(u.bonds[0]->label),
                                   STR_ARG(u.vlan->label)));
        else if (u.n_bonds && port->is_l3)
            port_fail(port,
                      arena_printf(p->arena,
                                   "Port %.*s aggregated by bond (%.*s) cannot be used with IP "
                                   "configuration",
                                   STR_ARG(port->label), STR_ARG(u.bonds[0]->label)));
        else if (u.has_same_vlan)
            port_fail(port,
                      arena_printf(p->arena,
                                   "Port %.*s has duplicate VLAN sub-interfaces (VLAN ID = %u)",
                                   STR_ARG(port->label), u.same_vlan));
    }
}

/* What stands on something wrong is wrong, too; at most three layers: port, bond, VLAN. */
static void spread_errors(struct parse *p, struct port *list)
{
    bool has_changed = true;
    for (int pass = 0; has_changed && pass < 3; pass++) {
        has_changed = false;
        FOR_EACH_PORT(list, lower)
        {
            if (!lower->error.n)
                continue;
            FOR_EACH_PORT(list, upper)
            {
                if (upper->error.n || !stands_on(upper, lower->label))
                    continue;
                port_fail(upper,
                          arena_printf(p->arena, "Lower-layer adapter %.*s has an error (%.*s)",
                                       STR_ARG(lower->label), STR_ARG(lower->error)));
                has_changed = true;
            }
        }
    }
}

static bool is_reserved_label(struct str label)
{
    return str_is(label, "all") || str_is(label, "uplink") || str_is(label, "freeuplink");
}

static void check_labels(struct parse *p, struct port *list, struct port *port)
{
    JSON_FOR_EACH_ITEM (port->shared_labels, item) {
        const struct str label = json_str(item);
        bool is_port = false;
        FOR_EACH_PORT(list, other)
        is_port |= str_eq(other->label, label);
        if (is_reserved_label(label))
            port_fail(port, arena_printf(
                                p->arena,
                                "Port %.*s: It is forbidden to assign reserved port label '%.*s'",
                                STR_ARG(port->label), STR_ARG(label)));
        if (is_port)
            port_fail(
                port,
                arena_printf(p->arena,
                             "Port %.*s: It is forbidden to use port name '%.*s' as shared label",
                             STR_ARG(port->label), STR_ARG(label)));
        port->has_invalid_labels |= is_reserved_label(label) || is_port;
    }
}

static void add_label(struct arena *a, struct json *labels, struct str label)
{
    JSON_FOR_EACH_ITEM (labels, item)
        if (str_eq(json_str(item), label))
            return;
    json_push(a, labels, json_string(label));
}

/* Those that follow from what the port is. */
static void add_own_labels(struct parse *p, struct port *port)
{
    struct json *labels = json_new(p->arena, json_array());
    JSON_FOR_EACH_ITEM (port->shared_labels, item)
        add_label(p->arena, labels, json_str(item));
    add_label(p->arena, labels, STR("all"));
    if (port->is_management)
        add_label(p->arena, labels, STR("uplink"));
    if (port->is_management && !port->cost)
        add_label(p->arena, labels, STR("freeuplink"));
    port->shared_labels = labels;
}

struct port *port_validate(struct parse *p, struct port *list)
{
    struct port *kept = drop_equal(p, list);
    check_layers(p, kept);
    spread_errors(p, kept);
    FOR_EACH_PORT(kept, port)
    {
        check_labels(p, kept, port);
        if (!port->has_invalid_labels)
            add_own_labels(p, port);
    }
    return kept;
}
