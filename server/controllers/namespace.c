/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces that are being deleted: everything in them is deleted first, and what remains is told
 * in their conditions. */
#include "controllers/namespace.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/map.h"
#include "controllers/conditions.h"
#include "controllers/objects.h"

#define FINALIZER "kubernetes"
/* Objects that go wake us; this is for those whose going we might have missed. */
#define AGAIN_MS 5000

/* ---- which namespaces there are ----------------------------------------------------------- */

struct known {
    bool is_deleting;
    size_t n;
    char name[];
};

struct namespaces {
    pthread_mutex_t lock;
    struct map known; /* name -> struct known */
};

static void *start(const struct controller_context *ctx, struct controller_queue *q)
{
    (void) ctx;
    (void) q;
    struct namespaces *s = NEW(struct namespaces);
    (void) pthread_mutex_init(&s->lock, NULL);
    return s;
}

static void stop(void *state)
{
    struct namespaces *s = state;
    size_t position = 0;
    struct map_entry entry;
    while (map_next(&s->known, &position, &entry))
        mem_free(entry.value);
    map_done(&s->known);
    (void) pthread_mutex_destroy(&s->lock);
    mem_free(s);
}

static void remember(struct namespaces *s, const struct kube_event *e)
{
    struct known *k = map_get(&s->known, e->name);
    if (e->type == KUBE_DELETED) {
        mem_free(map_remove(&s->known, e->name));
        return;
    }
    if (!k) {
        k = mem_zalloc(sizeof(*k) + e->name.n);
        k->n = e->name.n;
        memcpy(k->name, e->name.p, e->name.n);
        (void) map_put(&s->known, str_range(k->name, k->n), k);
    }
    k->is_deleting = e->is_deleting;
}

/* Keys are names of namespaces. An object in a namespace that is going may have been the last; one
 * in a namespace that is gone was written while that went, and must go as well. */
static void on_event(void *state, const struct kube_event *e, struct controller_queue *q)
{
    struct namespaces *s = state;
    bool is_namespace = str_is(e->collection, "namespaces");
    if (!is_namespace && !e->namespace.n)
        return;
    (void) pthread_mutex_lock(&s->lock);
    if (is_namespace) {
        remember(s, e);
        if (e->is_deleting && e->type != KUBE_DELETED)
            controller_enqueue(q, e->name, 0);
    } else {
        const struct known *k = map_get(&s->known, e->namespace);
        if (k ? k->is_deleting : e->type != KUBE_DELETED)
            controller_enqueue(q, e->namespace, 0);
    }
    (void) pthread_mutex_unlock(&s->lock);
}

/* ---- what is left ------------------------------------------------------------------------- */

/* What one look at all kinds found; lines are kept for the messages, sorted. */
struct remains {
    struct arena *arena;
    size_t n_objects;
    struct json resources;  /* array of texts */
    struct json finalizers; /* name -> count */
    struct json failures;   /* array of texts */
};

static void count_finalizers(struct remains *m, const struct json *object)
{
    JSON_FOR_EACH_ITEM (object_meta_at(object, "finalizers"), f) {
        int64_t n = json_get_int(&m->finalizers, json_str(f), 0);
        (void) json_set(m->arena, &m->finalizers, json_str(f), json_int(n + 1));
    }
}

static void count_remaining(struct remains *m, const struct kind *kind, const struct json *items)
{
    if (!json_count(items))
        return;
    m->n_objects += json_count(items);
    struct str line = arena_printf(m->arena, "%.*s.%.*s has %zu resource instances",
                                   STR_ARG(kind->plural), STR_ARG(kind->group), json_count(items));
    (void) json_push(m->arena, &m->resources, json_string(line));
    JSON_FOR_EACH_ITEM (items, item)
        count_finalizers(m, item);
}

/* Deletes what is there and counts what stays. */
static int empty_kind(const struct controller_context *ctx, struct remains *m,
                      const struct object_place *at)
{
    struct json *items = NULL;
    int r = objects_list(ctx, m->arena, at, &items);
    if (r < 0 || !json_count(items))
        return r;
    r = objects_delete_all(ctx, m->arena, at);
    if (r < 0)
        return r;
    r = objects_list(ctx, m->arena, at, &items);
    if (r < 0)
        return r;
    count_remaining(m, at->kind, items);
    return 0;
}

