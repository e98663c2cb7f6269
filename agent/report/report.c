/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report.h"

#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "report/report_internal.h"

bool report_can_send(const struct report *r)
{
    return r->device[0] && r->node->ports;
}

struct str report_url(struct arena *a, const struct report *r, struct str server, struct str action)
{
    if (!server.n)
        return node_link_url(a, r->link, action);
    return uplink_url_build(a, UPLINK_API_V2, server, &r->node->device, action);
}

void report_keep(struct report *r, const char *name, struct str message)
{
    if (r->node->is_simulated)
        return;
    ARENA_AUTO a = arena_new();
    const int result =
        node_file_write(r->node, NODE_PERSIST, arena_printf(a, "checkpoint/%s", name), message);
    if (result < 0)
        log_debug("a copy for people is not kept", LOG_TEXT("file", name), LOG_ERRNO(result));
}

/* ---- timers --------------------------------------------------------------------------------- */

static void start_device_timer(struct report *r)
{
    loop_timer_start(
        r->device_timer,
        node_spread_ms(r->node, r->device_interval_s * 1000, REPORT_DEVICE_SPREAD_PERCENT), 0);
}

static void on_device_timer(void *arg)
{
    struct report *r = arg;
    report_mark_device(r);
    start_device_timer(r);
}

static void start_location_timer(struct report *r)
{
    loop_timer_start(r->location_timer, node_jitter_ms(r->node, r->location_interval_s), 0);
}

static void on_location_timer(void *arg)
{
    struct report *r = arg;
    report_mark(r, KIND_LOCATION, STR("global"), NULL);
    start_location_timer(r);
}

/* Whatever interval has changed begins anew. */
static void update_timers(struct report *r)
{
    const struct items *items = zedagent_items(r->zedagent);
    const int64_t device_s = items_int(items, "timer.deviceinfo.interval");
    const int64_t location_s = items_int(items, "timer.location.cloud.interval");
    if (!r->device[0])
        return;
    if (device_s != r->device_interval_s) {
        r->device_interval_s = device_s;
        start_device_timer(r);
    }
    if (r->location_timer && location_s != r->location_interval_s) {
        r->location_interval_s = location_s;
        start_location_timer(r);
    }
    report_health_update(r);
    report_ntp_update(r);
    report_metrics_update(r);
}

/* ---- what others tell ----------------------------------------------------------------------- */

/* From here on it is known as whom we speak. */
static void begin(struct report *r)
{
    uuid_text(&r->node->device, r->device);
    report_mark_all(r);
}

static void on_change(struct node_watch *w, unsigned changes)
{
    struct report *r = CONTAINER_OF(w, struct report, watch);
    if ((changes & NODE_ONBOARDED) && !uuid_is_zero(&r->node->device))
        begin(r);
    if (changes & (NODE_NETWORK | NODE_ONBOARDED)) {
        if (r->is_device_dirty || !list_is_empty(&r->dirty))
            report_flush(r);
        if (r->node->network_state == NODE_NETWORK_SUCCESS)
            report_queues_hurry(r);
    }
    update_timers(r);
}

static void on_event(struct zedagent_listener *l, enum zedagent_event e)
{
    struct report *r = CONTAINER_OF(l, struct report, listener);
    if (e == ZEDAGENT_EPOCH)
        report_mark_all(r);
    else if (e == ZEDAGENT_FACTS)
        report_mark_device(r);
    else if (e == ZEDAGENT_ASKS_LOC)
        report_tell_loc(r);
    update_timers(r);
}

/* ---- life ----------------------------------------------------------------------------------- */

static void on_flush(void *arg)
{
    report_flush(arg);
}

static void read_config_directory(struct report *r)
{
    BUF_AUTO content = {0};
    if (node_file_read(r->node, NODE_CONFIG, STR("root-certificate.pem"), &content) == 0) {
        pki_sha256(buf_str(&content), r->root_hash);
        r->has_root_hash = true;
    }
    ARENA_AUTO a = arena_new();
    const char *path = node_path(a, r->node, NODE_CONFIG, STR("remote_access_disabled"));
    r->is_remote_access_disabled = access(path, F_OK) == 0;
}

int report_new(struct zedagent *z, struct node *n, struct report **ret)
{
    struct report *r = NEW(struct report);
    r->zedagent = z;
    r->node = n;
    r->link = zedagent_link(z);
    list_init(&r->dirty);
    report_flow_init(r);
    r->flush_timer = loop_timer_new(n->loop, on_flush, r);
    r->device_timer = loop_timer_new(n->loop, on_device_timer, r);
    if (!n->is_simulated)
        r->location_timer = loop_timer_new(n->loop, on_location_timer, r);
    read_config_directory(r);
    report_queues_init(r);
    report_metrics_init(r);
    report_health_init(r);
    report_ntp_init(r);
    r->watch.on_change = on_change;
    node_watch(n, &r->watch);
    r->listener.on_event = on_event;
    zedagent_listen(z, &r->listener);
    const int result = report_subscribe(r);
    if (result < 0)
        report_free(r);
    else
        *ret = r;
    return result;
}

void report_free(struct report *r)
{
    if (!r)
        return;
    zedagent_unlisten(&r->listener);
    node_unwatch(&r->watch);
    report_unsubscribe(r);
    report_metrics_done(r);
    report_health_done(r);
    report_ntp_done(r);
    report_flow_done(r);
    report_queues_done(r);
    report_dirty_done(r);
    loop_timer_free(r->flush_timer);
    loop_timer_free(r->device_timer);
    loop_timer_free(r->location_timer);
    mem_free(r);
}

struct report_counts report_counts(const struct report *r)
{
    struct report_counts all = {.metrics_sent = r->n_metrics_sent_total,
                                .metrics_lost = r->n_metrics_lost};
    const struct uplink_deferred *const queues[] = {r->events, r->periodic, r->loc};
    for (size_t i = 0; i < N_ELEMENTS(queues); i++) {
        if (!queues[i])
            continue;
        const struct uplink_deferred_counts c = uplink_deferred_counts(queues[i]);
        all.waiting += c.entries;
        all.delivered += c.delivered;
        all.dropped += c.dropped + c.evicted + c.rejected;
    }
    return all;
}
