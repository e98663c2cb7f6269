/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_client.h"

#include <errno.h>
#include <inttypes.h>

#include "api/admission/reference.h"
#include "api/hooks.h"
#include "base/alloc.h"
#include "schema/patch.h"

struct fake_object {
    const struct kind *kind; /* of some registry; only what all versions share is used */
    struct str collection, namespace, name;
    struct json *object;
};

/* ---- things ------------------------------------------------------------------------------- */

uint64_t fake_random(struct fake_client *f, uint64_t bound)
{
    /* xorshift64* */
    f->random ^= f->random >> 12;
    f->random ^= f->random << 25;
    f->random ^= f->random >> 27;
    return (f->random * 0x2545F4914F6CDD1DULL >> 11) % bound;
}

static struct json *meta_of(struct json *object)
{
    return json_get(object, STR("metadata"));
}

static struct str meta_text(const struct json *object, const char *key)
{
    return json_str(json_at(object, "metadata", key, NULL));
}

static struct fake_object *find(struct fake_client *f, struct str collection, struct str namespace,
                                struct str name)
{
    for (size_t i = 0; i < f->n_objects; i++) {
        struct fake_object *o = &f->objects[i];
        if (str_eq(o->collection, collection) && str_eq(o->namespace, namespace) &&
            str_eq(o->name, name))
            return o;
    }
    return NULL;
}

static struct str now_text(struct fake_client *f)
{
    char now[CLOCK_SECONDS_BYTES];
    clock_format_seconds(f->clock->wall_us(f->clock), now);
    return arena_str(f->arena, str_of(now));
}

static void tell(struct fake_client *f, enum kube_event_type type, struct str collection,
                 const struct json *object)
{
    if (f->n_events == f->event_capacity) {
        f->event_capacity = MAX(f->event_capacity * 2, (size_t) 64);
        f->events = mem_realloc_array(f->events, f->event_capacity, sizeof(struct fake_event));
    }
    f->events[f->n_events++] = (struct fake_event){type, collection, object};
    f->n_writes++;
    if (f->on_write)
        f->on_write(f->on_write_ctx);
}

/* Everything stored lives in the client's arena and is never changed in place. */
static struct json *keep(struct fake_client *f, const struct json *object)
{
    struct json *kept = json_parse_quick(f->arena, json_text(f->arena, object));
    struct str revision = arena_printf(f->arena, "%" PRId64, ++f->revision);
    (void) json_set(f->arena, meta_of(kept), STR("resourceVersion"), json_string(revision));
    return kept;
}

static void remove_object(struct fake_client *f, struct fake_object *o)
{
    const struct str collection = o->collection;
    const struct json *last = keep(f, o->object);
    *o = f->objects[--f->n_objects];
    tell(f, KUBE_DELETED, collection, last);
}

static struct hook_context hooks_for(struct fake_client *f, const struct kind *kind,
                                     enum write_operation operation)
{
    static const struct user somebody = {.name = STR("somebody")};
    return (struct hook_context){.arena = f->arena,
                                 .user = &somebody,
                                 .kind = kind,
                                 .operation = operation,
                                 .subresource = STR(""),
                                 .now_us = f->clock->wall_us(f->clock)};
}

static bool must_stay(const struct kind *kind, const struct json *object)
{
    return json_count(json_at(object, "metadata", "finalizers", NULL)) ||
           (kind->hooks && kind->hooks->must_stay && kind->hooks->must_stay(object));
}

/* ---- writing ------------------------------------------------------------------------------ */

static int check_home(struct fake_client *f, const struct kind *kind, struct str namespace)
{
    if (kind->is_terminating)
        return -EPERM;
    if (!kind->is_namespaced)
        return 0;
    const struct fake_object *home = find(f, STR("namespaces"), STR_NONE, namespace);
    if (!home)
        return -ENOENT;
    return meta_text(home->object, "deletionTimestamp").n ? -EPERM : 0;
}

