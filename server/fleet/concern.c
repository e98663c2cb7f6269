/* SPDX-License-Identifier: Apache-2.0 */
/* From an object to the devices it reaches: those it is on, those it selects, or those of whoever
 * refers to it. */
#include "api/admission/reference.h"
#include "api/hooks.h"
#include "base/alloc.h"
#include "fleet/fleet_internal.h"
#include "scheduling/selector.h"
#include "settings/settings.h"

/* Secret, StorageClass, Image, claim, Application: nothing is further away. */
#define MAX_DEPTH 6
#define STATE_SUFFIX STR(".eve-device")
#define SECRETS "secrets"
#define CLASSES "storageclasses.storage.k8s.io"

struct walk {
    struct fleet *fleet;
    struct arena *arena;
    fleet_touch *touch;
    void *ctx;
    const struct json **specs; /* of networks whose devices are concerned, looked for at the end */
    size_t n_specs, capacity;
    struct str namespace; /* theirs */
};

static void touch_device(struct walk *w, const struct fleet_device *d)
{
    if (d && d->is_there)
        w->touch(w->ctx, d->key);
}

static void touch_named(struct walk *w, struct str namespace, struct str name)
{
    if (name.n)
        touch_device(w, fleet_device(w->fleet, w->arena, namespace, name));
}

static void touch_space(struct walk *w, const struct fleet_space *s)
{
    if (s)
        LIST_FOR_EACH (&s->devices, link)
            touch_device(w, CONTAINER_OF(link, struct fleet_device, link));
}

static void touch_all(struct walk *w)
{
    struct map_entry e;
    for (size_t at = 0; map_next(&w->fleet->spaces, &at, &e);)
        touch_space(w, e.value);
}

/* ---- networks -------------------------------------------------------------------------------- */

static void add_network(struct walk *w, struct str namespace, const struct json *spec)
{
    if (!spec)
        return;
    if (w->n_specs == w->capacity) {
        w->capacity = MAX(w->capacity * 2, (size_t) 8);
        w->specs = mem_realloc_array(w->specs, w->capacity, sizeof(*w->specs));
    }
    w->specs[w->n_specs++] = spec;
    w->namespace = namespace;
}

static bool is_selected(const struct walk *w, struct arena *a, const struct fleet_device *d)
{
    const struct json *labels = d->labels.n ? json_parse_quick(a, d->labels) : NULL;
    for (size_t i = 0; i < w->n_specs; i++)
        if (device_selector_matches(w->specs[i], d->name, labels))
            return true;
    return false;
}

/* One pass over the devices, however many networks there are. */
static void touch_selected(struct walk *w)
{
    const struct fleet_space *s = w->n_specs ? map_get(&w->fleet->spaces, w->namespace) : NULL;
    if (s)
        LIST_FOR_EACH (&s->devices, link) {
            const struct fleet_device *d = CONTAINER_OF(link, struct fleet_device, link);
            ARENA_AUTO a = arena_new();
            if (is_selected(w, a, d))
                touch_device(w, d);
        }
    mem_free(w->specs);
}

/* ---- those who refer to it ------------------------------------------------------------------- */

static void walk_users(struct walk *w, struct str key, unsigned depth);

static void reach_user(struct walk *w, struct str key, unsigned depth)
{
    struct str rest = key, collection = STR(""), namespace = STR("");
    (void) str_split(&rest, '/', &collection);
    (void) str_split(&rest, '/', &namespace);
    const struct fleet_node *n = map_get(&w->fleet->nodes, key);
    switch (fleet_role(collection)) {
    case ROLE_DEVICE:
        touch_named(w, namespace, rest);
        break;
    case ROLE_MEMBER:
        touch_device(w, n ? n->on : NULL);
        break;
    case ROLE_NETWORK:
        add_network(w, namespace, n ? n->spec : NULL);
        break;
    case ROLE_PART:
        walk_users(w, key, depth + 1);
        break;
    default:
        break;
    }
}

static void walk_users(struct walk *w, struct str key, unsigned depth)
{
    struct str *users = NULL;
    if (depth > MAX_DEPTH)
        return;
    const size_t n = kube_users(w->fleet->options.client, w->arena, key, SIZE_MAX, &users);
    for (size_t i = 0; i < n; i++)
        reach_user(w, users[i], depth);
}

/* A StorageClass names a Secret that is looked for where the class is used. */
static void walk_class_users(struct walk *w, const struct fleet_change *c)
{
    struct str *classes = NULL;
    const struct str key = fleet_key(w->arena, STR(SECRETS), STR(""), c->name);
    const size_t n = kube_users(w->fleet->options.client, w->arena, key, SIZE_MAX, &classes);
    for (size_t i = 0; i < n; i++) {
        struct str name = classes[i];
        if (!str_starts_with(name, STR(CLASSES "//")))
            continue;
        name = str_from(name, strlen(CLASSES "//"));
        walk_users(
            w, arena_printf(w->arena, CLASSES "/%.*s/%.*s", STR_ARG(c->namespace), STR_ARG(name)),
            1);
    }
}

