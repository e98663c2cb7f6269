/* SPDX-License-Identifier: Apache-2.0 */
/* The interfaces of an application: their addresses, which stay the same for as long as it is
 * there, and their rules. */
#include <errno.h>

#include "apps/apps_internal.h"
#include "apps/network_plan.h"
#include "base/log.h"

#define RETRY_S 60
/* AddressSourceInternalDHCP: the agent gives addresses out, if without the protocol. */
#define ASSIGNED_BY_US 4

static bool is_taken(const struct application *p, const struct adapter *d, uint32_t address)
{
    LIST_FOR_EACH (&p->apps->applications, item) {
        const struct application *other = CONTAINER_OF(item, struct application, link);
        for (size_t i = 0; i < other->n_adapters; i++) {
            const struct adapter *x = &other->adapters[i];
            if (x != d && x->address == address && strcmp(x->network, d->network) == 0)
                return true;
        }
    }
    return false;
}

static uint32_t find_free(const struct application *p, const struct adapter *d,
                          const struct network_subnet *s)
{
    for (uint64_t address = s->first; address <= s->last; address++)
        if (address != s->gateway && !is_taken(p, d, (uint32_t) address))
            return (uint32_t) address;
    return 0;
}

static bool fits(const struct application *p, const struct adapter *d,
                 const struct network_subnet *s)
{
    uint32_t mask = ~(uint32_t) 0 << (32 - s->prefix_bits);
    return d->address && (d->address & mask) == s->address && d->address != s->gateway &&
           !is_taken(p, d, d->address);
}

int addresses_assign(struct arena *arena, struct application *p, struct str *ret_error)
{
    bool is_new = false;
    for (size_t i = 0; i < p->n_adapters; i++) {
        struct adapter *d = &p->adapters[i];
        const struct network *n = network_find(p->apps, str_of(d->network));
        if (!n || !n->subnet.prefix_bits || fits(p, d, &n->subnet))
            continue;
        if (d->fixed) {
            *ret_error = arena_printf(
                arena, "the address it asks for in network instance %s is not free or outside",
                d->network);
            return -EADDRNOTAVAIL;
        }
        d->address = find_free(p, d, &n->subnet);
        is_new = true;
        if (!d->address) {
            *ret_error = arena_printf(arena, "network instance %s has no address left", d->network);
            return -ENOSPC;
        }
    }
    if (is_new)
        record_save(p);
    return 0;
}

/* ---- rules --------------------------------------------------------------------------------- */

static uint16_t read_port(struct str text)
{
    int64_t port = 0;
    return str_to_i64(text, &port) >= 0 && port > 0 && port <= UINT16_MAX ? (uint16_t) port : 0;
}

/* An address that is called a host is one. */
static bool read_host(struct arena *arena, struct str value, struct network_rule *ret)
{
    char name[HOSTS_NAME_BYTES];
    if (plan_is_network(value))
        ret->remote = value;
    else if (value.n && hosts_normal(value, name))
        ret->host = arena_str(arena, str_of(name));
    else
        return value.n == 0;
    return true;
}

/* False: it asks for something that is not known here. */
static bool read_match(struct arena *arena, const struct json *match, struct network_rule *ret)
{
    struct str type = json_get_str(match, STR("Type")), value = json_get_str(match, STR("Value"));
    if (str_is(type, "ip"))
        ret->remote = str_is(value, "0.0.0.0/0") ? STR_NONE : value;
    else if (str_is(type, "protocol"))
        ret->protocol = value;
    else if (str_is(type, "fport"))
        ret->remote_port = read_port(value);
    else if (str_is(type, "lport"))
        ret->local_port = read_port(value);
    else if (str_is(type, "host"))
        return read_host(arena, value, ret);
    else
        return str_is(type, "adapter");
    return true;
}

