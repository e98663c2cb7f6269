/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, a little more often than they are reported: domainmgr's DomainMetric and HostMemory,
 * zedrouter's NetworkMetrics and NetworkInstanceMetrics, volumemgr's AppDiskMetric. */
#include <errno.h>

#include "apps/apps_internal.h"
#include "machine/machine.h"

#define MEGABYTE ((int64_t) 1 << 20)
#define SOON_MS 1000

static struct str device_id(struct arena *arena, const struct apps *a)
{
    char text[UUID_TEXT_BYTES];
    uuid_text(&a->node->device, text);
    return arena_str(arena, str_of(text));
}

/* ---- applications -------------------------------------------------------------------------- */

static void put_usage(struct arena *arena, struct json *o, const struct runtime_metrics *m)
{
    int64_t limit = m->memory_max_bytes;
    int64_t free_bytes = limit > m->memory_bytes ? limit - m->memory_bytes : 0;
    put_int(arena, o, "CPUTotalNs", m->cpu_ns);
    put_int(arena, o, "CPUScaled", 1);
    put_int(arena, o, "AllocatedMB", (limit ? limit : m->memory_bytes) / MEGABYTE);
    put_int(arena, o, "UsedMemory", m->memory_bytes / MEGABYTE);
    put_int(arena, o, "MaxUsedMemory", m->memory_peak_bytes / MEGABYTE);
    put_int(arena, o, "AvailableMemory", free_bytes / MEGABYTE);
    put(arena, o, "UsedMemoryPercent",
        json_double(limit > 0 ? (double) m->memory_bytes * 100.0 / (double) limit : 0.0));
}

static void publish_app(struct arena *arena, struct application *p, int64_t now_us)
{
    struct runtime_metrics m = {0};
    struct apps *a = p->apps;
    bool is_up = runtime_metrics(a->runtime, str_of(p->id), &m) >= 0;
    struct json o = json_object();
    if (!p->version || !p->was_started)
        return;
    put_uuid_and_version(arena, &o, str_of(p->id), str_of(p->taken_version));
    put_usage(arena, &o, &m);
    put_time(arena, &o, "LastHeard", now_us);
    put_bool(arena, &o, "Activated", is_up);
    put_str(arena, &o, "NodeName", STR(""));
    topics_publish(a, OUT_DOMAIN_METRIC, str_of(p->id), &o);
}

/* The machine itself, under the device's own id. */
static void publish_host(struct arena *arena, struct apps *a, int64_t now_us)
{
    struct machine_load load;
    struct machine_identity identity;
    struct json o = json_object(), memory = json_object();
    const struct machine_functions *f = a->node->machine->functions;
    if (f->load(a->node->machine, arena, &load) < 0)
        return;
    unsigned n_cpus = f->identity(a->node->machine, arena, &identity) < 0 ? 0 : identity.n_cpus;
    uint64_t used = load.memory_total_bytes - load.memory_available_bytes;
    put_uuid_and_version(arena, &o, device_id(arena, a), STR(""));
    put_usage(arena, &o,
              &(struct runtime_metrics){.cpu_ns = load.cpu_ns,
                                        .memory_bytes = (int64_t) used,
                                        .memory_peak_bytes = (int64_t) used,
                                        .memory_max_bytes = (int64_t) load.memory_total_bytes});
    put_time(arena, &o, "LastHeard", now_us);
    put_bool(arena, &o, "Activated", true);
    topics_publish(a, OUT_DOMAIN_METRIC, device_id(arena, a), &o);
    put_int(arena, &memory, "TotalMemoryMB", (int64_t) load.memory_total_bytes / MEGABYTE);
    put_int(arena, &memory, "FreeMemoryMB", (int64_t) load.memory_available_bytes / MEGABYTE);
    put_int(arena, &memory, "UsedEveMB", (int64_t) load.own_memory_bytes / MEGABYTE);
    put_int(arena, &memory, "KmemUsedEveMB", 0);
    put_int(arena, &memory, "Ncpus", n_cpus);
    topics_publish(a, OUT_HOST_MEMORY, STR("global"), &memory);
}

/* ---- networks ------------------------------------------------------------------------------ */

static struct json network_metric(struct arena *arena, struct str name,
                                  const struct network_counters *c)
{
    struct json o = json_object();
    put_str(arena, &o, "IfName", name);
    put_int(arena, &o, "TxBytes", (int64_t) c->tx_bytes);
    put_int(arena, &o, "RxBytes", (int64_t) c->rx_bytes);
    put_int(arena, &o, "TxDrops", (int64_t) c->tx_drops);
    put_int(arena, &o, "RxDrops", (int64_t) c->rx_drops);
    put_int(arena, &o, "TxPkts", (int64_t) c->tx_packets);
    put_int(arena, &o, "RxPkts", (int64_t) c->rx_packets);
    put_int(arena, &o, "TxErrors", (int64_t) c->tx_errors);
    put_int(arena, &o, "RxErrors", (int64_t) c->rx_errors);
    return o;
}

