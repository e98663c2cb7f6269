/* SPDX-License-Identifier: Apache-2.0 */
/* Network instances, as zedrouter keeps them: which there are, which ports they use, who is in them
 * (NetworkInstanceStatus). How they are made stands behind network.h. */
#include <arpa/inet.h>
#include <errno.h>

#include "apps/apps_internal.h"
#include "apps/network_plan.h"
#include "base/alloc.h"
#include "base/base64.h"
#include "base/log.h"
#include "machine/machine.h"

#define MAX_PORTS 32
#define MAX_RESOLVERS 3 /* more are not looked at, says resolv.conf(5) */
#define RETRY_S 60

struct network *network_find(const struct apps *a, struct str id)
{
    LIST_FOR_EACH (&a->networks, item) {
        struct network *n = CONTAINER_OF(item, struct network, link);
        if (str_is(id, n->id))
            return n;
    }
    return NULL;
}

void network_free(struct network *n)
{
    list_remove(&n->link);
    trouble_done(&n->trouble);
    mem_free(n->id);
    mem_free(n->port_label);
    mem_free(n->config_error);
    mem_free(n);
}

/* ---- configuration ------------------------------------------------------------------------- */

static uint32_t read_ipv4(struct arena *arena, struct str text)
{
    struct in_addr in;
    return text.n && inet_pton(AF_INET, arena_strz(arena, text), &in) == 1 ? ntohl(in.s_addr) : 0;
}

static uint32_t mask_of(unsigned prefix_bits)
{
    return prefix_bits ? ~(uint32_t) 0 << (32 - prefix_bits) : 0;
}

/* Go writes a mask as base64 of its bytes. */
static unsigned read_mask(struct arena *arena, struct str text)
{
    struct str bytes;
    unsigned bits = 0;
    if (base64_decode(arena, text, BASE64_STANDARD, &bytes, NULL) < 0 || bytes.n != 4)
        return 0;
    for (size_t i = 0; i < 4; i++)
        bits += (unsigned) __builtin_popcount((unsigned char) bytes.p[i]);
    return bits;
}

static void read_subnet(struct arena *arena, const struct json *config, struct network_subnet *ret)
{
    const struct json *subnet = json_get(config, STR("Subnet"));
    const struct json *range = json_get(config, STR("DhcpRange"));
    *ret = (struct network_subnet){
        .prefix_bits = read_mask(arena, json_get_str(subnet, STR("Mask"))),
        .address = read_ipv4(arena, json_get_str(subnet, STR("IP"))),
        .gateway = read_ipv4(arena, json_get_str(config, STR("Gateway"))),
        .first = read_ipv4(arena, json_get_str(range, STR("Start"))),
        .last = read_ipv4(arena, json_get_str(range, STR("End"))),
    };
    if (!ret->prefix_bits || ret->prefix_bits > 30 || !ret->address) {
        *ret = (struct network_subnet){0};
        return;
    }
    uint32_t mask = mask_of(ret->prefix_bits);
    ret->address &= mask;
    if (!ret->gateway)
        ret->gateway = ret->address + 1;
    if (!ret->first || !ret->last || ret->last < ret->first) {
        ret->first = ret->address + 2;
        ret->last = (ret->address | ~mask) - 1;
    }
}

void network_configure(struct apps *a, struct str id, const struct json *config)
{
    struct network *n = network_find(a, id);
    ARENA_AUTO arena = arena_new_with(256);
    if (!config) {
        if (n)
            n->is_configured = false;
        return;
    }
    if (!n) {
        n = NEW(struct network);
        n->id = mem_strdup(arena_strz(arena, id));
        list_append(&a->networks, &n->link);
    }
    struct str label = json_get_str(config, STR("PortLabel"));
    if (!label.p)
        label = json_get_str(config, STR("Logicallabel"));
    mem_free(n->port_label);
    n->port_label = mem_strdup(arena_strz(arena, label.p ? label : STR("")));
    n->is_configured = true;
    n->is_active = json_get_bool(config, STR("Activate"), true);
    mem_free(TAKE(n->config_error));
    if (json_get_str(config, STR("Error")).n)
        n->config_error = mem_strdup(arena_strz(arena, json_get_str(config, STR("Error"))));
    n->type = (int) json_get_int(config, STR("Type"), 0);
    n->mtu = (unsigned) json_get_int(config, STR("MTU"), 0);
    n->published = 0;
    read_subnet(arena, config, &n->subnet);
}

