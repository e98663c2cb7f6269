/* SPDX-License-Identifier: Apache-2.0 */
/* Which Device is the best for a wish. docs/SCHEDULING.md says why so. */
#include "scheduling/selector.h"
#include "scheduling/view_internal.h"

/* How good a Device is. */
struct rank {
    int64_t preference;
    bool is_known;  /* what it has */
    int64_t copies; /* how many of the kind would find room */
    int64_t free_memory_kib, free_cpu_milli;
};

/* A wish with everything that it says read. */
struct search {
    struct wish *wish;
    const struct json *selection; /* NULL: says nothing */
    bool has_preferences;
    const struct json **networks; /* selections of its networks */
    bool has_networks;            /* all of them exist */
    enum refusal rest;            /* of the Devices that need not be looked at */
    uint32_t n_seen;
    struct device *best;
    struct rank best_rank;
};

static struct search search_of(struct wish *w)
{
    struct arena *a = w->tenant->view->scratch;
    struct search s = {.wish = w,
                       .selection = json_parse_quick(a, w->demand.selection),
                       .networks = ARENA_ARRAY(a, const struct json *, w->networks.n + 1),
                       .has_networks = true,
                       .rest = REFUSAL_SELECTOR};
    s.has_preferences =
        json_count(json_at(s.selection, "affinity", "nodeAffinity",
                           "preferredDuringSchedulingIgnoredDuringExecution", NULL)) > 0;
    for (uint32_t i = 0; i < w->networks.n; i++) {
        const struct network *n = w->networks.items[i];
        s.has_networks &= n->exists;
        s.networks[i] = json_parse_quick(a, n->selection);
    }
    return s;
}

/* ---- one device ------------------------------------------------------------------------------ */

static bool is_selected(const struct search *s, const struct device *d)
{
    return !s->selection || device_selector_matches(s->selection, d->name, d->labels);
}

static bool is_on_networks(const struct search *s, const struct device *d)
{
    for (uint32_t i = 0; i < s->wish->networks.n; i++)
        if (!device_selector_matches(s->networks[i], d->name, d->labels))
            return false;
    return s->has_networks;
}

static bool has_volumes(const struct search *s, const struct device *d)
{
    for (uint32_t i = 0; i < s->wish->claims.n; i++)
        if (!view_claim_allows(s->wish->claims.items[i], d))
            return false;
    return true;
}

static bool has_room(int64_t amount, int64_t used, int64_t more)
{
    return amount == UNKNOWN_AMOUNT || used + more <= amount;
}

static enum refusal judge(const struct search *s, const struct device *d)
{
    const struct demand *wanted = &s->wish->demand;
    if (!is_selected(s, d))
        return REFUSAL_SELECTOR;
    if (d->is_leaving)
        return REFUSAL_LEAVING;
    if (!d->is_active)
        return REFUSAL_INACTIVE;
    if (!is_on_networks(s, d))
        return REFUSAL_NETWORK;
    if (!has_volumes(s, d))
        return REFUSAL_VOLUME;
    if (!has_room(d->memory_kib, d->used_memory_kib, wanted->memory_kib))
        return REFUSAL_MEMORY;
    if (!has_room(d->cpu_milli, d->used_cpu_milli, wanted->cpu_milli))
        return REFUSAL_CPU;
    return REFUSAL_NONE;
}

bool view_choice_holds(struct wish *w, struct device *d)
{
    const struct search s = search_of(w);
    return d->exists && is_selected(&s, d) && is_on_networks(&s, d) && has_volumes(&s, d);
}

bool view_choice_fits(struct wish *w, struct device *d)
{
    const struct search s = search_of(w);
    return d->exists && judge(&s, d) == REFUSAL_NONE;
}

/* ---- the better of two ----------------------------------------------------------------------- */

static struct rank rank_of(const struct search *s, const struct device *d)
{
    const struct demand *wanted = &s->wish->demand;
    struct rank r = {.is_known = d->memory_kib != UNKNOWN_AMOUNT && d->cpu_milli != UNKNOWN_AMOUNT};
    if (s->has_preferences)
        r.preference = device_selector_preference(s->selection, d->name, d->labels);
    if (!r.is_known)
        return r;
    r.free_memory_kib = d->memory_kib - d->used_memory_kib;
    r.free_cpu_milli = d->cpu_milli - d->used_cpu_milli;
    r.copies = MIN(r.free_memory_kib / wanted->memory_kib, r.free_cpu_milli / wanted->cpu_milli);
    return r;
}

