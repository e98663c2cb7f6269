/* SPDX-License-Identifier: Apache-2.0 */
/* The garbage collector: objects go when every owner they name is gone; owners deleted in the
 * foreground go after the dependents that block them, owners deleted with orphaning go after their
 * dependents have forgotten them. */
#include "controllers/gc.h"

#include <errno.h>

#include "base/alloc.h"
#include "controllers/gc_graph.h"
#include "controllers/objects.h"

/* An owner of a kind that is not served can be neither found nor missed: asked again in case the
 * kind comes. */
#define UNKNOWN_KIND_MS 30000
/* Dependents that go wake their owner; this is for those whose going we might have missed. */
#define COLLECT_AGAIN_MS 30000

struct gc {
    struct controller_queue *queue;
    struct gc_graph *graph;
};

/* One key's work. */
struct gc_run {
    const struct controller_context *ctx;
    struct arena *arena;
    const struct registry *kinds;
    struct gc *gc;
    struct object_place at;
    struct json *object; /* as it is now */
};

/* ---- events ------------------------------------------------------------------------------- */

/* Keys are uids. */
static void wake(void *ctx, struct str uid)
{
    controller_enqueue(ctx, uid, 0);
}

static void *start(const struct controller_context *ctx, struct controller_queue *q)
{
    (void) ctx;
    struct gc *gc = NEW(struct gc);
    gc->queue = q;
    gc->graph = gc_graph_new(wake, q);
    return gc;
}

static void stop(void *state)
{
    struct gc *gc = state;
    gc_graph_free(gc->graph);
    mem_free(gc);
}

static void on_event(void *state, const struct kube_event *e, struct controller_queue *q)
{
    (void) q;
    gc_graph_apply(((struct gc *) state)->graph, e);
}

/* ---- references --------------------------------------------------------------------------- */

static struct str uid_of(const struct json *object)
{
    return object_meta_text(object, "uid");
}

/* Replaces the object's ownerReferences; a conflict is tried again from the new version. */
static int write_references(const struct gc_run *run, const struct object_place *at,
                            const struct json *object, struct json references)
{
    int r = objects_patch_metadata(run->ctx, run->arena, at, object, "ownerReferences",
                                   json_count(&references) ? references : json_null());
    return r == -ENOENT ? 0 : r;
}

enum owner_state { OWNER_SOLID, OWNER_DANGLING, OWNER_WAITING, OWNER_UNRESOLVED, OWNER_INVALID };

/* Asks the API for an owner the graph has not seen where the reference says it is. */
static int look_up(const struct gc_run *run, const struct kind *kind, struct gc_object *owner,
                   enum owner_state *ret)
{
    struct object_place at = {kind, owner->namespace, owner->name};
    struct json *object = NULL;
    int r = objects_get(run->ctx, run->arena, &at, &object);
    if (r < 0 && r != -ENOENT)
        return r;
    *ret = OWNER_DANGLING;
    if (r == -ENOENT || !str_eq(uid_of(object), owner->uid))
        return 0;
    owner->is_deleting = object_is_deleting(object);
    owner->is_collecting =
        owner->is_deleting && object_has_finalizer(object, GC_FINALIZER_FOREGROUND);
    gc_graph_saw(run->gc->graph, owner);
    *ret = owner->is_collecting ? OWNER_WAITING : OWNER_SOLID;
    return 0;
}

static int judge_owner(const struct gc_run *run, const struct json *reference,
                       enum owner_state *ret)
{
    const struct kind *kind =
        registry_find_kind(run->kinds, json_get_str(reference, STR("apiVersion")),
                           json_get_str(reference, STR("kind")));
    struct gc_object owner = {.uid = json_get_str(reference, STR("uid")),
                              .name = json_get_str(reference, STR("name"))};
    if (kind) {
        owner.collection = kind->collection;
        owner.namespace = kind->is_namespaced ? run->at.namespace : STR_NONE;
    }
    /* A namespaced owner lives in the dependent's namespace; one that is in none cannot have any.
     */
    if (kind && kind->is_namespaced && !run->at.namespace.n) {
        *ret = OWNER_INVALID;
        return 0;
    }
    switch (gc_graph_presence(run->gc->graph, &owner)) {
    case GC_GONE:
        *ret = OWNER_DANGLING;
        return 0;
    case GC_PRESENT:
        *ret = OWNER_SOLID;
        return 0;
    case GC_COLLECTING:
        *ret = OWNER_WAITING;
        return 0;
    case GC_UNKNOWN:
        break;
    }
    *ret = OWNER_UNRESOLVED;
    return kind ? look_up(run, kind, &owner, ret) : 0;
}

