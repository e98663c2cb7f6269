/* SPDX-License-Identifier: Apache-2.0 */
/* Which Device is the best for a wish. docs/SCHEDULING.md says why so. */
#include "scheduling/selector.h"
#include "scheduling/view_internal.h"

/* A wish with everything that it says read. */
struct search {
    struct wish *wish;
    const struct json *selection; /* NULL: says nothing */
    const struct json **networks; /* selections of its networks */
    bool has_networks;            /* all of them exist */
    enum refusal rest;            /* of the Devices that need not be looked at */
    struct device *best;
    int64_t preference; /* for the best */
};

static struct search search_of(struct wish *w)
{
    struct arena *a = w->tenant->view->scratch;
    struct search s = {.wish = w,
                       .selection = json_parse_quick(a, w->demand.selection),
                       .networks = ARENA_ARRAY(a, const struct json *, w->networks.n + 1),
                       .has_networks = true,
                       .rest = REFUSAL_SELECTOR};
    for (uint32_t i = 0; i < w->networks.n; i++) {
        const struct network *n = w->networks.items[i];
        s.has_networks &= n->exists;
        s.networks[i] = json_parse_quick(a, n->selection);
    }
    return s;
}

/* ---- one device --------------------------------------------------------------------------------
 */

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

/* ---- the better of two -------------------------------------------------------------------------
 */

static bool is_known(const struct device *d)
{
    return d->memory_kib != UNKNOWN_AMOUNT && d->cpu_milli != UNKNOWN_AMOUNT;
}

/* How many of the kind would find room. */
static int64_t copies(const struct demand *wanted, const struct device *d)
{
    const int64_t by_memory = (d->memory_kib - d->used_memory_kib) / wanted->memory_kib,
                  by_cpu = (d->cpu_milli - d->used_cpu_milli) / wanted->cpu_milli;
    return MIN(by_memory, by_cpu);
}

/* > 0: a has more room. */
static int compare_room(const struct demand *wanted, const struct device *a, const struct device *b)
{
    if (is_known(a) != is_known(b))
        return is_known(a) ? 1 : -1;
    if (!is_known(a))
        return 0;
    const int64_t differences[] = {
        copies(wanted, a) - copies(wanted, b),
        (a->memory_kib - a->used_memory_kib) - (b->memory_kib - b->used_memory_kib),
        (a->cpu_milli - a->used_cpu_milli) - (b->cpu_milli - b->used_cpu_milli),
    };
    for (size_t i = 0; i < N_ELEMENTS(differences); i++)
        if (differences[i])
            return differences[i] > 0 ? 1 : -1;
    return 0;
}

static bool is_better(const struct demand *wanted, const struct device *a, const struct device *b)
{
    const int room = compare_room(wanted, a, b);
    if (room)
        return room > 0;
    if (a->n_applications != b->n_applications)
        return a->n_applications < b->n_applications;
    return str_cmp(a->name, b->name) < 0;
}

static void consider(struct search *s, struct device *d)
{
    struct wish *w = s->wish;
    const enum refusal refusal = judge(s, d);
    if (refusal != REFUSAL_NONE) {
        w->refused[refusal]++;
        return;
    }
    const int64_t preference =
        s->selection ? device_selector_preference(s->selection, d->name, d->labels) : 0;
    if (!s->best || preference > s->preference ||
        (preference == s->preference && is_better(&w->demand, d, s->best))) {
        s->best = d;
        s->preference = preference;
    }
}

/* ---- all that may do ---------------------------------------------------------------------------
 */

/* Each once. */
static size_t consider_new(struct search *s, struct device *d)
{
    struct tenant *t = s->wish->tenant;
    if (!d->exists || d->seen_in == t->n_counts)
        return 0;
    d->seen_in = t->n_counts;
    consider(s, d);
    return 1;
}

static size_t consider_all(struct search *s)
{
    struct map_entry e;
    size_t n = 0;
    for (size_t at = 0; map_next(&s->wish->tenant->devices, &at, &e);)
        n += consider_new(s, e.value);
    return n;
}

/* Where its volumes are nothing else is asked. False: they are nowhere yet. */
static bool consider_volumes(struct search *s, size_t *n)
{
    bool is_pinned = false;
    for (uint32_t i = 0; i < s->wish->claims.n && !is_pinned; i++) {
        const struct claim *c = s->wish->claims.items[i];
        for (uint32_t j = 0; j < c->volumes.n; j++) {
            struct device *d = ((struct volume *) c->volumes.items[j])->device;
            is_pinned |= d->exists;
            *n += consider_new(s, d);
        }
    }
    if (is_pinned)
        s->rest = REFUSAL_VOLUME;
    return is_pinned;
}

static size_t consider_groups(struct search *s)
{
    struct tenant *t = s->wish->tenant;
    struct group **groups = NULL;
    size_t n_groups = 0, n = 0;
    if (!view_groups_of(t, t->view->scratch, s->selection, /* is_made= */ false, &groups,
                        &n_groups))
        return consider_all(s);
    for (size_t i = 0; i < n_groups; i++)
        for (uint32_t j = 0; j < groups[i]->devices.n; j++)
            n += consider_new(s, groups[i]->devices.items[j]);
    return n;
}

struct device *view_choice_make(struct wish *w)
{
    struct tenant *t = w->tenant;
    size_t n = 0;
    if (w->counted_at == t->version)
        return NULL;
    struct search s = search_of(w);
    memset(w->refused, 0, sizeof(w->refused));
    t->n_counts++;
    if (!consider_volumes(&s, &n))
        n += consider_groups(&s);
    w->refused[s.rest] += (uint32_t) (t->n_devices - n);
    if (!s.best)
        w->counted_at = t->version;
    return s.best;
}
