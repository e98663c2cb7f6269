/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that applies to a device: what is on it, what selects it, and whatever those refer to,
 * as their kinds tell it. */
#include <errno.h>

#include "api/admission/reference.h"
#include "api/hooks.h"
#include "controllers/objects.h"
#include "fleet/fleet_internal.h"
#include "scheduling/selector.h"
#include "settings/settings.h"

/* Of one device; more are left out, which is a problem of whoever refers to them. */
#define MAX_OBJECTS 4096

struct gathering {
    struct fleet *fleet;
    struct arena *arena;
    struct controller_context ctx;
    struct registry *kinds;
    struct str namespace, name;
    const struct fleet_change *changes;
    size_t n_changes;
    struct compose_inputs *in;
    struct map seen; /* keys */
    int error;
    struct status *st;
};

/* ---- sets ------------------------------------------------------------------------------------ */

static struct compose_set *set_of(struct compose_inputs *in, struct str collection)
{
    const struct {
        const char *collection;
        struct compose_set *set;
    } sets[] = {
        {FLEET_APPLICATIONS, &in->applications},
        {FLEET_NETWORKS, &in->device_networks},
        {FLEET_VOLUMES, &in->volumes},
        {FLEET_IMAGES, &in->images},
        {"networkconfigs.eve.lfedge.org", &in->network_configs},
        {"persistentvolumeclaims", &in->claims},
        {"storageclasses.storage.k8s.io", &in->storage_classes},
        {"secrets", &in->secrets},
        {"configmaps", &in->config_maps},
    };
    for (size_t i = 0; i < N_ELEMENTS(sets); i++)
        if (str_is(collection, sets[i].collection))
            return sets[i].set;
    return NULL;
}

static void set_append(struct arena *a, struct compose_set *set, const struct json *object)
{
    /* Doubled when full: full is a power of two. */
    if ((set->n & (set->n - 1)) == 0) {
        const struct json **items =
            ARENA_ARRAY(a, const struct json *, MAX(set->n * 2, (size_t) 4));
        for (size_t i = 0; i < set->n; i++)
            items[i] = set->items[i];
        set->items = items;
    }
    ((const struct json **) set->items)[set->n++] = object;
}

/* ---- objects --------------------------------------------------------------------------------- */

static const struct fleet_change *change_of(const struct gathering *g, struct str collection,
                                            struct str namespace, struct str name)
{
    for (size_t i = 0; i < g->n_changes; i++) {
        const struct fleet_change *c = &g->changes[i];
        if (str_eq(c->collection, collection) && str_eq(c->namespace, namespace) &&
            str_eq(c->name, name))
            return c;
    }
    return NULL;
}

/* NULL: there is none, or g->error says why nobody knows. */
static const struct json *get(struct gathering *g, struct str collection, struct str namespace,
                              struct str name)
{
    const struct fleet_change *c = change_of(g, collection, namespace, name);
    if (c)
        return c->object;
    const struct object_place at = {objects_kind(g->kinds, collection), namespace, name};
    struct json *object = NULL;
    const int r = at.kind ? objects_get(&g->ctx, g->arena, &at, &object) : -ENOENT;
    if (r < 0 && r != -ENOENT && g->error == 0)
        g->error = status_fail(g->st, 500, "InternalError", "cannot read %.*s %.*s",
                               STR_ARG(collection), STR_ARG(name));
    return r < 0 ? NULL : object;
}

static bool is_new(struct gathering *g, struct str collection, struct str namespace,
                   struct str name)
{
    const struct str key = fleet_key(g->arena, collection, namespace, name);
    if (g->seen.n_items == MAX_OBJECTS || map_get(&g->seen, key))
        return false;
    (void) map_put(&g->seen, key, g);
    return true;
}

static void add(struct gathering *g, struct str collection, struct str namespace, struct str name);