/* ---- ports --------------------------------------------------------------------------------- */

static bool has_label(const struct json *port, const char *label)
{
    bool is_management = json_get_bool(port, STR("IsMgmt"), false);
    if (str_is(json_get_str(port, STR("Logicallabel")), label) ||
        str_is(json_get_str(port, STR("IfName")), label) || strcmp(label, "all") == 0)
        return true;
    if (is_management && strcmp(label, "uplink") == 0)
        return true;
    if (is_management && strcmp(label, "freeuplink") == 0)
        return json_get_int(port, STR("Cost"), 0) == 0;
    JSON_FOR_EACH_ITEM (json_get(port, STR("SharedLabels")), item) {
        if (str_is(json_str(item), label))
            return true;
    }
    return false;
}

struct ports {
    struct str names[MAX_PORTS], labels[MAX_PORTS];
    size_t n;
    bool has_management;
};

static void find_ports(struct arena *arena, const struct apps *a, const struct network *n,
                       struct ports *ret)
{
    const struct json *status = topics_get(arena, a, IN_PORTS, STR("global"));
    *ret = (struct ports){0};
    if (!n->port_label[0])
        return;
    if (!a->in[IN_PORTS]) { /* nobody tells: a simulated device */
        ret->labels[ret->n++] = str_of(n->port_label);
        return;
    }
    JSON_FOR_EACH_ITEM (json_get(status, STR("Ports")), port) {
        if (ret->n == MAX_PORTS || !has_label(port, n->port_label))
            continue;
        ret->names[ret->n] = json_get_str(port, STR("IfName"));
        ret->labels[ret->n++] = json_get_str(port, STR("Logicallabel"));
        ret->has_management |= json_get_bool(port, STR("IsMgmt"), false);
    }
}

static void add_resolvers(struct arena *arena, struct json *to, const struct json *from)
{
    JSON_FOR_EACH_ITEM (from, item) {
        if (to->n < MAX_RESOLVERS && read_ipv4(arena, json_str(item)))
            (void) json_push(arena, to, *item);
    }
}

struct json network_resolvers(struct arena *arena, const struct apps *a, struct str id)
{
    struct json list = json_array();
    const struct network *n = network_find(a, id);
    const struct json *config = topics_get(arena, a, IN_NETWORK, id);
    const struct json *status = topics_get(arena, a, IN_PORTS, STR("global"));
    add_resolvers(arena, &list, json_get(config, STR("DnsServers")));
    if (list.n || !n || !n->port_label[0])
        return list;
    JSON_FOR_EACH_ITEM (json_get(status, STR("Ports")), port) {
        if (has_label(port, n->port_label))
            add_resolvers(arena, &list, json_get(port, STR("DNSServers")));
    }
    return list;
}

static size_t find_resolvers(const struct apps *a, const struct network *n,
                             uint32_t ret[MAX_RESOLVERS])
{
    ARENA_AUTO arena = arena_new();
    size_t n_found = 0;
    const struct json list = network_resolvers(arena, a, str_of(n->id));
    JSON_FOR_EACH_ITEM (&list, item)
        if (n_found < MAX_RESOLVERS)
            ret[n_found++] = read_ipv4(arena, json_str(item));
    return n_found;
}

/* ---- what is wrong with it ----------------------------------------------------------------- */

