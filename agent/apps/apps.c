/* SPDX-License-Identifier: Apache-2.0 */
/* The service: what happens comes in by topics, the runtime, the network and the clock; all of it
 * leads to one reconciliation at the end of the turn, which looks at everything and does not care
 * what has woken it. */
#include <errno.h>
#include <inttypes.h>

#include "apps/apps_internal.h"
#include "base/alloc.h"
#include "base/log.h"
#include "loguploader/collector.h"

int64_t apps_now_us(const struct apps *a)
{
    return a->node->clock->monotonic_us(a->node->clock);
}

int64_t apps_wall_us(const struct apps *a)
{
    return a->node->clock->wall_us(a->node->clock);
}

uint64_t apps_hash(uint64_t of, struct str s)
{
    for (size_t i = 0; i <= s.n; i++) {
        of ^= i < s.n ? (unsigned char) s.p[i] : 0xff;
        of *= 0x100000001b3ULL;
    }
    return of ? of : 1;
}

uint64_t apps_hash_int(uint64_t of, uint64_t value)
{
    return apps_hash(of, str_range((const char *) &value, sizeof(value)));
}

/* ---- trouble ------------------------------------------------------------------------------- */

void trouble_set(struct trouble *t, const struct apps *a, struct str text)
{
    if (!text.n) {
        mem_free(TAKE(t->text));
        t->since_us = 0;
        return;
    }
    if (t->text && str_is(text, t->text))
        return;
    mem_free(t->text);
    t->text = str_dup(text);
    t->since_us = apps_wall_us(a);
}

void trouble_retry(struct trouble *t, const struct apps *a, int64_t max_wait_s)
{
    int64_t wait_s = t->n_times < 16 ? (int64_t) APPS_FIRST_WAIT_S << t->n_times : max_wait_s;
    t->n_times++;
    t->retry_us = apps_now_us(a) + MIN(wait_s, max_wait_s) * 1000000;
}

bool trouble_is_due(const struct trouble *t, struct apps *a)
{
    if (!t->retry_us || t->retry_us <= apps_now_us(a))
        return true;
    apps_wake_at(a, t->retry_us);
    return false;
}

void trouble_done(struct trouble *t)
{
    mem_free(t->text);
}

/* ---- reconciliation ------------------------------------------------------------------------ */

void apps_reconcile_soon(struct apps *a)
{
    loop_defer(a->node->loop, &a->reconcile);
}

void apps_wake_at(struct apps *a, int64_t monotonic_us)
{
    if (a->wake_us < 0 || monotonic_us < a->wake_us)
        a->wake_us = monotonic_us;
}

static bool is_known_app(struct apps *a, struct str key)
{
    return application_find(a, key) != NULL;
}

/* Or the machine itself. */
static bool is_known_domain(struct apps *a, struct str key)
{
    char device[UUID_TEXT_BYTES];
    uuid_text(&a->node->device, device);
    return is_known_app(a, key) || str_is(key, device);
}

static bool is_known_volume(struct apps *a, struct str key)
{
    return volume_find(a, key) != NULL;
}

static bool is_known_content(struct apps *a, struct str key)
{
    return content_find(a, key) != NULL;
}

static bool is_known_blob(struct apps *a, struct str key)
{
    return content_has_blob(a, key);
}

static bool is_known_network(struct apps *a, struct str key)
{
    return network_find(a, key) != NULL;
}

/* Whether all that is wanted of the network is known to it: what else it finds is of the past. */
static bool has_whole_network(const struct apps *a)
{
    LIST_FOR_EACH (&a->networks, item) {
        const struct network *n = CONTAINER_OF(item, struct network, link);
        if (n->is_configured && !n->is_open)
            return false;
    }
    LIST_FOR_EACH (&a->applications, item) {
        const struct application *p = CONTAINER_OF(item, struct application, link);
        if (p->is_configured && application_lives(p) && p->network != OPEN)
            return false;
    }
    return true;
}

