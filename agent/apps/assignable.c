/* SPDX-License-Identifier: Apache-2.0 */
/* domainmgr's AssignableAdapters: what the controller says the device has, which of it are ports.
 * Nothing is passed through here, so all of it stays with the host. */
#include "apps/apps_internal.h"
#include "eve/common.pb-c.h"
#include "machine/machine.h"

static bool is_network(int64_t type)
{
    return type == EVE__COMMON__PHY_IO_TYPE__PhyIoNetEth ||
           type == EVE__COMMON__PHY_IO_TYPE__PhyIoNetWLAN ||
           type == EVE__COMMON__PHY_IO_TYPE__PhyIoNetWWAN ||
           type == EVE__COMMON__PHY_IO_TYPE__PhyIoNetEthPF;
}

static bool is_port(const struct json *ports, struct str interface)
{
    JSON_FOR_EACH_ITEM (ports, port)
        if (interface.n && str_eq(json_get_str(port, STR("IfName")), interface))
            return true;
    return false;
}

struct interfaces {
    struct machine_interface *items;
    size_t n;
};

static struct interfaces look(struct arena *arena, const struct apps *a)
{
    struct interfaces all = {0};
    struct machine *m = a->node->machine;
    if (m && m->functions->interfaces)
        (void) m->functions->interfaces(m, arena, &all.items, &all.n);
    return all;
}

static struct str mac_of(struct arena *arena, const struct interfaces *all, struct str name)
{
    for (size_t i = 0; i < all->n; i++) {
        const unsigned char *m = all->items[i].mac;
        if (name.n && str_eq(all->items[i].name, name))
            return arena_printf(arena, "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3],
                                m[4], m[5]);
    }
    return STR("");
}

/* A model may name an interface by its label alone. */
static struct str interface_of(const struct json *io)
{
    const struct str name = json_get_str(json_get(io, STR("Phyaddr")), STR("Ifname"));
    const struct str label = json_get_str(io, STR("Logicallabel"));
    if (name.n || !is_network(json_get_int(io, STR("Ptype"), 0)))
        return name;
    return label.n ? label : json_get_str(io, STR("Phylabel"));
}

static struct json no_error(struct arena *arena)
{
    struct json o = json_object();
    put(arena, &o, "Errors", json_null());
    put_time(arena, &o, "TimeOfError", 0);
    return o;
}

static struct json make_bundle(struct arena *arena, const struct json *io,
                               const struct interfaces *all, const struct json *ports)
{
    static const char *const same[] = {"PciLong", "Irq",     "Ioports",
                                       "Serial",  "UsbAddr", "UsbProduct"};
    const struct str interface = interface_of(io);
    const int64_t type = json_get_int(io, STR("Ptype"), 0);
    struct json o = json_object();
    put_int(arena, &o, "Type", type);
    put_copy(arena, &o, io, "Phylabel");
    put_copy(arena, &o, io, "Logicallabel");
    put_str(arena, &o, "AssignmentGroup", json_get_str(io, STR("Assigngrp")));
    put_str(arena, &o, "ParentAssignmentGroup", json_get_str(io, STR("Parentassigngrp")));
    put_copy(arena, &o, io, "Usage");
    put_str(arena, &o, "Ifname", interface);
    for (size_t i = 0; i < N_ELEMENTS(same); i++)
        put_copy(arena, &o, json_get(io, STR("Phyaddr")), same[i]);
    put_str(arena, &o, "MacAddr", is_network(type) ? mac_of(arena, all, interface) : STR(""));
    put_str(arena, &o, "UsedByUUID", STR("00000000-0000-0000-0000-000000000000"));
    put_bool(arena, &o, "IsPCIBack", false);
    put_bool(arena, &o, "IsPort", is_port(ports, interface));
    put_bool(arena, &o, "KeepInHost", true);
    put(arena, &o, "Error", no_error(arena));
    put_copy(arena, &o, io, "Vfs");
    put_copy(arena, &o, io, "Cbattr");
    return o;
}

void assignable_publish(struct apps *a)
{
    ARENA_AUTO arena = arena_new();
    const struct json *list = topics_get(arena, a, IN_IO, STR("zedagent"));
    const struct json *status = topics_get(arena, a, IN_PORTS, STR("global"));
    const struct interfaces all = look(arena, a);
    struct json bundles = json_array(), o = json_object();
    if (!list)
        return;
    JSON_FOR_EACH_ITEM (json_get(list, STR("AdapterList")), io)
        (void) json_push(arena, &bundles,
                         make_bundle(arena, io, &all, json_get(status, STR("Ports"))));
    put_bool(arena, &o, "Initialized", true);
    put(arena, &o, "IoBundleList", bundles);
    topics_publish(a, OUT_ADAPTERS, STR("global"), &o);
}