static bool overlaps(const struct network_subnet *x, const struct network_subnet *y)
{
    uint32_t mask = mask_of(MIN(x->prefix_bits, y->prefix_bits));
    return x->prefix_bits && y->prefix_bits && (x->address & mask) == (y->address & mask);
}

static struct str find_fault(struct arena *arena, const struct apps *a, const struct network *n,
                             const struct ports *ports)
{
    if (n->config_error)
        return str_of(n->config_error);
    if (!n->is_active)
        return STR("it is not to be activated");
    if (n->type != NETWORK_LOCAL && n->type != NETWORK_SWITCH)
        return arena_printf(arena, "network instances of type %d are not supported here", n->type);
    if (n->type == NETWORK_LOCAL && !n->subnet.prefix_bits)
        return STR("a local network instance needs an IPv4 subnet");
    if (n->type == NETWORK_SWITCH && ports->has_management)
        return arena_printf(arena,
                            "port '%s' is used by the device itself: a switch would take it away",
                            n->port_label);
    LIST_FOR_EACH (&a->networks, item) {
        const struct network *other = CONTAINER_OF(item, struct network, link);
        if (other == n) /* of two the one that came first has it */
            break;
        if (overlaps(&n->subnet, &other->subnet))
            return arena_printf(arena, "its subnet overlaps with that of network instance %s",
                                other->id);
    }
    return STR_NONE;
}

/* An interface of the same machine that has an address of the subnet, as another agent's bridge
 * may: whose packets they are nobody could tell. Our own are told apart elsewhere, and swept. */
static struct str find_taken(struct arena *arena, const struct apps *a, const struct network *n)
{
    struct apps_network *w = a->options.network;
    struct machine *machine = a->node->machine;
    struct machine_interface *list = NULL;
    size_t n_list = 0;
    char bridge[NETWORK_NAME_BYTES];
    w->functions->bridge_name(w, str_of(n->id), bridge);
    const struct str ours = str_sub(str_of(bridge), 0, strlen(bridge) - PLAN_OWN_BYTES);
    if (!n->subnet.prefix_bits ||
        machine->functions->interfaces(machine, arena, &list, &n_list) < 0)
        return STR_NONE;
    for (size_t i = 0; i < n_list; i++)
        for (size_t k = 0; k < list[i].n_addresses; k++) {
            const struct str text = list[i].addresses[k].text;
            const uint32_t address = read_ipv4(arena, text);
            if (address && (address & mask_of(n->subnet.prefix_bits)) == n->subnet.address &&
                !str_starts_with(list[i].name, ours))
                return arena_printf(arena,
                                    "its subnet has the address %.*s, which interface %.*s of this "
                                    "machine has: choose another subnet",
                                    STR_ARG(text), STR_ARG(list[i].name));
        }
    return STR_NONE;
}

/* ---- carrying it out ----------------------------------------------------------------------- */

bool network_is_ready(const struct apps *a, const struct network *n)
{
    if (!a->options.network && !a->is_sim)
        return true; /* there is only loopback, and that is said at the instance */
    return n && n->is_configured && n->is_open;
}

static void make(struct apps *a, struct network *n, const struct ports *ports)
{
    struct apps_network *w = a->options.network;
    uint32_t resolvers[MAX_RESOLVERS];
    struct network_instance wish = {
        .id = str_of(n->id),
        .is_switch = n->type == NETWORK_SWITCH,
        .subnet = n->subnet,
        .ports = ports->names,
        .n_ports = ports->n,
        .resolvers = resolvers,
        .n_resolvers = find_resolvers(a, n, resolvers),
        .mtu = n->mtu,
    };
    w->functions->open_instance(w, &wish);
}

