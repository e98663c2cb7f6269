/* SPDX-License-Identifier: Apache-2.0 */
/* DeviceNetwork.status.devices, counted from events: a Device whose labels change is held against
 * the DeviceNetworks of its namespace, a DeviceNetwork whose selectors change against the Devices.
 * Everything else that is written of either costs a comparison. */
#include "volumes/network_devices.h"

#include <errno.h>
#include <pthread.h>

#include "base/alloc.h"
#include "base/map.h"
#include "controllers/objects.h"
#include "scheduling/selector.h"

/* A network is written at most this often, however many Devices come. */
#define COUNT_DELAY_MS 1000
#define N_WORKERS 2
/* Memory of one count is given back after so many Devices. */
#define DEVICES_AT_ONCE 256

#define DEVICES "devices.eve.lfedge.org"
#define NETWORKS "devicenetworks.eve.lfedge.org"
#define LABELS STR("\"labels\":")

struct device {
    struct str name, labels; /* in text; the text of metadata.labels, "" for none */
    char text[];
};

struct network {
    struct arena *arena; /* of what follows */
    struct str name, selectors;
    struct json *spec;
    size_t n_devices;
    bool is_stale; /* n_devices is to be counted */
};

struct home {
    struct map devices, networks; /* by name */
    char name[];
};

struct tally {
    pthread_mutex_t lock;
    struct map homes; /* by namespace */
};

/* ---- life ------------------------------------------------------------------------------------ */

static void *start(const struct controller_context *ctx, struct controller_queue *q)
{
    (void) ctx;
    (void) q;
    struct tally *t = NEW(struct tally);
    (void) pthread_mutex_init(&t->lock, NULL);
    return t;
}

static void network_free(struct network *n)
{
    arena_free(n->arena);
    mem_free(n);
}

static void home_free(struct home *h)
{
    struct map_entry e;
    for (size_t at = 0; map_next(&h->devices, &at, &e);)
        mem_free(e.value);
    for (size_t at = 0; map_next(&h->networks, &at, &e);)
        network_free(e.value);
    map_done(&h->devices);
    map_done(&h->networks);
    mem_free(h);
}

static void stop(void *state)
{
    struct tally *t = state;
    struct map_entry e;
    for (size_t at = 0; map_next(&t->homes, &at, &e);)
        home_free(e.value);
    map_done(&t->homes);
    (void) pthread_mutex_destroy(&t->lock);
    mem_free(t);
}

/* ---- under the lock -------------------------------------------------------------------------- */

static struct home *home_at(struct tally *t, struct str namespace)
{
    struct home *h = map_get(&t->homes, namespace);
    if (h)
        return h;
    h = mem_zalloc(sizeof(struct home) + namespace.n + 1);
    memcpy(h->name, namespace.p, namespace.n);
    (void) map_put(&t->homes, str_of(h->name), h);
    return h;
}

static void home_drop(struct tally *t, struct home *h)
{
    if (h->devices.n_items || h->networks.n_items)
        return;
    (void) map_remove(&t->homes, str_of(h->name));
    home_free(h);
}

static struct device *device_new(struct str name, struct str labels)
{
    struct device *d = mem_alloc(sizeof(struct device) + name.n + labels.n);
    memcpy(d->text, name.p, name.n);
    if (labels.n)
        memcpy(d->text + name.n, labels.p, labels.n);
    d->name = (struct str){d->text, name.n};
    d->labels = (struct str){d->text + name.n, labels.n};
    return d;
}

static bool has(const struct network *n, const struct device *d, const struct json *labels)
{
    return d && device_selector_matches(n->spec, d->name, labels);
}

static void count(struct home *h, struct network *n)
{
    ARENA_AUTO a = arena_new();
    struct map_entry e;
    size_t n_looked_at = 0;
    n->n_devices = 0;
    n->is_stale = false;
    for (size_t at = 0; map_next(&h->devices, &at, &e);) {
        const struct device *d = e.value;
        n->n_devices += has(n, d, json_parse_quick(a, d->labels));
        if (++n_looked_at % DEVICES_AT_ONCE == 0)
            arena_reset(a);
    }
}

/* ---- events: keys are those of DeviceNetworks ------------------------------------------------ */

/* The text of metadata.labels, which come before anything else of that name; their values have no
 * braces. */
static struct str labels_in(struct str device)
{
    const ptrdiff_t at = str_find_str(device, LABELS);
    const struct str rest = at < 0 ? STR("") : str_from(device, (size_t) at + LABELS.n);
    const ptrdiff_t end = str_find(rest, '}');
    return end < 0 || rest.p[0] != '{' ? STR("") : str_sub(rest, 0, (size_t) end + 1);
}

static void enqueue(struct controller_queue *q, struct str namespace, struct str name,
                    int64_t delay_ms)
{
    ARENA_AUTO a = arena_new();
    const struct str parts[] = {namespace, STR("/"), name};
    controller_enqueue(q, arena_join(a, parts, N_ELEMENTS(parts)), delay_ms);
}

