/* SPDX-License-Identifier: Apache-2.0 */
#include "api/admission/unique_ledger.h"

#include <errno.h>
#include <pthread.h>

#include "base/alloc.h"
#include "base/map.h"

/* So many more entries than objects are read anew rather than kept. */
#define SLACK_FACTOR 4
#define SLACK 1024

struct unique_holder {
    char *id;  /* "<collection>/<field>/<value>", the key in the map */
    char *key; /* of the store */
    size_t n_claims;
};

/* What is remembered of a kind. */
struct unique_kind {
    char *collection;
    size_t n_holders;
    bool is_loaded;
};

struct unique_ledger {
    pthread_mutex_t lock;
    pthread_mutex_t loading; /* one reads all objects; taken before the lock */
    struct map holders;      /* id -> struct unique_holder */
    struct map kinds;        /* collection -> struct unique_kind */
};

struct unique_ledger *unique_ledger_new(void)
{
    struct unique_ledger *l = NEW(struct unique_ledger);
    (void) pthread_mutex_init(&l->lock, NULL);
    (void) pthread_mutex_init(&l->loading, NULL);
    return l;
}

static char *copy(struct str s)
{
    struct buf b = {0};
    buf_append_str(&b, s);
    return buf_take(&b);
}

static void holder_free(struct unique_holder *h)
{
    mem_free(h->id);
    mem_free(h->key);
    mem_free(h);
}

void unique_ledger_free(struct unique_ledger *l)
{
    if (!l)
        return;
    struct map_entry e;
    for (size_t at = 0; map_next(&l->holders, &at, &e);)
        holder_free(e.value);
    for (size_t at = 0; map_next(&l->kinds, &at, &e);) {
        struct unique_kind *k = e.value;
        mem_free(k->collection);
        mem_free(k);
    }
    map_done(&l->holders);
    map_done(&l->kinds);
    (void) pthread_mutex_destroy(&l->lock);
    (void) pthread_mutex_destroy(&l->loading);
    mem_free(l);
}

/* ---- under the lock ------------------------------------------------------------------------ */

static struct unique_kind *kind_of(struct unique_ledger *l, struct str collection)
{
    struct unique_kind *k = map_get(&l->kinds, collection);
    if (k)
        return k;
    k = NEW(struct unique_kind);
    k->collection = copy(collection);
    (void) map_put(&l->kinds, str_of(k->collection), k);
    return k;
}

static struct unique_holder *put(struct unique_ledger *l, struct unique_kind *k, struct str id,
                                 struct str key)
{
    struct unique_holder *h = map_get(&l->holders, id);
    if (h) {
        mem_free(h->key);
        h->key = copy(key);
        return h;
    }
    h = NEW(struct unique_holder);
    h->id = copy(id);
    h->key = copy(key);
    (void) map_put(&l->holders, str_of(h->id), h);
    k->n_holders++;
    return h;
}

/* ---- reading all --------------------------------------------------------------------------- */

static struct str id_of(struct arena *a, const struct kind *kind, const struct kind_unique *rule,
                        struct str value)
{
    return arena_printf(a, "%.*s/%s/%.*s", STR_ARG(kind->collection), rule->field, STR_ARG(value));
}

static void load_value(struct unique_ledger *l, const struct kind *kind, struct str id,
                       struct str key)
{
    (void) pthread_mutex_lock(&l->lock);
    /* Whoever claimed it meanwhile knows better. */
    if (!map_get(&l->holders, id))
        (void) put(l, kind_of(l, kind->collection), id, key);
    (void) pthread_mutex_unlock(&l->lock);
}

static void load_one(struct unique_ledger *l, const struct kind *kind, const struct object *o)
{
    ARENA_AUTO a = arena_new();
    const struct json *object = json_parse_quick(a, object_text(o));
    const struct str key = arena_printf(a, "%.*s/%.*s/%.*s", STR_ARG(kind->collection),
                                        STR_ARG(object_span(o, o->head.namespace)),
                                        STR_ARG(object_span(o, o->head.name)));
    for (const struct kind_unique *rule = kind->hooks->unique; object && rule->field; rule++) {
        const struct str value = rule->value(a, object);
        if (value.n)
            load_value(l, kind, id_of(a, kind, rule, value), key);
    }
}

