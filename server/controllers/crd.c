/* SPDX-License-Identifier: Apache-2.0 */
/* CustomResourceDefinitions: accepts their names, has them served, establishes them, and when one
 * is deleted removes its objects before letting it go. */
#include "controllers/crd.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>

#include "base/alloc.h"
#include "base/map.h"
#include "controllers/conditions.h"
#include "controllers/crd_names.h"
#include "controllers/objects.h"

#define CRD_COLLECTION "customresourcedefinitions.apiextensions.k8s.io"
#define CLEANUP_FINALIZER "customresourcecleanup.apiextensions.k8s.io"
/* Objects that go wake us; this is for those whose going we might have missed. */
#define CLEANUP_AGAIN_MS 5000
/* Keys are names of CRDs, and these two, which are none. */
#define KEY_NAMES_FREED STR("*names")
#define KEY_REFRESH STR("*refresh")

/* ---- state -------------------------------------------------------------------------------- */

struct crds {
    struct controller_queue *queue;
    pthread_mutex_t lock;
    struct map terminating; /* names of CRDs being deleted, which are those of their collections ->
                               itself, heap */
    struct map served;      /* name -> what of it is served, heap; reconcile()'s alone */
};

static void *start(const struct controller_context *ctx, struct controller_queue *q)
{
    (void) ctx;
    struct crds *s = NEW(struct crds);
    s->queue = q;
    (void) pthread_mutex_init(&s->lock, NULL);
    return s;
}

struct served {
    char *text; /* see fingerprint() */
    size_t n;
    char name[];
};

static void served_free(struct served *v)
{
    if (v)
        mem_free(v->text);
    mem_free(v);
}

static void stop(void *state)
{
    struct crds *s = state;
    size_t position = 0;
    struct map_entry entry;
    while (map_next(&s->terminating, &position, &entry))
        mem_free(entry.value);
    position = 0;
    while (map_next(&s->served, &position, &entry))
        served_free(entry.value);
    map_done(&s->terminating);
    map_done(&s->served);
    (void) pthread_mutex_destroy(&s->lock);
    mem_free(s);
}

static void note_terminating(struct crds *s, struct str name, bool is_terminating)
{
    if (!is_terminating) {
        mem_free(map_remove(&s->terminating, name));
    } else if (!map_get(&s->terminating, name)) {
        char *copy = mem_dup(name.p, name.n);
        (void) map_put(&s->terminating, str_range(copy, name.n), copy);
    }
}

static void on_event(void *state, const struct kube_event *e, struct controller_queue *q)
{
    struct crds *s = state;
    bool is_gone = e->type == KUBE_DELETED;
    bool is_crd = str_is(e->collection, CRD_COLLECTION);
    (void) pthread_mutex_lock(&s->lock);
    if (is_crd)
        note_terminating(s, e->name, e->is_deleting && !is_gone);
    else if (is_gone && map_get(&s->terminating, e->collection))
        controller_enqueue(q, e->collection, 0);
    (void) pthread_mutex_unlock(&s->lock);
    if (is_crd)
        controller_enqueue(q, is_gone ? KEY_NAMES_FREED : e->name, 0);
}

/* ---- serving ------------------------------------------------------------------------------ */

static struct object_place place_of(const struct registry *kinds, struct str name)
{
    return (struct object_place){registry_collection(kinds, STR(CRD_COLLECTION)), STR_NONE, name};
}

/* All that a change of makes a difference to what is served. */
static struct str fingerprint(struct arena *a, const struct json *crd)
{
    const struct json *names = json_at(crd, "status", "acceptedNames", NULL);
    int64_t generation = json_get_int(json_get(crd, STR("metadata")), STR("generation"), 0);
    return arena_printf(a, "%.*s %" PRId64 " %d %.*s", STR_ARG(object_meta_text(crd, "uid")),
                        generation, object_is_deleting(crd),
                        STR_ARG(names ? json_text(a, names) : STR("")));
}

/* True, and remembered, when something else is served now than this CRD says. */
static bool must_refresh(struct crds *s, struct arena *a, const struct json *crd)
{
    struct str name = object_meta_text(crd, "name"), text = fingerprint(a, crd);
    struct served *v = map_get(&s->served, name);
    if (v && str_eq(str_range(v->text, v->n), text))
        return false;
    struct served *fresh = mem_zalloc(sizeof(*fresh) + name.n);
    memcpy(fresh->name, name.p, name.n);
    fresh->text = mem_dup(text.p, text.n);
    fresh->n = text.n;
    served_free(map_put(&s->served, str_range(fresh->name, name.n), fresh));
    return true;
}

/* ---- deletion ----------------------------------------------------------------------------- */

static int64_t now_us(const struct controller_context *ctx)
{
    return ctx->clock->wall_us(ctx->clock);
}