/* What the object needs, as its admission had it. */
static void add_references(struct gathering *g, struct str collection, const struct json *object)
{
    const struct kind *kind = registry_collection(g->kinds, collection);
    const struct kind_hooks *hooks = kind ? kind_hooks_find(kind->group, kind->plural) : NULL;
    struct reference_list list = {.arena = g->arena};
    if (hooks && hooks->refer)
        hooks->refer(&list, object);
    for (size_t i = 0; i < list.n; i++) {
        const struct reference *r = &list.items[i];
        const bool is_of_users = r->flags & REFERENCE_OF_USERS;
        add(g, r->collection, is_of_users ? g->namespace : r->namespace, r->name);
    }
    /* Claims that are made for an Application are in nobody's spec but the Volume's. */
    const struct str claim = json_str(json_at(object, "spec", "claim", NULL));
    if (str_is(collection, FLEET_VOLUMES) && claim.n)
        add(g, STR("persistentvolumeclaims"), g->namespace, claim);
}

static void add(struct gathering *g, struct str collection, struct str namespace, struct str name)
{
    struct compose_set *set = set_of(g->in, collection);
    if (!set || fleet_role(collection) == ROLE_NONE || !is_new(g, collection, namespace, name))
        return;
    const struct json *object = get(g, collection, namespace, name);
    if (!object)
        return;
    set_append(g->arena, set, object);
    add_references(g, collection, object);
}

/* ---- what is the device's -------------------------------------------------------------------- */

struct names {
    struct str *items;
    size_t n;
};

static void add_name(struct arena *a, struct names *to, const struct fleet_node *n, size_t prefix_n)
{
    to->items[to->n++] = arena_str(a, str_from(n->key, prefix_n));
}

static size_t count(const struct list *l)
{
    size_t n = 0;
    LIST_FOR_EACH (l, link)
        n++;
    return n;
}

/* "<collection>/<namespace>/<name>" of all that is on the device. */
static struct names members_of(struct gathering *g)
{
    struct names ret = {0};
    (void) pthread_mutex_lock(&g->fleet->lock);
    const struct fleet_device *d = fleet_device(g->fleet, g->arena, g->namespace, g->name);
    if (d) {
        ret.items = ARENA_ARRAY(g->arena, struct str, count(&d->members) + 1);
        LIST_FOR_EACH (&d->members, link)
            add_name(g->arena, &ret, CONTAINER_OF(link, struct fleet_node, link), 0);
    }
    (void) pthread_mutex_unlock(&g->fleet->lock);
    return ret;
}

static struct names networks_of(struct gathering *g, const struct json *labels)
{
    struct names ret = {0};
    const size_t prefix_n = strlen(FLEET_NETWORKS) + 1 + g->namespace.n + 1;
    (void) pthread_mutex_lock(&g->fleet->lock);
    const struct fleet_space *s = map_get(&g->fleet->spaces, g->namespace);
    if (s) {
        ret.items = ARENA_ARRAY(g->arena, struct str, count(&s->networks) + 1);
        LIST_FOR_EACH (&s->networks, link) {
            const struct fleet_node *n = CONTAINER_OF(link, struct fleet_node, link);
            if (device_selector_matches(n->spec, g->name, labels))
                add_name(g->arena, &ret, n, prefix_n);
        }
    }
    (void) pthread_mutex_unlock(&g->fleet->lock);
    return ret;
}

static bool is_changed(const struct gathering *g, struct str collection, struct str name)
{
    return change_of(g, collection, g->namespace, name) != NULL;
}

static void add_members(struct gathering *g)
{
    const struct names members = members_of(g);
    for (size_t i = 0; i < members.n; i++) {
        struct str rest = members.items[i], collection = STR(""), namespace = STR("");
        (void) str_split(&rest, '/', &collection);
        (void) str_split(&rest, '/', &namespace);
        if (!is_changed(g, collection, rest))
            add(g, collection, namespace, rest);
    }
}

static void add_networks(struct gathering *g, const struct json *labels)
{
    const struct names networks = networks_of(g, labels);
    for (size_t i = 0; i < networks.n; i++)
        if (!is_changed(g, STR(FLEET_NETWORKS), networks.items[i]))
            add(g, STR(FLEET_NETWORKS), g->namespace, networks.items[i]);
}

