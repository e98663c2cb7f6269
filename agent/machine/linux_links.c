/* SPDX-License-Identifier: Apache-2.0 */
/* Links over others: VLANs and bonds. What was asked for is marked in the alias of each, so that
 * the next life knows its own and sees whether they are still wanted so; nothing else is changed or
 * removed. (The kernel's own values would not do: it rounds some.) */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_link.h>
#include <net/if.h>

#include "base/buf.h"
#include "base/log.h"
#include "machine/linux_internal.h"
#include "machine/netlink.h"

#define MARK "seth-agent "
#define MARK_BYTES (sizeof(MARK) + 16) /* and the digits of a hash */

struct have {
    struct str name, kind, alias;
    unsigned index, master, mtu;
    bool is_up;
};
struct survey {
    struct arena *a;
    struct have *links;
    size_t n;
};

bool linux_link_is_made(struct str alias)
{
    return str_starts_with(alias, STR(MARK));
}

/* ---- what there is -------------------------------------------------------------------------- */

static struct str text_of(struct arena *a, const struct rtattr *at)
{
    return at ? arena_str(a, str_range(RTA_DATA(at), strnlen(RTA_DATA(at), RTA_PAYLOAD(at))))
              : STR("");
}

static void on_link(void *arg, const struct nlmsghdr *message)
{
    struct survey *s = arg;
    struct ifinfomsg body;
    struct netlink_attributes link, info;
    if (message->nlmsg_type != RTM_NEWLINK || message->nlmsg_len < NLMSG_LENGTH(sizeof(body)) ||
        s->n == LINUX_MAX_INTERFACES)
        return;
    memcpy(&body, NLMSG_DATA(message), sizeof(body));
    netlink_attributes(message, sizeof(body), &link);
    netlink_nested(link.of[IFLA_LINKINFO], &info);
    s->links = arena_grow(s->a, s->links, s->n, sizeof(*s->links));
    s->links[s->n++] = (struct have){
        .name = text_of(s->a, link.of[IFLA_IFNAME]),
        .kind = text_of(s->a, info.of[IFLA_INFO_KIND]),
        .alias = text_of(s->a, link.of[IFLA_IFALIAS]),
        .index = (unsigned) body.ifi_index,
        .master = netlink_u32(link.of[IFLA_MASTER], 0),
        .mtu = netlink_u32(link.of[IFLA_MTU], 0),
        .is_up = body.ifi_flags & IFF_UP,
    };
}

static int look(struct arena *a, struct survey *ret)
{
    *ret = (struct survey){.a = a};
    return netlink_dump(RTM_GETLINK, AF_UNSPEC, on_link, ret);
}

static const struct have *find(const struct survey *s, struct str name)
{
    for (size_t i = 0; i < s->n; i++)
        if (str_eq(s->links[i].name, name))
            return &s->links[i];
    return NULL;
}

static const char *kind_of(const struct machine_link *l)
{
    return l->kind == MACHINE_VLAN ? "vlan" : "bond";
}

/* ---- what is wanted ------------------------------------------------------------------------- */

/* Members and MTU change without another link. */
static void describe(const struct machine_link *l, struct buf *to)
{
    buf_printf(to, "%s", kind_of(l));
    if (l->kind == MACHINE_VLAN) {
        buf_printf(to, " %.*s %u", STR_ARG(l->parent), l->vlan_id);
        return;
    }
    buf_printf(to, " %d %d %u %u %u %u", (int) l->mode, l->is_lacp_fast, l->mii_ms, l->up_delay_ms,
               l->down_delay_ms, l->arp_ms);
    for (size_t i = 0; i < l->n_targets; i++)
        buf_printf(to, " %.*s", STR_ARG(l->targets[i]));
}

/* FNV-1a: the same in every life, and no adversary chooses here. */
static void write_mark(const struct machine_link *l, char ret[MARK_BYTES])
{
    BUF_AUTO text = {0};
    uint64_t hash = 0xcbf29ce484222325;
    describe(l, &text);
    for (size_t i = 0; i < text.n; i++)
        hash = (hash ^ (unsigned char) text.p[i]) * 0x100000001b3;
    text.n = 0;
    buf_printf(&text, MARK "%016llx", (unsigned long long) hash);
    memcpy(ret, text.p, MARK_BYTES);
}

static bool is_wanted(const struct have *h, const struct machine_link *links, size_t n)
{
    char mark[MARK_BYTES];
    for (size_t i = 0; i < n; i++) {
        if (!str_eq(links[i].name, h->name))
            continue;
        write_mark(&links[i], mark);
        return str_is(h->kind, kind_of(&links[i])) && str_is(h->alias, mark);
    }
    return false;
}

