/* SPDX-License-Identifier: Apache-2.0 */
/* The state of bonds and of their members, as the attributes of links tell. */
#include <arpa/inet.h>
#include <linux/if_link.h>

#include "machine/linux_internal.h"
#include "machine/netlink.h"

static unsigned byte_of(const struct rtattr *at)
{
    return at && RTA_PAYLOAD(at) >= 1 ? *(const unsigned char *) RTA_DATA(at) : 0;
}

static unsigned short_of(const struct rtattr *at)
{
    uint16_t value = 0;
    if (at && RTA_PAYLOAD(at) >= sizeof(value))
        memcpy(&value, RTA_DATA(at), sizeof(value));
    return value;
}

static void read_targets(struct arena *a, const struct rtattr *within,
                         struct machine_bond_state *ret)
{
    struct netlink_attributes list;
    struct str *targets = ARENA_ARRAY(a, struct str, MACHINE_MAX_TARGETS);
    netlink_nested(within, &list);
    for (size_t i = 0; i < MACHINE_MAX_TARGETS; i++) {
        char text[INET_ADDRSTRLEN];
        if (list.of[i] && RTA_PAYLOAD(list.of[i]) >= 4 &&
            inet_ntop(AF_INET, RTA_DATA(list.of[i]), text, sizeof(text)))
            targets[ret->n_targets++] = arena_str(a, str_of(text));
    }
    ret->targets = targets;
}

static void read_lacp(const struct rtattr *within, struct machine_bond_state *ret)
{
    struct netlink_attributes ad;
    netlink_nested(within, &ad);
    ret->aggregator = short_of(ad.of[IFLA_BOND_AD_INFO_AGGREGATOR]);
    ret->actor_key = short_of(ad.of[IFLA_BOND_AD_INFO_ACTOR_KEY]);
    ret->partner_key = short_of(ad.of[IFLA_BOND_AD_INFO_PARTNER_KEY]);
    const struct rtattr *mac = ad.of[IFLA_BOND_AD_INFO_PARTNER_MAC];
    if (mac && RTA_PAYLOAD(mac) >= sizeof(ret->partner_mac))
        memcpy(ret->partner_mac, RTA_DATA(mac), sizeof(ret->partner_mac));
}

static struct machine_bond_state *read_bond(struct arena *a, const struct rtattr *data)
{
    struct machine_bond_state *s = ARENA_NEW(a, struct machine_bond_state);
    struct netlink_attributes at;
    netlink_nested(data, &at);
    *s = (struct machine_bond_state){
        .mode = byte_of(at.of[IFLA_BOND_MODE]),
        .active_index = netlink_u32(at.of[IFLA_BOND_ACTIVE_SLAVE], 0),
        .mii_ms = netlink_u32(at.of[IFLA_BOND_MIIMON], 0),
        .up_delay_ms = netlink_u32(at.of[IFLA_BOND_UPDELAY], 0),
        .down_delay_ms = netlink_u32(at.of[IFLA_BOND_DOWNDELAY], 0),
        .arp_ms = netlink_u32(at.of[IFLA_BOND_ARP_INTERVAL], 0),
        .arp_missed_max = byte_of(at.of[IFLA_BOND_MISSED_MAX]),
        .is_lacp_fast = byte_of(at.of[IFLA_BOND_AD_LACP_RATE]),
    };
    read_targets(a, at.of[IFLA_BOND_ARP_IP_TARGET], s);
    read_lacp(at.of[IFLA_BOND_AD_INFO], s);
    return s;
}

static bool is(const struct rtattr *at, const char *word)
{
    return at && str_is(str_range(RTA_DATA(at), strnlen(RTA_DATA(at), RTA_PAYLOAD(at))), word);
}

void linux_read_bond(struct arena *a, const struct rtattr *link_info, unsigned master,
                     struct machine_interface *i)
{
    struct netlink_attributes info, slave;
    netlink_nested(link_info, &info);
    if (is(info.of[IFLA_INFO_KIND], "bond"))
        i->bond_state = read_bond(a, info.of[IFLA_INFO_DATA]);
    if (!is(info.of[IFLA_INFO_SLAVE_KIND], "bond"))
        return;
    netlink_nested(info.of[IFLA_INFO_SLAVE_DATA], &slave);
    i->bond = master;
    i->member = (struct machine_member_state){
        /* BOND_LINK_UP is 0. */
        .is_link_up = slave.of[IFLA_BOND_SLAVE_MII_STATUS] &&
                      byte_of(slave.of[IFLA_BOND_SLAVE_MII_STATUS]) == 0,
        .aggregator = short_of(slave.of[IFLA_BOND_SLAVE_AD_AGGREGATOR_ID]),
    };
}