static void begin(struct fake_client *f, const struct kind *kind, struct str namespace,
                  struct json *object)
{
    struct json *meta = json_ensure_object(f->arena, object, STR("metadata"));
    struct str uid = arena_printf(f->arena, "uid-%" PRIu64, ++f->n_uids);
    if (kind->is_namespaced)
        (void) json_set(f->arena, meta, STR("namespace"), json_string(namespace));
    (void) json_set(f->arena, meta, STR("uid"), json_string(uid));
    (void) json_set(f->arena, meta, STR("creationTimestamp"), json_string(now_text(f)));
    if (kind->has_generation)
        (void) json_set(f->arena, meta, STR("generation"), json_int(1));
    struct hook_context h = hooks_for(f, kind, WRITE_CREATE);
    if (kind->hooks && kind->hooks->set_defaults)
        kind->hooks->set_defaults(&h, object);
    if (kind->hooks && kind->hooks->prepare)
        kind->hooks->prepare(&h, NULL, object);
}

static int create(struct fake_client *f, const struct kind *kind, const struct kube_request *r,
                  struct json **ret)
{
    struct str name = arena_str(f->arena, meta_text(r->body, "name"));
    struct str namespace = kind->is_namespaced ? arena_str(f->arena, r->namespace) : STR_NONE;
    int result = check_home(f, kind, namespace);
    if (result < 0)
        return result;
    if (find(f, kind->collection, namespace, name))
        return -EEXIST;
    struct json object = json_clone(f->arena, r->body);
    begin(f, kind, namespace, &object);
    if (f->n_objects == f->capacity) {
        f->capacity = MAX(f->capacity * 2, (size_t) 64);
        f->objects = mem_realloc_array(f->objects, f->capacity, sizeof(struct fake_object));
    }
    struct fake_object *o = &f->objects[f->n_objects++];
    *o = (struct fake_object){kind, arena_str(f->arena, kind->collection), namespace, name,
                              keep(f, &object)};
    tell(f, KUBE_ADDED, o->collection, o->object);
    *ret = o->object;
    return 0;
}

static void set_generation(struct fake_client *f, const struct json *old, struct json *object)
{
    const struct json *was = json_get(old, STR("spec")), *is = json_get(object, STR("spec"));
    const bool has_changed = was && is ? !json_equal(was, is) : was != is;
    const int64_t generation = json_get_int(json_get(old, STR("metadata")), STR("generation"), 1);
    (void) json_set(f->arena, meta_of(object), STR("generation"),
                    json_int(generation + has_changed));
}

/* Puts a new version, or ends the object when nothing keeps it any more. */
static int replace(struct fake_client *f, const struct kind *kind, struct fake_object *o,
                   struct json *object, struct json **ret)
{
    (void) json_set(f->arena, meta_of(object), STR("resourceVersion"),
                    *json_at(o->object, "metadata", "resourceVersion", NULL));
    *ret = object;
    if (meta_text(object, "deletionTimestamp").n && !must_stay(kind, object)) {
        remove_object(f, o);
        return 0;
    }
    if (kind->has_generation)
        set_generation(f, o->object, object);
    if (json_equal(object, o->object))
        return 0;
    o->object = keep(f, object);
    tell(f, KUBE_MODIFIED, o->collection, o->object);
    *ret = o->object;
    return 0;
}

static void carry(struct fake_client *f, const char *key, const struct json *from, struct json *to)
{
    const struct json *value = json_get(from, str_of(key));
    if (value)
        (void) json_set(f->arena, to, str_of(key), *value);
    else
        (void) json_remove(to, str_of(key));
}

/* The parts of the object that a write to this subresource may change. */
static struct json *limited(struct fake_client *f, const struct kind *kind, struct str subresource,
                            const struct json *old, const struct json *given)
{
    struct json *object = json_new(f->arena, json_clone(f->arena, given));
    if (str_is(subresource, "status")) {
        object = json_new(f->arena, json_clone(f->arena, old));
        carry(f, "status", given, object);
        if (kind->is_native)
            carry(f, "metadata", given, object);
    } else if (str_is(subresource, "finalize")) {
        object = json_new(f->arena, json_clone(f->arena, old));
        carry(f, "spec", given, object);
    } else if (kind->has_status) {
        carry(f, "status", old, object);
    }
    carry(f, "deletionTimestamp", json_get(old, STR("metadata")), meta_of(object));
    return object;
}

