/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a bonded port. */
#include "report/info.h"

#define MAX_MEMBERS 64

static Eve__Info__BondLACPStatus *make_lacp(struct world *w, const struct json *lacp)
{
    if (!FLAG(lacp, "Enabled"))
        return NULL;
    Eve__Info__BondLACPStatus *s = MAKE(w, Eve__Info__BondLACPStatus, eve__info__bond_lacpstatus);
    s->lacp_rate = (Eve__Common__LacpRate) NUMBER(lacp, "LACPRate");
    s->active_aggregator_id = (uint32_t) NUMBER(lacp, "ActiveAggregatorID");
    s->partner_mac = make_mac(w, json_get(lacp, STR("PartnerMAC")));
    s->actor_key = (uint32_t) NUMBER(lacp, "ActorKey");
    s->partner_key = (uint32_t) NUMBER(lacp, "PartnerKey");
    return s;
}

static Eve__Info__BondMemberStatus *make_member(struct world *w, const struct json *member)
{
    Eve__Info__BondMemberStatus *s =
        MAKE(w, Eve__Info__BondMemberStatus, eve__info__bond_member_status);
    const struct json *lacp = json_get(member, STR("LACP"));
    s->logicallabel = TEXT(w, member, "Logicallabel");
    s->mii_up = FLAG(member, "MIIUp");
    if (json_is(lacp, JSON_OBJECT)) {
        s->lacp = MAKE(w, Eve__Info__BondMemberLACPStatus, eve__info__bond_member_lacpstatus);
        s->lacp->aggregator_id = (uint32_t) NUMBER(lacp, "AggregatorID");
        /* Go counts from none, the API from unspecified. */
        s->lacp->actor_churn_state =
            (Eve__Info__BondLACPChurnState) (NUMBER(lacp, "ActorChurnState") + 1);
        s->lacp->partner_churn_state =
            (Eve__Info__BondLACPChurnState) (NUMBER(lacp, "PartnerChurnState") + 1);
    }
    return s;
}

static void add_monitors(struct world *w, Eve__Info__BondStatus *s, const struct json *bond)
{
    const struct json *mii = json_get(bond, STR("MIIMonitor"));
    const struct json *arp = json_get(bond, STR("ARPMonitor"));
    if (FLAG(mii, "Enabled")) {
        s->mii_monitor =
            MAKE(w, Eve__Info__BondMIIMonitorStatus, eve__info__bond_miimonitor_status);
        s->mii_monitor->enabled = true;
        s->mii_monitor->polling_interval = (uint32_t) NUMBER(mii, "PollingInterval");
        s->mii_monitor->updelay = (uint32_t) NUMBER(mii, "UpDelay");
        s->mii_monitor->downdelay = (uint32_t) NUMBER(mii, "DownDelay");
    }
    if (FLAG(arp, "Enabled")) {
        s->arp_monitor =
            MAKE(w, Eve__Info__BondArpMonitorStatus, eve__info__bond_arp_monitor_status);
        s->arp_monitor->enabled = true;
        s->arp_monitor->polling_interval = (uint32_t) NUMBER(arp, "PollingInterval");
        s->arp_monitor->missed_max = (uint32_t) NUMBER(arp, "MissedMax");
        s->arp_monitor->n_ip_targets =
            make_texts(w, json_get(arp, STR("IPTargets")), NULL, &s->arp_monitor->ip_targets);
    }
}

Eve__Info__BondStatus *info_bond(struct world *w, const struct json *port)
{
    const struct json *bond = json_get(port, STR("BondStatus"));
    if (!NUMBER(bond, "Mode"))
        return NULL;
    Eve__Info__BondStatus *s = MAKE(w, Eve__Info__BondStatus, eve__info__bond_status);
    s->mode = (Eve__Common__BondMode) NUMBER(bond, "Mode");
    s->active_member = TEXT(w, bond, "ActiveMember");
    s->lacp = make_lacp(w, json_get(bond, STR("LACP")));
    add_monitors(w, s, bond);
    JSON_FOR_EACH_ITEM (json_get(bond, STR("Members")), member)
        if (s->n_members < MAX_MEMBERS)
            PUSH(w, s, members, make_member(w, member));
    return s;
}
