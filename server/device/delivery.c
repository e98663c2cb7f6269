/* SPDX-License-Identifier: Apache-2.0 */
#include "device/delivery.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/log.h"
#include "device/config_settle.h"
#include "json/json.h"

#define N_WORKERS 8
#define ALL STR("")
/* How often it is looked whether the certificates are others. */
#define CERTS_LOOK_MS 5000
/* The roster has events of its own, which may come a little later. */
#define ROSTER_WAIT_MS 200
/* Who composes fills in what is needed with his own write: this comes after him, for the rest. */
#define AFTER_COMPOSING_MS 500
/* Before a key: also what has its version needs another. */
#define ANEW '*'

struct delivery {
    struct device_api *api;
    struct controller_queue *queue;
    bool is_synced;    /* all that existed at the start has been seen; the thread of events alone */
    char *config_hash; /* of the certificates; the key ALL alone */
};

/* ---- what wakes it --------------------------------------------------------------------------- */

static struct str certs_hash(struct arena *a, struct device_api *api)
{
    struct controller_set *set = controller_certs_get(api->certs);
    const struct str hash = arena_str(a, set->config_hash);
    bytes_unref(&set->bytes);
    return hash;
}

static void *start(const struct controller_context *ctx, struct controller_queue *q)
{
    ARENA_AUTO a = arena_new();
    if (!ctx->devices)
        return NULL;
    struct delivery *d = NEW(struct delivery);
    d->api = ctx->devices;
    d->queue = q;
    d->config_hash = mem_strdup(arena_strz(a, certs_hash(a, d->api)));
    controller_enqueue(q, ALL, /* delay_ms= */ 0);
    return d;
}

static void stop(void *state)
{
    struct delivery *d = state;
    if (!d)
        return;
    mem_free(d->config_hash);
    mem_free(d);
}

static void enqueue(struct controller_queue *q, struct str namespace, struct str name)
{
    ARENA_AUTO a = arena_new();
    controller_enqueue(q, arena_join(a, (struct str[]){namespace, STR("/"), name}, 3),
                       AFTER_COMPOSING_MS);
}

/* Most events are of writes of its own, or of the composer's and the reports' statuses. */
static bool is_settled(const struct kube_event *e)
{
    ARENA_AUTO a = arena_new();
    return device_config_is_settled(kube_event_object(e, a));
}

static void on_event(void *state, const struct kube_event *e, struct controller_queue *q)
{
    struct delivery *d = state;
    if (!d || e->type == KUBE_DELETED)
        return;
    if (str_is(e->collection, "deviceconfigs.eve.lfedge.org")) {
        if (!is_settled(e))
            enqueue(q, e->namespace, e->name);
    } else if (str_is(e->collection, "devices.eve.lfedge.org") && e->type == KUBE_ADDED &&
               d->is_synced) {
        /* A DeviceConfig may have been there before it, or be a namesake's. */
        enqueue(q, e->namespace, e->name);
    }
}

static void on_synced(void *state)
{
    struct delivery *d = state;
    if (d)
        d->is_synced = true;
}

/* ---- all of them ----------------------------------------------------------------------------- */

struct keys {
    struct arena *arena;
    struct str *list;
    size_t n;
};

static void add_key(void *ctx, struct device *d)
{
    struct keys *k = ctx;
    k->list = arena_grow(k->arena, k->list, k->n, sizeof(*k->list));
    k->list[k->n++] =
        arena_printf(k->arena, "%c%.*s/%.*s", ANEW, STR_ARG(d->namespace), STR_ARG(d->name));
}

static int64_t look_at_certs(struct delivery *d)
{
    ARENA_AUTO a = arena_new();
    const struct str hash = certs_hash(a, d->api);
    struct keys keys = {.arena = a};
    if (str_is(hash, d->config_hash))
        return CERTS_LOOK_MS;
    roster_each(d->api->roster, add_key, &keys);
    for (size_t i = 0; i < keys.n; i++)
        controller_enqueue(d->queue, keys.list[i], /* delay_ms= */ 0);
    mem_free(d->config_hash);
    d->config_hash = mem_strdup(arena_strz(a, hash));
    return CERTS_LOOK_MS;
}

/* ---- one ------------------------------------------------------------------------------------- */

/* Whether the roster only has not heard of it yet. */
static int64_t wait_for_device(struct delivery *d, struct str namespace, struct str name)
{
    ARENA_AUTO a = arena_new();
    struct json *device = NULL;
    struct status st;
    status_init(&st, a);
    const struct kube_request r = {.verb = VERB_GET,
                                   .group = STR("eve.lfedge.org"),
                                   .version = STR("v1beta1"),
                                   .resource = STR("devices"),
                                   .namespace = namespace,
                                   .name = name};
    const int result = kube_request(d->api->client, a, &r, &device, &st);
    return result == -ENOENT ? 0 : result < 0 ? result : ROSTER_WAIT_MS;
}

static int64_t settle(struct delivery *d, struct device *device, bool is_anew)
{
    ARENA_AUTO a = arena_new();
    struct controller_set *set = controller_certs_get(d->api->certs);
    struct config_settling s = {
        .api = d->api, .arena = a, .device = device, .set = set, .trusts_status = !is_anew};
    const int r = device_config_settle(&s);
    bytes_unref(&set->bytes);
    if (r == -ENOENT)
        return 0;
    /* Nothing but a change of the object helps, and that wakes us. */
    if (r == -EBADMSG) {
        log_warning("a DeviceConfig cannot be delivered", LOG_STR("namespace", device->namespace),
                    LOG_STR("name", device->name), LOG_STR("reason", s.reason));
        return 0;
    }
    return r;
}

static int64_t reconcile(void *state, const struct controller_context *ctx, struct str key)
{
    struct delivery *d = state;
    (void) ctx;
    if (!d)
        return 0;
    if (!key.n)
        return look_at_certs(d);
    const bool is_anew = key.p[0] == ANEW;
    key = str_from(key, is_anew);
    const ptrdiff_t slash = str_find(key, '/');
    const struct str namespace = str_sub(key, 0, (size_t) slash);
    const struct str name = str_from(key, (size_t) slash + 1);
    CLEANUP(device_unrefp)
    struct device *device = roster_by_name(d->api->roster, namespace, name);
    return device ? settle(d, device, is_anew) : wait_for_device(d, namespace, name);
}

int delivery_fill(void *device_api, struct arena *a, struct str namespace, struct str name,
                  struct json *device_config)
{
    struct device_api *api = device_api;
    CLEANUP(device_unrefp) struct device *device = roster_by_name(api->roster, namespace, name);
    if (!device)
        return -ENOENT;
    struct controller_set *set = controller_certs_get(api->certs);
    struct config_settling s = {.api = api, .arena = a, .device = device, .set = set};
    const int r = device_config_fill(&s, device_config);
    bytes_unref(&set->bytes);
    return r;
}

const struct controller delivery_controller = {.name = "delivery",
                                               .start = start,
                                               .on_event = on_event,
                                               .on_synced = on_synced,
                                               .reconcile = reconcile,
                                               .stop = stop,
                                               .n_workers = N_WORKERS};
