/* SPDX-License-Identifier: Apache-2.0 */
/* The device's model: PhysicalIOAdapterList. */
#include "zedagent/parse_internal.h"

static const struct {
    const char *key, *member;
} address_members[] = {
    {"pcilong", "PciLong"}, {"ifname", "Ifname"},   {"serial", "Serial"},         {"irq", "Irq"},
    {"ioports", "Ioports"}, {"usbaddr", "UsbAddr"}, {"usbproduct", "UsbProduct"},
};

static const char *address_member(struct str key)
{
    for (size_t i = 0; i < N_ELEMENTS(address_members); i++)
        if (str_eq_nocase(key, str_of(address_members[i].key)))
            return address_members[i].member;
    return "UnknownType";
}

static struct json *physical_address(struct arena *a, const Eve__Config__PhysicalIO *io)
{
    struct json *o = json_new(a, json_object());
    for (size_t i = 0; i < N_ELEMENTS(address_members); i++)
        json_append_member(a, o, str_of(address_members[i].member), json_string(STR("")));
    json_append_member(a, o, STR("UnknownType"), json_string(STR("")));
    for (size_t i = 0; i < io->n_phyaddrs; i++)
        (void) json_set(a, o, str_of(address_member(pb_text(io->phyaddrs[i]->key))),
                        gotype_string(a, pb_text(io->phyaddrs[i]->value)));
    return o;
}

static struct json vf_value(struct arena *a, const Eve__Config__EthVF *vf, unsigned index)
{
    struct gotype g = gotype_new(a);
    gotype_int(&g, "Index", vf ? vf->index & 0xFF : index);
    gotype_text(&g, "PciLong", STR(""));
    gotype_text(&g, "Mac", vf ? pb_text(vf->mac) : STR(""));
    gotype_int(&g, "VlanID", vf ? vf->vlan_id : 0);
    return *g.object;
}

/* NULL: one of them makes no sense, and the whole adapter with it. */
static struct json *virtual_functions(struct arena *a, const Eve__Config__VfList *list)
{
    struct gotype g = gotype_new(a);
    const unsigned n = list ? MIN(list->vf_count, PARSE_MAX_VFS) : 0;
    struct json data = n ? json_array() : json_null();
    bool is_given[256] = {false};
    for (size_t i = 0; n && i < MIN(list->n_data, n); i++) {
        if (list->data[i]->vlan_id > PARSE_MAX_VLAN)
            return NULL;
        is_given[list->data[i]->index & 0xFF] = true;
        json_push(a, &data, vf_value(a, list->data[i], 0));
    }
    for (unsigned i = 0; i < n && data.n < n; i++)
        if (!is_given[i])
            json_push(a, &data, vf_value(a, NULL, i));
    gotype_int(&g, "Count", n);
    gotype_value(&g, "Data", &data);
    return g.object;
}

static struct json *board_attributes(struct arena *a, const Eve__Config__PhysicalIO *io)
{
    struct json *o = io->n_cbattr ? json_new(a, json_object()) : NULL;
    for (size_t i = 0; i < io->n_cbattr; i++) {
        const struct json key = gotype_string(a, pb_text(io->cbattr[i]->key));
        (void) json_set(a, o, json_str(&key), gotype_string(a, pb_text(io->cbattr[i]->value)));
    }
    return o;
}

static struct json *adapter_value(struct arena *a, const Eve__Config__PhysicalIO *io)
{
    struct gotype g = gotype_new(a), policy = gotype_new(a);
    struct json *vfs = virtual_functions(a, io->vflist);
    const struct str label = pb_text(io->logicallabel);
    if (!vfs)
        return NULL;
    gotype_int(&g, "Ptype", io->ptype);
    gotype_text(&g, "Phylabel", pb_text(io->phylabel));
    gotype_value(&g, "Phyaddr", physical_address(a, io));
    gotype_text(&g, "Logicallabel", label.n ? label : pb_text(io->phylabel));
    gotype_text(&g, "Assigngrp", pb_text(io->assigngrp));
    gotype_text(&g, "Parentassigngrp", pb_text(io->parentassigngrp));
    gotype_int(&g, "Usage", io->usage);
    gotype_bool(&policy, "FreeUplink", io->usagepolicy && io->usagepolicy->freeuplink);
    gotype_value(&g, "UsagePolicy", policy.object);
    gotype_value(&g, "Vfs", vfs);
    gotype_value(&g, "Cbattr", board_attributes(a, io));
    return g.object;
}

struct json *parse_physical_io(struct parse *p)
{
    struct json *all = json_new(p->arena, json_object());
    struct json adapters = json_array();
    struct gotype g = gotype_new(p->arena);
    for (size_t i = 0; i < p->config->n_deviceiolist; i++) {
        struct json *adapter = adapter_value(p->arena, p->config->deviceiolist[i]);
        if (adapter)
            json_push(p->arena, &adapters, *adapter);
    }
    gotype_bool(&g, "Initialized", true);
    gotype_value(&g, "AdapterList", &adapters);
    json_append_member(p->arena, all, STR("zedagent"), *g.object);
    return all;
}