static bool is_apply(const struct kube_request *r)
{
    return r->verb == VERB_PATCH && str_is(r->content_type, "application/apply-patch+yaml");
}

/* There is one applier here, so what it applies is all there is of the spec. */
static const struct json *patched(struct fake_client *f, const struct json *old,
                                  const struct kube_request *r)
{
    struct json *merged = NULL;
    struct patch_error error;
    if (str_is(r->content_type, "application/json-patch+json"))
        return patch_json(f->arena, old, r->body, &merged, &error) < 0 ? NULL : merged;
    if (patch_merge(f->arena, old, r->body, &merged, &error) < 0)
        return NULL;
    const struct json *spec = json_get(r->body, STR("spec"));
    if (is_apply(r) && spec)
        (void) json_set(f->arena, merged, STR("spec"), *spec);
    return merged;
}

static int write_object(struct fake_client *f, const struct kind *kind, struct fake_object *o,
                        const struct kube_request *r, struct json **ret)
{
    const struct json *given = r->body;
    if (r->verb == VERB_PATCH) {
        given = patched(f, o->object, r);
        if (!given)
            return -EINVAL;
    }
    struct str revision = meta_text(r->body, "resourceVersion");
    struct str uid = meta_text(r->body, "uid");
    if (revision.n && !str_eq(revision, meta_text(o->object, "resourceVersion")))
        return -ESTALE;
    if (uid.n && !str_eq(uid, meta_text(o->object, "uid")))
        return -ESTALE;
    return replace(f, kind, o, limited(f, kind, r->subresource, o->object, given), ret);
}

/* ---- deleting ----------------------------------------------------------------------------- */

static bool has_finalizer(const struct json *object, const char *name)
{
    JSON_FOR_EACH_ITEM (json_at(object, "metadata", "finalizers", NULL), f)
        if (str_is(json_str(f), name))
            return true;
    return false;
}

static struct json finalizers_for(struct fake_client *f, const struct json *object,
                                  struct str policy)
{
    struct json kept = json_array();
    JSON_FOR_EACH_ITEM (json_at(object, "metadata", "finalizers", NULL), item)
        if (!str_is(json_str(item), "orphan") && !str_is(json_str(item), "foregroundDeletion"))
            (void) json_push(f->arena, &kept, *item);
    if (str_is(policy, "Orphan") || (!policy.n && has_finalizer(object, "orphan")))
        (void) json_push(f->arena, &kept, json_string(STR("orphan")));
    if (str_is(policy, "Foreground") || (!policy.n && has_finalizer(object, "foregroundDeletion")))
        (void) json_push(f->arena, &kept, json_string(STR("foregroundDeletion")));
    return kept;
}

static int delete_one(struct fake_client *f, const struct kind *kind, struct fake_object *o,
                      const struct json *options)
{
    const struct json *wanted = json_get(options, STR("preconditions"));
    struct str uid = json_get_str(wanted, STR("uid"));
    struct str revision = json_get_str(wanted, STR("resourceVersion"));
    if ((uid.n && !str_eq(uid, meta_text(o->object, "uid"))) ||
        (revision.n && !str_eq(revision, meta_text(o->object, "resourceVersion"))))
        return -ESTALE;
    struct json *object = json_new(f->arena, json_clone(f->arena, o->object));
    struct json finalizers =
        finalizers_for(f, object, json_get_str(options, STR("propagationPolicy")));
    struct json *meta = meta_of(object);
    (void) json_set(f->arena, meta, STR("finalizers"), finalizers);
    if (!must_stay(kind, object)) {
        remove_object(f, o);
        return 0;
    }
    struct hook_context h = hooks_for(f, kind, WRITE_UPDATE);
    if (!json_get(meta, STR("deletionTimestamp"))) {
        (void) json_set(f->arena, meta, STR("deletionTimestamp"), json_string(now_text(f)));
        if (kind->hooks && kind->hooks->prepare_delete)
            kind->hooks->prepare_delete(&h, object);
    }
    struct json *ignored = NULL;
    return replace(f, kind, o, object, &ignored);
}