/* Bridges and namespaces of the past; a while after the rest, for what has just been found needs
 * its own until it is gone. */
static void sweep_network(struct apps *a)
{
    struct apps_network *w = a->options.network;
    if (!w || !a->is_swept || a->is_network_swept)
        return;
    if (apps_now_us(a) >= a->sweep_us && !has_whole_network(a))
        a->sweep_us = apps_now_us(a) + (int64_t) APPS_SWEEP_S * 1000000;
    if (apps_now_us(a) < a->sweep_us) {
        apps_wake_at(a, a->sweep_us);
        return;
    }
    w->functions->sweep(w);
    a->is_network_swept = true;
}

/* What an earlier life has left and this configuration does not want. Not before a configuration is
 * in force, and not at once: its parts come one by one. */
static void sweep(struct apps *a)
{
    static const struct {
        enum apps_out out;
        bool (*is_known)(struct apps *a, struct str key);
    } topics[] = {
        {OUT_APP, is_known_app},         {OUT_APP_NETWORK_CONFIG, is_known_app},
        {OUT_DOMAIN, is_known_app},      {OUT_DOMAIN_METRIC, is_known_domain},
        {OUT_APP_NETWORK, is_known_app}, {OUT_VOLUME, is_known_volume},
        {OUT_CONTENT, is_known_content}, {OUT_BLOB, is_known_blob},
        {OUT_NETWORK, is_known_network}, {OUT_NETWORK_METRIC, is_known_network},
    };
    if (a->is_swept || !a->has_config)
        return;
    if (!a->sweep_us)
        a->sweep_us = apps_now_us(a) + (int64_t) APPS_SWEEP_S * 1000000;
    if (apps_now_us(a) < a->sweep_us) {
        apps_wake_at(a, a->sweep_us);
        return;
    }
    for (size_t i = 0; i < N_ELEMENTS(topics); i++)
        topics_keep(a, topics[i].out, topics[i].is_known);
    a->is_swept = true;
    a->sweep_us = apps_now_us(a) + (int64_t) APPS_SWEEP_S * 1000000;
    apps_reconcile_soon(a); /* now what was found and is not configured goes */
}

int64_t apps_turn(struct apps *a)
{
    a->wake_us = -1;
    LIST_FOR_EACH (&a->networks, item)
        network_reconcile(a, CONTAINER_OF(item, struct network, link));
    LIST_FOR_EACH (&a->contents, item)
        content_reconcile(a, CONTAINER_OF(item, struct content, link));
    LIST_FOR_EACH (&a->volumes, item)
        volume_reconcile(a, CONTAINER_OF(item, struct volume, link));
    LIST_FOR_EACH (&a->applications, item)
        application_reconcile(a, CONTAINER_OF(item, struct application, link));
    network_publish_all(a);
    status_publish_summary(a);
    sweep_network(a);
    sweep(a);
    if (a->wake_us < 0)
        loop_timer_stop(a->timer);
    else
        loop_timer_start(a->timer, MAX((a->wake_us - apps_now_us(a) + 999) / 1000, 0), 0);
    return a->wake_us;
}

static void on_reconcile(struct loop_deferred *d)
{
    (void) apps_turn(CONTAINER_OF(d, struct apps, reconcile));
}

static void on_timer(void *arg)
{
    (void) apps_turn(arg);
}

/* ---- events -------------------------------------------------------------------------------- */

static void take_status(void *arg, const struct runtime_status *s)
{
    struct apps *a = arg;
    if (s->kind == RUNTIME_CONTENT)
        content_changed(a, s);
    else if (s->kind == RUNTIME_VOLUME)
        volume_changed(a, s);
    else
        application_changed(a, s);
}

static void on_runtime_change(void *arg, const struct runtime_status *s)
{
    take_status(arg, s);
    apps_reconcile_soon(arg);
}