struct owners {
    size_t n_solid, n_dangling, n_waiting, n_unresolved, n_invalid;
    struct json solid; /* their references */
};

static int judge_owners(const struct gc_run *run, struct owners *o)
{
    size_t *const counts[] = {[OWNER_SOLID] = &o->n_solid,
                              [OWNER_DANGLING] = &o->n_dangling,
                              [OWNER_WAITING] = &o->n_waiting,
                              [OWNER_UNRESOLVED] = &o->n_unresolved,
                              [OWNER_INVALID] = &o->n_invalid};
    o->solid = json_array();
    JSON_FOR_EACH_ITEM (object_meta_at(run->object, "ownerReferences"), reference) {
        enum owner_state state = OWNER_UNRESOLVED;
        int r = judge_owner(run, reference, &state);
        if (r < 0)
            return r;
        (*counts[state])++;
        if (state == OWNER_SOLID)
            (void) json_push(run->arena, &o->solid, *reference);
    }
    return 0;
}

/* ---- dependents --------------------------------------------------------------------------- */

static int delete_object(const struct gc_run *run, const char *policy)
{
    /* The version that was judged: its references may be others in the next. */
    struct delete_terms terms = {.uid = uid_of(run->object),
                                 .revision = object_meta_text(run->object, "resourceVersion"),
                                 .policy = policy};
    return objects_delete(run->ctx, run->arena, &run->at, &terms);
}

static const char *policy_of(const struct json *object)
{
    if (object_has_finalizer(object, GC_FINALIZER_ORPHAN))
        return "Orphan";
    return object_has_finalizer(object, GC_FINALIZER_FOREGROUND) ? "Foreground" : "Background";
}

/* Those that own each other must not wait for each other. */
static int unblock(const struct gc_run *run, const struct object_place *at,
                   const struct json *object)
{
    struct json references = json_clone(run->arena, object_meta_at(object, "ownerReferences"));
    bool has_changed = false;
    JSON_FOR_EACH_ITEM (&references, reference) {
        if (!json_get_bool(reference, STR("blockOwnerDeletion"), false))
            continue;
        (void) json_set(run->arena, reference, STR("blockOwnerDeletion"), json_bool(false));
        has_changed = true;
    }
    return has_changed ? write_references(run, at, object, references) : 0;
}

/* Its owner waits for it to go: so do its own dependents. */
static int64_t delete_with_dependents(struct gc_run *run)
{
    struct gc_object *dependents = NULL;
    size_t n = gc_graph_dependents(run->gc->graph, run->arena, uid_of(run->object), &dependents);
    bool is_circle = false;
    for (size_t i = 0; i < n; i++)
        is_circle |= dependents[i].is_collecting;
    if (is_circle) {
        int r = unblock(run, &run->at, run->object);
        if (r == 0)
            r = objects_get(run->ctx, run->arena, &run->at, &run->object);
        if (r < 0)
            return r == -ENOENT ? 0 : r;
    }
    return delete_object(run, n ? "Foreground" : policy_of(run->object));
}

static int64_t judge(struct gc_run *run)
{
    struct owners o = {0};
    int r = judge_owners(run, &o);
    if (r < 0)
        return r;
    if (o.n_invalid)
        return 0;
    if (o.n_unresolved)
        return UNKNOWN_KIND_MS;
    if (o.n_solid)
        return o.n_dangling + o.n_waiting ? write_references(run, &run->at, run->object, o.solid)
                                          : 0;
    if (o.n_waiting)
        return delete_with_dependents(run);
    return o.n_dangling ? delete_object(run, policy_of(run->object)) : 0;
}

/* ---- owners ------------------------------------------------------------------------------- */

/* The dependent as it is now; -ENOENT when it is gone. */
static int get_dependent(const struct gc_run *run, const struct gc_object *dependent,
                         struct object_place *ret_at, struct json **ret_object)
{
    *ret_at = (struct object_place){objects_kind(run->kinds, dependent->collection),
                                    dependent->namespace, dependent->name};
    if (!ret_at->kind)
        return -ENOENT;
    int r = objects_get(run->ctx, run->arena, ret_at, ret_object);
    if (r < 0)
        return r;
    return str_eq(uid_of(*ret_object), dependent->uid) ? 0 : -ENOENT;
}

