/* SPDX-License-Identifier: Apache-2.0 */
/* The ports and other adapters of a device: what it reports, and what is assumed of it. */
#include <stdlib.h>

#include "composer/composer_internal.h"

bool port_is_network(const struct port_plan *p)
{
    return p->type == EVE__COMMON__PHY_IO_TYPE__PhyIoNetEth ||
           p->type == EVE__COMMON__PHY_IO_TYPE__PhyIoNetWLAN ||
           p->type == EVE__COMMON__PHY_IO_TYPE__PhyIoNetWWAN ||
           p->type == EVE__COMMON__PHY_IO_TYPE__PhyIoNetEthPF;
}

static bool is_ethernet(const struct port_plan *p)
{
    return p->type == EVE__COMMON__PHY_IO_TYPE__PhyIoNetEth ||
           p->type == EVE__COMMON__PHY_IO_TYPE__PhyIoNetEthPF;
}

struct port_plan *port_find(struct composition *c, struct str label)
{
    for (size_t i = 0; i < c->n_ports; i++)
        if (str_eq(c->ports[i].label, label))
            return &c->ports[i];
    return NULL;
}

struct port_plan *port_find_adapter(struct composition *c, struct str name)
{
    struct port_plan *p = port_find(c, name);
    if (p && p->is_reported)
        return p;
    for (size_t i = 0; i < c->n_ports; i++)
        if (c->ports[i].is_reported && str_eq(c->ports[i].group, name))
            return &c->ports[i];
    return NULL;
}

struct port_plan *port_find_default(struct composition *c)
{
    struct port_plan *p = port_find(c, STR(DEFAULT_PORT));
    if (p && is_ethernet(p) && !p->owner)
        return p;
    for (size_t i = 0; i < c->n_ports; i++)
        if (is_ethernet(&c->ports[i]) && c->ports[i].is_reported && !c->ports[i].owner)
            return &c->ports[i];
    return p ? NULL : port_assume(c, STR(DEFAULT_PORT), EVE__COMMON__PHY_IO_TYPE__PhyIoNetEth);
}

/* Room for all that will be assumed was made when ports were loaded: pointers stay good. */
struct port_plan *port_assume(struct composition *c, struct str label, Eve__Common__PhyIoType type)
{
    struct port_plan *p = &c->ports[c->n_ports++];
    *p = (struct port_plan){.label = label, .group = label, .interface = label, .type = type};
    return p;
}

static int by_label(const void *a, const void *b)
{
    const struct port_plan *x = a, *y = b;
    return str_cmp(x->label, y->label);
}

static size_t count_wanted(struct composition *c)
{
    size_t n = 1 + json_count(c->annotations); /* the default one; those of annotations */
    for (size_t i = 0; i < c->in->device_networks.n; i++)
        n += json_count(json_at(c->in->device_networks.items[i], "spec", "ports", NULL));
    return n;
}

void ports_load(struct composition *c)
{
    const struct json *reported = json_get(c->in->report, STR("ports"));
    c->ports = ARENA_ARRAY(c->arena, struct port_plan, json_count(reported) + count_wanted(c));
    JSON_FOR_EACH_ITEM (reported, item) {
        const struct str label = json_get_str(item, STR("label"));
        const int64_t type = json_get_int(item, STR("type"), 0);
        if (label.n == 0 || type <= 0 || type > 255 || port_find(c, label))
            continue;
        struct port_plan *p = port_assume(c, label, (Eve__Common__PhyIoType) type);
        p->is_reported = true;
        p->group = json_get_str(item, STR("group"));
        const struct str interface = json_get_str(item, STR("interface"));
        if (interface.n)
            p->interface = interface;
    }
    qsort(c->ports, c->n_ports, sizeof(*c->ports), by_label);
}

static void add_address(struct arena *a, Eve__Config__PhysicalIO *io, const char *key,
                        struct str value)
{
    Eve__Config__PhysicalIO__PhyaddrsEntry *entry =
        MESSAGE_NEW(a, eve__config__physical_io__phyaddrs_entry);
    entry->key = arena_strz(a, str_of(key));
    entry->value = arena_strz(a, value);
    REPEATED_ADD(a, io->phyaddrs, io->n_phyaddrs, entry);
}

static void emit(struct composition *c, const struct port_plan *p)
{
    Eve__Config__PhysicalIO *io = MESSAGE_NEW(c->arena, eve__config__physical_io);
    io->ptype = p->type;
    io->phylabel = io->logicallabel = arena_strz(c->arena, p->label);
    io->assigngrp = arena_strz(c->arena, p->group);
    const bool is_management = p->is_default || (p->owner && p->owner->is_management);
    io->usage = is_management ? EVE__COMMON__PHY_IO_MEMBER_USAGE__PhyIoUsageMgmtAndApps
                : p->owner    ? EVE__COMMON__PHY_IO_MEMBER_USAGE__PhyIoUsageShared
                              : EVE__COMMON__PHY_IO_MEMBER_USAGE__PhyIoUsageDedicated;
    if (port_is_network(p))
        add_address(c->arena, io, "ifname", p->interface);
    struct part *part = part_add(c, SECTION_PORTS, p->label, &io->base);
    part_source(c, part, "", p->owner ? p->owner->object : c->in->device,
                p->owner ? STR("spec.ports") : STR("status"));
}

void ports_emit(struct composition *c)
{
    for (size_t i = 0; i < c->n_ports; i++) {
        const struct port_plan *p = &c->ports[i];
        if (p->is_reported || p->is_default || p->owner)
            emit(c, p);
    }
}

/* ---- what a device reports ------------------------------------------------------------------- */

static struct str interface_of(const Eve__Info__ZInfoDevice *info, struct str label)
{
    const Eve__Info__SystemAdapterInfo *all = info->systemadapter;
    if (!all || all->currentindex >= all->n_status)
        return STR_NONE;
    const Eve__Info__DevicePortStatus *now = all->status[all->currentindex];
    for (size_t i = 0; i < now->n_ports; i++)
        if (str_eq(pb_text(now->ports[i]->name), label))
            return pb_text(now->ports[i]->ifname);
    return STR_NONE;
}

static void add_port(struct arena *a, struct json *list, const Eve__Info__ZInfoDevice *info,
                     const Eve__Info__ZioBundle *bundle, struct str label)
{
    struct json *port = json_push(a, list, json_object());
    const struct str interface = interface_of(info, label);
    (void) json_set(a, port, STR("label"), json_string(label));
    (void) json_set(a, port, STR("type"), json_int((int64_t) bundle->type));
    (void) json_set(a, port, STR("group"), json_string(pb_text(bundle->name)));
    if (interface.n)
        (void) json_set(a, port, STR("interface"), json_string(interface));
}

struct json *compose_report(struct arena *a, const Eve__Info__ZInfoDevice *info)
{
    struct json *report = json_new(a, json_object());
    struct json list = json_array();
    for (size_t i = 0; i < info->n_assignableadapters; i++) {
        const Eve__Info__ZioBundle *bundle = info->assignableadapters[i];
        for (size_t m = 0; m < bundle->n_members; m++)
            add_port(a, &list, info, bundle, pb_text(bundle->members[m]));
        if (bundle->n_members == 0 && pb_text(bundle->name).n)
            add_port(a, &list, info, bundle, pb_text(bundle->name));
    }
    (void) json_set(a, report, STR("ports"), list);
    return report;
}