/* "5/s" of iptables, whose defaults these are. */
static struct network_limit read_limit(const struct json *action)
{
    static const char *const units[] = {"second", "minute", "hour", "day"};
    const struct str unit = json_get_str(action, STR("LimitUnit"));
    const int64_t rate = json_get_int(action, STR("LimitRate"), 0),
                  burst = json_get_int(action, STR("LimitBurst"), 0);
    struct network_limit l = {.rate = (uint32_t) MIN(rate, UINT32_MAX),
                              .burst = (uint32_t) MIN(burst, UINT32_MAX)};
    l.unit = units[0];
    for (size_t i = 0; i < N_ELEMENTS(units); i++)
        if (unit.n && unit.p[0] == units[i][0])
            l.unit = units[i];
    if (rate <= 0)
        l = (struct network_limit){3, l.burst, "hour"};
    if (burst < 0)
        l.burst = 0;
    return l;
}

static bool read_rule(struct arena *arena, const struct json *ace, struct network_rule *ret)
{
    const struct json *actions = json_get(ace, STR("Actions"));
    *ret = (struct network_rule){0};
    /* EVE takes none with several, either. */
    if (json_count(actions) > 1)
        return false;
    JSON_FOR_EACH_ITEM (json_get(ace, STR("Matches")), match) {
        if (!read_match(arena, match, ret))
            return false;
    }
    JSON_FOR_EACH_ITEM (actions, action) {
        ret->drops |= json_get_bool(action, STR("Drop"), false);
        if (json_get_bool(action, STR("PortMap"), false)) {
            const int64_t port = json_get_int(action, STR("TargetPort"), 0);
            if (port < 1 || port > UINT16_MAX)
                return false;
            ret->target_port = (uint16_t) port;
        }
        if (json_get_bool(action, STR("Limit"), false))
            ret->limit = read_limit(action);
    }
    return (ret->drops != 0) + (ret->target_port != 0) + (ret->limit.rate != 0) <= 1;
}

static void read_rules(struct arena *arena, const struct application *p, const struct json *acls,
                       struct network_interface *ret)
{
    size_t n = MIN(json_count(acls), NETWORK_MAX_RULES);
    struct network_rule *rules = ARENA_ARRAY(arena, struct network_rule, n + 1);
    JSON_FOR_EACH_ITEM (acls, ace) {
        if (ret->n_rules == n)
            break;
        if (read_rule(arena, ace, &rules[ret->n_rules]))
            ret->n_rules++;
        else
            log_warning("an access rule is not supported here, ignoring it", LOG_TEXT("app", p->id),
                        LOG_STR("rule", json_get_str(ace, STR("Name"))));
    }
    ret->rules = rules;
}

/* ---- opening and closing ------------------------------------------------------------------- */

static void ask(struct arena *arena, struct application *p, const struct json *config)
{
    struct apps_network *w = p->apps->options.network;
    const struct json *list = json_get(config, STR("AppNetAdapterList"));
    struct network_interface *interfaces =
        ARENA_ARRAY(arena, struct network_interface, p->n_adapters);
    for (size_t i = 0; i < p->n_adapters; i++) {
        const struct adapter *d = &p->adapters[i];
        interfaces[i].network = str_of(d->network);
        interfaces[i].address = d->address;
        memcpy(interfaces[i].mac, d->mac, sizeof(d->mac));
        if (i < json_count(list))
            read_rules(arena, p, json_get(&list->items[i], STR("ACLs")), &interfaces[i]);
    }
    struct network_app wish = {
        .id = str_of(p->id),
        .is_machine = p->is_machine,
        .interfaces = interfaces,
        .n_interfaces = p->n_adapters,
    };
    w->functions->open_app(w, &wish);
}

