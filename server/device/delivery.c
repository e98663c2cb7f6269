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

struct delivery {
    struct device_api *api;
    struct controller_queue *queue;
    bool is_synced;    /* the thread of the events alone */
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
    controller_enqueue(q, ALL, CERTS_LOOK_MS);
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
                       /* delay_ms= */ 0);
}

/* Most events are of writes of its own, or of the composer's and the reports' statuses. */
static bool is_settled(const struct kube_event *e)
{
    ARENA_AUTO a = arena_new();
    const struct json *object = json_parse_quick(a, e->text);
    const struct json *status = json_get(object, STR("status"));
    return json_get_str(status, STR("hash")).n &&
           json_get_int(status, STR("observedGeneration"), 0) ==
               json_get_int(json_get(object, STR("metadata")), STR("generation"), 1);
}

static void on_event(void *state, const struct kube_event *e, struct controller_queue *q)
{
    struct delivery *d = state;
    if (!d)
        return;
    if (e->type == KUBE_SYNCED)
        d->is_synced = true;
    else if (e->type == KUBE_DELETED)
        return;
    else if (str_is(e->collection, "deviceconfigs.eve.lfedge.org")) {
        if (!is_settled(e))
            enqueue(q, e->namespace, e->name);
    } else if (str_is(e->collection, "devices.eve.lfedge.org") && e->type == KUBE_ADDED &&
               d->is_synced) {
        /* A DeviceConfig may have been there before it, or be a namesake's. */
        enqueue(q, e->namespace, e->name);
    }
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
    k->list[k->n++] = arena_join(k->arena, (struct str[]){d->namespace, STR("/"), d->name}, 3);
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

static int64_t settle(struct delivery *d, struct device *device)
{
    ARENA_AUTO a = arena_new();
    struct controller_set *set = controller_certs_get(d->api->certs);
    struct config_settling s = {.api = d->api, .arena = a, .device = device, .set = set};
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
    const ptrdiff_t slash = str_find(key, '/');
    const struct str namespace = str_sub(key, 0, (size_t) slash);
    const struct str name = str_from(key, (size_t) slash + 1);
    CLEANUP(device_unrefp)
    struct device *device = roster_by_name(d->api->roster, namespace, name);
    return device ? settle(d, device) : wait_for_device(d, namespace, name);
}

const struct controller delivery_controller = {.name = "delivery",
                                               .start = start,
                                               .on_event = on_event,
                                               .reconcile = reconcile,
                                               .stop = stop,
                                               .n_workers = N_WORKERS};