static void compare(struct home *h, const struct device *before, const struct device *now,
                    struct controller_queue *q)
{
    ARENA_AUTO a = arena_new();
    const struct json *labels_before = before ? json_parse_quick(a, before->labels) : NULL,
                      *labels_now = now ? json_parse_quick(a, now->labels) : NULL;
    struct map_entry e;
    for (size_t at = 0; map_next(&h->networks, &at, &e);) {
        struct network *n = e.value;
        if (n->is_stale)
            continue;
        const bool had = has(n, before, labels_before), is = has(n, now, labels_now);
        n->n_devices = n->n_devices + is - had;
        if (is != had)
            enqueue(q, str_of(h->name), n->name, COUNT_DELAY_MS);
    }
}

static void on_device(struct tally *t, const struct kube_event *e, struct controller_queue *q)
{
    const struct str labels = e->type == KUBE_DELETED ? STR_NONE : labels_in(e->text);
    struct home *h = home_at(t, e->namespace);
    struct device *before = map_get(&h->devices, e->name), *now = NULL;
    if (!before || !labels.p || !str_eq(before->labels, labels)) {
        if (before)
            (void) map_remove(&h->devices, before->name);
        if (labels.p) {
            now = device_new(e->name, labels);
            (void) map_put(&h->devices, now->name, now);
        }
        compare(h, before, now, q);
        mem_free(before);
    }
    home_drop(t, h);
}

/* What of the spec says which Devices, as text. */
static struct str selectors_in(struct arena *a, const struct kube_event *e)
{
    static const char *const members[] = {"nodeSelector", "affinity"};
    const struct json *spec = json_get(kube_event_object(e, a), STR("spec"));
    struct json selectors = json_object();
    for (size_t i = 0; i < N_ELEMENTS(members); i++) {
        const struct json *member = json_get(spec, str_of(members[i]));
        if (member)
            (void) json_append_member(a, &selectors, str_of(members[i]), *member);
    }
    return json_text(a, &selectors);
}

static struct network *network_new(struct str name, struct str selectors)
{
    struct network *n = NEW(struct network);
    n->arena = arena_new();
    n->name = arena_str(n->arena, name);
    n->selectors = arena_str(n->arena, selectors);
    n->spec = json_parse_quick(n->arena, n->selectors);
    n->is_stale = true;
    return n;
}

static void on_network(struct tally *t, const struct kube_event *e, struct controller_queue *q)
{
    ARENA_AUTO a = arena_new();
    const struct str selectors = e->type == KUBE_DELETED ? STR_NONE : selectors_in(a, e);
    struct home *h = home_at(t, e->namespace);
    struct network *n = map_get(&h->networks, e->name);
    if (!n || !selectors.p || !str_eq(n->selectors, selectors)) {
        if (n) {
            (void) map_remove(&h->networks, n->name);
            network_free(n);
        }
        if (selectors.p) {
            n = network_new(e->name, selectors);
            (void) map_put(&h->networks, n->name, n);
            enqueue(q, e->namespace, e->name, 0);
        }
    }
    home_drop(t, h);
}

static void on_event(void *state, const struct kube_event *e, struct controller_queue *q)
{
    struct tally *t = state;
    const bool is_device = str_is(e->collection, DEVICES);
    if (!is_device && !str_is(e->collection, NETWORKS))
        return;
    (void) pthread_mutex_lock(&t->lock);
    if (is_device)
        on_device(t, e, q);
    else
        on_network(t, e, q);
    (void) pthread_mutex_unlock(&t->lock);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* False: it is not there any more. */
static bool count_of(struct tally *t, const struct object_place *at, int64_t *ret)
{
    (void) pthread_mutex_lock(&t->lock);
    struct home *h = map_get(&t->homes, at->namespace);
    struct network *n = h ? map_get(&h->networks, at->name) : NULL;
    if (n && n->is_stale)
        count(h, n);
    if (n)
        *ret = (int64_t) n->n_devices;
    (void) pthread_mutex_unlock(&t->lock);
    return n != NULL;
}

static int write_count(const struct controller_context *ctx, struct arena *a,
                       const struct object_place *at, int64_t n)
{
    struct json status = json_object(), body = json_object();
    (void) json_append_member(a, &status, STR("devices"), json_int(n));
    (void) json_append_member(a, &body, STR("status"), status);
    return objects_merge(ctx, a, at, "status", &body);
}

static int64_t reconcile(void *tally, const struct controller_context *ctx, struct str key)
{
    ARENA_AUTO a = arena_new();
    CLEANUP(registry_unrefp) struct registry *kinds = kube_kinds(ctx->client);
    struct object_place at = {.kind = objects_kind(kinds, STR(NETWORKS)), .name = key};
    struct json *object = NULL;
    int64_t n = 0;
    (void) str_split(&at.name, '/', &at.namespace);
    if (!count_of(tally, &at, &n))
        return 0;
    int r = objects_get(ctx, a, &at, &object);
    if (r == 0 && json_get_int(json_get(object, STR("status")), STR("devices"), -1) != n)
        r = write_count(ctx, a, &at, n);
    return r == -ENOENT ? 0 : r;
}

const struct controller network_devices_controller = {.name = "network-devices",
                                                      .start = start,
                                                      .on_event = on_event,
                                                      .reconcile = reconcile,
                                                      .stop = stop,
                                                      .n_workers = N_WORKERS};
