/* SPDX-License-Identifier: Apache-2.0 */
/* Makes an interface what a port configuration says. Each port has a routing table of its own
 * beside the main one, and what is sent from its address is routed there, so that a port works
 * whichever of them has the default route. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/fib_rules.h>
#include <net/if.h>

#include "base/alloc.h"
#include "machine/linux_internal.h"
#include "machine/netlink.h"

#define TABLE_BASE 500 /* as EVE numbers them: + index of the interface */
#define RULE_PRIORITY 15000

struct address {
    unsigned char family, bytes[16];
    size_t n;
};

static int parse_address(struct str text, struct address *ret)
{
    char z[INET6_ADDRSTRLEN];
    if (text.n >= sizeof(z))
        return -EINVAL;
    memcpy(z, text.p, text.n);
    z[text.n] = '\0';
    struct address a = {.family = str_find(text, ':') >= 0 ? AF_INET6 : AF_INET};
    a.n = a.family == AF_INET ? 4 : 16;
    if (inet_pton(a.family, z, a.bytes) != 1)
        return -EINVAL;
    *ret = a;
    return 0;
}

static int set_link(unsigned index, unsigned mtu)
{
    struct ifinfomsg body = {.ifi_index = (int) index, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};
    struct netlink_request r;
    netlink_begin(&r, RTM_NEWLINK, 0, &body, sizeof(body));
    if (mtu)
        netlink_add_u32(&r, IFLA_MTU, mtu);
    return netlink_ask(&r);
}

static int set_address(unsigned index, const struct address *a, unsigned prefix_bits, bool is_there)
{
    struct ifaddrmsg body = {
        .ifa_family = a->family,
        .ifa_prefixlen = (unsigned char) prefix_bits,
        .ifa_index = index,
        .ifa_flags = IFA_F_PERMANENT,
    };
    struct netlink_request r;
    netlink_begin(&r, is_there ? RTM_NEWADDR : RTM_DELADDR,
                  is_there ? NLM_F_CREATE | NLM_F_REPLACE : 0, &body, sizeof(body));
    netlink_add(&r, IFA_LOCAL, a->bytes, a->n);
    netlink_add(&r, IFA_ADDRESS, a->bytes, a->n);
    return netlink_ask(&r);
}

/* gateway NULL: the subnet itself; destination NULL: everything. */
struct route {
    unsigned index, table, prefix_bits;
    const struct address *destination, *gateway, *source;
};

static int set_route(const struct route *route)
{
    const struct address *any = route->gateway ? route->gateway : route->destination;
    struct rtmsg body = {
        .rtm_family = any->family,
        .rtm_dst_len = (unsigned char) (route->destination ? route->prefix_bits : 0),
        .rtm_table = RT_TABLE_UNSPEC,
        .rtm_protocol = RTPROT_STATIC,
        .rtm_scope = route->gateway ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK,
        .rtm_type = RTN_UNICAST,
    };
    struct netlink_request r;
    netlink_begin(&r, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, &body, sizeof(body));
    netlink_add_u32(&r, RTA_OIF, route->index);
    netlink_add_u32(&r, RTA_TABLE, route->table);
    /* The main table may have the default routes of all ports, told apart by this. */
    netlink_add_u32(&r, RTA_PRIORITY, TABLE_BASE + route->index);
    if (route->destination)
        netlink_add(&r, RTA_DST, route->destination->bytes, route->destination->n);
    if (route->gateway)
        netlink_add(&r, RTA_GATEWAY, route->gateway->bytes, route->gateway->n);
    if (route->source)
        netlink_add(&r, RTA_PREFSRC, route->source->bytes, route->source->n);
    return netlink_ask(&r);
}

static int set_rule(const struct address *from, unsigned table, bool is_there)
{
    struct fib_rule_hdr body = {
        .family = from->family,
        .src_len = (unsigned char) (from->n * 8),
        .action = FR_ACT_TO_TBL,
    };
    struct netlink_request r;
    netlink_begin(&r, is_there ? RTM_NEWRULE : RTM_DELRULE,
                  is_there ? NLM_F_CREATE | NLM_F_EXCL : 0, &body, sizeof(body));
    netlink_add(&r, FRA_SRC, from->bytes, from->n);
    netlink_add_u32(&r, FRA_TABLE, table);
    netlink_add_u32(&r, FRA_PRIORITY, RULE_PRIORITY);
    int result = netlink_ask(&r);
    return result == -EEXIST ? 0 : result;
}

static struct address subnet_of(const struct address *a, unsigned prefix_bits)
{
    struct address net = *a;
    for (size_t i = 0; i < net.n; i++) {
        unsigned bits = prefix_bits > i * 8 ? MIN(prefix_bits - (unsigned) i * 8, 8u) : 0;
        net.bytes[i] &= (unsigned char) (0xff00u >> bits);
    }
    return net;
}

