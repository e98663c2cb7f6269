/* SPDX-License-Identifier: Apache-2.0 */
#include "api/token/service_account_tokens.h"

#include <errno.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "json/json.h"

#define US_PER_S ((int64_t) 1000 * 1000)
#define LABEL_INVALID "kubernetes.io/legacy-token-invalid-since"
#define MAX_SUPPORTS 4
#define MAX_EXTRA 5

struct account_tokens {
    struct token_source source;
    struct store *store;
    const struct clock *clock;
    const struct token_issuer *issuer;
};

/* An object that a token needs. */
struct support {
    struct str key, uid;
    int64_t revision; /* not 0: exactly this version, whose contents were looked at */
};

struct basis {
    struct support supports[MAX_SUPPORTS];
    size_t n;
    _Atomic int64_t stood_at; /* the store's revision at which they were all there */
};

/* ---- the objects -------------------------------------------------------------------------- */

static bool stands(struct store *store, const struct support *s)
{
    CLEANUP(object_unrefp) struct object *o = store_get(store, s->key);
    return o && !o->head.is_deleting &&
           (!s->uid.n || str_eq(object_span(o, o->head.uid), s->uid)) &&
           (!s->revision || o->revision == s->revision);
}

static struct support *add_support(struct arena *a, struct basis *b, const char *collection,
                                   struct str namespace, const struct account_reference *r)
{
    struct support *s = &b->supports[b->n++];
    const struct str parts[] = {str_of(collection), STR("/"), namespace, STR("/"), r->name};
    *s = (struct support){.key = arena_join(a, parts, N_ELEMENTS(parts)),
                          .uid = arena_str(a, r->uid)};
    return s;
}

/* The Secret of a legacy token must hold this very token: to change it there revokes it. */
static bool secret_holds(const struct object *o, struct str token)
{
    ARENA_AUTO a = arena_new();
    struct str held = STR_NONE;
    const struct json *secret = json_parse_quick(a, object_text(o));
    const struct json *value = json_at(secret, "data", "token", NULL);
    return value && base64_decode(a, json_str(value), BASE64_STANDARD, &held, NULL) == 0 &&
           str_eq(held, token) && !json_at(secret, "metadata", "labels", LABEL_INVALID, NULL);
}

static bool check_legacy_secret(struct store *store, struct support *s, struct str token)
{
    CLEANUP(object_unrefp) struct object *o = store_get(store, s->key);
    if (!o || o->head.is_deleting || !secret_holds(o, token))
        return false;
    s->revision = o->revision;
    return true;
}

static const char *check_objects(struct account_tokens *t, struct arena *a, struct str token,
                                 const struct account_claims *c, struct basis *b)
{
    if (!stands(t->store, add_support(a, b, "serviceaccounts", c->namespace, &c->account)))
        return "service account token has been invalidated";
    if (c->is_legacy)
        return check_legacy_secret(t->store, add_support(a, b, "secrets", c->namespace, &c->secret),
                                   token)
                   ? NULL
                   : "service account token has been invalidated";
    const struct {
        const char *collection;
        struct str namespace;
        const struct account_reference *to;
    } bound[] = {{"secrets", c->namespace, &c->secret},
                 {"pods", c->namespace, &c->pod},
                 {"nodes", STR(""), &c->node}};
    for (size_t i = 0; i < N_ELEMENTS(bound); i++) {
        /* A pod's token names its node too and does not end with it. */
        if (!bound[i].to->name.n || (bound[i].to == &c->node && c->pod.name.n))
            continue;
        if (!stands(t->store,
                    add_support(a, b, bound[i].collection, bound[i].namespace, bound[i].to)))
            return "service account token has been invalidated";
    }
    return NULL;
}

static bool still_valid(struct token_source *s, const struct token_identity *i)
{
    struct account_tokens *t = CONTAINER_OF(s, struct account_tokens, source);
    struct basis *b = i->basis;
    const int64_t revision = store_revision(t->store);
    if (atomic_load_explicit(&b->stood_at, memory_order_relaxed) == revision)
        return true; /* nothing at all has changed since */
    for (size_t n = 0; n < b->n; n++)
        if (!stands(t->store, &b->supports[n]))
            return false;
    atomic_store_explicit(&b->stood_at, revision, memory_order_relaxed);
    return true;
}

/* ---- the user ----------------------------------------------------------------------------- */

static void add_extra(struct arena *a, struct user_extra *list, struct user *u, const char *key,
                      struct str value)
{
    struct str *values = ARENA_NEW(a, struct str);
    *values = arena_str(a, value);
    list[u->n_extra++] = (struct user_extra){str_of(key), values, 1};
}

