/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets of type kubernetes.io/service-account-token: those that name a ServiceAccount get a token
 * of it that does not expire, the certificate to trust and the namespace; those whose account is
 * gone go too, and an account forgets a Secret that is gone. */
#include "controllers/token_secrets.h"

#include <errno.h>

#include "api/token/token_issuer.h"
#include "base/base64.h"
#include "controllers/objects.h"

#define SECRET_TYPE "kubernetes.io/service-account-token"
#define ACCOUNT_NAME "kubernetes.io/service-account.name"
#define ACCOUNT_UID "kubernetes.io/service-account.uid"

/* Keys are "<namespace>/<secret>", and for all Secrets of an account that is gone "<namespace>". */
static void on_event(void *state, const struct kube_event *e, struct controller_queue *q)
{
    (void) state;
    if (str_is(e->collection, "serviceaccounts") && e->type == KUBE_DELETED)
        controller_enqueue(q, e->namespace, 0);
    if (!str_is(e->collection, "secrets") || str_find_str(e->text, STR(SECRET_TYPE)) < 0)
        return;
    ARENA_AUTO a = arena_new();
    controller_enqueue(q, arena_printf(a, "%.*s/%.*s", STR_ARG(e->namespace), STR_ARG(e->name)), 0);
}

struct task {
    const struct controller_context *ctx;
    struct arena *arena;
    const struct registry *kinds;
    struct str namespace;
};

static struct object_place place(const struct task *t, const char *plural, struct str name)
{
    return (struct object_place){registry_find(t->kinds, STR(""), STR("v1"), str_of(plural)),
                                 t->namespace, name};
}

/* ---- filling ------------------------------------------------------------------------------ */

static bool put(struct task *t, struct json *data, const char *key, struct str value)
{
    const struct str text = base64_encode(t->arena, value, BASE64_STANDARD);
    if (str_eq(json_get_str(data, str_of(key)), text))
        return false;
    (void) json_set(t->arena, data, str_of(key), json_string(text));
    return true;
}

static struct str make_token(struct task *t, const struct json *secret, const struct json *account)
{
    struct account_claims claims = {
        .is_legacy = true,
        .namespace = t->namespace,
        .account = {object_meta_text(account, "name"), object_meta_text(account, "uid")},
        .secret = {.name = object_meta_text(secret, "name")}};
    return token_issuer_sign(t->ctx->token_issuer, t->arena, &claims);
}

/* True when something was missing. */
static bool fill(struct task *t, struct json *secret, const struct json *account)
{
    struct json *data = json_ensure_object(t->arena, secret, STR("data"));
    bool is_changed = put(t, data, "ca.crt", t->ctx->root_ca_pem);
    is_changed |= put(t, data, "namespace", t->namespace);
    if (!json_get_str(data, STR("token")).n)
        is_changed |= put(t, data, "token", make_token(t, secret, account));
    json_sort_members(data);
    struct json *meta = json_ensure_object(t->arena, secret, STR("metadata"));
    struct json *annotations = json_ensure_object(t->arena, meta, STR("annotations"));
    const struct str uid = object_meta_text(account, "uid");
    if (!str_eq(json_get_str(annotations, STR(ACCOUNT_UID)), uid)) {
        (void) json_set(t->arena, annotations, STR(ACCOUNT_UID), json_string(uid));
        is_changed = true;
    }
    return is_changed;
}

static int remove_secret(struct task *t, const struct object_place *at, const struct json *secret)
{
    const struct delete_terms terms = {.uid = object_meta_text(secret, "uid")};
    return objects_delete(t->ctx, t->arena, at, &terms);
}

static int sync_secret(struct task *t, struct str name, struct json *secret)
{
    const struct json *annotations = object_meta_at(secret, "annotations");
    const struct str account_name = json_get_str(annotations, STR(ACCOUNT_NAME));
    const struct str uid = json_get_str(annotations, STR(ACCOUNT_UID));
    if (!str_is(json_get_str(secret, STR("type")), SECRET_TYPE) || !account_name.n ||
        object_is_deleting(secret))
        return 0;
    const struct object_place at = place(t, "secrets", name);
    const struct object_place account_at = place(t, "serviceaccounts", account_name);
    struct json *account = NULL;
    int r = objects_get(t->ctx, t->arena, &account_at, &account);
    if (r == -ENOENT || (r == 0 && uid.n && !str_eq(uid, object_meta_text(account, "uid"))))
        return remove_secret(t, &at, secret);
    if (r < 0 || !fill(t, secret, account))
        return r;
    r = objects_update(t->ctx, t->arena, &at, "", secret, NULL);
    return r == -ENOENT ? 0 : r;
}

/* ---- forgetting --------------------------------------------------------------------------- */

static bool drop_reference(struct json *account, struct str secret)
{
    struct json *list = json_get(account, STR("secrets"));
    bool is_changed = false;
    for (size_t i = json_count(list); i-- > 0;) {
        if (!str_eq(json_get_str(&list->items[i], STR("name")), secret))
            continue;
        json_remove_at(list, i);
        is_changed = true;
    }
    return is_changed;
}

static int forget_secret(struct task *t, struct str secret)
{
    const struct object_place all = place(t, "serviceaccounts", STR_NONE);
    struct json *items = NULL;
    int r = objects_list(t->ctx, t->arena, &all, &items);
    JSON_FOR_EACH_ITEM (items, account) {
        if (!drop_reference(account, secret))
            continue;
        const struct object_place at =
            place(t, "serviceaccounts", object_meta_text(account, "name"));
        const int one = objects_update(t->ctx, t->arena, &at, "", account, NULL);
        r = r < 0 || one == -ENOENT ? r : one;
    }
    return r;
}

/* ------------------------------------------------------------------------------------------- */

static int sync_namespace(struct task *t)
{
    const struct object_place all = place(t, "secrets", STR_NONE);
    struct json *items = NULL;
    int r = objects_list(t->ctx, t->arena, &all, &items);
    JSON_FOR_EACH_ITEM (items, secret) {
        const int one = sync_secret(t, object_meta_text(secret, "name"), secret);
        r = r < 0 ? r : one;
    }
    return r;
}

static int64_t reconcile(void *state, const struct controller_context *ctx, struct str key)
{
    (void) state;
    ARENA_AUTO a = arena_new();
    CLEANUP(registry_unrefp) struct registry *kinds = kube_kinds(ctx->client);
    const ptrdiff_t slash = str_find(key, '/');
    struct task t = {ctx, a, kinds, slash < 0 ? key : str_sub(key, 0, (size_t) slash)};
    if (slash < 0)
        return sync_namespace(&t);
    const struct str name = str_from(key, (size_t) slash + 1);
    const struct object_place at = place(&t, "secrets", name);
    struct json *secret = NULL;
    const int r = objects_get(ctx, a, &at, &secret);
    if (r == -ENOENT)
        return forget_secret(&t, name);
    return r < 0 ? r : sync_secret(&t, name, secret);
}

const struct controller token_secrets_controller = {
    .name = "token-secrets", .on_event = on_event, .reconcile = reconcile};