static int set_own_table(unsigned index, const struct address *a, unsigned prefix_bits,
                         const struct address *router)
{
    struct address net = subnet_of(a, prefix_bits);
    struct route subnet = {.index = index,
                           .table = TABLE_BASE + index,
                           .prefix_bits = prefix_bits,
                           .destination = &net,
                           .source = a};
    struct route all = {.index = index, .table = TABLE_BASE + index, .gateway = router};
    int r = set_route(&subnet);
    if (r == 0 && router)
        r = set_route(&all);
    return r < 0 ? r : set_rule(a, TABLE_BASE + index, /* is_there= */ true);
}

static int set_static(unsigned index, const struct machine_port *p)
{
    struct address a, router;
    int r = parse_address(p->address.text, &a);
    if (r == 0 && p->address.prefix_bits > a.n * 8)
        r = -EINVAL;
    if (r == 0 && p->router.n)
        r = parse_address(p->router, &router);
    if (r == 0)
        r = set_address(index, &a, p->address.prefix_bits, /* is_there= */ true);
    struct route all = {.index = index, .table = RT_TABLE_MAIN, .gateway = &router};
    if (r == 0 && p->router.n)
        r = set_route(&all);
    return r < 0 ? r
                 : set_own_table(index, &a, p->address.prefix_bits, p->router.n ? &router : NULL);
}

/* ---- what was told before ------------------------------------------------------------------- */

struct linux_port *linux_port_find(struct machine_linux *m, struct str interface)
{
    LIST_FOR_EACH (&m->ports, link) {
        struct linux_port *p = CONTAINER_OF(link, struct linux_port, link);
        if (str_is(interface, p->interface))
            return p;
    }
    return NULL;
}

void linux_port_free(struct linux_port *p)
{
    list_remove(&p->link);
    linux_dhcp_free(p->client);
    for (size_t i = 0; i < p->n_dns_servers; i++)
        mem_free(p->dns_servers[i]);
    mem_free(p->dns_servers);
    mem_free(p->interface);
    mem_free(p->address);
    mem_free(p);
}

/* The address that we gave it, and the way from it. */
static void take_away(unsigned index, const struct linux_port *p)
{
    struct address a;
    if (!p->address || parse_address(str_of(p->address), &a) < 0)
        return;
    (void) set_rule(&a, TABLE_BASE + index, /* is_there= */ false);
    (void) set_address(index, &a, p->prefix_bits, /* is_there= */ false);
}

void linux_port_release(struct machine_linux *m, struct str interface)
{
    struct linux_port *p = linux_port_find(m, interface);
    if (!p)
        return;
    const unsigned index = if_nametoindex(p->interface);
    if (index)
        take_away(index, p);
    linux_port_free(p);
}

static struct linux_port *remember(struct machine_linux *m, const struct machine_port *p)
{
    struct linux_port *port = NEW(struct linux_port);
    port->interface = str_dup(p->interface);
    port->dhcp = p->dhcp;
    if (p->dhcp == MACHINE_STATIC && p->address.text.n)
        port->address = str_dup(p->address.text);
    port->prefix_bits = p->address.prefix_bits;
    port->dns_servers = mem_realloc_array(NULL, MAX(p->n_dns_servers, 1), sizeof(char *));
    for (; port->n_dns_servers < MIN(p->n_dns_servers, LINUX_MAX_ADDRESSES); port->n_dns_servers++)
        port->dns_servers[port->n_dns_servers] = str_dup(p->dns_servers[port->n_dns_servers]);
    list_append(&m->ports, &port->link);
    return port;
}

int linux_apply_port(struct machine *machine, const struct machine_port *p)
{
    struct machine_linux *m = machine_linux_of(machine);
    char name[IFNAMSIZ] = {0};
    if (!m->changes_network)
        return -EPERM;
    if (!p->interface.n || p->interface.n >= sizeof(name))
        return -EINVAL;
    memcpy(name, p->interface.p, p->interface.n);
    unsigned index = if_nametoindex(name);
    if (!index)
        return -ENODEV;
    struct linux_port *before = linux_port_find(m, p->interface);
    struct linux_dhcp *client = NULL;
    if (before) {
        bool is_same = p->dhcp == MACHINE_STATIC && before->address &&
                       str_is(p->address.text, before->address) &&
                       p->address.prefix_bits == before->prefix_bits;
        if (!is_same)
            take_away(index, before);
        if (p->dhcp == MACHINE_DHCP)
            client = TAKE(before->client);
        linux_port_free(before);
    }
    struct linux_port *port = remember(m, p);
    port->client = client;
    int r = set_link(index, p->mtu);
    if (r == 0 && port->address)
        r = set_static(index, p);
    if (r == 0 && p->dhcp == MACHINE_DHCP && !client)
        r = linux_dhcp_new(m, name, &port->client);
    linux_network_changed(m);
    return r;
}