static int check(const struct machine_link *l)
{
    if (!l->name.n || l->name.n >= IFNAMSIZ || l->n_targets > MACHINE_MAX_TARGETS)
        return -EINVAL;
    if (l->kind == MACHINE_VLAN)
        return l->parent.n && l->vlan_id >= 1 && l->vlan_id <= 4094 ? 0 : -EINVAL;
    return (unsigned) l->mode <= MACHINE_BOND_ALB ? 0 : -EINVAL;
}

/* ---- requests ------------------------------------------------------------------------------- */

static void begin(struct netlink_request *r, unsigned type, unsigned flags, unsigned index)
{
    const struct ifinfomsg body = {.ifi_index = (int) index};
    netlink_begin(r, type, flags, &body, sizeof(body));
}

static int set_up(unsigned index, bool is_up)
{
    const struct ifinfomsg body = {
        .ifi_index = (int) index, .ifi_flags = is_up ? IFF_UP : 0, .ifi_change = IFF_UP};
    struct netlink_request r;
    netlink_begin(&r, RTM_NEWLINK, 0, &body, sizeof(body));
    return netlink_ask(&r);
}

static int set_number(unsigned index, unsigned attribute, unsigned value)
{
    struct netlink_request r;
    begin(&r, RTM_NEWLINK, 0, index);
    netlink_add_u32(&r, attribute, value);
    return netlink_ask(&r);
}

static int set_mark(unsigned index, const struct machine_link *l)
{
    struct netlink_request r;
    char mark[MARK_BYTES];
    write_mark(l, mark);
    begin(&r, RTM_NEWLINK, 0, index);
    netlink_add(&r, IFLA_IFALIAS, mark, strlen(mark));
    return netlink_ask(&r);
}

static int remove_link(unsigned index)
{
    struct netlink_request r;
    begin(&r, RTM_DELLINK, 0, index);
    return netlink_ask(&r);
}

static int add_targets(struct netlink_request *r, const struct machine_link *l)
{
    const size_t nest = netlink_nest(r, IFLA_BOND_ARP_IP_TARGET);
    for (size_t i = 0; i < l->n_targets; i++) {
        char z[INET_ADDRSTRLEN] = {0};
        struct in_addr target;
        if (l->targets[i].n >= sizeof(z))
            return -EINVAL;
        memcpy(z, l->targets[i].p, l->targets[i].n);
        if (inet_pton(AF_INET, z, &target) != 1)
            return -EINVAL;
        netlink_add(r, (unsigned) i, &target, sizeof(target));
    }
    netlink_nest_end(r, nest);
    return 0;
}

/* The two ways of monitoring exclude each other. */
static int add_bond(struct netlink_request *r, const struct machine_link *l)
{
    const uint8_t mode = (uint8_t) l->mode, rate = l->is_lacp_fast;
    netlink_add(r, IFLA_BOND_MODE, &mode, sizeof(mode));
    if (l->mode == MACHINE_BOND_LACP)
        netlink_add(r, IFLA_BOND_AD_LACP_RATE, &rate, sizeof(rate));
    netlink_add_u32(r, IFLA_BOND_MIIMON, l->mii_ms);
    if (l->mii_ms) {
        netlink_add_u32(r, IFLA_BOND_UPDELAY, l->up_delay_ms);
        netlink_add_u32(r, IFLA_BOND_DOWNDELAY, l->down_delay_ms);
        return 0;
    }
    if (!l->arp_ms)
        return 0;
    netlink_add_u32(r, IFLA_BOND_ARP_INTERVAL, l->arp_ms);
    return add_targets(r, l);
}

static int add_vlan(struct netlink_request *r, const struct machine_link *l)
{
    const uint16_t id = (uint16_t) l->vlan_id;
    netlink_add(r, IFLA_VLAN_ID, &id, sizeof(id));
    return 0;
}

static int make(const struct machine_link *l, const struct have *parent)
{
    struct netlink_request r;
    char name[IFNAMSIZ] = {0};
    memcpy(name, l->name.p, l->name.n);
    begin(&r, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, 0);
    netlink_add(&r, IFLA_IFNAME, name, l->name.n + 1);
    if (parent)
        netlink_add_u32(&r, IFLA_LINK, parent->index);
    if (l->mtu)
        netlink_add_u32(&r, IFLA_MTU, l->mtu);
    const size_t info = netlink_nest(&r, IFLA_LINKINFO);
    netlink_add(&r, IFLA_INFO_KIND, kind_of(l), strlen(kind_of(l)));
    const size_t data = netlink_nest(&r, IFLA_INFO_DATA);
    int result = l->kind == MACHINE_VLAN ? add_vlan(&r, l) : add_bond(&r, l);
    netlink_nest_end(&r, data);
    netlink_nest_end(&r, info);
    if (result == 0)
        result = netlink_ask(&r);
    if (result < 0)
        return result;
    const unsigned index = if_nametoindex(name);
    result = index ? set_mark(index, l) : -ENODEV;
    if (result < 0 && index)
        (void) remove_link(index);
    return result;
}

/* ---- members -------------------------------------------------------------------------------- */

