/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/network_plan.h"

#include <arpa/inet.h>
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "apps/apps_internal.h"
#include "msrv/msrv.h"

/* ---- names --------------------------------------------------------------------------------- */

static unsigned short_hash(struct str s)
{
    uint64_t h = apps_hash(APPS_HASH, s);
    return (unsigned) ((h ^ h >> 24 ^ h >> 48) & 0xffffff);
}

void plan_bridge_name(const char *prefix, struct str instance, char out[NETWORK_NAME_BYTES])
{
    (void) snprintf(out, NETWORK_NAME_BYTES, "%.6sb%06x", prefix, short_hash(instance));
}

void plan_interface_name(const char *prefix, struct str app, unsigned index,
                         char out[NETWORK_NAME_BYTES])
{
    (void) snprintf(out, NETWORK_NAME_BYTES, "%.6sv%06x%c", prefix, short_hash(app),
                    (char) ('a' + index % 26));
}

struct str plan_namespace(struct arena *a, const char *prefix, struct str app)
{
    return arena_printf(a, "%s-%.*s", prefix, STR_ARG(app));
}

/* ---- steps --------------------------------------------------------------------------------- */

static struct plan_step *add(struct plan *p, bool may_fail)
{
    p->steps = arena_grow(p->arena, p->steps, p->n_steps, sizeof(*p->steps));
    struct plan_step *s = &p->steps[p->n_steps++];
    *s = (struct plan_step){.may_fail = may_fail};
    return s;
}

/* A command as it is written in a shell; no part of it has blanks. */
static void step(struct plan *p, bool may_fail, const char *format, ...) PRINTF_LIKE(3, 4);
static void step(struct plan *p, bool may_fail, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct str rest = arena_vprintf(p->arena, format, args), word;
    va_end(args);
    struct plan_step *s = add(p, may_fail);
    for (size_t n = 0; str_split(&rest, ' ', &word); n++) {
        assert(n < PLAN_MAX_WORDS);
        s->words[n] = arena_strz(p->arena, word);
    }
}

enum { MUST, MAY_FAIL };

static const char *text_of(struct arena *a, uint32_t address)
{
    char text[INET_ADDRSTRLEN];
    struct in_addr in = {htonl(address)};
    return arena_strz(a, str_of(inet_ntop(AF_INET, &in, text, sizeof(text))));
}

