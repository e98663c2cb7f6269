/* SPDX-License-Identifier: Apache-2.0 */
#include "nim/links.h"

#include <errno.h>

#include "base/base64.h"

enum l2_type { L2_VLAN = 1, L2_BOND = 2 };
enum { LACP_SLOW = 1, LACP_FAST = 2 };

static unsigned number(const struct json *v, const char *name)
{
    const int64_t n = json_get_int(v, str_of(name), 0);
    return n > 0 && n <= INT32_MAX ? (unsigned) n : 0;
}

/* Of the port with that label; absent: there is none. */
static struct str interface_of(const struct json *ports, struct str label)
{
    JSON_FOR_EACH_ITEM (ports, port)
        if (str_eq(json_get_str(port, STR("Logicallabel")), label))
            return json_get_str(port, STR("IfName"));
    return STR_NONE;
}

static struct str label_of(const struct json *ports, struct str interface)
{
    JSON_FOR_EACH_ITEM (ports, port)
        if (str_eq(json_get_str(port, STR("IfName")), interface))
            return json_get_str(port, STR("Logicallabel"));
    return interface;
}

/* ---- what is wanted ------------------------------------------------------------------------- */

static void read_vlan(const struct json *ports, const struct json *port, struct links_link *to)
{
    const struct json *vlan = json_get(port, STR("VLAN"));
    to->link.kind = MACHINE_VLAN;
    to->link.parent = interface_of(ports, json_get_str(vlan, STR("ParentPort")));
    to->link.vlan_id = number(vlan, "ID");
    if (!to->link.parent.n)
        to->error = -EINVAL;
}

static void read_members(struct arena *a, const struct json *ports, const struct json *bond,
                         struct links_link *to)
{
    const struct json *labels = json_get(bond, STR("AggregatedPorts"));
    struct str *members = ARENA_ARRAY(a, struct str, MAX(json_count(labels), 1));
    JSON_FOR_EACH_ITEM (labels, label) {
        const struct str name = interface_of(ports, json_str(label));
        if (name.n)
            members[to->link.n_members++] = name;
        else
            to->error = -EINVAL;
    }
    to->link.members = members;
    if (!to->link.n_members)
        to->error = -EINVAL;
}

static void read_monitor(struct arena *a, const struct json *bond, struct machine_link *to)
{
    const struct json *mii = json_get(bond, STR("MIIMonitor"));
    const struct json *arp = json_get(bond, STR("ARPMonitor"));
    if (json_get_bool(mii, STR("Enabled"), false)) {
        to->mii_ms = number(mii, "Interval");
        to->up_delay_ms = number(mii, "UpDelay");
        to->down_delay_ms = number(mii, "DownDelay");
    } else if (json_get_bool(arp, STR("Enabled"), false)) {
        const struct json *targets = json_get(arp, STR("IPTargets"));
        struct str *list = ARENA_ARRAY(a, struct str, MAX(json_count(targets), 1));
        to->arp_ms = number(arp, "Interval");
        JSON_FOR_EACH_ITEM (targets, target)
            list[to->n_targets++] = json_str(target);
        to->targets = list;
    }
}

/* EVE numbers modes from 1 and refuses a bond without one. */
static void read_bond(struct arena *a, const struct json *ports, const struct json *port,
                      struct links_link *to)
{
    const struct json *bond = json_get(port, STR("Bond"));
    const unsigned mode = number(bond, "Mode");
    to->link.kind = MACHINE_BOND;
    if (mode < 1 || mode > MACHINE_BOND_ALB + 1)
        to->error = -EINVAL;
    else
        to->link.mode = (enum machine_bond_mode)(mode - 1);
    to->link.is_lacp_fast = number(bond, "LacpRate") == LACP_FAST;
    read_members(a, ports, bond, to);
    read_monitor(a, bond, &to->link);
}