/* Runs step for every kind that namespaces have. */
static void for_each_kind(const struct controller_context *ctx, struct remains *m,
                          struct str namespace,
                          int (*step)(const struct controller_context *ctx, struct remains *m,
                                      const struct object_place *at))
{
    CLEANUP(registry_unrefp) struct registry *kinds = kube_kinds(ctx->client);
    size_t position = 0;
    struct map_entry entry;
    while (map_next(&kinds->collections, &position, &entry)) {
        struct object_place at = {objects_kind(kinds, entry.key), namespace, STR_NONE};
        if (!at.kind || !at.kind->is_namespaced)
            continue;
        int r = step(ctx, m, &at);
        if (r < 0 && r != -ENOENT)
            (void) json_push(
                m->arena, &m->failures,
                json_string(arena_printf(m->arena, "%.*s.%.*s: %s", STR_ARG(at.kind->plural),
                                         STR_ARG(at.kind->group), log_errno_text(r))));
    }
}

/* ---- conditions --------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    return str_cmp(json_str(a), json_str(b));
}

static struct str join_sorted(struct arena *a, struct json *lines)
{
    struct str all = STR("");
    if (json_count(lines))
        qsort(lines->items, lines->n, sizeof(struct json), by_text);
    JSON_FOR_EACH_ITEM (lines, line)
        all =
            arena_printf(a, "%.*s%s%.*s", STR_ARG(all), all.n ? ", " : "", STR_ARG(json_str(line)));
    return all;
}

static struct str finalizer_lines(struct arena *a, const struct json *finalizers)
{
    struct json lines = json_array();
    JSON_FOR_EACH_MEMBER (finalizers, m)
        (void) json_push(a, &lines,
                         json_string(arena_printf(a, "%.*s in %" PRId64 " resource instances",
                                                  STR_ARG(json_str(&m->key)), m->value.i)));
    return join_sorted(a, &lines);
}

static struct condition content_failure(struct remains *m)
{
    if (!json_count(&m->failures))
        return (struct condition){
            "NamespaceDeletionContentFailure", "False", STR("ContentDeleted"),
            STR("All content successfully deleted, may be waiting on finalization")};
    return (struct condition){
        "NamespaceDeletionContentFailure", "True", STR("ContentDeletionFailed"),
        arena_printf(m->arena, "Failed to delete all resource types, %zu remaining: %.*s",
                     json_count(&m->failures), STR_ARG(join_sorted(m->arena, &m->failures)))};
}

static struct condition content_remaining(struct remains *m)
{
    if (!m->n_objects)
        return (struct condition){"NamespaceContentRemaining", "False", STR("ContentRemoved"),
                                  STR("All content successfully removed")};
    return (struct condition){"NamespaceContentRemaining", "True", STR("SomeResourcesRemain"),
                              arena_printf(m->arena, "Some resources are remaining: %.*s",
                                           STR_ARG(join_sorted(m->arena, &m->resources)))};
}

static struct condition finalizers_remaining(struct remains *m)
{
    if (!json_count(&m->finalizers))
        return (struct condition){"NamespaceFinalizersRemaining", "False",
                                  STR("ContentHasNoFinalizers"),
                                  STR("All content-preserving finalizers finished")};
    return (struct condition){
        "NamespaceFinalizersRemaining", "True", STR("SomeFinalizersRemain"),
        arena_printf(m->arena, "Some content in the namespace has finalizers remaining: %.*s",
                     STR_ARG(finalizer_lines(m->arena, &m->finalizers)))};
}

/* Writes the conditions if they changed; *namespace becomes the version written. */
static int tell(const struct controller_context *ctx, struct remains *m,
                const struct object_place *at, struct json **namespace)
{
    const struct condition all[] = {
        {"NamespaceDeletionDiscoveryFailure", "False", STR("ResourcesDiscovered"),
         STR("All resources successfully discovered")},
        {"NamespaceDeletionGroupVersionParsingFailure", "False", STR("ParsedGroupVersions"),
         STR("All legacy kube types successfully parsed")},
        content_failure(m),
        content_remaining(m),
        finalizers_remaining(m),
    };
    struct json *conditions = conditions_of(m->arena, *namespace);
    bool has_changed = false;
    for (size_t i = 0; i < N_ELEMENTS(all); i++)
        has_changed |=
            conditions_set(m->arena, conditions, &all[i], ctx->clock->wall_us(ctx->clock));
    return has_changed ? objects_update(ctx, m->arena, at, "status", *namespace, namespace) : 0;
}

