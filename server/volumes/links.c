/* SPDX-License-Identifier: Apache-2.0 */
#include "volumes/links.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "volumes/volumes_internal.h"

/*   application ──< use >── claim ──< volume >── device ──< application
 *
 * A claim and a device are there while the object is, or somebody is linked to them. */
struct device_node {
    char *key;
    bool is_there;
    struct list volumes, applications;
};

struct claim_node {
    char *key, *class;
    char *owner_uid; /* of its controller, "" for none */
    bool is_there, is_bound;
    struct list uses, volumes;
};

struct app_node {
    char *key, *uid;
    struct device_node *device; /* NULL: none yet */
    bool is_deleting;
    struct list uses;
    struct list of_device;
};

struct use {
    struct app_node *app;
    struct claim_node *claim;
    bool is_own; /* made for the Application, from a template */
    struct list of_app, of_claim;
};

struct volume_node {
    char *key, *uid, *application;
    struct claim_node *claim;
    struct device_node *device;
    bool is_stranded;
    struct list of_claim, of_device;
};

struct links {
    pthread_mutex_t lock;
    struct map apps, claims, volumes, devices;
};

static char *copy(struct str s)
{
    struct buf b = {0};
    buf_append_str(&b, s);
    return buf_take(&b);
}

static struct str name_of(const char *key)
{
    const struct str s = str_of(key);
    return str_from(s, (size_t) (str_find(s, '/') + 1));
}

/* ---- nodes that come and go with what is linked to them ------------------------------------- */

static struct claim_node *claim_at(struct links *l, struct str key)
{
    struct claim_node *c = map_get(&l->claims, key);
    if (c)
        return c;
    c = NEW(struct claim_node);
    c->key = copy(key);
    c->class = copy(STR(""));
    c->owner_uid = copy(STR(""));
    list_init(&c->uses);
    list_init(&c->volumes);
    (void) map_put(&l->claims, str_of(c->key), c);
    return c;
}

static void claim_free(struct claim_node *c)
{
    mem_free(c->key);
    mem_free(c->class);
    mem_free(c->owner_uid);
    mem_free(c);
}

static void claim_drop(struct links *l, struct claim_node *c)
{
    if (c->is_there || !list_is_empty(&c->uses) || !list_is_empty(&c->volumes))
        return;
    (void) map_remove(&l->claims, str_of(c->key));
    claim_free(c);
}

static struct device_node *device_at(struct links *l, struct str key)
{
    struct device_node *d = map_get(&l->devices, key);
    if (d)
        return d;
    d = NEW(struct device_node);
    d->key = copy(key);
    list_init(&d->volumes);
    list_init(&d->applications);
    (void) map_put(&l->devices, str_of(d->key), d);
    return d;
}

static void device_free(struct device_node *d)
{
    mem_free(d->key);
    mem_free(d);
}

static void device_drop(struct links *l, struct device_node *d)
{
    if (!d || d->is_there || !list_is_empty(&d->volumes) || !list_is_empty(&d->applications))
        return;
    (void) map_remove(&l->devices, str_of(d->key));
    device_free(d);
}

static void app_free(struct app_node *app)
{
    LIST_FOR_EACH (&app->uses, item)
        mem_free(CONTAINER_OF(item, struct use, of_app));
    mem_free(app->key);
    mem_free(app->uid);
    mem_free(app);
}

static void app_drop(struct links *l, struct app_node *app)
{
    LIST_FOR_EACH (&app->uses, item) {
        struct use *u = CONTAINER_OF(item, struct use, of_app);
        list_remove(&u->of_claim);
        claim_drop(l, u->claim);
    }
    list_remove(&app->of_device);
    device_drop(l, app->device);
    (void) map_remove(&l->apps, str_of(app->key));
    app_free(app);
}

static void volume_free(struct volume_node *v)
{
    mem_free(v->key);
    mem_free(v->uid);
    mem_free(v->application);
    mem_free(v);
}

static void volume_drop(struct links *l, struct volume_node *v)
{
    list_remove(&v->of_claim);
    list_remove(&v->of_device);
    claim_drop(l, v->claim);
    device_drop(l, v->device);
    (void) map_remove(&l->volumes, str_of(v->key));
    volume_free(v);
}

struct links *links_new(void)
{
    struct links *l = NEW(struct links);
    (void) pthread_mutex_init(&l->lock, NULL);
    return l;
}