static struct condition terminating(const char *status, struct str reason, struct str message)
{
    return (struct condition){"Terminating", status, reason, message};
}

/* Writes the condition if it changed; *crd becomes the version written. */
static int tell(const struct controller_context *ctx, struct arena *a,
                const struct object_place *at, const struct condition *c, struct json **crd)
{
    if (!conditions_set(a, conditions_of(a, *crd), c, now_us(ctx)))
        return 0;
    return objects_update(ctx, a, at, "status", *crd, crd);
}

/* Collections are deleted by namespace; lists come in that order. */
static int delete_by_namespace(const struct controller_context *ctx, struct arena *a,
                               const struct kind *kind, const struct json *items)
{
    struct object_place at = {kind, STR_NONE, STR_NONE};
    for (size_t i = 0; i < json_count(items); i++) {
        struct str namespace = object_meta_text(&items->items[i], "namespace");
        if (i > 0 && str_eq(namespace, at.namespace))
            continue;
        at.namespace = namespace;
        int r = objects_delete_all(ctx, a, &at);
        if (r < 0)
            return r;
    }
    return 0;
}

/* How many objects are left, after asking each to go; < 0 on failure. */
static int64_t delete_instances(const struct controller_context *ctx, struct arena *a,
                                struct str collection)
{
    CLEANUP(registry_unrefp) struct registry *kinds = kube_kinds(ctx->client);
    struct object_place all = {objects_kind(kinds, collection), STR_NONE, STR_NONE};
    struct json *items = NULL;
    if (!all.kind)
        return 0;
    int r = objects_list(ctx, a, &all, &items);
    if (r < 0 || !json_count(items))
        return r;
    r = delete_by_namespace(ctx, a, all.kind, items);
    if (r == 0)
        r = objects_list(ctx, a, &all, &items);
    return r < 0 ? r : (int64_t) json_count(items);
}

static int64_t let_go(const struct controller_context *ctx, struct arena *a,
                      const struct object_place *at, const struct condition *last, struct json *crd)
{
    /* In one write, and through status: a definition that would not pass as a new one must be able
     * to go, and a write that fails must leave nothing behind that wakes us again at once. */
    struct json *finalizers = json_at(crd, "metadata", "finalizers", NULL);
    for (size_t i = json_count(finalizers); i-- > 0;)
        if (str_is(json_str(&finalizers->items[i]), CLEANUP_FINALIZER))
            json_remove_at(finalizers, i);
    (void) conditions_set(a, conditions_of(a, crd), last, now_us(ctx));
    int r = objects_update(ctx, a, at, "status", crd, &crd);
    return r == -ENOENT ? 0 : r;
}

static bool has_failed(struct arena *a, struct json *crd)
{
    const struct json *c = conditions_find(conditions_of(a, crd), "Terminating");
    return str_is(json_get_str(c, STR("reason")), "InstanceDeletionFailed");
}

/* Deletes all objects; 0 when none is left. A failure is told once, not taken back before it is
 * over: every change of what is told would wake us at once. */
static int64_t empty(struct crds *s, const struct controller_context *ctx, struct arena *a,
                     const struct object_place *at, struct json **crd)
{
    const struct condition begun = terminating("True", STR("InstanceDeletionInProgress"),
                                               STR("CustomResource deletion is in progress"));
    const struct condition failed =
        terminating("True", STR("InstanceDeletionFailed"),
                    STR("could not issue all deletes; they will be tried again"));
    int r = has_failed(a, *crd) ? 0 : tell(ctx, a, at, &begun, crd);
    if (r < 0)
        return r;
    /* No new objects from here on. */
    if (must_refresh(s, a, *crd))
        kube_refresh_kinds(ctx->client);
    int64_t n_left = delete_instances(ctx, a, at->name);
    if (n_left == 0)
        return 0;
    r = tell(ctx, a, at, n_left < 0 ? &failed : &begun, crd);
    return n_left < 0 ? n_left : r < 0 ? r : CLEANUP_AGAIN_MS;
}

static int64_t finish_deletion(struct crds *s, const struct controller_context *ctx,
                               struct arena *a, const struct object_place *at, struct json *crd)
{
    const struct condition never =
        terminating("False", STR("NeverEstablished"), STR("resource was never established"));
    const struct condition done =
        terminating("False", STR("InstanceDeletionCompleted"), STR("removed all instances"));
    if (!object_has_finalizer(crd, CLEANUP_FINALIZER))
        return 0;
    if (!conditions_is_true(conditions_of(a, crd), "Established"))
        return let_go(ctx, a, at, &never, crd);
    int64_t r = empty(s, ctx, a, at, &crd);
    if (r == 0)
        r = let_go(ctx, a, at, &done, crd);
    return r == -ENOENT ? 0 : r;
}

/* ---- establishing ------------------------------------------------------------------------- */

