/* SPDX-License-Identifier: Apache-2.0 */
/* Claims and volumes that are being deleted go when nothing uses them any more. */
#include "controllers/protection.h"

#include <errno.h>

#include "controllers/objects.h"

/* A user of the claim that is being written at this moment is seen before it goes. */
#define SETTLE_MS 1000
/* An Application may let go of a claim by an edit, which is found out this way. */
#define LOOK_AGAIN_MS 30000

/* Users of one claim that are looked at. Who deletes while more than these use it is refused
 * before. */
#define USERS_MAX 256

#define CLAIMS "persistentvolumeclaims"
#define APPLICATIONS "applications.eve.lfedge.org"

static const struct protected_kind {
    const char *plural, *finalizer;
} protected_kinds[] = {
    {CLAIMS, "kubernetes.io/pvc-protection"},
    {"persistentvolumes", "kubernetes.io/pv-protection"},
};

static const struct protected_kind *find_kind(struct str collection)
{
    for (size_t i = 0; i < N_ELEMENTS(protected_kinds); i++)
        if (str_is(collection, protected_kinds[i].plural))
            return &protected_kinds[i];
    return NULL;
}

/* ---- waking: keys are "plural/namespace/name" --------------------------------------------------
 */

static void wake(struct controller_queue *q, struct str plural, struct str namespace,
                 struct str name)
{
    ARENA_AUTO a = arena_new();
    const struct str parts[] = {plural, STR("/"), namespace, STR("/"), name};
    controller_enqueue(q, arena_join(a, parts, N_ELEMENTS(parts)), SETTLE_MS);
}

/* The claim of a volume of an Application; "" for none. */
static struct str claim_of(struct arena *a, struct str application, const struct json *volume)
{
    const struct str name = json_str(json_at(volume, "persistentVolumeClaim", "claimName", NULL));
    if (name.n || !json_is(json_get(volume, STR("ephemeral")), JSON_OBJECT))
        return name;
    return arena_printf(a, "%.*s-%.*s", STR_ARG(application),
                        STR_ARG(json_get_str(volume, STR("name"))));
}

/* Who goes lets go of claims. */
static void on_application(const struct kube_event *e, struct controller_queue *q)
{
    if (!e->is_deleting && e->type != KUBE_DELETED)
        return;
    ARENA_AUTO a = arena_new();
    JSON_FOR_EACH_ITEM (json_at(kube_event_object(e, a), "spec", "volumes", NULL), volume) {
        const struct str claim = claim_of(a, e->name, volume);
        if (claim.n)
            wake(q, STR(CLAIMS), e->namespace, claim);
    }
}

static void on_event(void *state, const struct kube_event *e, struct controller_queue *q)
{
    (void) state;
    if (str_is(e->collection, APPLICATIONS))
        on_application(e, q);
    else if (e->is_deleting && e->type != KUBE_DELETED && find_kind(e->collection))
        wake(q, e->collection, e->namespace, e->name);
}

/* ---- whether it is used ------------------------------------------------------------------------
 */

/* As for what may be deleted at all: users that are being deleted do not count; nor does, with a
 * uid given, a later one of the same name. */
static int is_used_by(const struct controller_context *ctx, struct arena *a,
                      const struct object_place *application, struct str uid, struct str claim)
{
    struct json *object = NULL;
    const int r = objects_get(ctx, a, application, &object);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    if (uid.n && !str_eq(object_meta_text(object, "uid"), uid))
        return 0;
    JSON_FOR_EACH_ITEM (json_at(object, "spec", "volumes", NULL), volume)
        if (str_eq(claim_of(a, application->name, volume), claim))
            return !object_is_deleting(object);
    return 0;
}

/* 1, 0 or a negative errno. Whose own the claim is does not refer to it by name. */
static int is_claim_used(const struct controller_context *ctx, struct arena *a,
                         const struct object_place *claim, const struct json *object,
                         struct object_place *user)
{
    struct str *keys = NULL;
    const struct str key =
        arena_printf(a, CLAIMS "/%.*s/%.*s", STR_ARG(claim->namespace), STR_ARG(claim->name));
    const size_t n = kube_users(ctx->client, a, key, USERS_MAX, &keys);
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        struct str rest = keys[i], collection = STR_NONE;
        (void) str_split(&rest, '/', &collection);
        (void) str_split(&rest, '/', &user->namespace);
        user->name = rest;
        if (str_is(collection, APPLICATIONS))
            r = is_used_by(ctx, a, user, STR_NONE, claim->name);
    }
    if (r == 0 && n == USERS_MAX)
        return 1;
    JSON_FOR_EACH_ITEM (object_meta_at(object, "ownerReferences"), owner) {
        if (r != 0 || !str_is(json_get_str(owner, STR("kind")), "Application"))
            continue;
        *user =
            (struct object_place){user->kind, claim->namespace, json_get_str(owner, STR("name"))};
        r = is_used_by(ctx, a, user, json_get_str(owner, STR("uid")), claim->name);
    }
    return r;
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
    if (!object_is_deleting(object))
        return 0;
    if (!str_is(plural, CLAIMS) &&
        str_is(json_str(json_at(object, "status", "phase", NULL)), "Bound"))
        return 0;
    struct object_place user = {.kind = objects_kind(kinds, STR(APPLICATIONS))};
    r = str_is(plural, CLAIMS) ? is_claim_used(ctx, a, &at, object, &user) : 0;
    if (r != 0)
        return r < 0 ? r : LOOK_AGAIN_MS;
    return objects_drop_finalizer(ctx, a, &at, object, p->finalizer);
}

const struct controller protection_controller = {
    .name = "volume-protection", .on_event = on_event, .reconcile = reconcile};