/* Nothing has chosen a device for it yet, and it leaves no choice. */
static bool names_device(const struct gathering *g, const struct json *application)
{
    const struct str wanted = json_str(json_at(application, "spec", "nodeSelector", "name", NULL));
    return !json_at(application, "status", "device", NULL) && str_eq(wanted, g->name);
}

static bool is_for_device(const struct gathering *g, const struct fleet_change *c,
                          const struct json *labels)
{
    switch (fleet_role(c->collection)) {
    case ROLE_MEMBER:
        return str_eq(fleet_device_of(c->collection, c->object), g->name) ||
               (str_is(c->collection, FLEET_APPLICATIONS) && names_device(g, c->object));
    case ROLE_NETWORK:
        return device_selector_matches(json_get(c->object, STR("spec")), g->name, labels);
    case ROLE_PART: /* a version of EVE is found by its tag, not by a name */
        return str_is(c->collection, FLEET_IMAGES);
    default:
        return false;
    }
}

static void add_changes(struct gathering *g, const struct json *labels)
{
    for (size_t i = 0; i < g->n_changes; i++) {
        const struct fleet_change *c = &g->changes[i];
        if (c->object && str_eq(c->namespace, g->namespace) && is_for_device(g, c, labels))
            add(g, c->collection, c->namespace, c->name);
    }
}

/* Images that provide the version of EVE that the device is to run. */
static void add_versions(struct gathering *g, const struct json *device)
{
    const struct str version = json_str(json_at(device, "spec", "eve-os-version", NULL));
    struct str *users = NULL;
    if (!version.n)
        return;
    const size_t n = kube_users(g->ctx.client, g->arena,
                                fleet_key(g->arena, REFERENCE_EVE_OS_IMAGES, g->namespace, version),
                                SIZE_MAX, &users);
    const size_t prefix_n = strlen(FLEET_IMAGES) + 1 + g->namespace.n + 1;
    for (size_t i = 0; i < n; i++)
        if (users[i].n > prefix_n)
            add(g, STR(FLEET_IMAGES), g->namespace, str_from(users[i], prefix_n));
}

static int gather(struct gathering *g)
{
    struct compose_inputs *in = g->in;
    const struct json *device = get(g, STR(FLEET_DEVICES), g->namespace, g->name);
    if (!device)
        return g->error ? g->error : -ENOENT;
    const struct json *labels = json_at(device, "metadata", "labels", NULL);
    const struct json *status = json_get(device, STR("status"));
    in->device = device;
    in->report = json_get(status, STR("ports")) ? status : NULL;
    in->previous = json_get(status, STR("derived"));
    in->namespace_options = get(g, STR("configmaps"), g->namespace, STR(SETTINGS_NAMESPACE_NAME));
    in->global_options =
        get(g, STR("configmaps"), STR(SETTINGS_GLOBAL_NAMESPACE), STR(SETTINGS_GLOBAL_NAME));
    add_members(g);
    add_networks(g, labels);
    add_changes(g, labels);
    add_versions(g, device);
    if (g->error == 0 && g->fleet->options.open_seal)
        g->error = g->fleet->options.open_seal(g->fleet->options.devices, g->arena, device,
                                               &in->seal, &in->seal_ctx, g->st);
    return g->error;
}

int fleet_inputs(struct fleet *f, struct arena *a, struct str namespace, struct str name,
                 const struct fleet_change *changes, size_t n_changes, struct compose_inputs *ret,
                 struct status *st)
{
    *ret = (struct compose_inputs){0};
    if (!atomic_load(&f->is_synced)) {
        (void) status_fail(st, 503, "ServiceUnavailable", "the objects are still being read");
        return -EAGAIN;
    }
    CLEANUP(registry_unrefp) struct registry *kinds = kube_kinds(f->options.client);
    struct gathering g = {.fleet = f,
                          .arena = a,
                          .ctx = {.client = f->options.client, .clock = f->options.clock},
                          .kinds = kinds,
                          .namespace = namespace,
                          .name = name,
                          .changes = changes,
                          .n_changes = n_changes,
                          .in = ret,
                          .st = st};
    const int r = gather(&g);
    map_done(&g.seen);
    return r;
}