/* ---- reconcile ---------------------------------------------------------------------------- */

static int finalize(const struct controller_context *ctx, struct arena *a,
                    const struct object_place *at, struct json *namespace)
{
    struct json kept = json_array();
    JSON_FOR_EACH_ITEM (json_at(namespace, "spec", "finalizers", NULL), f)
        if (!str_is(json_str(f), FINALIZER))
            (void) json_push(a, &kept, *f);
    struct json *spec = json_ensure_object(a, namespace, STR("spec"));
    (void) json_set(a, spec, STR("finalizers"), kept);
    int r = objects_update(ctx, a, at, "finalize", namespace, NULL);
    return r == -ENOENT ? 0 : r;
}

static bool is_finalized(const struct json *namespace)
{
    JSON_FOR_EACH_ITEM (json_at(namespace, "spec", "finalizers", NULL), f)
        if (str_is(json_str(f), FINALIZER))
            return false;
    return true;
}

static int64_t terminate(const struct controller_context *ctx, struct remains *m,
                         const struct object_place *at, struct json *namespace)
{
    if (is_finalized(namespace))
        return 0;
    for_each_kind(ctx, m, at->name, empty_kind);
    int r = tell(ctx, m, at, &namespace);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    if (json_count(&m->failures))
        return -EAGAIN;
    return m->n_objects ? AGAIN_MS : finalize(ctx, m->arena, at, namespace);
}

/* Deletes what was written while its namespace went. What is listed before the namespace is seen to
 * be absent cannot belong to a new one of that name. */
static int sweep_kind(const struct controller_context *ctx, struct remains *m,
                      const struct object_place *at)
{
    struct json *items = NULL, *namespace = NULL;
    int r = objects_list(ctx, m->arena, at, &items);
    if (r < 0 || !json_count(items))
        return r;
    CLEANUP(registry_unrefp) struct registry *kinds = kube_kinds(ctx->client);
    struct object_place home = {registry_find(kinds, STR(""), STR("v1"), STR("namespaces")),
                                STR_NONE, at->namespace};
    if (objects_get(ctx, m->arena, &home, &namespace) != -ENOENT)
        return 0;
    JSON_FOR_EACH_ITEM (items, item) {
        struct object_place one = {at->kind, at->namespace, object_meta_text(item, "name")};
        struct delete_terms terms = {.uid = object_meta_text(item, "uid")};
        r = objects_delete(ctx, m->arena, &one, &terms);
        if (r < 0)
            return r;
    }
    return 0;
}

static int64_t reconcile(void *state, const struct controller_context *ctx, struct str key)
{
    (void) state;
    ARENA_AUTO a = arena_new();
    CLEANUP(registry_unrefp) struct registry *kinds = kube_kinds(ctx->client);
    struct object_place at = {registry_find(kinds, STR(""), STR("v1"), STR("namespaces")), STR_NONE,
                              key};
    struct remains m = {.arena = a,
                        .resources = json_array(),
                        .finalizers = json_object(),
                        .failures = json_array()};
    struct json *namespace = NULL;
    int r = objects_get(ctx, a, &at, &namespace);
    if (r == 0)
        return object_is_deleting(namespace) ? terminate(ctx, &m, &at, namespace) : 0;
    if (r != -ENOENT)
        return r;
    for_each_kind(ctx, &m, key, sweep_kind);
    return json_count(&m.failures) ? -EAGAIN : 0;
}

const struct controller namespace_controller = {.name = "namespaces",
                                                .start = start,
                                                .on_event = on_event,
                                                .reconcile = reconcile,
                                                .stop = stop};