static int load_all(struct unique_ledger *l, struct store *s, const struct kind *kind)
{
    CLEANUP(store_page_done) struct store_page page = {0};
    const struct store_range all = {.collection = kind->collection};
    const int r = store_list(s, &all, &page);
    if (r < 0)
        return r;
    for (size_t i = 0; i < page.n; i++)
        load_one(l, kind, page.objects[i]);
    return 0;
}

/* What nobody claims may be wrong by now and comes back if it is not. */
static void forget(struct unique_ledger *l, struct unique_kind *k)
{
    struct map kept = {0};
    struct map_entry e;
    const struct str prefix = str_of(k->collection);
    k->n_holders = 0;
    for (size_t at = 0; map_next(&l->holders, &at, &e);) {
        struct unique_holder *h = e.value;
        const bool is_ours = str_starts_with(e.key, prefix) && e.key.p[prefix.n] == '/';
        if (is_ours && h->n_claims == 0) {
            holder_free(h);
            continue;
        }
        k->n_holders += is_ours;
        (void) map_put(&kept, str_of(h->id), h);
    }
    map_done(&l->holders);
    l->holders = kept;
}

static int load(struct unique_ledger *l, struct store *s, const struct kind *kind)
{
    (void) pthread_mutex_lock(&l->loading);
    (void) pthread_mutex_lock(&l->lock);
    const bool is_loaded = kind_of(l, kind->collection)->is_loaded;
    if (!is_loaded)
        forget(l, kind_of(l, kind->collection));
    (void) pthread_mutex_unlock(&l->lock);
    const int r = is_loaded ? 0 : load_all(l, s, kind);
    if (r == 0) {
        (void) pthread_mutex_lock(&l->lock);
        kind_of(l, kind->collection)->is_loaded = true;
        (void) pthread_mutex_unlock(&l->lock);
    }
    (void) pthread_mutex_unlock(&l->loading);
    return r;
}

/* ---- claims -------------------------------------------------------------------------------- */

/* Still another object's? */
static bool is_held(const struct unique_holder *h, struct store *s, struct arena *a,
                    const struct unique_claim *claim)
{
    if (str_is(claim->key, h->key))
        return false;
    if (h->n_claims)
        return true;
    CLEANUP(object_unrefp) struct object *o = store_get(s, str_of(h->key));
    const struct json *object = o ? json_parse_quick(a, object_text(o)) : NULL;
    return object && str_eq(claim->rule->value(a, object), claim->value);
}

static int claim_locked(struct unique_ledger *l, struct store *s, struct arena *a,
                        struct unique_claim *claim, struct str *ret_key)
{
    const struct str collection = claim->kind->collection;
    struct unique_kind *k = kind_of(l, collection);
    if (!k->is_loaded || k->n_holders > SLACK_FACTOR * store_count(s, collection) + SLACK) {
        k->is_loaded = false;
        return -EAGAIN;
    }
    const struct str id = id_of(a, claim->kind, claim->rule, claim->value);
    const struct unique_holder *h = map_get(&l->holders, id);
    if (h && is_held(h, s, a, claim)) {
        *ret_key = arena_str(a, str_of(h->key));
        return -EEXIST;
    }
    if (claim->is_question)
        return 0;
    claim->holder = put(l, k, id, claim->key);
    claim->holder->n_claims++;
    return 0;
}

int unique_ledger_claim(struct unique_ledger *l, struct store *s, struct arena *a,
                        struct unique_claim *claim, struct str *ret_key)
{
    for (;;) {
        (void) pthread_mutex_lock(&l->lock);
        int r = claim_locked(l, s, a, claim, ret_key);
        (void) pthread_mutex_unlock(&l->lock);
        if (r != -EAGAIN || !claim->may_wait)
            return r;
        r = load(l, s, claim->kind);
        if (r < 0)
            return r;
    }
}

void unique_ledger_release(struct unique_ledger *l, struct unique_claim *claim)
{
    (void) pthread_mutex_lock(&l->lock);
    claim->holder->n_claims--;
    (void) pthread_mutex_unlock(&l->lock);
}