void links_free(struct links *l)
{
    struct map_entry e;
    if (!l)
        return;
    for (size_t at = 0; map_next(&l->apps, &at, &e);)
        app_free(e.value);
    for (size_t at = 0; map_next(&l->volumes, &at, &e);)
        volume_free(e.value);
    for (size_t at = 0; map_next(&l->claims, &at, &e);)
        claim_free(e.value);
    for (size_t at = 0; map_next(&l->devices, &at, &e);)
        device_free(e.value);
    map_done(&l->apps);
    map_done(&l->volumes);
    map_done(&l->claims);
    map_done(&l->devices);
    (void) pthread_mutex_destroy(&l->lock);
    mem_free(l);
}

/* ---- Applications --------------------------------------------------------------------------- */

static void touch_claims_of(const struct app_node *app, const struct links_touch *touch)
{
    LIST_FOR_EACH (&app->uses, item)
        touch->claim(touch->ctx, str_of(CONTAINER_OF(item, struct use, of_app)->claim->key));
}

static bool has_own(const struct app_node *app)
{
    LIST_FOR_EACH (&app->uses, item)
        if (CONTAINER_OF(item, struct use, of_app)->is_own)
            return true;
    return false;
}

static void use_add(struct links *l, struct app_node *app, struct str claim, bool is_own)
{
    struct use *u = NEW(struct use);
    *u = (struct use){.app = app, .claim = claim_at(l, claim), .is_own = is_own};
    list_append(&app->uses, &u->of_app);
    list_append(&u->claim->uses, &u->of_claim);
}

static struct app_node *app_add(struct links *l, struct arena *a, const struct kube_event *e,
                                const struct json *object, struct str key)
{
    struct app_node *app = NEW(struct app_node);
    const struct str device = json_str(json_at(object, "status", "device", NULL));
    *app = (struct app_node){.key = copy(key), .uid = copy(e->uid), .is_deleting = e->is_deleting};
    list_init(&app->uses);
    list_init(&app->of_device);
    JSON_FOR_EACH_ITEM (json_at(object, "spec", "volumes", NULL), volume) {
        struct str claim = json_str(json_at(volume, "persistentVolumeClaim", "claimName", NULL));
        const bool is_own = !claim.n && json_is(json_get(volume, STR("ephemeral")), JSON_OBJECT);
        if (is_own)
            claim = volumes_own_claim(a, e->name, json_get_str(volume, STR("name")));
        if (claim.n)
            use_add(l, app, volumes_key(a, e->namespace, claim), is_own);
    }
    if (device.n) {
        app->device = device_at(l, volumes_key(a, e->namespace, device));
        list_append(&app->device->applications, &app->of_device);
    }
    (void) map_put(&l->apps, str_of(app->key), app);
    return app;
}

/* What of an Application matters here, as text. */
static struct str app_summary(struct arena *a, const struct app_node *app)
{
    BUF_AUTO b = {0};
    if (!app)
        return STR("");
    buf_printf(&b, "%s %d %s", app->uid, app->is_deleting, app->device ? app->device->key : "");
    LIST_FOR_EACH (&app->uses, item) {
        const struct use *u = CONTAINER_OF(item, struct use, of_app);
        buf_printf(&b, " %d%s", u->is_own, u->claim->key);
    }
    return arena_str(a, buf_str(&b));
}

/* Keys of its claims, which outlive it. */
static size_t claims_of(struct arena *a, const struct app_node *app, struct str **ret_keys)
{
    size_t n = 0;
    *ret_keys = NULL;
    if (!app)
        return 0;
    LIST_FOR_EACH (&app->uses, item) {
        *ret_keys = arena_grow(a, *ret_keys, n, sizeof(struct str));
        (*ret_keys)[n++] = arena_str(a, str_of(CONTAINER_OF(item, struct use, of_app)->claim->key));
    }
    return n;
}