static struct user user_of(struct arena *a, const struct account_claims *c)
{
    struct user u = {.name = account_user_name(a, c->namespace, c->account.name),
                     .uid = arena_str(a, c->account.uid)};
    struct str *groups = ARENA_ARRAY(a, struct str, 3);
    groups[u.n_groups++] = STR("system:serviceaccounts");
    groups[u.n_groups++] = arena_printf(a, "system:serviceaccounts:%.*s", STR_ARG(c->namespace));
    groups[u.n_groups++] = STR(GROUP_AUTHENTICATED);
    u.groups = groups;
    struct user_extra *extra = ARENA_ARRAY(a, struct user_extra, MAX_EXTRA);
    u.extra = extra;
    if (c->id.n)
        add_extra(a, extra, &u, "authentication.kubernetes.io/credential-id",
                  arena_printf(a, "JTI=%.*s", STR_ARG(c->id)));
    if (c->node.name.n) {
        add_extra(a, extra, &u, "authentication.kubernetes.io/node-name", c->node.name);
        add_extra(a, extra, &u, "authentication.kubernetes.io/node-uid", c->node.uid);
    }
    if (c->pod.name.n) {
        add_extra(a, extra, &u, "authentication.kubernetes.io/pod-name", c->pod.name);
        add_extra(a, extra, &u, "authentication.kubernetes.io/pod-uid", c->pod.uid);
    }
    return u;
}

/* ---- the source --------------------------------------------------------------------------- */

static int refuse(struct token_identity *ret, struct str why)
{
    *ret = (struct token_identity){.error = why};
    return -EACCES;
}

static int check_audience(struct account_tokens *t, struct arena *a, const struct account_claims *c,
                          struct audiences wanted, struct token_identity *ret)
{
    const struct audiences own = token_issuer_audiences(t->issuer);
    /* Legacy tokens name nobody and are for the API server. */
    const struct audiences held = c->is_legacy ? own : c->audiences;
    const struct audiences target = wanted.n ? wanted : own;
    const struct audiences common = audiences_common(a, held, target);
    if (!common.n)
        return refuse(
            ret,
            arena_printf(a, "token audiences %.*s is invalid for the target audiences %.*s",
                         STR_ARG(audiences_text(a, held)), STR_ARG(audiences_text(a, target))));
    ret->audiences = common.items;
    ret->n_audiences = common.n;
    return 0;
}

static int64_t seconds_to_us(int64_t s)
{
    return s > INT64_MAX / US_PER_S ? INT64_MAX : s * US_PER_S;
}

static int check_times(struct account_tokens *t, const struct account_claims *c,
                       struct token_identity *ret)
{
    const int64_t now_us = t->clock->wall_us(t->clock);
    ret->expires_us = c->is_legacy ? INT64_MAX : seconds_to_us(c->expires_s);
    if (now_us >= ret->expires_us)
        return refuse(ret, STR("service account token has expired"));
    if (now_us < seconds_to_us(c->not_before_s) || now_us < seconds_to_us(c->issued_s))
        return refuse(ret, STR("service account token is not valid yet"));
    return 0;
}

static int verify(struct token_source *s, struct arena *a, struct str token,
                  const struct str *audiences, size_t n_audiences, bool may_block,
                  struct token_identity *ret)
{
    (void) may_block;
    struct account_tokens *t = CONTAINER_OF(s, struct account_tokens, source);
    ARENA_AUTO scratch = arena_new(); /* a token is decoded here; what stays is copied */
    struct account_claims c = {0};
    int r = token_issuer_verify(t->issuer, scratch, token, &c);
    if (r == -EACCES)
        return refuse(ret, STR("service account token has no valid signature"));
    if (r < 0)
        return r;
    r = check_audience(t, a, &c, (struct audiences){audiences, n_audiences}, ret);
    if (r == 0)
        r = check_times(t, &c, ret);
    if (r < 0)
        return r;
    struct basis *b = ARENA_NEW(a, struct basis);
    const char *why = check_objects(t, a, token, &c, b);
    if (why)
        return refuse(ret, str_of(why));
    ret->basis = b;
    ret->user = user_of(a, &c);
    return 0;
}

static void free_source(struct token_source *s)
{
    mem_free(CONTAINER_OF(s, struct account_tokens, source));
}

struct token_source *service_account_tokens_new(struct store *store, const struct clock *clock,
                                                const struct token_issuer *issuer)
{
    struct account_tokens *t = NEW(struct account_tokens);
    t->source = (struct token_source){.name = "service-account-tokens",
                                      .verify = verify,
                                      .still_valid = still_valid,
                                      .free = free_source};
    t->store = store;
    t->clock = clock;
    t->issuer = issuer;
    return &t->source;
}