static bool is_better(const struct rank *a, const struct rank *b, const struct device *device_a,
                      const struct device *device_b)
{
    if (a->preference != b->preference)
        return a->preference > b->preference;
    if (a->is_known != b->is_known)
        return a->is_known;
    if (a->copies != b->copies)
        return a->copies > b->copies;
    if (a->free_memory_kib != b->free_memory_kib)
        return a->free_memory_kib > b->free_memory_kib;
    if (a->free_cpu_milli != b->free_cpu_milli)
        return a->free_cpu_milli > b->free_cpu_milli;
    if (device_a->n_applications != device_b->n_applications)
        return device_a->n_applications < device_b->n_applications;
    return str_cmp(device_a->name, device_b->name) < 0;
}

/* Most are not better, and most of these for want of room for as many: that is seen without a
 * division. */
static bool has_too_little(const struct search *s, const struct device *d)
{
    const struct rank *best = &s->best_rank;
    return !s->has_preferences && s->best && best->is_known && d->memory_kib != UNKNOWN_AMOUNT &&
           d->memory_kib - d->used_memory_kib < best->copies * s->wish->demand.memory_kib;
}

/* Whether it matches costs most and is asked last.
 * What is skipped is not counted: when there is a best one, nobody asks why others are not. */
static void consider(struct search *s, struct device *d)
{
    if (has_too_little(s, d))
        return;
    const struct rank rank = rank_of(s, d);
    if (s->best && !is_better(&rank, &s->best_rank, d, s->best))
        return;
    const enum refusal refusal = judge(s, d);
    if (refusal != REFUSAL_NONE) {
        s->wish->refused[refusal]++;
        return;
    }
    s->best = d;
    s->best_rank = rank;
}

/* ---- all that may do ------------------------------------------------------------------------- */

/* Each once. */
static void consider_new(struct search *s, struct device *d)
{
    struct tenant *t = s->wish->tenant;
    if (!d->exists || d->seen_in == t->n_counts)
        return;
    d->seen_in = t->n_counts;
    s->n_seen++;
    consider(s, d);
}

static void consider_each(struct search *s, const struct pointers *devices)
{
    for (uint32_t i = 0; i < devices->n; i++)
        consider_new(s, devices->items[i]);
}

/* True: it has some, so it is there or nowhere. */
static bool consider_volumes_of(struct search *s, const struct claim *c)
{
    bool is_pinned = false;
    for (uint32_t i = 0; i < c->volumes.n; i++) {
        struct device *d = ((struct volume *) c->volumes.items[i])->device;
        is_pinned |= d->exists;
        consider_new(s, d);
    }
    return is_pinned;
}

/* Its volume will be where the first of its users is. */
static bool consider_users_of(struct search *s, const struct claim *c)
{
    for (uint32_t i = 0; i < c->wishes.n; i++)
        LIST_FOR_EACH (&((struct wish *) c->wishes.items[i])->applications, link) {
            struct device *d = CONTAINER_OF(link, struct application, in_wish)->device;
            if (d && d->exists) {
                consider_new(s, d);
                return true;
            }
        }
    return false;
}

/* False: what it claims is nowhere yet. */
static bool consider_claims(struct search *s)
{
    const struct pointers *claims = &s->wish->claims;
    bool is_pinned = false;
    for (uint32_t i = 0; i < claims->n && !is_pinned; i++)
        is_pinned = consider_volumes_of(s, claims->items[i]);
    for (uint32_t i = 0; i < claims->n && !is_pinned; i++)
        is_pinned = consider_users_of(s, claims->items[i]);
    if (is_pinned)
        s->rest = REFUSAL_VOLUME;
    return is_pinned;
}

/* One for which a preference holds is better than all for which none does. False: there is none. */
static bool consider_preferred(struct search *s)
{
    struct group **groups = NULL;
    size_t n = 0;
    if (!s->has_preferences || !view_groups_preferred(s->wish->tenant, s->selection, &groups, &n))
        return false;
    for (size_t i = 0; i < n; i++)
        consider_each(s, &groups[i]->devices);
    /* The others are not preferred: that need not be found out for each. */
    s->has_preferences = false;
    return s->best && s->best_rank.preference > 0;
}

static void consider_all(struct search *s)
{
    struct tenant *t = s->wish->tenant;
    struct group **groups = NULL;
    size_t n = 0;
    if (view_groups_of(t, s->selection, /* is_made= */ false, &groups, &n)) {
        for (size_t i = 0; i < n; i++)
            consider_each(s, &groups[i]->devices);
        return;
    }
    if (!consider_preferred(s))
        consider_each(s, &t->present);
}

struct device *view_choice_make(struct wish *w)
{
    struct tenant *t = w->tenant;
    if (w->counted_at == t->version)
        return NULL;
    struct search s = search_of(w);
    memset(w->refused, 0, sizeof(w->refused));
    t->n_counts++;
    if (!consider_claims(&s))
        consider_all(&s);
    w->refused[s.rest] += t->present.n - s.n_seen;
    if (!s.best)
        w->counted_at = t->version;
    return s.best;
}
