/* SPDX-License-Identifier: Apache-2.0 */
/* The index: devices with what is on them, networks with what they select, and of every other
 * object that may reach a device whether it is still what it was. */
#include "base/alloc.h"
#include "fleet/fleet_internal.h"
#include "settings/settings.h"

#define STATE_SUFFIX STR(".eve-device")

static const struct {
    const char *collection;
    enum fleet_role role;
} roles[] = {
    {FLEET_DEVICES, ROLE_DEVICE},
    {FLEET_CONFIGS, ROLE_CONFIG},
    {FLEET_APPLICATIONS, ROLE_MEMBER},
    {FLEET_VOLUMES, ROLE_MEMBER},
    {FLEET_NETWORKS, ROLE_NETWORK},
    {FLEET_IMAGES, ROLE_PART},
    {"networkconfigs.eve.lfedge.org", ROLE_PART},
    {"persistentvolumeclaims", ROLE_PART},
    {"storageclasses.storage.k8s.io", ROLE_PART},
    {"secrets", ROLE_PART},
    {"configmaps", ROLE_PART},
};

enum fleet_role fleet_role(struct str collection)
{
    for (size_t i = 0; i < N_ELEMENTS(roles); i++)
        if (str_is(collection, roles[i].collection))
            return roles[i].role;
    return ROLE_NONE;
}

struct str fleet_key(struct arena *a, struct str collection, struct str namespace, struct str name)
{
    const struct str parts[] = {collection, STR("/"), namespace, STR("/"), name};
    return arena_join(a, parts, N_ELEMENTS(parts));
}

static struct str owned(struct str s)
{
    return str_range(mem_dup(s.p ? s.p : "", s.n), s.n);
}

/* ---- finding --------------------------------------------------------------------------------- */

struct fleet_node *fleet_node(const struct fleet *f, struct arena *a, struct str collection,
                              struct str namespace, struct str name)
{
    return map_get(&f->nodes, fleet_key(a, collection, namespace, name));
}

static struct str device_key(struct arena *a, struct str namespace, struct str name)
{
    const struct str parts[] = {namespace, STR("/"), name};
    return arena_join(a, parts, N_ELEMENTS(parts));
}

struct fleet_device *fleet_device(const struct fleet *f, struct arena *a, struct str namespace,
                                  struct str name)
{
    return map_get(&f->devices, device_key(a, namespace, name));
}

static struct fleet_space *space_of(struct fleet *f, struct str namespace)
{
    struct fleet_space *s = map_get(&f->spaces, namespace);
    if (s)
        return s;
    s = NEW(struct fleet_space);
    s->name = owned(namespace);
    list_init(&s->devices);
    list_init(&s->networks);
    (void) map_put(&f->spaces, s->name, s);
    return s;
}

static struct fleet_device *device_of(struct fleet *f, struct arena *a, struct str namespace,
                                      struct str name)
{
    struct fleet_device *d = fleet_device(f, a, namespace, name);
    if (d)
        return d;
    d = NEW(struct fleet_device);
    d->key = owned(device_key(a, namespace, name));
    d->namespace = str_sub(d->key, 0, namespace.n);
    d->name = str_from(d->key, namespace.n + 1);
    list_init(&d->members);
    list_append(&space_of(f, namespace)->devices, &d->link);
    (void) map_put(&f->devices, d->key, d);
    return d;
}

static void device_free(struct fleet_device *d)
{
    mem_free((char *) d->key.p);
    mem_free((char *) d->labels.p);
    mem_free(d);
}

static void drop_if_empty(struct fleet *f, struct fleet_device *d)
{
    if (d->is_there || d->config_digest || !list_is_empty(&d->members))
        return;
    (void) map_remove(&f->devices, d->key);
    list_remove(&d->link);
    device_free(d);
}

static struct fleet_node *node_of(struct fleet *f, struct arena *a, const struct kube_event *e)
{
    struct fleet_node *n = fleet_node(f, a, e->collection, e->namespace, e->name);
    if (n)
        return n;
    n = NEW(struct fleet_node);
    n->key = owned(fleet_key(a, e->collection, e->namespace, e->name));
    list_init(&n->link);
    (void) map_put(&f->nodes, n->key, n);
    return n;
}

static void node_free(struct fleet_node *n)
{
    mem_free((char *) n->key.p);
    arena_free(n->arena);
    mem_free(n);
}

/* ---- what of an object matters --------------------------------------------------------------- */

struct str fleet_device_of(struct str collection, const struct json *object)
{
    const bool is_volume = str_is(collection, FLEET_VOLUMES);
    return json_str(json_at(object, is_volume ? "spec" : "status", "device", NULL));
}