static uint64_t hash_wish(const struct apps *a, const struct network *n, const struct ports *ports)
{
    uint32_t resolvers[MAX_RESOLVERS];
    const size_t n_resolvers = find_resolvers(a, n, resolvers);
    uint64_t h = apps_hash_int(APPS_HASH, (uint64_t) n->type);
    const struct network_subnet *s = &n->subnet;
    const uint32_t numbers[] = {s->address, s->gateway, s->first, s->last, s->prefix_bits, n->mtu};
    for (size_t i = 0; i < N_ELEMENTS(numbers); i++)
        h = apps_hash_int(h, numbers[i]);
    for (size_t i = 0; i < ports->n; i++)
        h = apps_hash(h, ports->names[i]);
    for (size_t i = 0; i < n_resolvers; i++)
        h = apps_hash_int(h, resolvers[i]);
    return h;
}

static bool is_used(const struct apps *a, const struct network *n)
{
    LIST_FOR_EACH (&a->applications, item) {
        const struct application *p = CONTAINER_OF(item, struct application, link);
        for (size_t i = 0; p->network != CLOSED && i < p->n_adapters; i++)
            if (strcmp(p->adapters[i].network, n->id) == 0)
                return true;
    }
    return false;
}

static void forget(struct apps *a, struct network *n)
{
    struct apps_network *w = a->options.network;
    if (is_used(a, n))
        return;
    if (w) {
        metadata_close(a->metadata, n->id);
        leases_close(a, n->id);
        w->functions->close_instance(w, str_of(n->id));
    }
    topics_unpublish(a, OUT_NETWORK, str_of(n->id));
    topics_unpublish(a, OUT_NETWORK_METRIC, str_of(n->id));
    network_free(n);
}

void network_reconcile(struct apps *a, struct network *n)
{
    ARENA_AUTO arena = arena_new();
    struct ports ports;
    if (!n->is_configured) {
        forget(a, n);
        return;
    }
    find_ports(arena, a, n, &ports);
    struct str fault = find_fault(arena, a, n, &ports);
    if (!a->options.network && !a->is_sim)
        fault = STR("network instances are not made here: applications have only loopback");
    if (fault.p) {
        trouble_set(&n->trouble, a, fault);
        n->is_open = false;
        return;
    }
    if (!a->options.network) {
        trouble_set(&n->trouble, a, STR_NONE);
        n->is_open = true;
        return;
    }
    uint64_t asked = hash_wish(a, n, &ports);
    bool is_failed = n->trouble.text != NULL;
    if (n->asked == asked && (!is_failed || !trouble_is_due(&n->trouble, a)))
        return;
    n->asked = asked;
    const struct str taken = find_taken(arena, a, n);
    if (taken.p) {
        network_on_instance(a, str_of(n->id), taken);
        return;
    }
    trouble_set(&n->trouble, a, STR_NONE);
    make(a, n, &ports);
}

void network_on_instance(void *arg, struct str id, struct str error)
{
    struct apps *a = arg;
    struct network *n = network_find(a, id);
    if (!n)
        return;
    trouble_set(&n->trouble, a, error);
    n->is_open = !error.p;
    if (error.p) {
        trouble_retry(&n->trouble, a, RETRY_S);
        log_warning("network instance cannot be made", LOG_STR("id", id), LOG_STR("error", error));
    } else {
        char bridge[NETWORK_NAME_BYTES];
        n->trouble.n_times = 0, n->trouble.retry_us = 0;
        a->options.network->functions->bridge_name(a->options.network, id, bridge);
        if (n->type == NETWORK_LOCAL) {
            metadata_open(a->metadata, n->id, bridge);
            leases_open(a, n->id, bridge);
        }
    }
    apps_reconcile_soon(a);
}

/* ---- what is told of it -------------------------------------------------------------------- */

