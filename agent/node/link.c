/* SPDX-License-Identifier: Apache-2.0 */
#include "node/link.h"

#include "base/alloc.h"
#include "base/log.h"
#include "node/node_internal.h"

struct node_link_internal {
    struct node_link link;
    struct node_watch watch;
    struct publication *publication; /* NULL: somebody else's affair */
    struct loop_timer *timer;
    uint64_t published; /* what uplink_metrics_changes() was then */
    int64_t own_interval_s, interval_s;
    bool has_nil_device, uses_onboarding;
};

/* Another one when proxies have certificates of their own. */
static struct uplink_tls *tls_of(const struct node *n, bool uses_onboarding)
{
    return uses_onboarding && !n->identity.tls ? n->onboarding.tls : n->identity.tls;
}

static void follow(struct node_link_internal *in, unsigned changes)
{
    const struct node *n = in->link.node;
    struct uplink *u = in->link.uplink;
    if ((changes & NODE_NETWORK) && n->ports) {
        uplink_set_ports(u, n->ports);
        uplink_set_tls(u, tls_of(n, in->uses_onboarding));
    }
    if (changes & NODE_SERVER)
        uplink_set_server(u, n->server);
    if ((changes & NODE_ONBOARDED) && !in->has_nil_device)
        uplink_set_device(u, &n->device);
    if (changes & NODE_ITEMS)
        uplink_set_timeouts(u, items_int(n->items, "timer.send.timeout") * 1000,
                            items_int(n->items, "timer.dial.timeout") * 1000);
}

/* ---- metrics ------------------------------------------------------------------------------- */

static void start_timer(struct node_link_internal *in)
{
    if (in->timer)
        loop_timer_start(in->timer, node_jitter_ms(in->link.node, in->interval_s), 0);
}

static void set_interval(struct node_link_internal *in)
{
    const int64_t interval_s = in->own_interval_s
                                   ? in->own_interval_s
                                   : items_int(in->link.node->items, "timer.metric.interval");
    if (interval_s == in->interval_s)
        return;
    in->interval_s = interval_s;
    start_timer(in);
}

void node_link_publish(struct node_link *l)
{
    struct node_link_internal *in = l->internal;
    const uint64_t changes = uplink_metrics_changes(l->metrics);
    if (!in->publication || changes == in->published)
        return;
    ARENA_AUTO a = arena_new();
    BUF_AUTO text = {0};
    uplink_metrics_write(l->metrics, &text);
    const int r =
        publication_publish(in->publication, STR("global"), json_parse_quick(a, buf_str(&text)));
    if (r < 0)
        log_warning("metrics of the way to the controller are not published, ignoring",
                    LOG_ERRNO(r));
    in->published = changes;
}

static void on_timer(void *arg)
{
    struct node_link_internal *in = arg;
    node_link_publish(&in->link);
    start_timer(in);
}

static int start_publishing(struct node_link_internal *in, struct str agent)
{
    const struct pubsub_name name = {.agent = agent, .topic = STR("MetricsMap")};
    const int r = publication_new(in->link.node->pubsub, &name, &in->publication);
    if (r < 0)
        return r;
    in->timer = loop_timer_new(in->link.node->loop, on_timer, in);
    set_interval(in);
    return 0;
}

/* ---- life ---------------------------------------------------------------------------------- */

static void on_change(struct node_watch *w, unsigned changes)
{
    struct node_link_internal *in = CONTAINER_OF(w, struct node_link_internal, watch);
    follow(in, changes);
    if (changes & NODE_ITEMS)
        set_interval(in);
}

static struct uplink *make_uplink(struct node *n, const struct node_link *l,
                                  const struct node_link_options *o)
{
    struct uplink *u = uplink_new(&(struct uplink_options){.loop = n->loop,
                                                           .wire = n->wire,
                                                           .clock = n->clock,
                                                           .metrics = l->metrics,
                                                           .envelope = &n->internal->envelope,
                                                           .server = n->server,
                                                           .user_agent = n->user_agent,
                                                           .serial = n->serial,
                                                           .soft_serial = n->soft_serial});
    uplink_set_tls(u, tls_of(n, o->uses_onboarding));
    return u;
}

int node_link_new(struct node *n, const struct node_link_options *o, struct node_link **ret)
{
    struct node_link_internal *in = NEW(struct node_link_internal);
    struct node_link *l = &in->link;
    l->internal = in;
    l->node = n;
    l->metrics = uplink_metrics_new();
    l->uplink = make_uplink(n, l, o);
    in->has_nil_device = o->has_nil_device;
    in->uses_onboarding = o->uses_onboarding;
    in->own_interval_s = o->metrics_interval_s;
    in->watch.on_change = on_change;
    /* What is known is in force at once, not at the end of the turn. */
    follow(in, ~0U);
    node_watch(n, &in->watch);
    const int r = o->publishes_no_metrics ? 0 : start_publishing(in, o->agent);
    if (r < 0)
        node_link_free(l);
    else
        *ret = l;
    return r;
}

void node_link_free(struct node_link *l)
{
    if (!l)
        return;
    struct node_link_internal *in = l->internal;
    node_unwatch(&in->watch);
    uplink_free(l->uplink);
    loop_timer_free(in->timer);
    publication_free(in->publication);
    uplink_metrics_free(l->metrics);
    mem_free(in);
}

struct str node_link_url(struct arena *a, const struct node_link *l, struct str action)
{
    return uplink_url(l->uplink, a, /* with_device= */ true, action);
}
