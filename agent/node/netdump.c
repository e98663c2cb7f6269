/* SPDX-License-Identifier: Apache-2.0 */
#include "node/netdump.h"

#include "base/log.h"
#include "controllerconn/netdump.h"
#include "controllerconn/trace.h"
#include "machine/machine.h"
#include "json/json.h"

#define STATUS STR("nim/DeviceNetworkStatus/global.json")
#define MAX_FILES 8

static struct uplink_netdump settings_of(struct node *n, struct arena *a)
{
    const bool is_onboarded = !uuid_is_zero(&n->device);
    return (struct uplink_netdump){
        .directory = node_path(a, n, NODE_PERSIST, STR("netdump")),
        .interval_s = items_int(n->items, is_onboarded ? "netdump.topic.postonboard.interval"
                                                       : "netdump.topic.preonboard.interval"),
        .max_count = (size_t) items_int(n->items, "netdump.topic.maxcount"),
    };
}

static bool is_best_in_use(struct node *n, struct arena *a)
{
    BUF_AUTO text = {0};
    return node_file_read(n, NODE_RUN, STATUS, &text) == 0 &&
           json_get_int(json_parse_quick(a, arena_str(a, buf_str(&text))), STR("CurrentIndex"),
                        -1) == 0;
}

static struct str topic_of(struct arena *a, const char *topic, bool is_good)
{
    return arena_printf(a, "%s-%s", topic, is_good ? "ok" : "fail");
}

struct uplink_trace *node_trace_begin(struct node *n, const char *topic)
{
    ARENA_AUTO a = arena_new();
    if (n->is_simulated || !items_bool(n->items, "netdump.enable"))
        return NULL;
    const struct uplink_netdump d = settings_of(n, a);
    const int64_t now_us = n->clock->wall_us(n->clock);
    const bool is_due = uplink_netdump_is_due(&d, topic_of(a, topic, true).p, now_us) ||
                        uplink_netdump_is_due(&d, topic_of(a, topic, false).p, now_us);
    return is_due && is_best_in_use(n, a) ? uplink_trace_new(n->clock) : NULL;
}

/* ---- files ---------------------------------------------------------------------------------- */

struct files {
    struct arena *a;
    struct uplink_netdump_file items[MAX_FILES];
    size_t n;
};

static void add(struct files *f, const char *name, struct str content)
{
    if (content.n)
        f->items[f->n++] = (struct uplink_netdump_file){name, content};
}

static void add_file(struct files *f, struct node *n, const char *name, enum node_directory d,
                     struct str path)
{
    BUF_AUTO text = {0};
    if (node_file_read(n, d, path, &text) == 0)
        add(f, name, arena_str(f->a, buf_str(&text)));
}

static struct json write_texts(struct arena *a, const struct str *list, size_t n)
{
    struct json to = json_array();
    for (size_t i = 0; i < n; i++)
        json_push(a, &to, json_string(list[i]));
    return to;
}

static struct json write_interface(struct arena *a, const struct machine_interface *i)
{
    struct json to = json_object(), addresses = json_array();
    for (size_t k = 0; k < i->n_addresses; k++)
        json_push(a, &addresses,
                  json_string(arena_printf(a, "%.*s/%u", STR_ARG(i->addresses[k].text),
                                           i->addresses[k].prefix_bits)));
    json_set(a, &to, STR("name"), json_string(i->name));
    json_set(a, &to, STR("up"), json_bool(i->is_up));
    json_set(a, &to, STR("mtu"), json_int(i->mtu));
    json_set(a, &to, STR("addresses"), addresses);
    json_set(a, &to, STR("routers"), write_texts(a, i->routers, i->n_routers));
    json_set(a, &to, STR("dnsServers"), write_texts(a, i->dns_servers, i->n_dns_servers));
    json_set(a, &to, STR("rxBytes"), json_int((int64_t) i->counters.rx_bytes));
    json_set(a, &to, STR("txBytes"), json_int((int64_t) i->counters.tx_bytes));
    json_set(a, &to, STR("rxErrors"), json_int((int64_t) i->counters.rx_errors));
    json_set(a, &to, STR("txErrors"), json_int((int64_t) i->counters.tx_errors));
    json_set(a, &to, STR("rxDrops"), json_int((int64_t) i->counters.rx_drops));
    json_set(a, &to, STR("txDrops"), json_int((int64_t) i->counters.tx_drops));
    return to;
}

static struct str write_interfaces(struct arena *a, struct node *n)
{
    struct machine_interface *list = NULL;
    size_t n_list = 0;
    struct json to = json_array();
    if (n->machine->functions->interfaces(n->machine, a, &list, &n_list) < 0)
        return STR_NONE;
    for (size_t i = 0; i < n_list; i++)
        json_push(a, &to, write_interface(a, &list[i]));
    return json_text(a, &to);
}

static struct str version_of(struct arena *a, struct node *n)
{
    struct machine_identity identity;
    return n->machine->functions->identity(n->machine, a, &identity) == 0 ? identity.eve_version
                                                                          : STR_NONE;
}

static void collect(struct files *f, struct node *n)
{
    char uuid[UUID_TEXT_BYTES];
    uuid_text(&n->device, uuid);
    add(f, "eve/version.txt", version_of(f->a, n));
    add(f, "eve/device-uuid.txt", arena_str(f->a, str_of(uuid)));
    add(f, "eve/controller.txt", n->server);
    add_file(f, n, "eve/dns.json", NODE_RUN, STATUS);
    add_file(f, n, "eve/dpcl.json", NODE_PERSIST,
             STR("status/nim/DevicePortConfigList/global.json"));
    add_file(f, n, "eve/aa.json", NODE_RUN, STR("domainmgr/AssignableAdapters/global.json"));
    add(f, "linux/interfaces.json", write_interfaces(f->a, n));
}

void node_trace_end(struct node *n, struct uplink_trace *t, const char *topic, const char *request,
                    bool is_good)
{
    ARENA_AUTO a = arena_new();
    CLEANUP(uplink_trace_freep) struct uplink_trace *trace = t;
    if (!trace)
        return;
    const struct uplink_netdump d = settings_of(n, a);
    const int64_t now_us = n->clock->wall_us(n->clock);
    const char *full = topic_of(a, topic, is_good).p;
    if (!uplink_netdump_is_due(&d, full, now_us))
        return;
    BUF_AUTO events = {0};
    struct files f = {.a = a};
    uplink_trace_write(trace, &events);
    collect(&f, n);
    add(&f, arena_printf(a, "requests/%s/nettrace.json", request).p, buf_str(&events));
    const int r = uplink_netdump_write(&d, full, now_us, f.items, f.n);
    if (r < 0)
        log_warning("a trace of the network is not kept", LOG_TEXT("topic", full), LOG_ERRNO(r));
}
