/* SPDX-License-Identifier: Apache-2.0 */
#include "reports/catalog.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "reports/derive.h"
#include "settings/settings.h"
#include "json/json.h"

#define INTERVAL_OPTION SETTINGS_ITEM_PREFIX "timer.config.interval"
#define UUID_KEY_BYTES 17

struct entry {
    struct str key; /* "<kind>/<namespace>/<name>"; owned, as are the others */
    char uuid_key[UUID_KEY_BYTES];
    bool has_uuid;
    struct str namespace, name; /* within key */
    struct str uid, device;
    bool is_deleting, has_state, is_running, is_wanted;
    bool is_delivered; /* of an Application */
    enum catalog_ready ready;
    int64_t heartbeat_us, interval_s;
    struct list link; /* of an Application in its home */
};

/* A device as the applications name it; it may not exist. */
struct home {
    struct str key; /* owned */
    struct list applications;
    size_t n_running, n_wanted, n_undelivered;
    bool is_changed;
    struct list link; /* in changed */
};

static const struct {
    const char *collection, *resource;
} kinds[CATALOG_KINDS] = {
    [CATALOG_DEVICE] = {"devices.eve.lfedge.org", "devices"},
    [CATALOG_APPLICATION] = {"applications.eve.lfedge.org", "applications"},
    [CATALOG_VOLUME] = {"volumes.eve.lfedge.org", "volumes"},
    [CATALOG_IMAGE] = {"images.eve.lfedge.org", "images"},
    [CATALOG_NETWORK] = {"devicenetworks.eve.lfedge.org", "devicenetworks"},
};

struct str catalog_resource(enum catalog_kind kind)
{
    return str_of(kinds[kind].resource);
}

/* ---- life ---------------------------------------------------------------------------------- */

static struct str keep(struct str s)
{
    return str_range(mem_dup(s.p ? s.p : "", s.n), s.n);
}

static void drop(struct str s)
{
    mem_free((char *) s.p);
}

static void free_entry(struct entry *e)
{
    drop(e->key);
    drop(e->uid);
    drop(e->device);
    mem_free(e);
}

void catalog_init(struct catalog *c)
{
    *c = (struct catalog){0};
    (void) pthread_mutex_init(&c->lock, NULL);
    list_init(&c->changed);
}

void catalog_done(struct catalog *c)
{
    struct map_entry e;
    for (size_t at = 0; map_next(&c->by_name, &at, &e);)
        free_entry(e.value);
    for (size_t at = 0; map_next(&c->homes, &at, &e);) {
        drop(((struct home *) e.value)->key);
        mem_free(e.value);
    }
    for (size_t at = 0; map_next(&c->intervals, &at, &e);) {
        drop(e.key);
        mem_free(e.value);
    }
    map_done(&c->by_name);
    map_done(&c->by_uuid);
    map_done(&c->homes);
    map_done(&c->intervals);
    (void) pthread_mutex_destroy(&c->lock);
}

/* ---- homes --------------------------------------------------------------------------------- */

static struct str home_key(struct arena *a, struct str namespace, struct str device)
{
    return arena_join(a, (struct str[]){namespace, STR("/"), device}, 3);
}

static struct home *home_of(struct catalog *c, struct arena *a, struct str namespace,
                            struct str device)
{
    struct str key = home_key(a, namespace, device);
    struct home *h = map_get(&c->homes, key);
    if (h)
        return h;
    h = NEW(struct home);
    h->key = keep(key);
    list_init(&h->applications);
    list_init(&h->link);
    (void) map_put(&c->homes, h->key, h);
    return h;
}

static void mark(struct catalog *c, struct home *h)
{
    if (h->is_changed)
        return;
    h->is_changed = true;
    list_append(&c->changed, &h->link);
}

static void leave_home(struct catalog *c, struct arena *a, struct entry *e)
{
    if (list_is_empty(&e->link))
        return;
    struct home *h = home_of(c, a, e->namespace, e->device);
    list_remove(&e->link);
    h->n_running -= e->is_running;
    h->n_wanted -= e->is_wanted;
    h->n_undelivered -= !e->is_delivered;
    mark(c, h);
}

