/* SPDX-License-Identifier: Apache-2.0 */
#include "controllerconn/ports.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>

#include "base/alloc.h"

#define FIRST_BLOCK_BYTES ((size_t) 1024) /* a port or two: each device keeps them */

static const struct str *copy_list(struct arena *a, const struct str *items, size_t *n)
{
    *n = MIN(*n, (size_t) UPLINK_MAX_ADDRESSES);
    struct str *copy = ARENA_ARRAY(a, struct str, *n ? *n : 1);
    for (size_t i = 0; i < *n; i++)
        copy[i] = arena_str(a, items[i]);
    return copy;
}

static const struct uplink_proxy *copy_proxies(struct arena *a, const struct uplink_port *from,
                                               size_t *ret_n)
{
    *ret_n = MIN(from->n_proxies, (size_t) UPLINK_MAX_ADDRESSES);
    struct uplink_proxy *copy = ARENA_ARRAY(a, struct uplink_proxy, *ret_n ? *ret_n : 1);
    for (size_t i = 0; i < *ret_n; i++) {
        copy[i] = from->proxies[i];
        copy[i].server = arena_str(a, copy[i].server);
    }
    return copy;
}

static struct str copy_if_any(struct arena *a, struct str s)
{
    return s.p ? arena_str(a, s) : STR_NONE;
}

static struct uplink_port copy_port(struct arena *a, const struct uplink_port *from)
{
    struct uplink_port to = *from;
    to.name = arena_str(a, from->name);
    to.blocked_reason = copy_if_any(a, from->blocked_reason);
    to.domain = copy_if_any(a, from->domain);
    to.exceptions = copy_if_any(a, from->exceptions);
    to.pac = from->pac.n <= UPLINK_MAX_PAC_BYTES ? copy_if_any(a, from->pac) : STR_NONE;
    to.wpad_url = copy_if_any(a, from->wpad_url);
    to.addresses = copy_list(a, from->addresses, &to.n_addresses);
    to.dns_servers = copy_list(a, from->dns_servers, &to.n_dns_servers);
    to.proxies = copy_proxies(a, from, &to.n_proxies);
    return to;
}

struct uplink_ports *uplink_ports_new(unsigned version, const struct uplink_port *items, size_t n)
{
    struct arena *a = arena_new_with(FIRST_BLOCK_BYTES);
    struct uplink_ports *p = ARENA_NEW(a, struct uplink_ports);
    p->arena = a;
    p->n_refs = 1;
    p->version = version;
    p->n_items = MIN(n, (size_t) UPLINK_MAX_PORTS);
    p->items = ARENA_ARRAY(a, struct uplink_port, p->n_items ? p->n_items : 1);
    for (size_t i = 0; i < p->n_items; i++)
        p->items[i] = copy_port(a, &items[i]);
    return p;
}

struct uplink_ports *uplink_ports_ref(struct uplink_ports *p)
{
    p->n_refs++;
    return p;
}

void uplink_ports_unref(struct uplink_ports *p)
{
    if (p && --p->n_refs == 0)
        arena_free(p->arena);
}

const struct uplink_port *uplink_ports_find(const struct uplink_ports *p, struct str name)
{
    for (size_t i = 0; i < p->n_items; i++)
        if (str_eq(p->items[i].name, name))
            return &p->items[i];
    return NULL;
}

bool uplink_port_is_management(const struct uplink_ports *p, const struct uplink_port *port)
{
    return port->is_l3 && (p->version == 0 || port->is_management);
}

bool uplink_port_has_error(const struct uplink_port *port)
{
    return port->last_failed_us > port->last_succeeded_us;
}

static bool parse_address(struct str text, int family, void *ret)
{
    char z[INET6_ADDRSTRLEN];
    if (text.n == 0 || text.n >= sizeof(z))
        return false;
    memcpy(z, text.p, text.n);
    z[text.n] = 0;
    return inet_pton(family, z, ret) == 1;
}

bool uplink_address_is_link_local(struct str address)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (parse_address(address, AF_INET, &v4))
        return (ntohl(v4.s_addr) >> 16) == 0xa9fe; /* 169.254/16, RFC 3927 */
    return parse_address(address, AF_INET6, &v6) && IN6_IS_ADDR_LINKLOCAL(&v6);
}

bool uplink_address_is_literal(struct str host)
{
    struct in6_addr any;
    if (host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']')
        host = str_sub(host, 1, host.n - 1);
    return parse_address(host, AF_INET, &any) || parse_address(host, AF_INET6, &any);
}

bool uplink_port_has_address(const struct uplink_port *port)
{
    for (size_t i = 0; i < port->n_addresses; i++)
        if (!uplink_address_is_link_local(port->addresses[i]))
            return true;
    return false;
}

bool uplink_ports_have_address(const struct uplink_ports *p)
{
    for (size_t i = 0; p && i < p->n_items; i++)
        if (uplink_port_is_management(p, &p->items[i]) && uplink_port_has_address(&p->items[i]))
            return true;
    return false;
}

/* Sorted by cost and stable, each run of equal cost then rotated. */
static void arrange(const struct uplink_ports *p, size_t *order, size_t n, uint64_t iteration)
{
    for (size_t i = 1; i < n; i++) {
        const size_t moved = order[i];
        size_t at = i;
        for (; at > 0 && p->items[order[at - 1]].cost > p->items[moved].cost; at--)
            order[at] = order[at - 1];
        order[at] = moved;
    }
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && p->items[order[to]].cost == p->items[order[from]].cost;)
            to++;
        size_t run[UPLINK_MAX_PORTS];
        const size_t length = to - from;
        for (size_t i = 0; i < length; i++)
            run[i] = order[from + (i + iteration % length) % length];
        memcpy(order + from, run, length * sizeof(run[0]));
    }
}

static size_t take_management(const struct uplink_ports *p, bool with_errors, size_t *order)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_items; i++)
        if (uplink_port_is_management(p, &p->items[i]) &&
            (with_errors || !uplink_port_has_error(&p->items[i])))
            order[n++] = i;
    return n;
}

size_t uplink_ports_order(const struct uplink_ports *p, uint64_t iteration,
                          size_t ret_order[UPLINK_MAX_PORTS])
{
    size_t n = take_management(p, /* with_errors= */ false, ret_order);
    if (n == 0)
        n = take_management(p, /* with_errors= */ true, ret_order);
    arrange(p, ret_order, n, iteration);
    return n;
}

size_t uplink_ports_order_all(const struct uplink_ports *p, uint64_t iteration,
                              size_t ret_order[UPLINK_MAX_PORTS])
{
    for (size_t i = 0; i < p->n_items; i++)
        ret_order[i] = i;
    arrange(p, ret_order, p->n_items, iteration);
    return p->n_items;
}
