/* SPDX-License-Identifier: Apache-2.0 */
/* ApplicationDaemonSets: one Application on every Device that fits. */
#include "base/map.h"
#include "workloads/children.h"
#include "workloads/names.h"
#include "workloads/rollout.h"
#include "workloads/summary.h"

/* A Device and what there is on it. */
struct slot {
    const struct index_device *device; /* NULL: there is no such Device any more */
    struct index_application *app;     /* the oldest; NULL: none */
    bool is_going;                     /* one is on its way out: its name is taken */
    bool is_wanted;                    /* one is to be there */
    bool may_stay;                     /* what is there stays */
};

struct slots {
    struct slot *items; /* Devices by name */
    size_t n;
    int64_t n_wanted;
    struct index_application **surplus; /* a second on one Device, or one where none may be */
    size_t n_surplus;
};

static bool is_older(const struct index_application *a, const struct index_application *b)
{
    return a->created_us != b->created_us ? a->created_us < b->created_us
                                          : str_cmp(a->name, b->name) < 0;
}

static void put(struct slots *s, struct slot *slot, struct index_application *app)
{
    struct index_application *other = slot ? slot->app : NULL;
    if (app->is_deleting) {
        if (slot)
            slot->is_going = true;
        return;
    }
    if (!slot || !slot->may_stay) {
        s->surplus[s->n_surplus++] = app;
    } else if (!other) {
        slot->app = app;
    } else {
        slot->app = is_older(app, other) ? app : other;
        s->surplus[s->n_surplus++] = slot->app == app ? other : app;
    }
}

/* A Device that is not active gets none, but keeps what it has: it may be active again, and its
 * application with its data would be lost. */
static struct slots slots_of(struct run *run)
{
    struct slots s = {0};
    struct map by_name = {0};
    s.items = ARENA_ARRAY(run->arena, struct slot, run->view.n_devices + 1);
    s.surplus = ARENA_ARRAY(run->arena, struct index_application *, run->view.n_applications + 1);
    for (size_t i = 0; i < run->view.n_devices; i++) {
        const struct index_device *d = &run->view.devices[i];
        struct slot *slot = &s.items[s.n++];
        *slot = (struct slot){
            .device = d, .is_wanted = d->does_fit && d->is_active, .may_stay = d->does_fit};
        s.n_wanted += slot->is_wanted;
        (void) map_put(&by_name, d->name, slot);
    }
    for (size_t i = 0; i < run->view.n_applications; i++) {
        struct index_application *app = &run->view.applications[i];
        /* Adopted and not scheduled yet: nobody can tell where it belongs. */
        if (app->is_ours && app->device.n)
            put(&s, map_get(&by_name, app->device), app);
    }
    map_done(&by_name);
    return s;
}

/* ---- acting -------------------------------------------------------------------------------- */

static int create_on(struct run *run, const struct index_device *device)
{
    const struct str name =
        names_fit(run->arena, arena_printf(run->arena, "%.*s-%.*s", STR_ARG(run->at.name),
                                           STR_ARG(device->name)));
    struct json *draft = children_draft(run, name, run->template, run->update.hash);
    struct json *spec = json_get(draft, STR("spec"));
    struct json *selector = json_ensure_object(run->arena, spec, STR("nodeSelector"));
    (void) json_set(run->arena, selector, STR("name"), json_string(device->name));
    return children_create(run, draft);
}

static int fill(struct run *run, const struct slots *s)
{
    int r = 0;
    for (size_t i = 0; i < s->n && r == 0; i++) {
        const struct slot *slot = &s->items[i];
        if (slot->is_wanted && !slot->app && !slot->is_going)
            r = create_on(run, slot->device);
    }
    return r;
}

static const struct json *rolling_update(const struct run *run)
{
    return json_at(run->spec, "updateStrategy", "rollingUpdate", NULL);
}

/* Devices out of touch are outside of this: nothing there counts as missing, and what is there is
 * replaced at once. */
static bool counts_as_missing(struct run *run, const struct slot *slot)
{
    return slot->is_wanted && !slot->device->is_offline &&
           (!slot->app || !children_is_available(run, slot->app));
}

static bool is_to_be_replaced(const struct run *run, const struct slot *slot)
{
    return slot->is_wanted && slot->app && !children_is_new(run, slot->app);
}

static int roll(struct run *run, const struct slots *s)
{
    const int64_t max = rollout_daemon_unavailable(rolling_update(run), s->n_wanted);
    int64_t n_missing = 0;
    int r = 0;
    for (size_t i = 0; i < s->n; i++)
        n_missing += counts_as_missing(run, &s->items[i]);
    /* Those that are missing already, or that nobody can tell of, take nothing away. */
    for (size_t i = 0; i < s->n && r == 0; i++) {
        const struct slot *slot = &s->items[i];
        if (is_to_be_replaced(run, slot) &&
            (slot->device->is_offline || counts_as_missing(run, slot)))
            r = children_delete(run, slot->app);
    }
    for (size_t i = 0; i < s->n && r == 0 && n_missing < max; i++) {
        const struct slot *slot = &s->items[i];
        if (is_to_be_replaced(run, slot) && !slot->device->is_offline &&
            !counts_as_missing(run, slot)) {
            r = children_delete(run, slot->app);
            n_missing++;
        }
    }
    return r;
}

static int act(struct run *run)
{
    const struct slots s = slots_of(run);
    const bool is_on_delete =
        str_is(json_str(json_at(run->spec, "updateStrategy", "type", NULL)), "OnDelete");
    int r = 0;
    for (size_t i = 0; i < s.n_surplus && r == 0; i++)
        r = children_delete(run, s.surplus[i]);
    if (r == 0)
        r = fill(run, &s);
    if (r == 0 && !is_on_delete)
        r = roll(run, &s);
    return MIN(r, 0);
}

/* ---- describing ---------------------------------------------------------------------------- */

struct counts {
    int64_t current, misscheduled, ready, updated, available, standing;
};

static struct counts count(struct run *run, const struct slots *s)
{
    struct counts c = {.misscheduled = (int64_t) s->n_surplus};
    for (size_t i = 0; i < s->n; i++) {
        const struct slot *slot = &s->items[i];
        if (!slot->is_wanted) {
            c.misscheduled += slot->app != NULL;
            continue;
        }
        const bool is_available = slot->app && children_is_available(run, slot->app);
        c.current += slot->app != NULL;
        c.ready += slot->app && slot->app->is_ready;
        c.updated += slot->app && children_is_new(run, slot->app);
        c.available += is_available;
        c.standing += is_available || slot->device->is_offline;
    }
    return c;
}

static void describe(struct run *run)
{
    const struct slots s = slots_of(run);
    const struct counts c = count(run, &s);
    summary_count(run, "desiredNumberScheduled", s.n_wanted);
    summary_count(run, "currentNumberScheduled", c.current);
    summary_count(run, "numberMisscheduled", c.misscheduled);
    summary_count(run, "numberReady", c.ready);
    summary_count(run, "updatedNumberScheduled", c.updated);
    summary_count(run, "numberAvailable", c.available);
    summary_count(run, "numberUnavailable", s.n_wanted - c.available);
    const struct summary_tally tally = {
        .n_wanted = s.n_wanted,
        .n_needed = s.n_wanted - rollout_daemon_unavailable(rolling_update(run), s.n_wanted),
        .n_standing = c.standing,
        .n_available = c.available};
    summary_available(run, &tally);
}

const struct run_kind run_daemon_set = {.act = act, .describe = describe};