/* Two that are both deleted in the foreground may each wait for the other. */
static int break_circle(const struct gc_run *run, const struct gc_object *dependent)
{
    struct object_place at;
    struct json *object = NULL;
    if (!dependent->is_collecting ||
        !gc_graph_waits_for(run->gc->graph, dependent->uid, uid_of(run->object)))
        return 0;
    int r = get_dependent(run, dependent, &at, &object);
    if (r == 0)
        r = unblock(run, &at, object);
    return r == -ENOENT ? 0 : r;
}

/* Waits for the dependents that block it, having them all deleted meanwhile. */
static int64_t collect(const struct gc_run *run)
{
    struct gc_object *dependents = NULL;
    size_t n = gc_graph_dependents(run->gc->graph, run->arena, uid_of(run->object), &dependents);
    size_t n_blocking = 0;
    for (size_t i = 0; i < n; i++) {
        controller_enqueue(run->gc->queue, dependents[i].uid,
                           dependents[i].is_deleting ? COLLECT_AGAIN_MS : 0);
        n_blocking += dependents[i].blocks;
        int r = dependents[i].blocks ? break_circle(run, &dependents[i]) : 0;
        if (r < 0)
            return r;
    }
    return n_blocking ? COLLECT_AGAIN_MS
                      : objects_drop_finalizer(run->ctx, run->arena, &run->at, run->object,
                                               GC_FINALIZER_FOREGROUND);
}

static int forget_owner(const struct gc_run *run, const struct gc_object *dependent)
{
    struct object_place at;
    struct json *object = NULL;
    int r = get_dependent(run, dependent, &at, &object);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    const struct json *references = object_meta_at(object, "ownerReferences");
    struct json kept = json_array();
    JSON_FOR_EACH_ITEM (references, reference)
        if (!str_eq(json_get_str(reference, STR("uid")), uid_of(run->object)))
            (void) json_push(run->arena, &kept, *reference);
    return json_count(&kept) == json_count(references) ? 0
                                                       : write_references(run, &at, object, kept);
}

static int64_t orphan(const struct gc_run *run)
{
    struct gc_object *dependents = NULL;
    size_t n = gc_graph_dependents(run->gc->graph, run->arena, uid_of(run->object), &dependents);
    for (size_t i = 0; i < n; i++) {
        int r = forget_owner(run, &dependents[i]);
        if (r < 0)
            return r;
    }
    return objects_drop_finalizer(run->ctx, run->arena, &run->at, run->object, GC_FINALIZER_ORPHAN);
}

/* ---- reconcile ---------------------------------------------------------------------------- */

static int64_t look_at(struct gc_run *run)
{
    if (!object_is_deleting(run->object))
        return judge(run);
    if (object_has_finalizer(run->object, GC_FINALIZER_ORPHAN))
        return orphan(run);
    return object_has_finalizer(run->object, GC_FINALIZER_FOREGROUND) ? collect(run) : 0;
}

static int64_t reconcile(void *state, const struct controller_context *ctx, struct str key)
{
    struct gc *gc = state;
    ARENA_AUTO a = arena_new();
    CLEANUP(registry_unrefp) struct registry *kinds = kube_kinds(ctx->client);
    struct gc_object o;
    if (!gc_graph_find(gc->graph, a, key, &o))
        return 0;
    struct gc_run run = {.ctx = ctx,
                         .arena = a,
                         .kinds = kinds,
                         .gc = gc,
                         .at = {objects_kind(kinds, o.collection), o.namespace, o.name}};
    if (!run.at.kind)
        return 0; /* the kind went, and its objects before it */
    int r = objects_get(ctx, a, &run.at, &run.object);
    if (r < 0 && r != -ENOENT)
        return r;
    if (r == -ENOENT || !str_eq(uid_of(run.object), key)) {
        gc_graph_gone(gc->graph, key);
        return 0;
    }
    return look_at(&run);
}

const struct controller gc_controller = {.name = "garbage-collector",
                                         .start = start,
                                         .on_event = on_event,
                                         .reconcile = reconcile,
                                         .stop = stop};