void application_open_network(struct application *p)
{
    ARENA_AUTO arena = arena_new();
    struct apps *a = p->apps;
    struct str error = STR_NONE;
    const struct json *config = topics_get(arena, a, IN_APP, str_of(p->id));
    if (p->network == OPENING)
        return;
    if (p->network == CLOSED) {
        application_read_adapters(p, arena, config);
        p->is_machine = application_is_machine(p);
    }
    bool is_made = a->options.network && p->n_adapters;
    if ((is_made || a->is_sim) && addresses_assign(arena, p, &error) < 0) {
        trouble_set(&p->network_trouble, a, error);
        trouble_retry(&p->network_trouble, a, RETRY_S);
        return;
    }
    p->network_opened = p->network_asked;
    p->published = 0;
    if (!is_made) {
        p->network = OPEN;
        return;
    }
    if (p->network == CLOSED)
        p->network = OPENING;
    ask(arena, p, config);
}

void application_close_network(struct application *p)
{
    struct apps_network *w = p->apps->options.network;
    if (p->network == CLOSED)
        return;
    if (w && p->n_adapters)
        w->functions->close_app(w, str_of(p->id));
    p->network = CLOSED;
    p->published = 0;
    trouble_set(&p->network_trouble, p->apps, STR_NONE);
}

void network_on_app(void *arg, struct str id, struct str error)
{
    struct apps *a = arg;
    struct application *p = application_find(a, id);
    if (!p || p->network == CLOSED)
        return;
    trouble_set(&p->network_trouble, a, error);
    if (!error.p) {
        p->network = OPEN;
        p->network_trouble.n_times = 0, p->network_trouble.retry_us = 0;
    } else {
        if (p->network == OPENING)
            p->network = CLOSED;
        trouble_retry(&p->network_trouble, a, RETRY_S);
        log_warning("interfaces of an application cannot be made", LOG_STR("app", id),
                    LOG_STR("error", error));
    }
    p->published = 0;
    apps_reconcile_soon(a);
}

/* ---- what is told of them ------------------------------------------------------------------ */

struct str adapter_vif(struct arena *arena, const struct application *p, size_t i)
{
    char name[NETWORK_NAME_BYTES] = "";
    struct apps_network *w = p->apps->options.network;
    if (!w)
        return arena_printf(arena, "nbu%zux%d", i + 1, p->number);
    w->functions->interface_name(w, str_of(p->id), (unsigned) i, name);
    return arena_str(arena, str_of(name));
}

struct json adapter_addresses(struct arena *arena, const struct adapter *d)
{
    struct json o = json_object(), list = json_array();
    if (d->address) {
        struct json one = json_object();
        put(arena, &one, "Address", json_ipv4(arena, d->address));
        put_int(arena, &one, "AssignedBy", ASSIGNED_BY_US);
        (void) json_push(arena, &list, one);
    }
    put(arena, &o, "IPv4Addrs", list);
    put(arena, &o, "IPv6Addrs", json_array());
    return o;
}

struct json adapter_status(struct arena *arena, const struct application *p, size_t i,
                           const struct json *config)
{
    const struct adapter *d = &p->adapters[i];
    const struct network *n = network_find(p->apps, str_of(d->network));
    bool is_there = p->network == OPEN && d->address;
    struct json o = json_object();
    JSON_FOR_EACH_MEMBER (config, m)
        (void) json_append_member(arena, &o, json_str(&m->key), m->value);
    put_str(arena, &o, "Bridge", network_bridge(arena, p->apps, d->network));
    put_str(arena, &o, "Vif", adapter_vif(arena, p, i));
    put_str(arena, &o, "VifUsed", adapter_vif(arena, p, i));
    put(arena, &o, "Mac", json_mac(arena, d->mac));
    put(arena, &o, "BridgeIPAddr", json_ipv4(arena, n ? n->subnet.gateway : 0));
    struct adapter told = *d;
    told.address = is_there ? d->address : 0;
    put(arena, &o, "AssignedAddresses", adapter_addresses(arena, &told));
    put_bool(arena, &o, "IPv4Assigned", is_there);
    put_bool(arena, &o, "IPAddrMisMatch", false);
    put_str(arena, &o, "HostName", str_of(p->id));
    return o;
}
