/* SPDX-License-Identifier: Apache-2.0 */
/* ResourceQuotas: status tells how much of what they limit is in use. */
#include "controllers/quota.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>

#include "api/quota.h"
#include "base/alloc.h"
#include "base/map.h"
#include "controllers/objects.h"

#define QUOTAS "resourcequotas"

/* ---- where there are quotas --------------------------------------------------------------- */

/* Both maps own their values, of which the keys are a part. */
struct quotas {
    pthread_mutex_t lock;
    struct map names;      /* "namespace/name" -> struct counted, of every quota */
    struct map namespaces; /* namespace -> struct counted: how many quotas it has */
};

struct counted {
    size_t n_quotas;
    char key[];
};

static void *start(const struct controller_context *ctx, struct controller_queue *q)
{
    (void) ctx;
    (void) q;
    struct quotas *s = NEW(struct quotas);
    (void) pthread_mutex_init(&s->lock, NULL);
    return s;
}

static void free_values(struct map *m)
{
    size_t position = 0;
    struct map_entry entry;
    while (map_next(m, &position, &entry))
        mem_free(entry.value);
    map_done(m);
}

static void stop(void *state)
{
    struct quotas *s = state;
    free_values(&s->names);
    free_values(&s->namespaces);
    (void) pthread_mutex_destroy(&s->lock);
    mem_free(s);
}

static struct counted *ensure(struct map *m, struct str key)
{
    struct counted *c = map_get(m, key);
    if (c)
        return c;
    c = mem_zalloc(sizeof(*c) + key.n);
    memcpy(c->key, key.p, key.n);
    (void) map_put(m, str_range(c->key, key.n), c);
    return c;
}

static void remember(struct quotas *s, const struct kube_event *e)
{
    ARENA_AUTO a = arena_new();
    struct str name = arena_printf(a, "%.*s/%.*s", STR_ARG(e->namespace), STR_ARG(e->name));
    bool was_known = map_get(&s->names, name) != NULL;
    if (e->type != KUBE_DELETED && !was_known) {
        (void) ensure(&s->names, name);
        ensure(&s->namespaces, e->namespace)->n_quotas++;
    } else if (e->type == KUBE_DELETED && was_known) {
        mem_free(map_remove(&s->names, name));
        if (--ensure(&s->namespaces, e->namespace)->n_quotas == 0)
            mem_free(map_remove(&s->namespaces, e->namespace));
    }
}

/* Keys are namespaces. Only claims can change what they use. */
static void on_event(void *state, const struct kube_event *e, struct controller_queue *q)
{
    struct quotas *s = state;
    bool is_quota = str_is(e->collection, QUOTAS);
    bool may_matter = is_quota || e->type != KUBE_MODIFIED || str_is(e->collection, QUOTA_CLAIMS);
    if (!e->namespace.n || !may_matter)
        return;
    (void) pthread_mutex_lock(&s->lock);
    if (is_quota)
        remember(s, e);
    if (map_get(&s->namespaces, e->namespace))
        controller_enqueue(q, e->namespace, 0);
    (void) pthread_mutex_unlock(&s->lock);
}

/* ---- what is used ------------------------------------------------------------------------- */

struct usage {
    const struct controller_context *ctx;
    struct arena *arena;
    const struct registry *kinds;
    struct str namespace;
    struct json *claims; /* once needed */
};

static int load_claims(struct usage *u)
{
    struct object_place at = {objects_kind(u->kinds, STR(QUOTA_CLAIMS)), u->namespace, STR_NONE};
    return u->claims ? 0 : objects_list(u->ctx, u->arena, &at, &u->claims);
}

static int use_of_claims(struct usage *u, const struct quota_limit *limit, struct str *ret)
{
    int r = load_claims(u);
    if (r < 0)
        return r;
    struct quantity sum = quantity_from_int(0);
    JSON_FOR_EACH_ITEM (u->claims, claim) {
        struct quota_facts facts = quota_facts_of(STR(QUOTA_CLAIMS), claim);
        struct quantity one = quota_charge(limit, &facts);
        sum = quantity_add(&sum, &one);
    }
    *ret = quantity_text(u->arena, &sum);
    return 0;
}

static int count(struct usage *u, const struct kind *kind, struct str *ret)
{
    struct object_place at = {kind, u->namespace, STR_NONE};
    int64_t n = 0;
    int r = objects_count(u->ctx, u->arena, &at, &n);
    if (r == 0)
        *ret = arena_printf(u->arena, "%" PRId64, n);
    return r;
}

/* -ENOENT: nobody counts that. What only Pods and Services use is not used at all here. */
static int use_of(struct usage *u, const struct json *quota, struct str resource, struct str *ret)
{
    struct quota_limit limit = quota_limit_of(quota, resource);
    const struct kind *kind = objects_kind(u->kinds, limit.collection);
    bool is_known = kind && kind->is_namespaced && (limit.is_count_asked || !kind->group.n);
    *ret = STR("0");
    if (!is_known)
        return limit.is_count_asked ? -ENOENT : 0;
    if (quota_limit_is_plain(&limit))
        return count(u, kind, ret);
    return str_is(limit.collection, QUOTA_CLAIMS) ? use_of_claims(u, &limit, ret) : 0;
}

/* ---- reconcile ---------------------------------------------------------------------------- */

static int status_for(struct usage *u, const struct json *quota, struct json *ret)
{
    struct json hard = json_object(), used = json_object();
    JSON_FOR_EACH_MEMBER (json_at(quota, "spec", "hard", NULL), m) {
        struct str resource = json_str(&m->key), amount = STR_NONE;
        (void) json_append_member(u->arena, &hard, resource, m->value);
        int r = use_of(u, quota, resource, &amount);
        if (r < 0 && r != -ENOENT)
            return r;
        if (r == 0)
            (void) json_append_member(u->arena, &used, resource, json_string(amount));
    }
    json_sort_members(&used);
    *ret = json_object();
    (void) json_append_member(u->arena, ret, STR("hard"), hard);
    (void) json_append_member(u->arena, ret, STR("used"), used);
    return 0;
}

static int bring_current(struct usage *u, const struct object_place *at, struct json *quota)
{
    struct json status;
    int r = status_for(u, quota, &status);
    const struct json *had = json_get(quota, STR("status"));
    if (r < 0 || (had && json_equal(had, &status)))
        return r;
    (void) json_set(u->arena, quota, STR("status"), status);
    r = objects_update(u->ctx, u->arena, at, "status", quota, NULL);
    return r == -ENOENT ? 0 : r;
}

static int64_t reconcile(void *state, const struct controller_context *ctx, struct str key)
{
    (void) state;
    ARENA_AUTO a = arena_new();
    CLEANUP(registry_unrefp) struct registry *kinds = kube_kinds(ctx->client);
    struct usage u = {.ctx = ctx, .arena = a, .kinds = kinds, .namespace = key};
    struct object_place at = {objects_kind(kinds, STR(QUOTAS)), key, STR_NONE};
    struct json *quotas = NULL;
    int r = objects_list(ctx, a, &at, &quotas);
    JSON_FOR_EACH_ITEM (quotas, quota) {
        at.name = object_meta_text(quota, "name");
        r = object_is_deleting(quota) ? 0 : bring_current(&u, &at, quota);
        if (r < 0)
            break;
    }
    return r;
}

const struct controller quota_controller = {.name = "resourcequotas",
                                            .start = start,
                                            .on_event = on_event,
                                            .reconcile = reconcile,
                                            .stop = stop};