static void on_application(struct links *l, struct arena *a, const struct kube_event *e,
                           const struct links_touch *touch)
{
    const struct str key = volumes_key(a, e->namespace, e->name);
    struct app_node *app = map_get(&l->apps, key);
    const bool has_volumes =
        e->type != KUBE_DELETED && str_find_str(e->text, STR("\"volumes\":[{")) >= 0;
    const struct str before = app_summary(a, app);
    struct str *claims_before;
    const size_t n_before = claims_of(a, app, &claims_before);
    if (app)
        app_drop(l, app);
    app = has_volumes ? app_add(l, a, e, kube_event_object(e, a), key) : NULL;
    if (str_eq(before, app_summary(a, app)))
        return;
    for (size_t i = 0; i < n_before; i++)
        touch->claim(touch->ctx, claims_before[i]);
    if (!app)
        return;
    touch_claims_of(app, touch);
    if (has_own(app))
        touch->application(touch->ctx, key);
}

/* ---- claims ---------------------------------------------------------------------------------- */

static void touch_own_users(const struct claim_node *c, const struct links_touch *touch)
{
    LIST_FOR_EACH (&c->uses, item) {
        const struct use *u = CONTAINER_OF(item, struct use, of_claim);
        if (u->is_own)
            touch->application(touch->ctx, str_of(u->app->key));
    }
}

static void set_text(char **text, struct str value)
{
    if (str_is(value, *text))
        return;
    mem_free(*text);
    *text = copy(value);
}

static void on_claim(struct links *l, struct arena *a, const struct kube_event *e,
                     const struct links_touch *touch)
{
    const struct str key = volumes_key(a, e->namespace, e->name);
    struct claim_node *c = claim_at(l, key);
    const bool was_there = c->is_there;
    const struct json *object = e->type == KUBE_DELETED ? NULL : kube_event_object(e, a);
    const struct str owner = volumes_controller_uid(object);
    const bool is_same_owner = str_is(owner, c->owner_uid);
    c->is_there = object != NULL;
    c->is_bound = str_is(json_str(json_at(object, "status", "phase", NULL)), "Bound");
    set_text(&c->class, json_str(json_at(object, "spec", "storageClassName", NULL)));
    set_text(&c->owner_uid, owner);
    touch->claim(touch->ctx, key);
    if (was_there != c->is_there || !is_same_owner)
        touch_own_users(c, touch);
    claim_drop(l, c);
}

/* Claims may be there before their class. */
static void on_class(struct links *l, struct arena *a, const struct kube_event *e,
                     const struct links_touch *touch)
{
    (void) a;
    struct map_entry entry;
    if (e->type != KUBE_ADDED)
        return;
    for (size_t at = 0; map_next(&l->claims, &at, &entry);) {
        const struct claim_node *c = entry.value;
        if (c->is_there && !c->is_bound && str_is(e->name, c->class))
            touch->claim(touch->ctx, str_of(c->key));
    }
}

/* ---- Volumes and Devices --------------------------------------------------------------------- */

static struct volume_node *volume_add(struct links *l, struct arena *a, const struct kube_event *e,
                                      const struct json *spec, struct str key)
{
    struct volume_node *v = NEW(struct volume_node);
    *v = (struct volume_node){
        .key = copy(key),
        .uid = copy(e->uid),
        .application = copy(json_get_str(spec, STR("application"))),
        .claim = claim_at(l, volumes_key(a, e->namespace, json_get_str(spec, STR("claim")))),
        .device = device_at(l, volumes_key(a, e->namespace, json_get_str(spec, STR("device"))))};
    list_append(&v->claim->volumes, &v->of_claim);
    list_append(&v->device->volumes, &v->of_device);
    (void) map_put(&l->volumes, str_of(v->key), v);
    return v;
}

static struct str volume_summary(struct arena *a, const struct volume_node *v)
{
    return v ? arena_printf(a, "%s %s %s %s", v->uid, v->claim->key, v->device->key, v->application)
             : STR("");
}

static void on_volume(struct links *l, struct arena *a, const struct kube_event *e,
                      const struct links_touch *touch)
{
    const struct str key = volumes_key(a, e->namespace, e->name);
    struct volume_node *v = map_get(&l->volumes, key);
    const struct str before = volume_summary(a, v);
    const struct str claim_before = v ? arena_str(a, str_of(v->claim->key)) : STR_NONE;
    const bool was_stranded = v && v->is_stranded && str_is(e->uid, v->uid);
    if (v)
        volume_drop(l, v);
    if (e->type != KUBE_DELETED) {
        v = volume_add(l, a, e, json_get(kube_event_object(e, a), STR("spec")), key);
        v->is_stranded = was_stranded;
        if (str_eq(before, volume_summary(a, v)))
            return;
        touch->claim(touch->ctx, str_of(v->claim->key));
    }
    if (claim_before.n)
        touch->claim(touch->ctx, claim_before);
}

