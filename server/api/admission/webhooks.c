/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

#include "api/admission/webhooks_internal.h"
#include "base/alloc.h"

struct webhooks {
    struct store *store;
    struct fetch_client *client;
    struct store_follower follower;
    /* Readers take a reference under the lock; a swap is rare. */
    pthread_mutex_t lock;
    struct webhook_set *set;
    atomic_bool has_any; /* spares everybody the lock while there is none */
};

static const struct str collections[WEBHOOK_PHASES] = {
    [WEBHOOK_MUTATING] = STR("mutatingwebhookconfigurations.admissionregistration.k8s.io"),
    [WEBHOOK_VALIDATING] = STR("validatingwebhookconfigurations.admissionregistration.k8s.io"),
};

/* ---- sets --------------------------------------------------------------------------------- */

void webhook_set_unref(struct webhook_set *s)
{
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t phase = 0; phase < WEBHOOK_PHASES; phase++) {
        for (size_t i = 0; i < s->n[phase]; i++)
            webhook_configuration_unref(s->lists[phase][i]);
        mem_free(s->lists[phase]);
    }
    mem_free(s);
}

/* Appends to a list with room. */
static void push(struct webhook_set *s, size_t phase, struct webhook_configuration *c)
{
    s->lists[phase][s->n[phase]++] = c;
}

static struct webhook_configuration *share(struct webhook_configuration *c)
{
    atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
    return c;
}

/* The set with the configuration of that name replaced by `fresh` (taken over), or without it. */
static struct webhook_set *replace(const struct webhook_set *old, enum webhook_phase phase,
                                   struct str name, struct webhook_configuration *fresh)
{
    struct webhook_set *s = NEW(struct webhook_set);
    atomic_init(&s->refs, 1);
    for (size_t p = 0; p < WEBHOOK_PHASES; p++) {
        size_t n = old ? old->n[p] : 0;
        s->lists[p] = mem_realloc_array(NULL, n + 1, sizeof(*s->lists[p]));
        for (size_t i = 0; i < n; i++) {
            struct webhook_configuration *c = old->lists[p][i];
            int order = p == (size_t) phase ? str_cmp(c->name, name) : -1;
            if (order >= 0 && fresh)
                push(s, p, TAKE(fresh));
            if (order != 0)
                push(s, p, share(c));
        }
        if (p == (size_t) phase && fresh)
            push(s, p, TAKE(fresh));
    }
    return s;
}

struct webhook_set *webhooks_current(struct webhooks *w)
{
    if (!w || !atomic_load_explicit(&w->has_any, memory_order_acquire))
        return NULL;
    (void) pthread_mutex_lock(&w->lock);
    struct webhook_set *s = w->set;
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    (void) pthread_mutex_unlock(&w->lock);
    return s;
}

struct fetch_client *webhooks_client(struct webhooks *w)
{
    return w->client;
}

/* ---- following the store ------------------------------------------------------------------ */

/* Under the lock. */
static void put(struct webhooks *w, enum webhook_phase phase, const struct object *o, bool is_gone)
{
    struct webhook_configuration *fresh = is_gone ? NULL : webhook_compile(object_text(o));
    struct webhook_set *old = w->set;
    w->set = replace(old, phase, object_span(o, o->head.name), fresh);
    webhook_set_unref(old);
    atomic_store_explicit(&w->has_any, w->set->n[WEBHOOK_MUTATING] + w->set->n[WEBHOOK_VALIDATING],
                          memory_order_release);
}

/* On the writer's thread, before the writes are answered. */
static void on_events(struct store_follower *f, struct store_event *const *events, size_t n,
                      int64_t revision)
{
    struct webhooks *w = CONTAINER_OF(f, struct webhooks, follower);
    (void) revision;
    for (size_t i = 0; i < n; i++)
        for (size_t phase = 0; phase < WEBHOOK_PHASES; phase++) {
            if (!str_eq(events[i]->collection, collections[phase]))
                continue;
            (void) pthread_mutex_lock(&w->lock);
            put(w, (enum webhook_phase) phase, events[i]->object, events[i]->type == STORE_DELETED);
            (void) pthread_mutex_unlock(&w->lock);
        }
}

/* What happens while this reads waits in on_events() and is then put again, in order. */
static void read_all(struct webhooks *w)
{
    (void) pthread_mutex_lock(&w->lock);
    for (size_t phase = 0; phase < WEBHOOK_PHASES; phase++) {
        CLEANUP(store_page_done) struct store_page page = {0};
        struct store_range range = {.collection = collections[phase]};
        if (store_list(w->store, &range, &page) < 0)
            continue;
        for (size_t i = 0; i < page.n; i++)
            put(w, (enum webhook_phase) phase, page.objects[i], false);
    }
    (void) pthread_mutex_unlock(&w->lock);
}

struct webhooks *webhooks_new(struct store *s, struct fetch_client *client)
{
    struct webhooks *w = NEW(struct webhooks);
    int64_t revision = 0;
    w->store = s;
    w->client = client;
    atomic_init(&w->has_any, false);
    (void) pthread_mutex_init(&w->lock, NULL);
    w->follower.on_events = on_events;
    store_follow(s, &w->follower, &revision);
    read_all(w);
    return w;
}

void webhooks_free(struct webhooks *w)
{
    if (!w)
        return;
    store_unfollow(w->store, &w->follower);
    webhook_set_unref(w->set);
    (void) pthread_mutex_destroy(&w->lock);
    mem_free(w);
}

/* ---- the door's question ------------------------------------------------------------------ */

/* Whether the version or, for events, the group fits is left to the exact match: it depends on the
 * other kinds. */
static bool may_match(const struct webhook *h, const struct webhook_target *t)
{
    struct webhook_target wider = *t;
    if (webhook_rules_match(h, t))
        return true;
    if (h->is_exact)
        return false;
    wider.version = wider.group = STR_NONE;
    return webhook_rules_match(h, &wider);
}

bool webhooks_may_match(struct webhooks *w, const struct kind *k, struct str subresource,
                        unsigned operations)
{
    CLEANUP(webhook_set_unrefp) struct webhook_set *s = webhooks_current(w);
    if (!s || !operations || webhook_is_exempt(k))
        return false;
    /* In which namespace it is does not matter here: any will do. */
    struct webhook_target t = {.operations = operations,
                               .group = k->group,
                               .version = k->version,
                               .resource = k->plural,
                               .subresource = subresource.p ? subresource : STR(""),
                               .namespace = k->is_namespaced ? STR("x") : STR("")};
    for (size_t phase = 0; phase < WEBHOOK_PHASES; phase++)
        for (size_t i = 0; i < s->n[phase]; i++)
            for (size_t j = 0; j < s->lists[phase][i]->n_hooks; j++)
                if (may_match(&s->lists[phase][i]->hooks[j], &t))
                    return true;
    return false;
}