static void enter_home(struct catalog *c, struct arena *a, struct entry *e)
{
    if (!e->device.n)
        return;
    struct home *h = home_of(c, a, e->namespace, e->device);
    list_append(&h->applications, &e->link);
    h->n_running += e->is_running;
    h->n_wanted += e->is_wanted;
    h->n_undelivered += !e->is_delivered;
    mark(c, h);
}

/* ---- events -------------------------------------------------------------------------------- */

static int64_t interval_in(const struct settings_sources *s)
{
    int64_t n = 0;
    struct str text = settings_find(s, STR(INTERVAL_OPTION));
    return text.n && str_to_i64(text, &n) == 0 && n > 0 ? n : 0;
}

static void read_device(struct entry *e, const struct json *object)
{
    const struct json *ready = derive_find_condition(json_get(object, STR("status")), "Ready");
    struct str status = json_get_str(ready, STR("status"));
    struct settings_sources own = {.annotations = json_at(object, "metadata", "annotations", NULL)};
    e->ready = !status.n                   ? CATALOG_READY_NONE
               : str_is(status, "Unknown") ? CATALOG_READY_UNKNOWN
                                           : CATALOG_READY_KNOWN;
    e->heartbeat_us = 0;
    if (clock_parse(json_get_str(ready, STR("lastHeartbeatTime")), &e->heartbeat_us) < 0)
        e->heartbeat_us = 0;
    e->interval_s = interval_in(&own);
}

/* As it is now. */
static bool is_delivered(const struct json *object)
{
    const struct json *c = derive_find_condition(json_get(object, STR("status")), "Delivered");
    return str_is(json_get_str(c, STR("status")), "True") &&
           json_get_int(c, STR("observedGeneration"), 1) ==
               json_get_int(json_get(object, STR("metadata")), STR("generation"), 1);
}

static void read_application(struct entry *e, const struct json *object)
{
    struct str state = json_str(json_at(object, "status", "state", NULL));
    e->has_state = state.n && !str_is(state, "INVALID");
    e->is_running = str_is(state, "RUNNING");
    e->is_delivered = is_delivered(object);
    e->is_wanted =
        !e->is_deleting && json_get_bool(json_get(object, STR("spec")), STR("activate"), true);
}

static struct str owner_in(enum catalog_kind kind, const struct json *object)
{
    if (kind == CATALOG_APPLICATION)
        return json_str(json_at(object, "status", "device", NULL));
    if (kind == CATALOG_VOLUME)
        return json_str(json_at(object, "spec", "device", NULL));
    return STR_NONE;
}

static void unlink_uuid(struct catalog *c, struct entry *e)
{
    struct str key = str_range(e->uuid_key, UUID_KEY_BYTES);
    if (e->has_uuid && map_get(&c->by_uuid, key) == e)
        (void) map_remove(&c->by_uuid, key);
    e->has_uuid = false;
}

static void link_uuid(struct catalog *c, enum catalog_kind kind, struct entry *e,
                      const struct json *object)
{
    struct uuid uuid;
    unlink_uuid(c, e);
    if (uuid_parse(json_str(json_at(object, "status", "uuid", NULL)), &uuid) < 0)
        return;
    e->uuid_key[0] = (char) kind;
    memcpy(e->uuid_key + 1, uuid.bytes, sizeof(uuid.bytes));
    e->has_uuid = true;
    (void) map_put(&c->by_uuid, str_range(e->uuid_key, UUID_KEY_BYTES), e);
}

static struct entry *entry_new(struct catalog *c, struct str key, const struct kube_event *event)
{
    struct entry *e = NEW(struct entry);
    e->key = keep(key);
    e->name = str_from(e->key, key.n - event->name.n);
    e->namespace = str_sub(e->key, 2, key.n - event->name.n - 1);
    list_init(&e->link);
    (void) map_put(&c->by_name, e->key, e);
    return e;
}

