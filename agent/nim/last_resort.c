/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of the least priority: every Ethernet port by DHCP, or, where nobody hands the
 * agent a configuration, the ports as the machine has them. */
#include "base/log.h"
#include "nim/nim_internal.h"

#define NETWORK_TYPE_IPV4 4 /* IPv6 is allowed, too */

/* Ends of applications' cables, radios: they do nothing without more configuration. */
static bool is_excluded(struct str name)
{
    static const char *const prefixes[] = {"vif", "nbu", "nbo", "wlan", "wwan", "keth"};
    for (size_t i = 0; i < N_ELEMENTS(prefixes); i++)
        if (str_starts_with(name, str_of(prefixes[i])))
            return true;
    return false;
}

static bool has_address(const struct machine_interface *i)
{
    for (size_t n = 0; n < i->n_addresses; n++)
        if (!uplink_address_is_link_local(i->addresses[n].text))
            return true;
    return false;
}

static struct dpc *find(const struct nim *m)
{
    for (size_t i = 0; i < m->list.n_items; i++)
        if (dpc_is_last_resort(m->list.items[i]))
            return m->list.items[i];
    return NULL;
}

bool nim_has_last_resort(const struct nim *m)
{
    return find(m) != NULL;
}

/* A port once taken stays while its interface is there, so that a cut cable is no other
 * configuration. */
static bool is_port(const struct nim *m, const struct machine_interface *i, bool needs_physical)
{
    /* What another configuration has made goes with it. */
    if (i->is_loopback || i->is_made || (needs_physical && !i->is_physical))
        return false;
    if (!m->o.starts_with_machine)
        return i->is_ethernet && i->is_physical && !is_excluded(i->name);
    const struct dpc *before = find(m);
    return (i->is_ethernet || i->is_physical) &&
           ((i->is_up && has_address(i)) || (before && dpc_find_port(before, i->name)));
}

static bool has_physical(const struct nim *m, const struct machine_interface *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (is_port(m, &list[i], /* needs_physical= */ true))
            return true;
    return false;
}

static struct json write_port(struct arena *a, const struct nim *m, struct str name)
{
    struct json port = json_object(), source = json_object();
    json_set(a, &port, STR("IfName"), json_string(name));
    json_set(a, &port, STR("IsMgmt"), json_bool(true));
    json_set(a, &port, STR("IsL3Port"), json_bool(true));
    if (!m->o.starts_with_machine)
        json_set(a, &port, STR("Dhcp"), json_int(MACHINE_DHCP));
    json_set(a, &port, STR("Type"), json_int(NETWORK_TYPE_IPV4));
    json_set(a, &source, STR("Origin"), json_int(DPC_ORIGIN_LAST_RESORT));
    json_set(a, &port, STR("ConfigSource"), source);
    return port;
}

void nim_last_resort(struct nim *m)
{
    ARENA_AUTO a = arena_new();
    struct machine *machine = m->node->machine;
    struct machine_interface *list = NULL;
    size_t n = 0;
    if (machine->functions->interfaces(machine, a, &list, &n) < 0)
        return;
    /* Bridges and the like only where there is nothing better, as in a namespace. */
    const bool needs_physical = has_physical(m, list, n);
    struct json config = json_object(), ports = json_array();
    for (size_t i = 0; i < n && ports.n < DPC_MAX_PORTS; i++)
        if (is_port(m, &list[i], needs_physical))
            json_push(a, &ports, write_port(a, m, list[i].name));
    /* A machine without any network still reaches a controller on itself. */
    for (size_t i = 0; i < n && ports.n == 0; i++)
        if (list[i].is_loopback && list[i].is_up && m->o.starts_with_machine &&
            nim_controller_is_here(m))
            json_push(a, &ports, write_port(a, m, list[i].name));
    json_set(a, &config, STR("Version"), json_int(1));
    json_set(a, &config, STR("Ports"), ports);
    const struct dpc_defaults d = {.key = STR(DPC_KEY_LAST_RESORT),
                                   .submitted_us = m->node->clock->wall_us(m->node->clock)};
    CLEANUP(dpc_freep) struct dpc *dpc = NULL;
    const struct dpc *before = find(m);
    if (ports.n == 0 || dpc_read(&config, &d, &dpc) < 0 ||
        (before && dpc_has_same_content(before, dpc)))
        return;
    log_debug("the machine's own ports are a configuration of last resort",
              LOG_INT("ports", (int64_t) ports.n));
    nim_put(m, TAKE(dpc));
}