/* The kernel takes no other names, and nft and ip no other words. */
static bool is_plain(struct str name)
{
    for (size_t i = 0; i < name.n; i++)
        if (!char_is_in(name.p[i],
                        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"))
            return false;
    return name.n > 0 && name.n < NETWORK_NAME_BYTES && name.p[0] != '-';
}

void plan_open_instance(struct plan *p, const struct network_instance *i)
{
    char bridge[NETWORK_NAME_BYTES];
    plan_bridge_name(p->prefix, i->id, bridge);
    step(p, MAY_FAIL, "ip link add name %s type bridge", bridge);
    if (i->mtu)
        step(p, MAY_FAIL, "ip link set dev %s mtu %u", bridge, i->mtu);
    if (i->is_switch && i->n_ports && is_plain(i->ports[0])) {
        step(p, MUST, "ip link set dev %.*s master %s", STR_ARG(i->ports[0]), bridge);
        step(p, MUST, "ip link set dev %.*s up", STR_ARG(i->ports[0]));
    }
    if (!i->is_switch) {
        const struct network_subnet *s = &i->subnet;
        step(p, MUST, "ip -4 addr flush dev %s", bridge);
        step(p, MUST, "ip addr replace %s/%u dev %s", text_of(p->arena, s->gateway), s->prefix_bits,
             bridge);
        step(p, MUST, "ip addr replace " MSRV_ADDRESS "/32 dev %s", bridge);
    }
    step(p, MUST, "ip link set dev %s up", bridge);
}

void plan_close_instance(struct plan *p, struct str id)
{
    char bridge[NETWORK_NAME_BYTES];
    plan_bridge_name(p->prefix, id, bridge);
    plan_remove_link(p, bridge);
}

/* One end of it is ours, the other is qemu's; addresses are the guest's own affair. */
static void open_tap(struct plan *p, const struct network_app *app, unsigned index,
                     const struct network_instance *network)
{
    char bridge[NETWORK_NAME_BYTES], name[NETWORK_NAME_BYTES];
    plan_bridge_name(p->prefix, app->interfaces[index].network, bridge);
    plan_interface_name(p->prefix, app->id, index, name);
    step(p, MAY_FAIL, "ip tuntap add dev %s mode tap", name);
    if (network && network->mtu)
        step(p, MAY_FAIL, "ip link set dev %s mtu %u", name, network->mtu);
    step(p, MUST, "ip link set dev %s master %s", name, bridge);
    step(p, MUST, "ip link set dev %s up", name);
}

static void open_interface(struct plan *p, const struct network_app *app, unsigned index,
                           const struct network_instance *network)
{
    char bridge[NETWORK_NAME_BYTES], name[NETWORK_NAME_BYTES];
    const struct network_interface *i = &app->interfaces[index];
    struct str space = plan_namespace(p->arena, p->prefix, app->id);
    plan_bridge_name(p->prefix, i->network, bridge);
    plan_interface_name(p->prefix, app->id, index, name);
    step(p, MAY_FAIL, "ip link add %s type veth peer name eth%u netns %s", name, index, space.p);
    step(p, MUST, "ip link set dev %s master %s", name, bridge);
    step(p, MUST, "ip link set dev %s up", name);
    step(p, MUST, "ip -n %s link set dev eth%u address %02x:%02x:%02x:%02x:%02x:%02x", space.p,
         index, i->mac[0], i->mac[1], i->mac[2], i->mac[3], i->mac[4], i->mac[5]);
    if (network && network->mtu)
        step(p, MAY_FAIL, "ip -n %s link set dev eth%u mtu %u", space.p, index, network->mtu);
    step(p, MUST, "ip -n %s link set dev eth%u up", space.p, index);
    if (!i->address || !network || !network->subnet.prefix_bits)
        return;
    step(p, MUST, "ip -n %s addr replace %s/%u dev eth%u", space.p, text_of(p->arena, i->address),
         network->subnet.prefix_bits, index);
    /* The first that has a way out is the way out. */
    step(p, MAY_FAIL, "ip -n %s route add default via %s dev eth%u", space.p,
         text_of(p->arena, network->subnet.gateway), index);
}

void plan_open_app(struct plan *p, const struct network_app *app,
                   const struct network_instance *const *networks)
{
    struct str space = plan_namespace(p->arena, p->prefix, app->id);
    step(p, MAY_FAIL, "ip netns add %s", space.p);
    step(p, MUST, "ip -n %s link set dev lo up", space.p);
    for (unsigned i = 0; i < app->n_interfaces; i++) {
        if (app->is_machine)
            open_tap(p, app, i, networks[i]);
        else
            open_interface(p, app, i, networks[i]);
    }
}

void plan_close_app(struct plan *p, struct str id, size_t n_interfaces)
{
    for (unsigned i = 0; i < n_interfaces; i++) {
        char name[NETWORK_NAME_BYTES];
        plan_interface_name(p->prefix, id, i, name);
        plan_remove_link(p, name);
    }
    plan_remove_namespace(p, plan_namespace(p->arena, p->prefix, id).p);
}

void plan_remove_link(struct plan *p, const char *name)
{
    step(p, MAY_FAIL, "ip link del dev %s", name);
}

void plan_remove_namespace(struct plan *p, const char *name)
{
    step(p, MAY_FAIL, "ip netns del %s", name);
}

/* ---- rules --------------------------------------------------------------------------------- */

bool plan_is_network(struct str text)
{
    char copy[INET_ADDRSTRLEN + 4];
    struct in_addr in;
    int64_t bits = 32;
    ptrdiff_t slash = str_find(text, '/');
    struct str address = slash < 0 ? text : str_sub(text, 0, (size_t) slash);
    if (slash >= 0 &&
        (str_to_i64(str_from(text, (size_t) slash + 1), &bits) < 0 || bits < 0 || bits > 32))
        return false;
    if (address.n >= sizeof(copy))
        return false;
    (void) snprintf(copy, sizeof(copy), "%.*s", STR_ARG(address));
    return inet_pton(AF_INET, copy, &in) == 1;
}

static bool has_ports(struct str protocol)
{
    return str_is(protocol, "tcp") || str_is(protocol, "udp");
}

static bool is_sayable(const struct network_rule *r)
{
    bool needs_ports = r->local_port || r->remote_port || r->target_port;
    if (r->remote.p && !plan_is_network(r->remote))
        return false;
    if (r->protocol.p && !has_ports(r->protocol) && !str_is(r->protocol, "icmp"))
        return false;
    return !needs_ports || has_ports(r->protocol);
}

static void write_set_name(struct buf *b, struct str host)
{
    buf_printf(b, "h%016" PRIx64, apps_hash(APPS_HASH, host));
}

static void write_remote(struct buf *b, const struct network_rule *r, const char *side)
{
    if (r->remote.p)
        buf_printf(b, "ip %s %.*s ", side, STR_ARG(r->remote));
    if (r->host.n) {
        buf_printf(b, "ip %s @", side);
        write_set_name(b, r->host);
        buf_append_char(b, ' ');
    }
}

/* One rule seen from one side: outward the remote is the destination, inward the source. */
static void write_match(struct buf *b, const struct network_rule *r, bool is_outward)
{
    uint16_t local = r->target_port ? r->target_port : r->local_port;
    buf_append_str(b, STR("    "));
    write_remote(b, r, is_outward ? "daddr" : "saddr");
    if (r->protocol.p && !r->remote_port && !local)
        buf_printf(b, "ip protocol %.*s ", STR_ARG(r->protocol));
    if (r->remote_port)
        buf_printf(b, "%.*s %s %u ", STR_ARG(r->protocol), is_outward ? "dport" : "sport",
                   r->remote_port);
    if (local)
        buf_printf(b, "%.*s %s %u ", STR_ARG(r->protocol), is_outward ? "sport" : "dport", local);
    if (r->target_port && !is_outward)
        buf_append_str(b, STR("ct status dnat "));
}

static void write_rule(struct buf *b, const struct network_rule *r, bool is_outward)
{
    write_match(b, r, is_outward);
    buf_append_str(b, r->drops ? STR("drop\n") : STR("accept\n"));
}

/* For every packet, also of what is under way. The first that matches counts here, too. */
static void write_limit(struct buf *b, const struct network_rule *r, bool is_outward)
{
    if (r->limit.rate) {
        write_match(b, r, is_outward);
        buf_printf(b, "limit rate over %u/%s ", r->limit.rate, r->limit.unit);
        if (r->limit.burst)
            buf_printf(b, "burst %u packets ", r->limit.burst);
        buf_append_str(b, STR("drop\n"));
    }
    write_match(b, r, is_outward);
    buf_append_str(b, STR("return\n"));
}

struct view {
    struct buf *to;
    const char *prefix;
    const struct plan_wishes *w;
};

static const struct network_instance *find(const struct view *v, struct str id)
{
    for (size_t i = 0; i < v->w->n_networks; i++)
        if (str_eq(v->w->networks[i]->id, id))
            return v->w->networks[i];
    return NULL;
}

/* Calls fn for every interface that has an address. */
static void each_interface(const struct view *v,
                           void (*fn)(const struct view *v, const struct network_app *app,
                                      unsigned index, const char *address))
{
    for (size_t a = 0; a < v->w->n_apps; a++)
        for (unsigned i = 0; i < v->w->apps[a]->n_interfaces; i++) {
            struct in_addr in = {htonl(v->w->apps[a]->interfaces[i].address)};
            char address[INET_ADDRSTRLEN];
            if (in.s_addr && inet_ntop(AF_INET, &in, address, sizeof(address)))
                fn(v, v->w->apps[a], i, address);
        }
}

static void write_ports(struct buf *b, const struct network_instance *n)
{
    bool is_any = false;
    for (size_t i = 0; i < n->n_ports; i++)
        if (is_plain(n->ports[i])) {
            buf_printf(b, "%s\"%.*s\"", is_any ? ", " : "{ ", STR_ARG(n->ports[i]));
            is_any = true;
        }
    if (is_any)
        buf_append_str(b, STR(" } "));
}

static bool leads_outside(const struct network_instance *n)
{
    for (size_t i = 0; n && !n->is_switch && i < n->n_ports; i++)
        if (is_plain(n->ports[i]))
            return true;
    return false;
}

static void write_mapping(const struct view *v, const struct network_app *app, unsigned index,
                          const char *address)
{
    const struct network_interface *i = &app->interfaces[index];
    const struct network_instance *n = find(v, i->network);
    for (size_t k = 0; leads_outside(n) && k < i->n_rules; k++) {
        const struct network_rule *r = &i->rules[k];
        if (!r->target_port || !r->local_port || r->drops || !is_sayable(r))
            continue;
        buf_append_str(v->to, STR("    iifname "));
        write_ports(v->to, n);
        write_remote(v->to, r, "saddr");
        buf_printf(v->to, "%.*s dport %u dnat to %s:%u\n", STR_ARG(r->protocol), r->local_port,
                   address, r->target_port);
    }
}

static void write_chains(const struct view *v, const struct network_app *app, unsigned index,
                         const char *address)
{
    char name[NETWORK_NAME_BYTES];
    const struct network_interface *i = &app->interfaces[index];
    (void) address;
    plan_interface_name(v->prefix, app->id, index, name);
    for (int is_outward = 0; is_outward <= 1; is_outward++) {
        buf_printf(v->to, "  chain %s_%s {\n", is_outward ? "out" : "in", name);
        for (size_t k = 0; k < i->n_rules; k++)
            if (is_sayable(&i->rules[k]))
                write_rule(v->to, &i->rules[k], is_outward);
        buf_append_str(v->to, STR("  }\n"));
    }
}

/* How many rules from the first to the last that has a limit. */
static size_t n_limited(const struct network_interface *i)
{
    size_t n = i->n_rules;
    while (n > 0 && !i->rules[n - 1].limit.rate)
        n--;
    return n;
}

static void write_limits(const struct view *v, const struct network_app *app, unsigned index,
                         const char *address)
{
    char name[NETWORK_NAME_BYTES];
    const struct network_interface *i = &app->interfaces[index];
    (void) address;
    plan_interface_name(v->prefix, app->id, index, name);
    for (int is_outward = 0; n_limited(i) > 0 && is_outward <= 1; is_outward++) {
        buf_printf(v->to, "  chain %slimit_%s {\n", is_outward ? "out" : "in", name);
        for (size_t k = 0; k < n_limited(i); k++)
            if (is_sayable(&i->rules[k]))
                write_limit(v->to, &i->rules[k], is_outward);
        buf_append_str(v->to, STR("  }\n"));
    }
}

static void write_limit_jumps(const struct view *v, const struct network_app *app, unsigned index,
                              const char *address)
{
    char bridge[NETWORK_NAME_BYTES], name[NETWORK_NAME_BYTES];
    if (n_limited(&app->interfaces[index]) == 0)
        return;
    plan_bridge_name(v->prefix, app->interfaces[index].network, bridge);
    plan_interface_name(v->prefix, app->id, index, name);
    buf_printf(v->to, "    iifname \"%s\" ip saddr %s jump outlimit_%s\n", bridge, address, name);
    buf_printf(v->to, "    oifname \"%s\" ip daddr %s jump inlimit_%s\n", bridge, address, name);
}

static void write_addresses(struct buf *b, const struct hosts_host *host)
{
    for (size_t i = 0; i < host->n_addresses; i++) {
        struct in_addr in = {htonl(host->addresses[i])};
        char text[INET_ADDRSTRLEN];
        buf_printf(b, "%s%s", i ? ", " : "{ ", inet_ntop(AF_INET, &in, text, sizeof(text)));
    }
    buf_append_str(b, STR(" }"));
}

static void write_hosts(const struct view *v)
{
    for (size_t i = 0; v->w->hosts && i < v->w->hosts->n_items; i++) {
        const struct hosts_host *h = &v->w->hosts->items[i];
        buf_append_str(v->to, STR("  set "));
        write_set_name(v->to, str_of(h->name));
        buf_append_str(v->to, STR(" {\n    type ipv4_addr\n"));
        if (h->n_addresses) {
            buf_append_str(v->to, STR("    elements = "));
            write_addresses(v->to, h);
            buf_append_char(v->to, '\n');
        }
        buf_append_str(v->to, STR("  }\n"));
    }
}

void plan_host(struct buf *to, const char *prefix, const struct hosts_host *host)
{
    if (!host->n_addresses)
        return;
    buf_printf(to, "add element ip %s ", prefix);
    write_set_name(to, str_of(host->name));
    buf_append_char(to, ' ');
    write_addresses(to, host);
    buf_append_char(to, '\n');
}

static void write_jumps(const struct view *v, const struct network_app *app, unsigned index,
                        const char *address)
{
    char bridge[NETWORK_NAME_BYTES], name[NETWORK_NAME_BYTES];
    plan_bridge_name(v->prefix, app->interfaces[index].network, bridge);
    plan_interface_name(v->prefix, app->id, index, name);
    buf_printf(v->to, "    iifname \"%s\" ip saddr %s jump out_%s\n", bridge, address, name);
    buf_printf(v->to, "    oifname \"%s\" ip daddr %s jump in_%s\n", bridge, address, name);
}

/* Nobody speaks with another's address. */
static void write_guard(const struct view *v, const struct network_app *app, unsigned index,
                        const char *address)
{
    char name[NETWORK_NAME_BYTES];
    const unsigned char *m = app->interfaces[index].mac;
    plan_interface_name(v->prefix, app->id, index, name);
    buf_printf(v->to, "    iifname \"%s\" ether saddr != %02x:%02x:%02x:%02x:%02x:%02x drop\n",
               name, m[0], m[1], m[2], m[3], m[4], m[5]);
    if (app->is_machine) /* before it knows its address, it asks for it */
        buf_printf(v->to,
                   "    iifname \"%s\" ip saddr 0.0.0.0 ip daddr 255.255.255.255 udp sport 68 udp "
                   "dport 67 accept\n"
                   "    iifname \"%s\" arp saddr ip 0.0.0.0 accept\n",
                   name, name);
    /* Only the agent tells others their addresses. */
    buf_printf(v->to, "    iifname \"%s\" udp sport 67 udp dport 68 drop\n", name);
    buf_printf(v->to, "    iifname \"%s\" ether type ip ip saddr != %s drop\n", name, address);
    buf_printf(v->to, "    iifname \"%s\" ether type arp arp saddr ip != %s drop\n", name, address);
}

static void write_masquerade(const struct view *v)
{
    for (size_t k = 0; k < v->w->n_networks; k++) {
        const struct network_instance *n = v->w->networks[k];
        struct in_addr in = {htonl(n->subnet.address)};
        char address[INET_ADDRSTRLEN];
        if (!leads_outside(n) || !inet_ntop(AF_INET, &in, address, sizeof(address)))
            continue;
        buf_printf(v->to, "    ip saddr %s/%u oifname ", address, n->subnet.prefix_bits);
        write_ports(v->to, n);
        buf_append_str(v->to, STR("masquerade\n"));
    }
}

/* Names are looked up whatever the rules say. */
static void write_lookups(const struct view *v)
{
    for (size_t k = 0; k < v->w->n_networks; k++) {
        char bridge[NETWORK_NAME_BYTES];
        if (!leads_outside(v->w->networks[k]))
            continue;
        plan_bridge_name(v->prefix, v->w->networks[k]->id, bridge);
        buf_printf(v->to, "    iifname \"%s\" udp dport 53 accept\n", bridge);
        buf_printf(v->to, "    iifname \"%s\" tcp dport 53 accept\n", bridge);
    }
}

static void write_table(const struct view *v)
{
    struct buf *b = v->to;
    write_hosts(v);
    buf_append_str(
        b, STR("  chain mapped {\n    type nat hook prerouting priority -100; policy accept;\n"));
    each_interface(v, write_mapping);
    buf_append_str(b, STR("  }\n  chain leaving {\n    type nat hook postrouting priority 100; "
                          "policy accept;\n"));
    write_masquerade(v);
    buf_append_str(b, STR("  }\n"));
    each_interface(v, write_chains);
    each_interface(v, write_limits);
    buf_append_str(
        b, STR("  chain passing {\n    type filter hook forward priority 0; policy accept;\n"));
    each_interface(v, write_limit_jumps);
    buf_append_str(b, STR("    ct state established,related accept\n"));
    each_interface(v, write_jumps);
    write_lookups(v);
    buf_printf(b, "    iifname \"%sb*\" drop\n    oifname \"%sb*\" drop\n  }\n", v->prefix,
               v->prefix);
    buf_append_str(
        b, STR("  chain arriving {\n    type filter hook input priority 0; policy accept;\n"));
    buf_printf(b,
               "    iifname != \"%sb*\" accept\n    ct state established,related accept\n"
               "    ip daddr " MSRV_ADDRESS " tcp dport %d accept\n    ip protocol icmp accept\n"
               "    udp sport 68 udp dport 67 accept\n"
               "    drop\n  }\n",
               v->prefix, MSRV_PORT);
}

void plan_rules(struct buf *to, const char *prefix, const struct plan_wishes *wishes)
{
    struct view v = {to, prefix, wishes};
    for (int i = 0; i < 2; i++) {
        const char *family = i ? "bridge" : "ip";
        /* So that it can be deleted whether it was there or not. */
        buf_printf(to, "table %s %s\ndelete table %s %s\n", family, prefix, family, prefix);
    }
    if (!wishes->n_networks && !wishes->n_apps)
        return;
    buf_printf(to, "table ip %s {\n", prefix);
    write_table(&v);
    buf_printf(to, "}\ntable bridge %s {\n  chain guard {\n", prefix);
    buf_append_str(to, STR("    type filter hook prerouting priority -300; policy accept;\n"));
    each_interface(&v, write_guard);
    buf_append_str(to, STR("  }\n}\n"));
}