static void add_member(struct buf *b, const struct json *object, const char *key)
{
    const struct json *value = json_get(object, str_of(key));
    if (!value)
        return;
    buf_append(b, key, strlen(key));
    json_write(b, value);
}

/* Of a DeviceConfig only who wrote it last, and whose it is: its text is what we make ourselves. Of
 * the Secret with a device's state only its certificates. */
static void add_special(struct buf *b, const struct kube_event *e, const struct json *object)
{
    if (str_is(e->collection, FLEET_CONFIGS)) {
        add_member(b, json_get(object, STR("metadata")), "generation");
        add_member(b, json_get(object, STR("metadata")), "annotations");
    } else {
        add_member(b, json_get(object, STR("data")), "certificates");
    }
}

/* Everything that composition may look at: not the status, but for what is given there once. */
static void add_everything(struct buf *b, const struct json *object)
{
    static const char *const meta[] = {"labels", "annotations", "deletionTimestamp"};
    static const char *const status[] = {"uuid", "device", "ports", "eve-os-version"};
    JSON_FOR_EACH_MEMBER (object, m) {
        const struct str key = json_str(&m->key);
        if (str_is(key, "metadata") || str_is(key, "status"))
            continue;
        buf_append_str(b, key);
        json_write(b, &m->value);
    }
    for (size_t i = 0; i < N_ELEMENTS(meta); i++)
        add_member(b, json_get(object, STR("metadata")), meta[i]);
    for (size_t i = 0; i < N_ELEMENTS(status); i++)
        add_member(b, json_get(object, STR("status")), status[i]);
}

static uint64_t digest_of(const struct kube_event *e, const struct json *object)
{
    BUF_AUTO b = {0};
    const bool is_state = str_is(e->collection, "secrets") && str_ends_with(e->name, STATE_SUFFIX);
    if (is_state || str_is(e->collection, FLEET_CONFIGS))
        add_special(&b, e, object);
    else
        add_everything(&b, object);
    return map_hash(buf_str(&b)) | 1; /* never that of nothing */
}

/* ---- following ------------------------------------------------------------------------------- */

static void follow_device(struct fleet *f, struct arena *a, const struct kube_event *e,
                          const struct json *object)
{
    struct fleet_device *d = device_of(f, a, e->namespace, e->name);
    d->is_there = object != NULL;
    d->digest = object ? digest_of(e, object) : 0;
    mem_free((char *) d->labels.p);
    const struct json *labels = json_at(object, "metadata", "labels", NULL);
    d->labels = labels ? owned(json_text(a, labels)) : STR_NONE;
    drop_if_empty(f, d);
}

static void follow_config(struct fleet *f, struct arena *a, const struct kube_event *e,
                          const struct json *object)
{
    struct fleet_device *d = device_of(f, a, e->namespace, e->name);
    d->config_digest = object ? digest_of(e, object) : 0;
    drop_if_empty(f, d);
}

static void follow_member(struct fleet *f, struct arena *a, struct fleet_node *n,
                          const struct kube_event *e, const struct json *object)
{
    const struct str name = fleet_device_of(e->collection, object);
    struct fleet_device *was = n->on;
    n->on = name.n ? device_of(f, a, e->namespace, name) : NULL;
    if (n->on == was)
        return;
    list_remove(&n->link);
    if (n->on)
        list_append(&n->on->members, &n->link);
    if (was)
        drop_if_empty(f, was);
}

static void follow_network(struct fleet *f, struct fleet_node *n, const struct kube_event *e,
                           const struct json *object)
{
    arena_free(TAKE(n->arena));
    n->spec = NULL;
    list_remove(&n->link);
    if (!object)
        return;
    n->arena = arena_new();
    const struct json *spec = json_get(object, STR("spec"));
    n->spec = json_parse_quick(n->arena, spec ? json_text(n->arena, spec) : STR("{}"));
    list_append(&space_of(f, e->namespace)->networks, &n->link);
}

static void follow_node(struct fleet *f, struct arena *a, const struct kube_event *e,
                        const struct json *object)
{
    struct fleet_node *n = node_of(f, a, e);
    if (fleet_role(e->collection) == ROLE_MEMBER)
        follow_member(f, a, n, e, object);
    else if (fleet_role(e->collection) == ROLE_NETWORK)
        follow_network(f, n, e, object);
    if (object) {
        n->digest = digest_of(e, object);
        return;
    }
    (void) map_remove(&f->nodes, n->key);
    node_free(n);
}

