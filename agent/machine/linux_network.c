/* SPDX-License-Identifier: Apache-2.0 */
/* Interfaces as the kernel has them: links, addresses and default routes by rtnetlink, resolvers by
 * resolv.conf. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <net/if_arp.h>

#include "machine/linux_internal.h"
#include "machine/netlink.h"

/* One interface while it is put together. */
struct part {
    struct machine_interface i;
    struct machine_address *addresses;
    struct str *routers;
};

struct survey {
    struct machine_linux *m;
    struct arena *a;
    struct part *parts;
    size_t n;
};

static struct part *part_of(struct survey *s, unsigned index)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->parts[i].i.index == index)
            return &s->parts[i];
    return NULL;
}

/* ---- links ---------------------------------------------------------------------------------- */

static struct str word_of(const struct rtattr *at)
{
    return at ? str_range(RTA_DATA(at), strnlen(RTA_DATA(at), RTA_PAYLOAD(at))) : STR_NONE;
}

static struct str kind_of(const struct netlink_attributes *link)
{
    struct netlink_attributes info;
    netlink_nested(link->of[IFLA_LINKINFO], &info);
    return word_of(info.of[IFLA_INFO_KIND]);
}

/* A device of its own; or, in a container, the near end of the cable that its host has laid: it
 * stays one as a member of a bond. */
static bool is_physical(struct survey *s, const struct machine_interface *i,
                        const struct netlink_attributes *link)
{
    if (i->is_loopback)
        return false;
    if (linux_exists(s->m, s->a, "/sys/class/net/%.*s/device", STR_ARG(i->name)))
        return true;
    return str_is(kind_of(link), "veth") && link->of[IFLA_LINK_NETNSID] &&
           (!link->of[IFLA_MASTER] || i->bond);
}

static void take_counters(struct machine_interface *i, const struct rtattr *stats)
{
    struct rtnl_link_stats64 c = {0};
    if (!stats)
        return;
    memcpy(&c, RTA_DATA(stats), MIN(sizeof(c), RTA_PAYLOAD(stats)));
    i->counters.rx_bytes = c.rx_bytes;
    i->counters.tx_bytes = c.tx_bytes;
    i->counters.rx_packets = c.rx_packets;
    i->counters.tx_packets = c.tx_packets;
    i->counters.rx_errors = c.rx_errors;
    i->counters.tx_errors = c.tx_errors;
    i->counters.rx_drops = c.rx_dropped;
    i->counters.tx_drops = c.tx_dropped;
}

static void on_link(void *arg, const struct nlmsghdr *message)
{
    struct survey *s = arg;
    struct ifinfomsg body;
    struct netlink_attributes link;
    if (message->nlmsg_type != RTM_NEWLINK || message->nlmsg_len < NLMSG_LENGTH(sizeof(body)))
        return;
    memcpy(&body, NLMSG_DATA(message), sizeof(body));
    netlink_attributes(message, sizeof(body), &link);
    if (!link.of[IFLA_IFNAME] || s->n == LINUX_MAX_INTERFACES)
        return;
    const struct rtattr *name = link.of[IFLA_IFNAME], *mac = link.of[IFLA_ADDRESS];
    struct machine_interface i = {
        .name =
            arena_str(s->a, str_range(RTA_DATA(name), strnlen(RTA_DATA(name), RTA_PAYLOAD(name)))),
        .index = (unsigned) body.ifi_index,
        .mtu = netlink_u32(link.of[IFLA_MTU], 0),
        .is_loopback = body.ifi_flags & IFF_LOOPBACK,
        .is_ethernet = body.ifi_type == ARPHRD_ETHER,
        /* Up, and with a carrier. */
        .is_up = (body.ifi_flags & IFF_UP) && (body.ifi_flags & IFF_RUNNING),
    };
    if (mac && RTA_PAYLOAD(mac) == sizeof(i.mac))
        memcpy(i.mac, RTA_DATA(mac), sizeof(i.mac));
    i.is_made = linux_link_is_made(word_of(link.of[IFLA_IFALIAS]));
    linux_read_bond(s->a, link.of[IFLA_LINKINFO], netlink_u32(link.of[IFLA_MASTER], 0), &i);
    i.is_physical = is_physical(s, &i, &link);
    take_counters(&i, link.of[IFLA_STATS64]);
    s->parts = arena_grow(s->a, s->parts, s->n, sizeof(*s->parts));
    s->parts[s->n++] = (struct part){.i = i};
}

/* ---- addresses and routes ------------------------------------------------------------------- */

static struct str address_text(struct arena *a, int family, const struct rtattr *attribute)
{
    char text[INET6_ADDRSTRLEN];
    size_t n = family == AF_INET ? 4 : 16;
    if (!attribute || RTA_PAYLOAD(attribute) < n ||
        !inet_ntop(family, RTA_DATA(attribute), text, sizeof(text)))
        return STR_NONE;
    return arena_str(a, str_of(text));
}

static void on_address(void *arg, const struct nlmsghdr *message)
{
    struct survey *s = arg;
    struct ifaddrmsg body;
    struct netlink_attributes at;
    if (message->nlmsg_type != RTM_NEWADDR || message->nlmsg_len < NLMSG_LENGTH(sizeof(body)))
        return;
    memcpy(&body, NLMSG_DATA(message), sizeof(body));
    netlink_attributes(message, sizeof(body), &at);
    struct part *p = part_of(s, body.ifa_index);
    uint32_t flags = netlink_u32(at.of[IFA_FLAGS], body.ifa_flags);
    if (!p || p->i.n_addresses == LINUX_MAX_ADDRESSES ||
        (flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED)))
        return;
    /* Of a point-to-point link IFA_ADDRESS is the other end. */
    const struct rtattr *own = at.of[IFA_LOCAL] ? at.of[IFA_LOCAL] : at.of[IFA_ADDRESS];
    struct str text = address_text(s->a, body.ifa_family, own);
    if (!text.n)
        return;
    p->addresses = arena_grow(s->a, p->addresses, p->i.n_addresses, sizeof(*p->addresses));
    p->addresses[p->i.n_addresses++] =
        (struct machine_address){.text = text, .prefix_bits = body.ifa_prefixlen};
    p->i.addresses = p->addresses;
}