/* An Image that provides a version of EVE concerns the Devices that want it. */
static void walk_version(struct walk *w, const struct fleet_change *c)
{
    const struct kind_hooks *hooks = kind_hooks_find(STR(FLEET_GROUP), STR("images"));
    struct reference_list list = {.arena = w->arena};
    if (hooks && hooks->refer && c->object)
        hooks->refer(&list, c->object);
    for (size_t i = 0; i < list.n; i++)
        if (str_eq(list.items[i].collection, REFERENCE_EVE_OS_IMAGES))
            walk_users(w,
                       fleet_key(w->arena, REFERENCE_EVE_OS_DEVICES, list.items[i].namespace,
                                 list.items[i].name),
                       1);
}

/* A claim that was made for an Application is in nobody's spec; its Volume is where it is used. */
static void walk_volume(struct walk *w, const struct fleet_change *c)
{
    const struct str volume = json_str(json_at(c->object, "spec", "volumeName", NULL));
    const struct fleet_node *n =
        fleet_node(w->fleet, w->arena, STR(FLEET_VOLUMES), c->namespace, volume);
    touch_device(w, n ? n->on : NULL);
}

static void walk_part(struct walk *w, const struct fleet_change *c)
{
    walk_users(w, fleet_key(w->arena, c->collection, c->namespace, c->name), 0);
    if (str_is(c->collection, FLEET_IMAGES)) {
        walk_version(w, c);
    } else if (str_is(c->collection, "persistentvolumeclaims")) {
        walk_volume(w, c);
    } else if (str_is(c->collection, SECRETS)) {
        walk_class_users(w, c);
        if (str_ends_with(c->name, STATE_SUFFIX))
            touch_named(w, c->namespace, str_sub(c->name, 0, c->name.n - STATE_SUFFIX.n));
    } else if (str_is(c->collection, "configmaps") && settings_is_options(c->namespace, c->name)) {
        if (str_is(c->namespace, SETTINGS_GLOBAL_NAMESPACE) &&
            str_is(c->name, SETTINGS_GLOBAL_NAME))
            touch_all(w);
        else
            touch_space(w, map_get(&w->fleet->spaces, c->namespace));
    }
}

/* ---- the walk -------------------------------------------------------------------------------- */

void fleet_walk(struct fleet *f, const struct fleet_change *c, fleet_touch *touch, void *ctx)
{
    ARENA_AUTO a = arena_new();
    struct walk w = {.fleet = f, .arena = a, .touch = touch, .ctx = ctx};
    const struct fleet_node *n = fleet_node(f, a, c->collection, c->namespace, c->name);
    switch (fleet_role(c->collection)) {
    case ROLE_DEVICE:
        touch(ctx, arena_printf(a, "%.*s/%.*s", STR_ARG(c->namespace), STR_ARG(c->name)));
        break;
    case ROLE_CONFIG:
        touch_named(&w, c->namespace, c->name);
        break;
    case ROLE_MEMBER:
        touch_device(&w, n ? n->on : NULL);
        touch_named(&w, c->namespace, fleet_device_of(c->collection, c->object));
        break;
    case ROLE_NETWORK:
        add_network(&w, c->namespace, n ? n->spec : NULL);
        add_network(&w, c->namespace, json_get(c->object, STR("spec")));
        break;
    case ROLE_PART:
        walk_part(&w, c);
        break;
    default:
        break;
    }
    touch_selected(&w);
}

/* ---- each once ------------------------------------------------------------------------------- */

struct once {
    struct arena *arena;
    struct map seen;
    fleet_touch *touch;
    void *ctx;
};

static void touch_once(void *ctx, struct str key)
{
    struct once *o = ctx;
    if (map_get(&o->seen, key))
        return;
    const struct str kept = arena_str(o->arena, key);
    (void) map_put(&o->seen, kept, o);
    o->touch(o->ctx, kept);
}

void fleet_concerned(struct fleet *f, const struct fleet_change *changes, size_t n,
                     fleet_touch *touch, void *ctx)
{
    ARENA_AUTO a = arena_new();
    struct once once = {.arena = a, .touch = touch, .ctx = ctx};
    (void) pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < n; i++)
        fleet_walk(f, &changes[i], touch_once, &once);
    (void) pthread_mutex_unlock(&f->lock);
    map_done(&once.seen);
}