static void take_object(struct catalog *c, struct arena *a, enum catalog_kind kind, struct entry *e,
                        const struct kube_event *event)
{
    const struct json *object = kube_event_object(event, a);
    leave_home(c, a, e);
    drop(e->uid);
    drop(e->device);
    e->uid = keep(event->uid);
    e->device = keep(owner_in(kind, object));
    e->is_deleting = event->is_deleting;
    link_uuid(c, kind, e, object);
    if (kind == CATALOG_DEVICE) {
        read_device(e, object);
    } else if (kind == CATALOG_APPLICATION) {
        read_application(e, object);
        enter_home(c, a, e);
    }
}

static void forget_object(struct catalog *c, struct arena *a, struct entry *e)
{
    leave_home(c, a, e);
    unlink_uuid(c, e);
    (void) map_remove(&c->by_name, e->key);
    free_entry(e);
}

/* "0/namespace/name" */
static struct str name_key(struct arena *a, enum catalog_kind kind, struct str namespace,
                           struct str name)
{
    char digit[2] = {(char) ('0' + kind), '/'};
    return arena_join(a, (struct str[]){str_range(digit, 2), namespace, STR("/"), name}, 4);
}

static void take_options(struct catalog *c, struct arena *a, const struct kube_event *event)
{
    const struct json *object = event->type == KUBE_DELETED ? NULL : kube_event_object(event, a);
    struct settings_sources s = {.namespace = json_get(object, STR("data"))};
    bool is_global = str_is(event->name, SETTINGS_GLOBAL_NAME);
    struct str namespace = is_global ? STR("") : event->namespace;
    int64_t *there = map_get(&c->intervals, namespace);
    if (!there) {
        there = NEW(int64_t);
        (void) map_put(&c->intervals, keep(namespace), there);
    }
    *there = interval_in(&s);
}

static bool take_event(struct catalog *c, struct arena *a, enum catalog_kind kind,
                       const struct kube_event *event)
{
    struct str key = name_key(a, kind, event->namespace, event->name);
    struct entry *e = map_get(&c->by_name, key);
    if (event->type == KUBE_DELETED) {
        if (e)
            forget_object(c, a, e);
    } else {
        take_object(c, a, kind, e ? e : entry_new(c, key, event), event);
    }
    return kind == CATALOG_DEVICE || !list_is_empty(&c->changed);
}

/* Another configuration, or another word about where it comes from: what waits to be delivered may
 * be. */
static bool on_config(struct catalog *c, const struct kube_event *event)
{
    ARENA_AUTO a = arena_new();
    (void) pthread_mutex_lock(&c->lock);
    struct home *h = map_get(&c->homes, home_key(a, event->namespace, event->name));
    const bool is_news = h && h->n_undelivered;
    if (is_news)
        mark(c, h);
    (void) pthread_mutex_unlock(&c->lock);
    return is_news;
}

bool catalog_on_event(struct catalog *c, const struct kube_event *event)
{
    if (str_is(event->collection, "deviceconfigs.eve.lfedge.org"))
        return on_config(c, event);
    bool is_options = str_is(event->collection, "configmaps") &&
                      settings_is_options(event->namespace, event->name);
    unsigned kind = 0;
    while (kind < CATALOG_KINDS && !str_is(event->collection, kinds[kind].collection))
        kind++;
    if (!is_options && kind == CATALOG_KINDS)
        return false;
    ARENA_AUTO a = arena_new();
    bool is_news = false;
    (void) pthread_mutex_lock(&c->lock);
    if (is_options)
        take_options(c, a, event);
    else
        is_news = take_event(c, a, (enum catalog_kind) kind, event);
    (void) pthread_mutex_unlock(&c->lock);
    return is_news;
}

/* ---- questions ----------------------------------------------------------------------------- */

static const struct entry *find(struct catalog *c, enum catalog_kind kind, const struct uuid *uuid)
{
    char key[UUID_KEY_BYTES] = {(char) kind};
    memcpy(key + 1, uuid->bytes, sizeof(uuid->bytes));
    return map_get(&c->by_uuid, str_range(key, sizeof(key)));
}

