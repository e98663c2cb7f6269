/* SPDX-License-Identifier: Apache-2.0 */
/* Device.status.apps: wanted are the Applications that are to run on the Device (not those with
 * activate: false, which are only to be there, nor those being deleted), running those that the
 * Device reports as RUNNING, wanted or not. Counted from events. */
#include "controllers/device_apps.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>

#include "base/alloc.h"
#include "base/map.h"
#include "controllers/objects.h"

/* Applications that come or start together are counted together, and whoever composes for the
 * Device has most often written the number by then. */
#define COUNT_DELAY_MS 1000
#define N_WORKERS 4

#define APPLICATIONS "applications.eve.lfedge.org"
#define DEVICES "devices.eve.lfedge.org"

/* ---- the counts ------------------------------------------------------------------------------ */

/* There while Applications are on it. */
struct device {
    uint32_t n_applications, n_wanted, n_running;
    char key[];
};

struct application {
    struct device *device;
    bool is_wanted, is_running;
    char key[];
};

struct counts {
    pthread_mutex_t lock;
    struct map applications, devices; /* by "<namespace>/<name>" */
};

static void *start(const struct controller_context *ctx, struct controller_queue *q)
{
    (void) ctx;
    (void) q;
    struct counts *c = NEW(struct counts);
    (void) pthread_mutex_init(&c->lock, NULL);
    return c;
}

static void free_values(struct map *m)
{
    struct map_entry e;
    for (size_t at = 0; map_next(m, &at, &e);)
        mem_free(e.value);
    map_done(m);
}

static void stop(void *state)
{
    struct counts *c = state;
    free_values(&c->applications);
    free_values(&c->devices);
    (void) pthread_mutex_destroy(&c->lock);
    mem_free(c);
}

/* A node with its key behind it, in the map. */
static void *node_new(struct map *m, size_t head_bytes, struct str key)
{
    char *node = mem_zalloc(head_bytes + key.n + 1);
    memcpy(node + head_bytes, key.p, key.n);
    (void) map_put(m, (struct str){node + head_bytes, key.n}, node);
    return node;
}

static void leave(struct counts *c, struct application *app)
{
    struct device *d = app->device;
    d->n_applications--;
    d->n_wanted -= app->is_wanted;
    d->n_running -= app->is_running;
    if (!d->n_applications) {
        (void) map_remove(&c->devices, str_of(d->key));
        mem_free(d);
    }
    (void) map_remove(&c->applications, str_of(app->key));
    mem_free(app);
}

static void join(struct counts *c, struct str key, struct str device,
                 const struct application *like)
{
    struct device *d = map_get(&c->devices, device);
    if (!d)
        d = node_new(&c->devices, offsetof(struct device, key), device);
    struct application *app = node_new(&c->applications, offsetof(struct application, key), key);
    app->device = d;
    app->is_wanted = like->is_wanted;
    app->is_running = like->is_running;
    d->n_applications++;
    d->n_wanted += app->is_wanted;
    d->n_running += app->is_running;
}

/* ---- waking: keys are those of Devices ------------------------------------------------------- */

static struct str key_of(struct arena *a, struct str namespace, struct str name)
{
    const struct str parts[] = {namespace, STR("/"), name};
    return arena_join(a, parts, N_ELEMENTS(parts));
}

/* The Device that the Application is on; STR_NONE: on none. */
static struct str read_application(struct arena *a, const struct kube_event *e,
                                   struct application *ret)
{
    const struct json *object = e->type == KUBE_DELETED ? NULL : kube_event_object(e, a);
    const struct json *status = json_get(object, STR("status"));
    const struct str device = json_get_str(status, STR("device"));
    ret->is_wanted =
        !e->is_deleting && json_get_bool(json_get(object, STR("spec")), STR("activate"), true);
    ret->is_running = str_is(json_get_str(status, STR("state")), "RUNNING");
    return device.n ? key_of(a, e->namespace, device) : STR_NONE;
}

