/* SPDX-License-Identifier: Apache-2.0 */
#include "api/admission/quota_ledger.h"

#include <pthread.h>

#include "base/alloc.h"

struct quota_ledger {
    pthread_mutex_t lock;
    struct list pending; /* struct quota_pending */
};

struct quota_ledger *quota_ledger_new(void)
{
    struct quota_ledger *l = NEW(struct quota_ledger);
    (void) pthread_mutex_init(&l->lock, NULL);
    list_init(&l->pending);
    return l;
}

void quota_ledger_free(struct quota_ledger *l)
{
    if (!l)
        return;
    (void) pthread_mutex_destroy(&l->lock);
    mem_free(l);
}

void quota_ledger_begin(struct quota_ledger *l)
{
    (void) pthread_mutex_lock(&l->lock);
}

void quota_ledger_end(struct quota_ledger *l)
{
    (void) pthread_mutex_unlock(&l->lock);
}

void quota_ledger_add(struct quota_ledger *l, struct quota_pending *p)
{
    p->is_stored = p->is_listed = false;
    list_append(&l->pending, &p->link);
}

void quota_ledger_remove(struct quota_ledger *l, struct quota_pending *p)
{
    quota_ledger_begin(l);
    list_remove(&p->link);
    quota_ledger_end(l);
}

static bool concerns(const struct quota_pending *p, struct str collection, struct str namespace)
{
    return str_eq(p->namespace, namespace) && str_eq(p->collection, collection);
}

/* ---- how many objects --------------------------------------------------------------------- */

static int count_stored(struct store *s, struct str collection, struct str namespace, int64_t *ret)
{
    CLEANUP(store_page_done) struct store_page page = {0};
    struct store_range range = {.collection = collection, .namespace = namespace, .limit = 1};
    int r = store_list(s, &range, &page);
    if (r == 0)
        *ret = (int64_t) page.n + page.n_remaining;
    return r;
}

/* Once seen in the store, an object is the store's to count. */
static int64_t count_not_stored(struct quota_ledger *l, struct store *s, struct str collection,
                                struct str namespace)
{
    int64_t n = 0;
    LIST_FOR_EACH (&l->pending, item) {
        struct quota_pending *p = CONTAINER_OF(item, struct quota_pending, link);
        if (!concerns(p, collection, namespace) || p->is_stored)
            continue;
        CLEANUP(object_unrefp) struct object *o = store_get(s, p->key);
        p->is_stored = o != NULL;
        n += !p->is_stored;
    }
    return n;
}

/* None of the pending may move to the store while that is being counted, or it would count twice or
 * not at all. Nothing is added meanwhile, so this ends. */
static int count(struct quota_ledger *l, struct store *s, struct str collection,
                 struct str namespace, struct quantity *ret)
{
    int64_t n_stored = 0, n_after = count_not_stored(l, s, collection, namespace), n_before = 0;
    do {
        n_before = n_after;
        int r = count_stored(s, collection, namespace, &n_stored);
        if (r < 0)
            return r;
        n_after = count_not_stored(l, s, collection, namespace);
    } while (n_after != n_before);
    *ret = quantity_from_int(n_stored + n_after);
    return 0;
}

/* ---- what claims ask for ------------------------------------------------------------------ */

static struct quantity larger(struct quantity a, struct quantity b)
{
    return quantity_compare(&a, &b) < 0 ? b : a;
}

/* A stored claim is charged as it is or as it is about to be, whichever is more. */
static struct quantity charge_of(struct quota_ledger *l, const struct object *o,
                                 const struct quota_limit *limit, struct str namespace)
{
    ARENA_AUTO a = arena_new();
    struct quota_facts facts =
        quota_facts_of(limit->collection, json_parse_quick(a, object_text(o)));
    struct quantity charge = quota_charge(limit, &facts);
    struct str name = object_span(o, o->head.name);
    charge.text = STR_NONE; /* which the arena holds */
    LIST_FOR_EACH (&l->pending, item) {
        struct quota_pending *p = CONTAINER_OF(item, struct quota_pending, link);
        if (!concerns(p, limit->collection, namespace) || !str_eq(p->name, name))
            continue;
        p->is_listed = true;
        charge = larger(charge, quota_charge(limit, &p->facts));
    }
    return charge;
}

static int add_up(struct quota_ledger *l, struct store *s, const struct quota_limit *limit,
                  struct str namespace, struct quantity *ret)
{
    CLEANUP(store_page_done) struct store_page page = {0};
    struct store_range range = {.collection = limit->collection, .namespace = namespace};
    int r = store_list(s, &range, &page);
    if (r < 0)
        return r;
    struct quantity sum = quantity_from_int(0);
    LIST_FOR_EACH (&l->pending, item)
        CONTAINER_OF(item, struct quota_pending, link)->is_listed = false;
    for (size_t i = 0; i < page.n; i++) {
        struct quantity charge = charge_of(l, page.objects[i], limit, namespace);
        sum = quantity_add(&sum, &charge);
    }
    LIST_FOR_EACH (&l->pending, item) {
        struct quota_pending *p = CONTAINER_OF(item, struct quota_pending, link);
        if (!concerns(p, limit->collection, namespace) || p->is_listed)
            continue;
        struct quantity charge = quota_charge(limit, &p->facts);
        sum = quantity_add(&sum, &charge);
    }
    *ret = sum;
    return 0;
}

int quota_ledger_used(struct quota_ledger *l, struct store *s, const struct quota_limit *limit,
                      struct str namespace, struct quantity *ret_used)
{
    return quota_limit_is_plain(limit) ? count(l, s, limit->collection, namespace, ret_used)
                                       : add_up(l, s, limit, namespace, ret_used);
}
