/* SPDX-License-Identifier: Apache-2.0 */
/* What a dry run is told of devices: how many would be told something else. Numbers alone, so that
 * who may not read Devices learns nothing of them. */
#include "base/alloc.h"
#include "preview/review.h"
#include "preview/workloads.h"

/* Composed twice each; more are only counted. */
#define FORECAST_MAX_DEVICES 200
#define FORECAST_MAX_US ((int64_t) 500 * 1000)

#define APPLICATIONS "applications.eve.lfedge.org"

struct keys {
    struct str *items; /* heap, with their texts */
    size_t n, capacity;
};

static void keys_done(struct keys *k)
{
    for (size_t i = 0; i < k->n; i++)
        mem_free((char *) (uintptr_t) k->items[i].p);
    mem_free(k->items);
}

/* ---- who is asked ---------------------------------------------------------------------------- */

static bool is_concerned(void *ctx, const struct forecast_change *c)
{
    static const char *const collections[] = {APPLICATIONS,
                                              "images.eve.lfedge.org",
                                              "networkconfigs.eve.lfedge.org",
                                              "devicenetworks.eve.lfedge.org",
                                              "devices.eve.lfedge.org",
                                              "volumes.eve.lfedge.org",
                                              "storageclasses.storage.k8s.io",
                                              "persistentvolumeclaims",
                                              "configmaps",
                                              "secrets"};
    (void) ctx;
    for (size_t i = 0; i < N_ELEMENTS(collections); i++)
        if (str_is(c->collection, collections[i]))
            return true;
    return workloads_is_one(c->collection);
}

static void on_device(void *ctx, struct str key)
{
    struct keys *k = ctx;
    if (k->n == k->capacity) {
        k->capacity = MAX(k->capacity * 2, (size_t) 16);
        k->items = mem_realloc_array(k->items, k->capacity, sizeof(*k->items));
    }
    k->items[k->n++] = str_range(str_dup(key), key.n);
}

static bool has_key(const struct keys *k, struct str key)
{
    for (size_t i = 0; i < k->n; i++)
        if (str_eq(k->items[i], key))
            return true;
    return false;
}

/* Where the scheduler has no choice the device is known before it has chosen. */
static void add_named(struct arena *a, const struct fleet_change *c, struct keys *k)
{
    const struct str device = json_str(json_at(c->object, "status", "device", NULL));
    const struct str wanted = json_str(json_at(c->object, "spec", "nodeSelector", "name", NULL));
    const struct str key = arena_printf(a, "%.*s/%.*s", STR_ARG(c->namespace), STR_ARG(wanted));
    if (str_is(c->collection, APPLICATIONS) && !device.n && wanted.n && !has_key(k, key))
        on_device(k, key);
}

/* ---- counting -------------------------------------------------------------------------------- */

struct tally {
    size_t n_looked_at, n_absent, n_changed, n_restarts, n_purges, n_reboots;
    size_t n_scheduled; /* applications that would be left to the scheduler */
    struct workload_counts workloads;
};

struct counting {
    const struct preview *preview;
    const struct fleet_change *changes;
    size_t n_changes;
    struct tally tally;
};

static bool has_effect(const struct review *r)
{
    for (size_t i = 0; i < r->difference.n; i++)
        if (!r->kept_by[i])
            return true;
    return false;
}

static void count_device(struct counting *c, struct str key)
{
    ARENA_AUTO a = arena_new();
    CLEANUP(review_done)
    struct review r = {.arena = a,
                       .name = key,
                       .namespace = STR(""),
                       .changes = c->changes,
                       .n_changes = c->n_changes};
    struct status st;
    struct tally *t = &c->tally;
    (void) str_split(&r.name, '/', &r.namespace);
    status_init(&st, a);
    t->n_looked_at++;
    int error = review_open(&r, c->preview, &st);
    if (error == 0)
        error = review_changes(&r, c->preview, &st);
    t->n_absent += error < 0;
    if (error < 0 || !has_effect(&r))
        return;
    t->n_changed++;
    t->n_restarts += effects_count(&r.effects, EFFECT_RESTART);
    t->n_purges += effects_count(&r.effects, EFFECT_PURGE);
    t->n_reboots +=
        effects_count(&r.effects, EFFECT_REBOOT) || effects_count(&r.effects, EFFECT_UPDATE);
}