/* True when that changed anything. */
static bool write_names(const struct controller_context *ctx, struct arena *a, struct json *crd,
                        const struct crd_verdict *v)
{
    struct json *conditions = conditions_of(a, crd);
    bool is_accepted = !v->reason.n;
    const struct condition names = {"NamesAccepted", is_accepted ? "True" : "False",
                                    is_accepted ? STR("NoConflicts") : v->reason,
                                    is_accepted ? STR("no conflicts found") : v->message};
    const struct condition not_yet = {"Established", "False",
                                      is_accepted ? STR("Installing") : STR("NotAccepted"),
                                      is_accepted ? STR("the initial names have been accepted")
                                                  : STR("not all names are accepted")};
    bool has_changed = conditions_set(a, conditions, &names, now_us(ctx));
    /* Once served it stays served, whatever names it asks for later. */
    if (!conditions_is_true(conditions, "Established"))
        has_changed |= conditions_set(a, conditions, &not_yet, now_us(ctx));
    struct json *status = json_get(crd, STR("status"));
    const struct json *had = json_get(status, STR("acceptedNames"));
    if (had && json_equal(had, &v->accepted))
        return has_changed;
    (void) json_set(a, status, STR("acceptedNames"), v->accepted);
    return true;
}

static int accept_names(const struct controller_context *ctx, struct arena *a,
                        const struct object_place *at, struct json **crd)
{
    struct object_place all = {at->kind, STR_NONE, STR_NONE};
    struct json *others = NULL;
    int r = objects_list(ctx, a, &all, &others);
    if (r < 0)
        return r;
    struct crd_verdict v = crd_judge_names(a, *crd, others);
    return write_names(ctx, a, *crd, &v) ? objects_update(ctx, a, at, "status", *crd, crd) : 0;
}

/* Its names are accepted, then it is served, then it says so: whoever reads that can rely on it. */
static int64_t establish(struct crds *s, const struct controller_context *ctx, struct arena *a,
                         const struct object_place *at, struct json *crd)
{
    int r = accept_names(ctx, a, at, &crd);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    struct json *conditions = conditions_of(a, crd);
    bool was_established = conditions_is_true(conditions, "Established");
    bool is_new = !was_established && conditions_is_true(conditions, "NamesAccepted");
    bool is_stale = (is_new || was_established) && must_refresh(s, a, crd);
    if (is_stale && was_established)
        controller_enqueue(s->queue, KEY_REFRESH, 0); /* once for all that are waiting */
    else if (is_stale)
        kube_refresh_kinds(ctx->client);
    if (!is_new)
        return 0;
    const struct condition established = {"Established", "True", STR("InitialNamesAccepted"),
                                          STR("the initial names have been accepted")};
    (void) conditions_set(a, conditions, &established, now_us(ctx));
    r = objects_update(ctx, a, at, "status", crd, NULL);
    return r == -ENOENT ? 0 : r;
}

/* ---- reconcile ---------------------------------------------------------------------------- */

/* A name that became free may be what another one is waiting for. */
static int64_t wake_refused(struct crds *s, const struct controller_context *ctx, struct arena *a,
                            const struct registry *kinds)
{
    struct object_place all = place_of(kinds, STR_NONE);
    struct json *crds = NULL;
    int r = objects_list(ctx, a, &all, &crds);
    if (r < 0)
        return r;
    JSON_FOR_EACH_ITEM (crds, crd)
        if (!conditions_is_true(json_at(crd, "status", "conditions", NULL), "NamesAccepted"))
            controller_enqueue(s->queue, object_meta_text(crd, "name"), 0);
    kube_refresh_kinds(ctx->client);
    return 0;
}

static int64_t reconcile(void *state, const struct controller_context *ctx, struct str key)
{
    struct crds *s = state;
    ARENA_AUTO a = arena_new();
    CLEANUP(registry_unrefp) struct registry *kinds = kube_kinds(ctx->client);
    if (str_eq(key, KEY_NAMES_FREED))
        return wake_refused(s, ctx, a, kinds);
    if (str_eq(key, KEY_REFRESH)) {
        kube_refresh_kinds(ctx->client);
        return 0;
    }
    struct object_place at = place_of(kinds, key);
    struct json *crd = NULL;
    int r = objects_get(ctx, a, &at, &crd);
    if (r < 0) {
        if (r == -ENOENT)
            served_free(map_remove(&s->served, key));
        return r == -ENOENT ? 0 : r;
    }
    return object_is_deleting(crd) ? finish_deletion(s, ctx, a, &at, crd)
                                   : establish(s, ctx, a, &at, crd);
}

const struct controller crd_controller = {.name = "customresourcedefinitions",
                                          .start = start,
                                          .on_event = on_event,
                                          .reconcile = reconcile,
                                          .stop = stop};