static void add_router(struct survey *s, struct part *p, struct str text)
{
    for (size_t i = 0; i < p->i.n_routers; i++)
        if (str_eq(p->routers[i], text))
            return;
    if (p->i.n_routers == LINUX_MAX_ADDRESSES)
        return;
    p->routers = arena_grow(s->a, p->routers, p->i.n_routers, sizeof(*p->routers));
    p->routers[p->i.n_routers++] = text;
    p->i.routers = p->routers;
}

static void on_route(void *arg, const struct nlmsghdr *message)
{
    struct survey *s = arg;
    struct rtmsg body;
    struct netlink_attributes at;
    if (message->nlmsg_type != RTM_NEWROUTE || message->nlmsg_len < NLMSG_LENGTH(sizeof(body)))
        return;
    memcpy(&body, NLMSG_DATA(message), sizeof(body));
    if (body.rtm_dst_len || body.rtm_type != RTN_UNICAST || body.rtm_table == RT_TABLE_LOCAL)
        return;
    netlink_attributes(message, sizeof(body), &at);
    struct part *p = part_of(s, netlink_u32(at.of[RTA_OIF], 0));
    struct str text = address_text(s->a, body.rtm_family, at.of[RTA_GATEWAY]);
    if (p && text.n)
        add_router(s, p, text);
}

/* ---- resolvers ------------------------------------------------------------------------------ */

struct resolvers {
    struct str *servers;
    size_t n;
    struct str domain;
};

static struct str next_word(struct str *rest)
{
    struct str word = STR_NONE;
    for (size_t i = 0; i < rest->n; i++)
        if (rest->p[i] == ' ' || rest->p[i] == '\t') {
            word = str_sub(*rest, 0, i);
            *rest = str_trim(str_from(*rest, i));
            return word;
        }
    word = *rest;
    *rest = STR_NONE;
    return word;
}

static struct resolvers read_resolvers(struct machine_linux *m, struct arena *a)
{
    struct resolvers r = {0};
    struct str text = linux_read(m, a, "/etc/resolv.conf"), line;
    /* systemd-resolved's own list, where resolv.conf names only its stub. */
    if (str_find_str(text, STR("127.0.0.53")) >= 0) {
        struct str real = linux_read(m, a, "/run/systemd/resolve/resolv.conf");
        text = real.n ? real : text;
    }
    while (str_split(&text, '\n', &line)) {
        struct str rest = str_trim(line), key = next_word(&rest);
        if (str_is(key, "nameserver") && r.n < LINUX_MAX_ADDRESSES) {
            r.servers = arena_grow(a, r.servers, r.n, sizeof(*r.servers));
            r.servers[r.n++] = next_word(&rest);
        } else if (!r.domain.n && (str_is(key, "search") || str_is(key, "domain"))) {
            r.domain = next_word(&rest);
        }
    }
    return r;
}

static bool any_has_router(const struct survey *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->parts[i].i.n_routers)
            return true;
    return false;
}

/* Of an interface that was told its own, these; else the machine's, for each that leads
 * somewhere. */
static void give_resolvers(struct survey *s, struct part *p, const struct resolvers *r,
                           bool needs_router)
{
    const struct linux_port *port = linux_port_find(s->m, p->i.name);
    if (port && port->n_dns_servers) {
        struct str *own = ARENA_ARRAY(s->a, struct str, port->n_dns_servers);
        for (size_t i = 0; i < port->n_dns_servers; i++)
            own[i] = arena_str(s->a, str_of(port->dns_servers[i]));
        p->i.dns_servers = own;
        p->i.n_dns_servers = port->n_dns_servers;
    } else if (!p->i.is_loopback && p->i.n_addresses && (p->i.n_routers || !needs_router)) {
        p->i.dns_servers = r->servers;
        p->i.n_dns_servers = r->n;
    }
    if (p->i.n_dns_servers)
        p->i.domain = r->domain;
}

int linux_interfaces(struct machine *machine, struct arena *a, struct machine_interface **ret,
                     size_t *ret_n)
{
    struct survey s = {.m = machine_linux_of(machine), .a = a};
    int r = netlink_dump(RTM_GETLINK, AF_UNSPEC, on_link, &s);
    if (r == 0)
        r = netlink_dump(RTM_GETADDR, AF_UNSPEC, on_address, &s);
    if (r == 0)
        r = netlink_dump(RTM_GETROUTE, AF_INET, on_route, &s);
    /* A machine may have no IPv6 at all. */
    if (r == 0)
        (void) netlink_dump(RTM_GETROUTE, AF_INET6, on_route, &s);
    if (r < 0)
        return r;
    struct resolvers resolvers = read_resolvers(s.m, a);
    bool needs_router = any_has_router(&s);
    struct machine_interface *list = ARENA_ARRAY(a, struct machine_interface, s.n);
    for (size_t i = 0; i < s.n; i++) {
        give_resolvers(&s, &s.parts[i], &resolvers, needs_router);
        list[i] = s.parts[i].i;
    }
    *ret = list;
    *ret_n = s.n;
    return 0;
}