static void follow(struct fleet *f, struct arena *a, const struct kube_event *e,
                   const struct json *object)
{
    if (fleet_role(e->collection) == ROLE_DEVICE)
        follow_device(f, a, e, object);
    else if (fleet_role(e->collection) == ROLE_CONFIG)
        follow_config(f, a, e, object);
    else
        follow_node(f, a, e, object);
}

/* That of the object as it was last seen; 0: never. */
static uint64_t last_digest(const struct fleet *f, struct arena *a, const struct kube_event *e)
{
    const enum fleet_role role = fleet_role(e->collection);
    if (role == ROLE_DEVICE || role == ROLE_CONFIG) {
        const struct fleet_device *d = fleet_device(f, a, e->namespace, e->name);
        return !d ? 0 : role == ROLE_DEVICE ? d->digest : d->config_digest;
    }
    const struct fleet_node *n = fleet_node(f, a, e->collection, e->namespace, e->name);
    return n ? n->digest : 0;
}

/* A DeviceConfig as the composer has just left it concerns nobody. */
static bool is_our_own(struct fleet *f, struct arena *a, const struct kube_event *e,
                       const struct json *object)
{
    const struct fleet_device *d =
        str_is(e->collection, FLEET_CONFIGS) ? fleet_device(f, a, e->namespace, e->name) : NULL;
    const struct json *meta = json_get(object, STR("metadata"));
    const struct str composed =
        json_get_str(json_get(meta, STR("annotations")), STR(SETTINGS_COMPOSED));
    return d && d->config_generation && !str_is(composed, "false") &&
           d->config_generation == json_get_int(meta, STR("generation"), 0);
}

void fleet_on_event(struct fleet *f, const struct kube_event *e, fleet_touch *touch, void *ctx)
{
    if (e->type == KUBE_SYNCED || fleet_role(e->collection) == ROLE_NONE)
        return;
    ARENA_AUTO a = arena_new();
    const struct json *object = e->type == KUBE_DELETED ? NULL : kube_event_object(e, a);
    (void) pthread_mutex_lock(&f->lock);
    if (!object || last_digest(f, a, e) != digest_of(e, object)) {
        const struct fleet_change change = {e->collection, e->namespace, e->name, object};
        if (!is_our_own(f, a, e, object))
            fleet_walk(f, &change, touch, ctx);
        follow(f, a, e, object);
    }
    (void) pthread_mutex_unlock(&f->lock);
}

void fleet_set_synced(struct fleet *f)
{
    atomic_store(&f->is_synced, true);
}

/* ---- asking ---------------------------------------------------------------------------------- */

void fleet_note_config(struct fleet *f, struct str namespace, struct str name, int64_t generation)
{
    ARENA_AUTO a = arena_new();
    (void) pthread_mutex_lock(&f->lock);
    struct fleet_device *d = fleet_device(f, a, namespace, name);
    if (d)
        d->config_generation = generation;
    (void) pthread_mutex_unlock(&f->lock);
}

pthread_mutex_t *fleet_begin(struct fleet *f, struct str device_key)
{
    pthread_mutex_t *turn = &f->turns[map_hash(device_key) % N_ELEMENTS(f->turns)];
    (void) pthread_mutex_lock(turn);
    return turn;
}

void fleet_end(pthread_mutex_t *turn)
{
    (void) pthread_mutex_unlock(turn);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct fleet *fleet_new(const struct fleet_options *o)
{
    struct fleet *f = NEW(struct fleet);
    f->options = *o;
    (void) pthread_mutex_init(&f->lock, NULL);
    for (size_t i = 0; i < N_ELEMENTS(f->turns); i++)
        (void) pthread_mutex_init(&f->turns[i], NULL);
    return f;
}

static void space_free(struct fleet_space *s)
{
    mem_free((char *) s->name.p);
    mem_free(s);
}

void fleet_free(struct fleet *f)
{
    if (!f)
        return;
    struct map_entry e;
    for (size_t at = 0; map_next(&f->nodes, &at, &e);)
        node_free(e.value);
    for (size_t at = 0; map_next(&f->devices, &at, &e);)
        device_free(e.value);
    for (size_t at = 0; map_next(&f->spaces, &at, &e);)
        space_free(e.value);
    map_done(&f->nodes);
    map_done(&f->devices);
    map_done(&f->spaces);
    for (size_t i = 0; i < N_ELEMENTS(f->turns); i++)
        (void) pthread_mutex_destroy(&f->turns[i]);
    (void) pthread_mutex_destroy(&f->lock);
    mem_free(f);
}
