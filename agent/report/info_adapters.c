/* SPDX-License-Identifier: Apache-2.0 */
/* Adapters that could be assigned: what domainmgr publishes, or where there is none, the ports and
 * the other network devices of the machine. */
#include "report/info.h"

#define MAX_BUNDLES 256
#define USAGE_MANAGEMENT EVE__COMMON__PHY_IO_MEMBER_USAGE__PhyIoUsageMgmtAndApps
#define USAGE_NONE EVE__COMMON__PHY_IO_MEMBER_USAGE__PhyIoUsageNone

static void add_address(struct world *w, Eve__Info__ZioBundle *to, char *mac)
{
    if (!*mac)
        return;
    Eve__Info__IoAddresses *a = MAKE(w, Eve__Info__IoAddresses, eve__info__io_addresses);
    a->macaddress = mac;
    PUSH(w, to, ioaddresslist, a);
}

static void add_member(struct world *w, Eve__Info__ZioBundle *to, const struct json *adapter)
{
    const struct str label = json_get_str(adapter, STR("Logicallabel"));
    PUSH(w, to, members, label.n ? make_text(w, label) : TEXT(w, adapter, "Phylabel"));
    add_address(w, to, make_mac(w, json_get(adapter, STR("MacAddr"))));
}

static const struct json *all_adapters(struct world *w)
{
    return json_get(world_only(w, REPORT_ADAPTERS), STR("IoBundleList"));
}

void info_adapter_members(struct world *w, Eve__Info__ZioBundle *to, struct str name)
{
    const struct json *one = world_adapter(w, "Phylabel", name);
    const struct str group = json_get_str(one, STR("AssignmentGroup"));
    const struct str wanted = group.n ? group : name;
    JSON_FOR_EACH_ITEM (all_adapters(w), adapter)
        if (str_eq_nocase(json_get_str(adapter, STR("AssignmentGroup")), wanted))
            add_member(w, to, adapter);
    if (!to->n_members && one)
        add_member(w, to, one);
}

static bool is_first_of_group(const struct json *list, const struct json *adapter)
{
    const struct str group = json_get_str(adapter, STR("AssignmentGroup"));
    JSON_FOR_EACH_ITEM (list, item) {
        if (item == adapter || !group.n)
            return true;
        if (str_eq_nocase(json_get_str(item, STR("AssignmentGroup")), group))
            return false;
    }
    return true;
}

/* IOBundleError since 2024; before it a text with its time. */
static Eve__Info__ErrorInfo *make_adapter_error(struct world *w, const struct json *adapter)
{
    const struct json *error = json_get(adapter, STR("Error"));
    if (json_is(error, JSON_STRING))
        return make_error_text(w, json_str(error));
    BUF_AUTO text = {0};
    JSON_FOR_EACH_ITEM (json_get(error, STR("Errors")), item) {
        const struct str one =
            json_is(item, JSON_STRING) ? json_str(item) : json_get_str(item, STR("ErrStr"));
        buf_printf(&text, "%s%.*s", text.n && one.n ? "; " : "", STR_ARG(one));
    }
    Eve__Info__ErrorInfo *e = make_error_text(w, arena_str(w->arena, buf_str(&text)));
    if (e)
        e->timestamp = TIME(w, error, "TimeOfError");
    return e;
}

static void add_bundle(struct world *w, Eve__Info__ZInfoDevice *d, const struct json *adapter)
{
    const struct str group = json_get_str(adapter, STR("AssignmentGroup"));
    const struct str user = json_get_str(adapter, STR("UsedByUUID"));
    Eve__Info__ZioBundle *b = MAKE(w, Eve__Info__ZioBundle, eve__info__zio_bundle);
    b->type = (Eve__Common__PhyIoType) NUMBER(adapter, "Type");
    b->name = make_text(w, group);
    b->usage = (Eve__Common__PhyIoMemberUsage) NUMBER(adapter, "Usage");
    if (group.n)
        info_adapter_members(w, b, group);
    else
        add_member(w, b, adapter);
    if (!make_is_nil_uuid(user))
        b->usedbyappuuid = make_text(w, user);
    else
        b->usedbybaseos = FLAG(adapter, "KeepInHost") || FLAG(adapter, "IsPort");
    b->err = make_adapter_error(w, adapter);
    JSON_FOR_EACH_ITEM (all_adapters(w), other)
        if (!b->err && group.n && str_eq_nocase(json_get_str(other, STR("AssignmentGroup")), group))
            b->err = make_adapter_error(w, other);
    PUSH(w, d, assignableadapters, b);
}

/* ---- without domainmgr ---------------------------------------------------------------------- */

static Eve__Common__PhyIoType type_of(struct str interface)
{
    if (str_starts_with(interface, STR("wl")))
        return EVE__COMMON__PHY_IO_TYPE__PhyIoNetWLAN;
    if (str_starts_with(interface, STR("ww")))
        return EVE__COMMON__PHY_IO_TYPE__PhyIoNetWWAN;
    return EVE__COMMON__PHY_IO_TYPE__PhyIoNetEth;
}

static Eve__Info__ZioBundle *make_port(struct world *w, struct str interface, char *label,
                                       char *mac)
{
    Eve__Info__ZioBundle *b = MAKE(w, Eve__Info__ZioBundle, eve__info__zio_bundle);
    b->type = type_of(interface);
    b->name = make_text(w, interface);
    b->usedbybaseos = true;
    PUSH(w, b, members, label);
    add_address(w, b, mac);
    return b;
}

static bool is_port(const struct json *ports, struct str interface)
{
    JSON_FOR_EACH_ITEM (ports, port)
        if (str_eq(json_get_str(port, STR("IfName")), interface))
            return true;
    return false;
}

static void add_ports(struct world *w, Eve__Info__ZInfoDevice *d)
{
    const struct json *ports = json_get(world_only(w, REPORT_NETWORK), STR("Ports"));
    JSON_FOR_EACH_ITEM (ports, port) {
        const struct str interface = json_get_str(port, STR("IfName"));
        if (!interface.n || NUMBER(port, "L2Type") || d->n_assignableadapters == MAX_BUNDLES)
            continue;
        Eve__Info__ZioBundle *b = make_port(w, interface, TEXT(w, port, "Logicallabel"),
                                            make_mac(w, json_get(port, STR("MacAddr"))));
        b->usage = FLAG(port, "IsMgmt") ? USAGE_MANAGEMENT
                                        : EVE__COMMON__PHY_IO_MEMBER_USAGE__PhyIoUsageShared;
        PUSH(w, d, assignableadapters, b);
    }
    size_t n;
    const struct machine_interface *list = world_interfaces(w, &n);
    for (size_t i = 0; i < n && d->n_assignableadapters < MAX_BUNDLES; i++)
        if (list[i].is_physical && !is_port(ports, list[i].name)) {
            char *mac = make_text(w, mac_text(w->arena, list[i].mac));
            Eve__Info__ZioBundle *b = make_port(w, list[i].name, make_text(w, list[i].name), mac);
            b->usage = USAGE_NONE;
            PUSH(w, d, assignableadapters, b);
        }
}

void info_device_adapters(struct world *w, Eve__Info__ZInfoDevice *d)
{
    const struct json *list = all_adapters(w);
    JSON_FOR_EACH_ITEM (list, adapter)
        if (d->n_assignableadapters < MAX_BUNDLES && is_first_of_group(list, adapter))
            add_bundle(w, d, adapter);
    /* Until nim has spoken there is no telling what is a port of what name. */
    if (!json_count(list) && json_count(world_topic(w, REPORT_NETWORK)))
        add_ports(w, d);
}