static bool is_to_be_scheduled(const struct forecast_change *c)
{
    return c->object && str_is(c->collection, APPLICATIONS) &&
           !json_str(json_at(c->object, "status", "device", NULL)).n &&
           !json_str(json_at(c->object, "spec", "nodeSelector", "name", NULL)).n;
}

/* ---- words ----------------------------------------------------------------------------------- */

static void add_count(struct buf *b, size_t n, const char *what)
{
    if (n)
        buf_printf(b, "%s%zu %s%s", b->n ? ", " : "", n, what, n == 1 ? "" : "s");
}

static void add_part(struct buf *b, int64_t n, const char *what)
{
    if (n > 0)
        buf_printf(b, "%s%lld application%s would %s", b->n ? ", and " : "", (long long) n,
                   n == 1 ? "" : "s", what);
}

static struct str tally_text(struct arena *a, const struct tally *t, size_t n_concerned)
{
    BUF_AUTO b = {0};
    BUF_AUTO details = {0};
    const bool is_all = t->n_looked_at == n_concerned;
    n_concerned -= t->n_absent;
    add_count(&details, t->n_restarts, "restart");
    add_count(&details, t->n_purges, "purge");
    add_count(&details, t->n_reboots, "reboot");
    if (n_concerned) {
        buf_append_str(&b, STR("would change the configuration of "));
        if (is_all && !t->n_changed)
            buf_append_str(&b, STR("no device"));
        else if (is_all)
            buf_printf(&b, "%zu device%s", t->n_changed, t->n_changed == 1 ? "" : "s");
        else
            buf_printf(&b, "at least %zu of %zu devices concerned", t->n_changed, n_concerned);
        if (details.n)
            buf_printf(&b, " (%.*s)", STR_ARG(buf_str(&details)));
    }
    add_part(&b, (int64_t) t->n_scheduled, "be left to the scheduler");
    add_part(&b, t->workloads.n_made, "be made");
    add_part(&b, t->workloads.n_replaced, "be replaced");
    add_part(&b, t->workloads.n_gone, "be removed");
    if (t->workloads.is_everywhere)
        buf_printf(&b, "%san application would be made on every device that fits",
                   b.n ? ", and " : "");
    return b.n ? arena_str(a, buf_str(&b)) : STR_NONE;
}

static struct str tell(void *ctx, struct arena *a, const struct forecast_change *changes, size_t n)
{
    const struct preview *p = ctx;
    CLEANUP(keys_done) struct keys concerned = {0};
    struct fleet_change *fleet = ARENA_ARRAY(a, struct fleet_change, n);
    struct counting c = {.preview = p, .changes = fleet, .n_changes = n};
    for (size_t i = 0; i < n; i++) {
        fleet[i] = (struct fleet_change){changes[i].collection, changes[i].namespace,
                                         changes[i].name, changes[i].object};
        c.tally.n_scheduled += is_to_be_scheduled(&changes[i]);
        workloads_count(&changes[i], &c.tally.workloads);
    }
    fleet_concerned(p->fleet, fleet, n, on_device, &concerned);
    for (size_t i = 0; i < n; i++)
        add_named(a, &fleet[i], &concerned);
    const int64_t end_us = p->clock->monotonic_us(p->clock) + FORECAST_MAX_US;
    for (size_t i = 0; i < concerned.n && i < FORECAST_MAX_DEVICES; i++) {
        count_device(&c, concerned.items[i]);
        if (p->clock->monotonic_us(p->clock) > end_us)
            break;
    }
    return tally_text(a, &c.tally, concerned.n);
}

struct forecast preview_forecast(struct preview *p)
{
    return (struct forecast){.ctx = p, .is_concerned = is_concerned, .tell = tell};
}