struct links_link *links_of(struct arena *a, const struct json *ports, size_t *ret_n)
{
    struct links_link *list = ARENA_ARRAY(a, struct links_link, MAX(json_count(ports), 1));
    size_t n = 0, at = 0;
    JSON_FOR_EACH_ITEM (ports, port) {
        const size_t here = at++;
        const unsigned type = number(port, "L2Type"), mtu = number(port, "MTU");
        if ((type != L2_VLAN && type != L2_BOND) ||
            json_get_bool(port, STR("InvalidConfig"), false))
            continue;
        struct links_link *to = &list[n++];
        *to = (struct links_link){.port = here};
        to->link.name = json_get_str(port, STR("IfName"));
        to->link.mtu = mtu <= 65535 ? mtu : 0;
        if (type == L2_VLAN)
            read_vlan(ports, port, to);
        else
            read_bond(a, ports, port, to);
    }
    *ret_n = n;
    return list;
}

/* ---- what has become of it ------------------------------------------------------------------ */

static struct json write_mii(struct arena *a, const struct machine_bond_state *s)
{
    struct json to = json_object();
    json_set(a, &to, STR("Enabled"), json_bool(s->mii_ms > 0));
    json_set(a, &to, STR("PollingInterval"), json_int(s->mii_ms));
    json_set(a, &to, STR("UpDelay"), json_int(s->up_delay_ms));
    json_set(a, &to, STR("DownDelay"), json_int(s->down_delay_ms));
    return to;
}

static struct json write_arp(struct arena *a, const struct machine_bond_state *s)
{
    struct json to = json_object(), targets = json_array();
    for (size_t i = 0; i < s->n_targets; i++)
        json_push(a, &targets, json_string(s->targets[i]));
    json_set(a, &to, STR("Enabled"), json_bool(s->arp_ms > 0));
    json_set(a, &to, STR("PollingInterval"), json_int(s->arp_ms));
    json_set(a, &to, STR("IPTargets"), targets);
    json_set(a, &to, STR("MissedMax"), json_int(s->arp_ms ? s->arp_missed_max : 0));
    return to;
}

static struct json write_lacp(struct arena *a, const struct machine_bond_state *s)
{
    struct json to = json_object();
    const bool is_used = s->mode == MACHINE_BOND_LACP;
    json_set(a, &to, STR("Enabled"), json_bool(is_used));
    if (!is_used)
        return to;
    json_set(a, &to, STR("LACPRate"), json_int(s->is_lacp_fast ? LACP_FAST : LACP_SLOW));
    json_set(a, &to, STR("ActiveAggregatorID"), json_int(s->aggregator));
    json_set(
        a, &to, STR("PartnerMAC"),
        json_string(base64_encode(
            a, str_range((const char *) s->partner_mac, sizeof(s->partner_mac)), BASE64_STANDARD)));
    json_set(a, &to, STR("ActorKey"), json_int(s->actor_key));
    json_set(a, &to, STR("PartnerKey"), json_int(s->partner_key));
    return to;
}

struct json links_bond_status(struct arena *a, const struct status_inputs *in,
                              const struct json *ports, const struct machine_interface *bond)
{
    const struct machine_bond_state *s = bond->bond_state;
    struct json to = json_object(), members = json_array();
    struct str active = STR("");
    for (size_t i = 0; i < in->n_interfaces; i++) {
        const struct machine_interface *member = &in->interfaces[i];
        if (member->bond != bond->index)
            continue;
        struct json item = json_object(), lacp = json_object();
        const struct str label = label_of(ports, member->name);
        if (member->index == s->active_index)
            active = label;
        json_set(a, &item, STR("Logicallabel"), json_string(arena_str(a, label)));
        json_set(a, &item, STR("MIIUp"), json_bool(member->member.is_link_up));
        json_set(a, &lacp, STR("AggregatorID"), json_int(member->member.aggregator));
        if (s->mode == MACHINE_BOND_LACP)
            json_set(a, &item, STR("LACP"), lacp);
        json_push(a, &members, item);
    }
    json_set(a, &to, STR("Mode"), json_int(s->mode + 1));
    json_set(a, &to, STR("ActiveMember"), json_string(arena_str(a, active)));
    json_set(a, &to, STR("MIIMonitor"), write_mii(a, s));
    json_set(a, &to, STR("ARPMonitor"), write_arp(a, s));
    json_set(a, &to, STR("LACP"), write_lacp(a, s));
    json_set(a, &to, STR("Members"), members);
    return to;
}