static void on_log(void *arg, struct str instance, enum runtime_stream stream, struct str line,
                   int64_t wall_us)
{
    struct apps *a = arg;
    const struct application *p = application_find(a, instance);
    if (!a->options.collector || !p)
        return;
    ARENA_AUTO arena = arena_new_with(256);
    struct collector_line l = {
        .app = instance,
        .app_name = str_of(p->name),
        .source = arena_printf(arena, "guest_vm-%.*s", STR_ARG(instance)),
        .severity = stream == RUNTIME_STDERR ? STR("err") : STR("info"),
        .content = line,
        .wall_us = wall_us,
    };
    int r = collector_add(a->options.collector, &l);
    if (r < 0)
        log_debug("a line of an application is lost", LOG_STR("app", instance), LOG_ERRNO(r));
}

static void on_node(struct node_watch *w, unsigned changes)
{
    struct apps *a = CONTAINER_OF(w, struct apps, watch);
    if (changes & NODE_ITEMS)
        metrics_start(a);
    apps_reconcile_soon(a);
}

/* ---- life ---------------------------------------------------------------------------------- */

static int open_runtime(struct apps *a)
{
    struct runtime_events events = {.on_change = on_runtime_change, .on_log = on_log, .arg = a};
    int r = a->options.make_runtime(a->options.make_arg, &events, &a->runtime);
    if (r < 0)
        return r;
    a->is_sim = strcmp(runtime_name(a->runtime), "sim") == 0;
    /* What was there before we came. */
    runtime_each(a->runtime, take_status, a);
    return 0;
}

static void open_network(struct apps *a)
{
    struct network_events events = {network_on_instance, network_on_app, a};
    if (a->options.network)
        a->options.network->functions->listen(a->options.network, &events);
}

int apps_new(struct node *n, const struct apps_options *o, struct apps **ret)
{
    struct apps *a = NEW(struct apps);
    a->node = n;
    a->options = *o;
    a->wake_us = -1;
    a->reconcile.fn = on_reconcile;
    a->watch.on_change = on_node;
    list_init(&a->contents);
    list_init(&a->volumes);
    list_init(&a->networks);
    list_init(&a->applications);
    list_init(&a->desks);
    a->timer = loop_timer_new(n->loop, on_timer, a);
    node_watch(n, &a->watch);
    int r = open_runtime(a);
    if (r >= 0)
        r = apps_topics_open(a);
    if (r >= 0 && o->network)
        r = metadata_new(a, &a->metadata);
    if (r < 0) {
        apps_free(a);
        return r;
    }
    open_network(a);
    metrics_start(a);
    *ret = a;
    return 0;
}

void apps_free(struct apps *a)
{
    if (!a)
        return;
    if (a->options.network)
        a->options.network->functions->listen(a->options.network, NULL);
    node_unwatch(&a->watch);
    loop_undefer(a->node->loop, &a->reconcile);
    loop_timer_free(a->timer);
    metrics_stop(a);
    metadata_free(a->metadata);
    leases_free(a);
    apps_topics_close(a);
    runtime_free(a->runtime);
    LIST_FOR_EACH (&a->applications, item)
        application_free(CONTAINER_OF(item, struct application, link));
    LIST_FOR_EACH (&a->volumes, item)
        volume_free(CONTAINER_OF(item, struct volume, link));
    LIST_FOR_EACH (&a->contents, item)
        content_free(CONTAINER_OF(item, struct content, link));
    LIST_FOR_EACH (&a->networks, item)
        network_free(CONTAINER_OF(item, struct network, link));
    mem_free(a->profile);
    mem_free(a);
}

struct apps_counts apps_counts(const struct apps *a)
{
    struct apps_counts c = {0};
    LIST_FOR_EACH (&a->applications, item) {
        const struct application *p = CONTAINER_OF(item, struct application, link);
        if (!p->is_configured)
            continue;
        c.applications++;
        c.running += p->state == RUNTIME_RUNNING;
        c.halted += !application_lives(p);
        c.failed += application_trouble(p) != NULL;
    }
    return c;
}
