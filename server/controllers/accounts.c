/* SPDX-License-Identifier: Apache-2.0 */
/* What every active namespace has: the ServiceAccount `default` and the ConfigMap with the
 * certificate that clients inside trust. */
#include "controllers/accounts.h"

#include <errno.h>

#include "controllers/objects.h"

#define ACCOUNT STR("default")
#define ROOT_CA STR("kube-root-ca.crt")
#define ROOT_CA_FILE STR("ca.crt")
#define DESCRIPTION STR("kubernetes.io/description")
#define DESCRIPTION_TEXT \
    STR("Contains a CA bundle that can be used to verify the kube-apiserver when using internal " \
        "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is " \
        "guaranteed across distributions of Kubernetes clusters.")

/* Keys are names of namespaces. */
static void on_event(void *state, const struct kube_event *e, struct controller_queue *q)
{
    (void) state;
    bool is_gone = e->type == KUBE_DELETED;
    if (str_is(e->collection, "namespaces") && !is_gone && !e->is_deleting)
        controller_enqueue(q, e->name, 0);
    else if (str_is(e->collection, "serviceaccounts") && is_gone && str_eq(e->name, ACCOUNT))
        controller_enqueue(q, e->namespace, 0);
    else if (str_is(e->collection, "configmaps") && str_eq(e->name, ROOT_CA))
        controller_enqueue(q, e->namespace, 0);
}

static struct json named(struct arena *a, struct str name)
{
    struct json object = json_object(), meta = json_object();
    (void) json_append_member(a, &meta, STR("name"), json_string(name));
    (void) json_append_member(a, &object, STR("metadata"), meta);
    return object;
}

/* Somebody else made it, or the namespace has begun to go: both are fine. */
static int create(const struct controller_context *ctx, struct arena *a,
                  const struct object_place *at, const struct json *object)
{
    int r = objects_create(ctx, a, at, object);
    return r == -EEXIST || r == -EPERM || r == -ENOENT ? 0 : r;
}

static int ensure_account(const struct controller_context *ctx, struct arena *a,
                          const struct registry *kinds, struct str namespace)
{
    struct object_place at = {registry_find(kinds, STR(""), STR("v1"), STR("serviceaccounts")),
                              namespace, ACCOUNT};
    struct json *there = NULL;
    int r = objects_get(ctx, a, &at, &there);
    if (r != -ENOENT)
        return r;
    struct json account = named(a, ACCOUNT);
    return create(ctx, a, &at, &account);
}

/* ---- the certificate ---------------------------------------------------------------------- */

static void fill(const struct controller_context *ctx, struct arena *a, struct json *map)
{
    struct json data = json_object();
    (void) json_append_member(a, &data, ROOT_CA_FILE, json_string(ctx->root_ca_pem));
    (void) json_set(a, map, STR("data"), data);
    struct json *meta = json_ensure_object(a, map, STR("metadata"));
    struct json *annotations = json_ensure_object(a, meta, STR("annotations"));
    (void) json_set(a, annotations, DESCRIPTION, json_string(DESCRIPTION_TEXT));
}

static bool is_filled(const struct controller_context *ctx, const struct json *map)
{
    const struct json *data = json_get(map, STR("data"));
    return json_count(data) == 1 && str_eq(json_get_str(data, ROOT_CA_FILE), ctx->root_ca_pem) &&
           json_get_str(object_meta_at(map, "annotations"), DESCRIPTION).n;
}

static int ensure_root_ca(const struct controller_context *ctx, struct arena *a,
                          const struct registry *kinds, struct str namespace)
{
    struct object_place at = {registry_find(kinds, STR(""), STR("v1"), STR("configmaps")),
                              namespace, ROOT_CA};
    struct json *map = NULL;
    int r = objects_get(ctx, a, &at, &map);
    if (r == -ENOENT) {
        struct json fresh = named(a, ROOT_CA);
        fill(ctx, a, &fresh);
        return create(ctx, a, &at, &fresh);
    }
    if (r < 0 || is_filled(ctx, map))
        return r;
    fill(ctx, a, map);
    r = objects_update(ctx, a, &at, "", map, NULL);
    return r == -ENOENT ? -EAGAIN : r;
}

/* ------------------------------------------------------------------------------------------- */

static int64_t reconcile(void *state, const struct controller_context *ctx, struct str key)
{
    (void) state;
    ARENA_AUTO a = arena_new();
    CLEANUP(registry_unrefp) struct registry *kinds = kube_kinds(ctx->client);
    struct object_place at = {registry_find(kinds, STR(""), STR("v1"), STR("namespaces")), STR_NONE,
                              key};
    struct json *namespace = NULL;
    int r = objects_get(ctx, a, &at, &namespace);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    if (object_is_deleting(namespace))
        return 0;
    r = ensure_account(ctx, a, kinds, key);
    return r < 0 ? r : ensure_root_ca(ctx, a, kinds, key);
}

const struct controller accounts_controller = {
    .name = "namespace-accounts", .on_event = on_event, .reconcile = reconcile};
