/* SPDX-License-Identifier: Apache-2.0 */
/* Claims and volumes that are being deleted go when nothing uses them any more. */
#include "controllers/protection.h"

#include <errno.h>

#include "controllers/objects.h"

/* A user of the claim that is being written at this moment is seen before it goes. */
#define SETTLE_MS 1000

static const struct protected_kind {
    const char *plural, *finalizer;
    bool is_used_when_bound;
} protected_kinds[] = {
    /* Nothing mounts a claim yet. */
    {"persistentvolumeclaims", "kubernetes.io/pvc-protection", false},
    {"persistentvolumes", "kubernetes.io/pv-protection", true},
};

static const struct protected_kind *find_kind(struct str collection)
{
    for (size_t i = 0; i < N_ELEMENTS(protected_kinds); i++)
        if (str_is(collection, protected_kinds[i].plural))
            return &protected_kinds[i];
    return NULL;
}

/* Keys are "plural/namespace/name". */
static void on_event(void *state, const struct kube_event *e, struct controller_queue *q)
{
    (void) state;
    if (!e->is_deleting || e->type == KUBE_DELETED || !find_kind(e->collection))
        return;
    ARENA_AUTO a = arena_new();
    controller_enqueue(q,
                       arena_printf(a, "%.*s/%.*s/%.*s", STR_ARG(e->collection),
                                    STR_ARG(e->namespace), STR_ARG(e->name)),
                       SETTLE_MS);
}

static bool is_used(const struct protected_kind *p, const struct json *object)
{
    return p->is_used_when_bound &&
           str_is(json_str(json_at(object, "status", "phase", NULL)), "Bound");
}

static int64_t reconcile(void *state, const struct controller_context *ctx, struct str key)
{
    (void) state;
    ARENA_AUTO a = arena_new();
    CLEANUP(registry_unrefp) struct registry *kinds = kube_kinds(ctx->client);
    struct str plural = STR_NONE, namespace = STR_NONE;
    (void) str_split(&key, '/', &plural);
    (void) str_split(&key, '/', &namespace);
    const struct protected_kind *p = find_kind(plural);
    struct object_place at = {registry_find(kinds, STR(""), STR("v1"), plural), namespace, key};
    struct json *object = NULL;
    int r = objects_get(ctx, a, &at, &object);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    if (!object_is_deleting(object) || is_used(p, object))
        return 0;
    return objects_drop_finalizer(ctx, a, &at, object, p->finalizer);
}

const struct controller protection_controller = {
    .name = "volume-protection", .on_event = on_event, .reconcile = reconcile};