/* What an interface of an application has seen, by the machine or, simulated, by the runtime. */
static bool read_vif(struct application *p, const char *vif, struct network_counters *ret)
{
    struct apps_network *w = p->apps->options.network;
    struct runtime_metrics m;
    if (w)
        return w->functions->counters(w, vif, ret) >= 0;
    if (runtime_metrics(p->apps->runtime, str_of(p->id), &m) < 0)
        return false;
    *ret = (struct network_counters){
        .rx_bytes = (uint64_t) m.rx_bytes,
        .tx_bytes = (uint64_t) m.tx_bytes,
        .rx_packets = (uint64_t) m.rx_packets,
        .tx_packets = (uint64_t) m.tx_packets,
    };
    return true;
}

static void add_vifs(struct arena *arena, struct apps *a, const char *network, struct json *list)
{
    LIST_FOR_EACH (&a->applications, item) {
        struct application *p = CONTAINER_OF(item, struct application, link);
        for (size_t i = 0; p->network == OPEN && i < p->n_adapters; i++) {
            struct str vif = adapter_vif(arena, p, i);
            struct network_counters c;
            if ((!network || strcmp(p->adapters[i].network, network) == 0) &&
                read_vif(p, vif.p, &c))
                (void) json_push(arena, list, network_metric(arena, vif, &c));
        }
    }
}

static void add_ports(struct arena *arena, struct apps *a, struct json *list)
{
    struct machine_interface *interfaces = NULL;
    size_t n = 0;
    if (a->node->machine->functions->interfaces(a->node->machine, arena, &interfaces, &n) < 0)
        return;
    for (size_t i = 0; i < n; i++) {
        const struct machine_interface *m = &interfaces[i];
        struct network_counters c = {
            .rx_bytes = m->counters.rx_bytes,
            .tx_bytes = m->counters.tx_bytes,
            .rx_packets = m->counters.rx_packets,
            .tx_packets = m->counters.tx_packets,
            .rx_errors = m->counters.rx_errors,
            .tx_errors = m->counters.tx_errors,
            .rx_drops = m->counters.rx_drops,
            .tx_drops = m->counters.tx_drops,
        };
        if (!m->is_loopback)
            (void) json_push(arena, list, network_metric(arena, m->name, &c));
    }
}

static void publish_ports(struct arena *arena, struct apps *a)
{
    struct json o = json_object(), list = json_array();
    /* Whoever reports for a simulated device asks its machine. */
    if (!a->node->is_simulated)
        add_ports(arena, a, &list);
    /* On a real machine the interfaces of applications are among them. */
    if (!a->options.network)
        add_vifs(arena, a, NULL, &list);
    if (!list.n)
        return;
    put(arena, &o, "MetricList", list);
    put_int(arena, &o, "TotalRuleCount", 0);
    topics_publish(a, OUT_PORT_METRIC, STR("global"), &o);
}

static void publish_instance(struct arena *arena, struct apps *a, struct network *n)
{
    const struct json *config = topics_get(arena, a, IN_NETWORK, str_of(n->id));
    struct json o = json_object(), metrics = json_object(), list = json_array();
    put_uuid_and_version(arena, &o, str_of(n->id), json_get_str(config, STR("Version")));
    put_copy(arena, &o, config, "DisplayName");
    put_int(arena, &o, "Type", n->type);
    put_str(arena, &o, "BridgeName", network_bridge(arena, a, n->id));
    add_vifs(arena, a, n->id, &list);
    put(arena, &metrics, "MetricList", list);
    put(arena, &o, "NetworkMetrics", metrics);
    put(arena, &o, "ProbeMetrics", json_null());
    topics_publish(a, OUT_NETWORK_METRIC, str_of(n->id), &o);
}

/* ---- when ---------------------------------------------------------------------------------- */

void metrics_publish(struct apps *a)
{
    ARENA_AUTO arena = arena_new();
    int64_t now_us = apps_wall_us(a);
    if (!a->node->is_simulated)
        publish_host(arena, a, now_us);
    publish_ports(arena, a);
    disks_scan(a);
    LIST_FOR_EACH (&a->applications, item)
        publish_app(arena, CONTAINER_OF(item, struct application, link), now_us);
    LIST_FOR_EACH (&a->networks, item) {
        struct network *n = CONTAINER_OF(item, struct network, link);
        if (n->is_configured && n->is_open)
            publish_instance(arena, a, n);
    }
}

static void on_timer(void *arg)
{
    struct apps *a = arg;
    metrics_publish(a);
    metrics_start(a);
}

/* Reports come after 0.3 to 1.0 of the interval; numbers are fresh for each, but where there are
 * thousands of devices. */
void metrics_start(struct apps *a)
{
    int64_t interval_s = items_int(a->node->items, "timer.metric.interval");
    if (!a->metrics_timer) {
        a->metrics_timer = loop_timer_new(a->node->loop, on_timer, a);
        loop_timer_start(a->metrics_timer, SOON_MS, 0);
        return;
    }
    loop_timer_start(a->metrics_timer, interval_s * (a->node->is_simulated ? 1000 : 300), 0);
}

/* Somebody new runs, and need not wait for its first numbers. */
void metrics_hurry(struct apps *a)
{
    if (a->metrics_timer && !a->node->is_simulated)
        loop_timer_start(a->metrics_timer, SOON_MS, 0);
}

void metrics_stop(struct apps *a)
{
    disks_stop(a);
    loop_timer_free(a->metrics_timer);
}