/* *ret is what stays, if it stays for a while. */
static int delete_item(struct fake_client *f, const struct kind *kind, struct fake_object *o,
                       const struct kube_request *r, struct json **ret)
{
    int result = delete_one(f, kind, o, r->body);
    const struct fake_object *left = find(f, kind->collection, r->namespace, r->name);
    if (result == 0 && left)
        *ret = left->object;
    return result;
}

static int delete_all(struct fake_client *f, const struct kind *kind, struct str namespace)
{
    /* From the end: a removal moves the last object into the gap. */
    for (size_t i = f->n_objects; i-- > 0;) {
        struct fake_object *o = &f->objects[i];
        if (str_eq(o->collection, kind->collection) && str_eq(o->namespace, namespace))
            (void) delete_one(f, kind, o, NULL);
    }
    return 0;
}

/* ---- requests ----------------------------------------------------------------------------- */

static struct json *list(struct fake_client *f, struct arena *a, const struct kind *kind,
                         struct str namespace)
{
    struct json items = json_array();
    struct json *ret = json_new(a, json_object());
    for (size_t i = 0; i < f->n_objects; i++) {
        const struct fake_object *o = &f->objects[i];
        if (str_eq(o->collection, kind->collection) &&
            (!namespace.n || str_eq(o->namespace, namespace)))
            (void) json_push(a, &items, json_clone(a, o->object));
    }
    (void) json_set(a, ret, STR("items"), items);
    return ret;
}

int fake_request(struct fake_client *f, struct arena *a, const struct kube_request *r,
                 struct json **ret_object)
{
    const struct kind *kind = registry_find(f->kinds, r->group, r->version, r->resource);
    struct json *object = NULL;
    if (!kind)
        return -ENOENT;
    struct fake_object *o = find(f, kind->collection, r->namespace, r->name);
    bool is_item =
        r->verb != VERB_LIST && r->verb != VERB_CREATE && r->verb != VERB_DELETE_COLLECTION;
    const bool is_new = is_apply(r) && !o;
    if (is_item && !o && !is_new)
        return -ENOENT;
    int result = 0;
    if (r->verb == VERB_GET)
        object = o->object;
    else if (r->verb == VERB_LIST)
        object = list(f, a, kind, r->namespace);
    else if (r->verb == VERB_CREATE || is_new)
        result = create(f, kind, r, &object);
    else if (r->verb == VERB_DELETE)
        result = delete_item(f, kind, o, r, &object);
    else if (r->verb == VERB_DELETE_COLLECTION)
        result = delete_all(f, kind, r->namespace);
    else
        result = write_object(f, kind, o, r, &object);
    /* The caller may change what it gets. */
    if (result == 0 && ret_object && object)
        *ret_object = json_parse_quick(a, json_text(a, object));
    return result;
}

static int on_request(struct kube_client *c, struct arena *a, const struct kube_request *r,
                      struct json **ret_object, struct status *st)
{
    struct fake_client *f = CONTAINER_OF(c, struct fake_client, client);
    (void) st;
    if (r->verb == f->failing_verb || f->n_writes_left == 0 ||
        fake_random(f, 100) < f->fail_percent)
        return -EIO;
    const size_t n_before = f->n_writes;
    int result = fake_request(f, a, r, ret_object);
    if (f->n_writes_left > 0 && f->n_writes > n_before)
        f->n_writes_left--;
    return result == 0 && fake_random(f, 100) < f->lose_percent ? -EIO : result;
}

/* ---- kinds -------------------------------------------------------------------------------- */