static uint64_t fingerprint(const struct apps *a, const struct network *n)
{
    uint64_t h = apps_hash_int(APPS_HASH, n->is_open);
    h = apps_hash(h, str_of(n->trouble.text));
    h = apps_hash_int(h, n->asked);
    LIST_FOR_EACH (&a->applications, item) {
        const struct application *p = CONTAINER_OF(item, struct application, link);
        for (size_t i = 0; p->network == OPEN && i < p->n_adapters; i++)
            if (strcmp(p->adapters[i].network, n->id) == 0)
                h = apps_hash_int(apps_hash(h, str_of(p->id)), p->adapters[i].address);
    }
    return h;
}

static void put_member(struct arena *arena, const struct application *p, size_t i,
                       struct json *vifs, struct json *assignments)
{
    const struct adapter *d = &p->adapters[i];
    struct json vif = json_object();
    put_str(arena, &vif, "Name", adapter_vif(arena, p, i));
    put(arena, &vif, "MacAddr", json_mac(arena, d->mac));
    put_str(arena, &vif, "AppID", str_of(p->id));
    (void) json_push(arena, vifs, vif);
    struct str mac = arena_printf(arena, "%02x:%02x:%02x:%02x:%02x:%02x", d->mac[0], d->mac[1],
                                  d->mac[2], d->mac[3], d->mac[4], d->mac[5]);
    (void) json_set(arena, assignments, mac, adapter_addresses(arena, d));
}

static void put_members(struct arena *arena, const struct apps *a, const struct network *n,
                        struct json *o)
{
    struct json vifs = json_array(), assignments = json_object();
    LIST_FOR_EACH (&a->applications, item) {
        const struct application *p = CONTAINER_OF(item, struct application, link);
        for (size_t i = 0; p->network == OPEN && i < p->n_adapters; i++)
            if (strcmp(p->adapters[i].network, n->id) == 0)
                put_member(arena, p, i, &vifs, &assignments);
    }
    put(arena, o, "Vifs", vifs);
    put(arena, o, "IPAssignments", assignments);
}

struct str network_bridge(struct arena *arena, const struct apps *a, const char *id)
{
    char name[NETWORK_NAME_BYTES] = "";
    struct apps_network *w = a->options.network;
    if (w)
        w->functions->bridge_name(w, str_of(id), name);
    return arena_str(arena, str_of(name));
}

static void publish(struct apps *a, struct network *n)
{
    ARENA_AUTO arena = arena_new();
    const struct json *config = topics_get(arena, a, IN_NETWORK, str_of(n->id));
    struct json o = json_object(), labels = json_array();
    struct ports ports;
    find_ports(arena, a, n, &ports);
    for (size_t i = 0; i < ports.n; i++)
        (void) json_push(arena, &labels, json_string(ports.labels[i]));
    /* Go flattens the configuration into the status, whose own fields hide those of the same name.
     */
    JSON_FOR_EACH_MEMBER (config, m) {
        struct str name = json_str(&m->key);
        if (!str_is(name, "Activate") && !str_is(name, "MTU") &&
            !str_starts_with(name, STR("Error")))
            (void) json_append_member(arena, &o, name, m->value);
    }
    put_int(arena, &o, "Activate", 1);
    put_bool(arena, &o, "Activated", n->is_open);
    put_int(arena, &o, "ChangeInProgress", 0);
    put_str(arena, &o, "BridgeName", network_bridge(arena, a, n->id));
    put(arena, &o, "BridgeIPAddr", json_ipv4(arena, n->is_open ? n->subnet.gateway : 0));
    put_int(arena, &o, "MTU", n->mtu ? n->mtu : 1500);
    put(arena, &o, "Ports", labels);
    put_members(arena, a, n, &o);
    put_trouble(arena, &o, &n->trouble, NULL);
    topics_publish(a, OUT_NETWORK, str_of(n->id), &o);
}

void network_publish_all(struct apps *a)
{
    LIST_FOR_EACH (&a->networks, item) {
        struct network *n = CONTAINER_OF(item, struct network, link);
        uint64_t now = fingerprint(a, n);
        if (!n->is_configured || n->published == now)
            continue;
        publish(a, n);
        n->published = now;
    }
}