static void on_application(struct counts *c, const struct kube_event *e, struct controller_queue *q)
{
    ARENA_AUTO a = arena_new();
    const struct str key = key_of(a, e->namespace, e->name);
    struct application now = {0};
    struct str before = STR_NONE;
    const struct str device = read_application(a, e, &now);
    (void) pthread_mutex_lock(&c->lock);
    struct application *app = map_get(&c->applications, key);
    const bool is_same = app ? str_is(device, app->device->key) &&
                                   app->is_wanted == now.is_wanted &&
                                   app->is_running == now.is_running
                             : !device.n;
    if (app && !is_same) {
        before = arena_str(a, str_of(app->device->key));
        leave(c, app);
    }
    if (device.n && !is_same)
        join(c, key, device, &now);
    (void) pthread_mutex_unlock(&c->lock);
    if (before.n && !str_eq(before, device))
        controller_enqueue(q, before, COUNT_DELAY_MS);
    if (device.n && !is_same)
        controller_enqueue(q, device, COUNT_DELAY_MS);
}

/* As it says from the first; told from its text, because there are many. */
static bool says_none(struct str device)
{
    const ptrdiff_t at = str_find_str(device, STR("\"apps\":{"));
    struct str apps = at < 0 ? STR("") : str_from(device, (size_t) at);
    const ptrdiff_t end = str_find(apps, '}');
    apps = end < 0 ? STR("") : str_sub(apps, 0, (size_t) end);
    return str_find_str(apps, STR("\"wanted\":0")) >= 0 &&
           str_find_str(apps, STR("\"running\":0")) >= 0;
}

static void on_device(struct counts *c, const struct kube_event *e, struct controller_queue *q)
{
    if (e->type != KUBE_ADDED)
        return;
    ARENA_AUTO a = arena_new();
    const struct str key = key_of(a, e->namespace, e->name);
    (void) pthread_mutex_lock(&c->lock);
    const bool has_applications = map_get(&c->devices, key) != NULL;
    (void) pthread_mutex_unlock(&c->lock);
    if (has_applications || !says_none(e->text))
        controller_enqueue(q, key, COUNT_DELAY_MS);
}

static void on_event(void *counts, const struct kube_event *e, struct controller_queue *q)
{
    if (str_is(e->collection, APPLICATIONS))
        on_application(counts, e, q);
    else if (str_is(e->collection, DEVICES))
        on_device(counts, e, q);
}

/* ---- writing --------------------------------------------------------------------------------- */

static int write_counts(const struct controller_context *ctx, struct arena *a,
                        const struct object_place *at, const struct device *d)
{
    struct json apps = json_object(), status = json_object(), body = json_object();
    (void) json_append_member(a, &apps, STR("wanted"), json_int(d->n_wanted));
    (void) json_append_member(a, &apps, STR("running"), json_int(d->n_running));
    (void) json_append_member(a, &status, STR("apps"), apps);
    (void) json_append_member(a, &body, STR("status"), status);
    return objects_merge(ctx, a, at, "status", &body);
}

static int64_t reconcile(void *state, const struct controller_context *ctx, struct str key)
{
    ARENA_AUTO a = arena_new();
    CLEANUP(registry_unrefp) struct registry *kinds = kube_kinds(ctx->client);
    struct counts *c = state;
    struct object_place at = {.kind = objects_kind(kinds, STR(DEVICES)), .name = key};
    struct json *object = NULL;
    (void) str_split(&at.name, '/', &at.namespace);
    int r = objects_get(ctx, a, &at, &object);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    (void) pthread_mutex_lock(&c->lock);
    const struct device *known = map_get(&c->devices, key), none = {0};
    const struct device d = known ? *known : none;
    (void) pthread_mutex_unlock(&c->lock);
    const struct json *apps = json_at(object, "status", "apps", NULL);
    if (json_get_int(apps, STR("wanted"), -1) == d.n_wanted &&
        json_get_int(apps, STR("running"), -1) == d.n_running)
        return 0;
    r = write_counts(ctx, a, &at, &d);
    return r == -ENOENT ? 0 : r;
}

const struct controller device_apps_controller = {.name = "device-apps",
                                                  .start = start,
                                                  .on_event = on_event,
                                                  .reconcile = reconcile,
                                                  .stop = stop,
                                                  .n_workers = N_WORKERS};