static void on_device(struct links *l, struct arena *a, const struct kube_event *e,
                      const struct links_touch *touch)
{
    const bool is_there = e->type != KUBE_DELETED;
    struct device_node *d = device_at(l, volumes_key(a, e->namespace, e->name));
    if (d->is_there != is_there) {
        d->is_there = is_there;
        LIST_FOR_EACH (&d->volumes, item) {
            struct volume_node *v = CONTAINER_OF(item, struct volume_node, of_device);
            v->is_stranded |= !is_there;
            touch->claim(touch->ctx, str_of(v->claim->key));
        }
        LIST_FOR_EACH (&d->applications, item)
            touch_claims_of(CONTAINER_OF(item, struct app_node, of_device), touch);
    }
    device_drop(l, d);
}

void links_event(struct links *l, const struct kube_event *e, const struct links_touch *touch)
{
    static const struct {
        const char *collection;
        void (*fn)(struct links *l, struct arena *a, const struct kube_event *e,
                   const struct links_touch *touch);
    } handlers[] = {
        {"applications.eve.lfedge.org", on_application}, {"devices.eve.lfedge.org", on_device},
        {"volumes.eve.lfedge.org", on_volume},           {"persistentvolumeclaims", on_claim},
        {"storageclasses.storage.k8s.io", on_class},
    };
    for (size_t i = 0; i < N_ELEMENTS(handlers); i++) {
        if (!str_is(e->collection, handlers[i].collection))
            continue;
        ARENA_AUTO a = arena_new();
        (void) pthread_mutex_lock(&l->lock);
        handlers[i].fn(l, a, e, touch);
        (void) pthread_mutex_unlock(&l->lock);
    }
}

/* ---- looking -------------------------------------------------------------------------------- */

static int compare_users(const void *x, const void *y)
{
    return str_cmp(((const struct link_user *) x)->name, ((const struct link_user *) y)->name);
}

static int compare_volumes(const void *x, const void *y)
{
    return str_cmp(((const struct link_volume *) x)->name, ((const struct link_volume *) y)->name);
}

static struct str copy_name(struct arena *a, const char *key)
{
    return arena_str(a, name_of(key));
}

static void take_users(struct arena *a, const struct claim_node *c, struct link_claim *ret)
{
    LIST_FOR_EACH (&c->uses, item) {
        const struct use *u = CONTAINER_OF(item, struct use, of_claim);
        const struct device_node *d = u->app->device;
        if (u->is_own && !str_is(str_of(c->owner_uid), u->app->uid))
            continue;
        ret->users = arena_grow(a, ret->users, ret->n_users, sizeof(struct link_user));
        ret->users[ret->n_users++] =
            (struct link_user){.name = copy_name(a, u->app->key),
                               .device = d && d->is_there ? copy_name(a, d->key) : STR(""),
                               .is_deleting = u->app->is_deleting};
    }
    if (ret->n_users)
        qsort(ret->users, ret->n_users, sizeof(struct link_user), compare_users);
}

static void take_volumes(struct arena *a, const struct claim_node *c, struct link_claim *ret)
{
    LIST_FOR_EACH (&c->volumes, item) {
        const struct volume_node *v = CONTAINER_OF(item, struct volume_node, of_claim);
        ret->volumes = arena_grow(a, ret->volumes, ret->n_volumes, sizeof(struct link_volume));
        ret->volumes[ret->n_volumes++] =
            (struct link_volume){.name = copy_name(a, v->key),
                                 .uid = arena_str(a, str_of(v->uid)),
                                 .device = copy_name(a, v->device->key),
                                 .application = arena_str(a, str_of(v->application)),
                                 .is_stranded = v->is_stranded || !v->device->is_there};
    }
    if (ret->n_volumes)
        qsort(ret->volumes, ret->n_volumes, sizeof(struct link_volume), compare_volumes);
}

struct link_claim links_claim(struct links *l, struct arena *a, struct str key)
{
    struct link_claim ret = {0};
    (void) pthread_mutex_lock(&l->lock);
    const struct claim_node *c = map_get(&l->claims, key);
    if (c) {
        take_users(a, c, &ret);
        take_volumes(a, c, &ret);
    }
    (void) pthread_mutex_unlock(&l->lock);
    return ret;
}