static int64_t interval_of(struct catalog *c, const struct entry *e)
{
    const int64_t *near = map_get(&c->intervals, e->namespace);
    const int64_t *global = map_get(&c->intervals, STR(""));
    if (e->interval_s)
        return e->interval_s;
    if (near && *near)
        return *near;
    return global && *global ? *global : settings_poll_interval_s(&(struct settings_sources){0});
}

static void view(struct catalog *c, struct arena *a, const struct entry *e,
                 struct catalog_view *ret)
{
    *ret = (struct catalog_view){.kind = (enum catalog_kind) e->uuid_key[0],
                                 .namespace = arena_str(a, e->namespace),
                                 .name = arena_str(a, e->name),
                                 .uid = arena_str(a, e->uid),
                                 .device = arena_str(a, e->device),
                                 .is_deleting = e->is_deleting,
                                 .has_state = e->has_state,
                                 .is_delivered = e->is_delivered,
                                 .ready = e->ready,
                                 .heartbeat_us = e->heartbeat_us};
    memcpy(ret->uuid.bytes, e->uuid_key + 1, sizeof(ret->uuid.bytes));
    if (ret->kind != CATALOG_DEVICE)
        return;
    const struct home *h = map_get(&c->homes, home_key(a, e->namespace, e->name));
    ret->poll_interval_s = interval_of(c, e);
    ret->n_running = h ? h->n_running : 0;
    ret->n_wanted = h ? h->n_wanted : 0;
    ret->n_undelivered = h ? h->n_undelivered : 0;
}

bool catalog_find(struct catalog *c, struct arena *a, enum catalog_kind kind,
                  const struct uuid *uuid, struct catalog_view *ret)
{
    (void) pthread_mutex_lock(&c->lock);
    const struct entry *e = find(c, kind, uuid);
    if (e)
        view(c, a, e, ret);
    (void) pthread_mutex_unlock(&c->lock);
    return e != NULL;
}

bool catalog_has(struct catalog *c, enum catalog_kind kind, const struct uuid *uuid)
{
    (void) pthread_mutex_lock(&c->lock);
    bool has = find(c, kind, uuid) != NULL;
    (void) pthread_mutex_unlock(&c->lock);
    return has;
}

size_t catalog_applications(struct catalog *c, struct arena *a, const struct catalog_view *device,
                            size_t max, struct catalog_view **ret)
{
    size_t n = 0;
    struct catalog_view *list = NULL;
    (void) pthread_mutex_lock(&c->lock);
    struct home *h = map_get(&c->homes, home_key(a, device->namespace, device->name));
    if (h) {
        LIST_FOR_EACH (&h->applications, link) {
            const struct entry *e = CONTAINER_OF(link, struct entry, link);
            if (!e->has_uuid || n == max)
                continue;
            list = arena_grow(a, list, n, sizeof(*list));
            view(c, a, e, &list[n++]);
        }
    }
    (void) pthread_mutex_unlock(&c->lock);
    *ret = list;
    return n;
}

/* With the lock. A home that nobody has any more goes. */
static bool settle(struct catalog *c, struct arena *a, struct home *h, struct uuid *ret_device)
{
    ptrdiff_t slash = str_find(h->key, '/');
    const struct entry *e =
        map_get(&c->by_name, name_key(a, CATALOG_DEVICE, str_sub(h->key, 0, (size_t) slash),
                                      str_from(h->key, (size_t) slash + 1)));
    bool has = e && e->has_uuid;
    if (has)
        memcpy(ret_device->bytes, e->uuid_key + 1, sizeof(ret_device->bytes));
    h->is_changed = false;
    if (list_is_empty(&h->applications)) {
        (void) map_remove(&c->homes, h->key);
        drop(h->key);
        mem_free(h);
    }
    return has;
}

bool catalog_take_changed(struct catalog *c, struct uuid *ret_device)
{
    ARENA_AUTO a = arena_new();
    bool has = false;
    (void) pthread_mutex_lock(&c->lock);
    for (struct list *l = NULL; !has && (l = list_pop_first(&c->changed)) != NULL;)
        has = settle(c, a, CONTAINER_OF(l, struct home, link), ret_device);
    (void) pthread_mutex_unlock(&c->lock);
    return has;
}