static bool is_member(const struct machine_link *l, struct str name)
{
    for (size_t i = 0; i < l->n_members; i++)
        if (str_eq(l->members[i], name))
            return true;
    return false;
}

/* Only what is down can be put under a bond, and what leaves one is down. */
static int set_master(unsigned index, unsigned master)
{
    int r = master ? set_up(index, /* is_up= */ false) : 0;
    if (r == 0)
        r = set_number(index, IFLA_MASTER, master);
    const int up = set_up(index, /* is_up= */ true);
    return r < 0 ? r : up;
}

static int add_member(struct machine_linux *m, const struct survey *s, struct str name,
                      unsigned bond)
{
    const struct have *h = find(s, name);
    if (!h)
        return -ENODEV;
    if (h->master == bond)
        return 0;
    if (h->master)
        return -EBUSY;
    linux_port_release(m, name);
    return set_master(h->index, bond);
}

static int add_members(struct machine_linux *m, const struct survey *s,
                       const struct machine_link *l, unsigned bond)
{
    int result = 0;
    for (size_t i = 0; i < l->n_members; i++) {
        const int r = add_member(m, s, l->members[i], bond);
        result = r < 0 ? r : result;
    }
    return result;
}

/* From all bonds before any takes a member: it may be another's. */
static void release_members(const struct survey *s, const struct machine_link *l)
{
    const struct have *bond = find(s, l->name);
    if (!bond || !linux_link_is_made(bond->alias))
        return;
    for (size_t i = 0; i < s->n; i++)
        if (s->links[i].master == bond->index && !is_member(l, s->links[i].name))
            (void) set_master(s->links[i].index, 0);
}

/* ---- the whole ------------------------------------------------------------------------------ */

static void remove_unwanted(struct machine_linux *m, const struct survey *s, const char *kind,
                            const struct machine_link *links, size_t n)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct have *h = &s->links[i];
        if (!str_is(h->kind, kind) || !linux_link_is_made(h->alias) || is_wanted(h, links, n))
            continue;
        linux_port_release(m, h->name);
        const int r = remove_link(h->index);
        if (r < 0 && r != -ENODEV)
            log_warning("a link that is not wanted any more stays", LOG_STR("link", h->name),
                        LOG_ERRNO(r));
        for (size_t k = 0; k < s->n; k++)
            if (s->links[k].master == h->index)
                (void) set_up(s->links[k].index, /* is_up= */ true);
    }
}

static int adjust(struct machine_linux *m, const struct survey *s, const struct machine_link *l)
{
    const struct have *h = find(s, l->name);
    if (!h)
        return -ENODEV;
    int r = 0;
    if (l->mtu && h->mtu != l->mtu)
        r = set_number(h->index, IFLA_MTU, l->mtu);
    if (r == 0 && !h->is_up)
        r = set_up(h->index, /* is_up= */ true);
    return r == 0 && l->kind == MACHINE_BOND ? add_members(m, s, l, h->index) : r;
}

static int put(struct machine_linux *m, const struct machine_link *l)
{
    ARENA_AUTO a = arena_new();
    struct survey s;
    int r = check(l);
    if (r == 0)
        r = look(a, &s);
    if (r < 0)
        return r;
    const struct have *h = find(&s, l->name), *parent = find(&s, l->parent);
    if (h && !linux_link_is_made(h->alias))
        return str_is(h->kind, kind_of(l)) ? 0 : -EEXIST;
    if (l->kind == MACHINE_VLAN && !parent)
        return -ENODEV;
    if (parent && !parent->is_up)
        (void) set_up(parent->index, /* is_up= */ true);
    if (!h) {
        /* What ran on one that has gone, with the link below it perhaps, is not for this one. */
        linux_port_release(m, l->name);
        r = make(l, parent);
        if (r == 0)
            r = look(a, &s);
    }
    return r < 0 ? r : adjust(m, &s, l);
}

int linux_apply_links(struct machine *machine, const struct machine_link *links, size_t n,
                      int *ret_results)
{
    struct machine_linux *m = machine_linux_of(machine);
    ARENA_AUTO a = arena_new();
    struct survey s;
    if (!m->changes_network)
        return -EPERM;
    int r = look(a, &s);
    if (r < 0)
        return r;
    remove_unwanted(m, &s, "vlan", links, n);
    remove_unwanted(m, &s, "bond", links, n);
    for (size_t i = 0; i < n; i++)
        if (links[i].kind == MACHINE_BOND)
            release_members(&s, &links[i]);
    /* A VLAN may be on a bond. */
    for (size_t i = 0; i < n; i++)
        if (links[i].kind == MACHINE_BOND)
            ret_results[i] = put(m, &links[i]);
    for (size_t i = 0; i < n; i++)
        if (links[i].kind == MACHINE_VLAN)
            ret_results[i] = put(m, &links[i]);
    return 0;
}