static bool is_accepted(const struct json *crd)
{
    JSON_FOR_EACH_ITEM (json_at(crd, "status", "conditions", NULL), c) {
        struct str type = json_get_str(c, STR("type"));
        if ((str_is(type, "NamesAccepted") || str_is(type, "Established")) &&
            str_is(json_get_str(c, STR("status")), "True"))
            return true;
    }
    return false;
}

static void on_refresh(struct kube_client *c)
{
    struct fake_client *f = CONTAINER_OF(c, struct fake_client, client);
    const struct json **crds = ARENA_ARRAY(f->arena, const struct json *, f->n_objects + 1);
    struct str error = STR_NONE;
    size_t n = 0;
    for (size_t i = 0; i < f->n_objects; i++)
        if (str_is(f->objects[i].collection, "customresourcedefinitions.apiextensions.k8s.io") &&
            is_accepted(f->objects[i].object))
            crds[n++] = f->objects[i].object;
    struct registry *fresh = registry_build(crds, n, f->kinds->generation + 1, &error);
    if (!fresh)
        return;
    registry_unref(f->kinds);
    f->kinds = fresh;
}

static struct registry *on_kinds(struct kube_client *c)
{
    return registry_ref(CONTAINER_OF(c, struct fake_client, client)->kinds);
}

/* ---- life --------------------------------------------------------------------------------- */

static bool refers_to(struct arena *a, const struct fake_object *o, struct str key)
{
    const struct kind_hooks *hooks = kind_hooks_find(o->kind->group, o->kind->plural);
    struct reference_list list = {.arena = a};
    if (hooks && hooks->refer)
        hooks->refer(&list, o->object);
    for (size_t i = 0; i < list.n; i++)
        if (str_eq(reference_key(a, &list.items[i]), key))
            return true;
    return false;
}

static size_t on_users(struct kube_client *client, struct arena *a, struct str key, size_t max,
                       struct str **ret_keys)
{
    struct fake_client *f = CONTAINER_OF(client, struct fake_client, client);
    size_t n = 0;
    *ret_keys = ARENA_ARRAY(a, struct str, f->n_objects + 1);
    for (size_t i = 0; i < f->n_objects && n < max; i++) {
        const struct fake_object *o = &f->objects[i];
        if (refers_to(a, o, key))
            (*ret_keys)[n++] = arena_printf(a, "%.*s/%.*s/%.*s", STR_ARG(o->collection),
                                            STR_ARG(o->namespace), STR_ARG(o->name));
    }
    return n;
}

void fake_client_init(struct fake_client *f, const struct clock *clock, uint64_t seed)
{
    static const struct kube_client_ops ops = {
        .request = on_request, .kinds = on_kinds, .refresh_kinds = on_refresh, .users = on_users};
    struct str error = STR_NONE;
    *f = (struct fake_client){.client = {&ops},
                              .arena = arena_new(),
                              .clock = clock,
                              .random = seed * 2 + 1,
                              .failing_verb = VERB_COUNT,
                              .n_writes_left = -1,
                              .kinds = registry_build(NULL, 0, 1, &error)};
}

void fake_client_done(struct fake_client *f)
{
    registry_unref(f->kinds);
    mem_free(f->objects);
    mem_free(f->events);
    arena_free(f->arena);
}

/* ---- looking ------------------------------------------------------------------------------ */

const struct json *fake_get(struct fake_client *f, const char *collection, const char *namespace,
                            const char *name)
{
    const struct fake_object *o = find(f, str_of(collection), str_of(namespace), str_of(name));
    return o ? o->object : NULL;
}

size_t fake_count(struct fake_client *f, const char *collection)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n_objects; i++)
        n += str_is(f->objects[i].collection, collection);
    return n;
}

void fake_each(struct fake_client *f,
               void (*fn)(void *ctx, struct str collection, const struct json *o), void *ctx)
{
    for (size_t i = 0; i < f->n_objects; i++)
        fn(ctx, f->objects[i].collection, f->objects[i].object);
}
