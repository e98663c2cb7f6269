/* SPDX-License-Identifier: Apache-2.0 */
/* ApplicationStatefulSets: Applications with numbers, made in their order, taken away and replaced
 * in the opposite one, each with claims of its own. */
#include <inttypes.h>
#include <stdlib.h>

#include "workloads/children.h"
#include "workloads/claims.h"
#include "workloads/names.h"
#include "workloads/revisions.h"
#include "workloads/rollout.h"
#include "workloads/summary.h"

#define LABEL_VALUE_MAX_BYTES 63

struct member {
    struct index_application *app; /* NULL: to be made */
    int64_t ordinal;
};

struct set {
    struct member *wanted; /* by number */
    size_t n_wanted;
    bool is_cut; /* more are wanted than one look can bring about: these are the first of them */
    struct member *condemned; /* numbers that are not wanted, highest first */
    size_t n_condemned;
};

static int64_t first_ordinal(const struct run *run)
{
    return MAX(json_get_int(json_get(run->spec, STR("ordinals")), STR("start"), 0), (int64_t) 0);
}

static int highest_first(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    return x->ordinal == y->ordinal ? 0 : x->ordinal > y->ordinal ? -1 : 1;
}

static struct set set_of(struct run *run)
{
    const int64_t first = first_ordinal(run), n_all = run_replicas(run);
    const int64_t most = (int64_t) run->view.n_applications + RUN_MAX_WRITES;
    struct set s = {.n_wanted = (size_t) MIN(n_all, most), .is_cut = n_all > most};
    s.wanted = ARENA_ARRAY(run->arena, struct member, s.n_wanted + 1);
    s.condemned = ARENA_ARRAY(run->arena, struct member, run->view.n_applications + 1);
    for (size_t i = 0; i < s.n_wanted; i++)
        s.wanted[i].ordinal = first + (int64_t) i;
    for (size_t i = 0; i < run->view.n_applications; i++) {
        struct index_application *app = &run->view.applications[i];
        const int64_t ordinal = workload_ordinal(run->at.name, app->name);
        if (ordinal < 0 || !app->is_ours)
            continue;
        if (ordinal < first || ordinal >= first + n_all)
            s.condemned[s.n_condemned++] = (struct member){app, ordinal};
        else if (ordinal < first + (int64_t) s.n_wanted)
            s.wanted[ordinal - first].app = app;
    }
    qsort(s.condemned, s.n_condemned, sizeof(struct member), highest_first);
    return s;
}

static bool is_parallel(const struct run *run)
{
    return str_is(json_get_str(run->spec, STR("podManagementPolicy")), "Parallel");
}

static bool is_on_delete(const struct run *run)
{
    return str_is(json_str(json_at(run->spec, "updateStrategy", "type", NULL)), "OnDelete");
}

static const struct json *rolling_update(const struct run *run)
{
    return json_at(run->spec, "updateStrategy", "rollingUpdate", NULL);
}

/* Those below stay as they are. */
static int64_t partition_end(const struct run *run)
{
    return first_ordinal(run) +
           (is_on_delete(run) ? 0 : json_get_int(rolling_update(run), STR("partition"), 0));
}

/* The revision of those that are not replaced yet. */
static const struct index_revision *current_revision(const struct run *run)
{
    const struct index_revision *current =
        revisions_by_name(run, json_str(json_at(run->object, "status", "currentRevision", NULL)));
    return current ? current : &run->update;
}

/* ---- making -------------------------------------------------------------------------------- */

static void set_identity(struct run *run, struct json *draft, int64_t ordinal)
{
    struct json *meta = json_get(draft, STR("metadata"));
    struct json *labels = json_get(meta, STR("labels"));
    const struct str name = json_get_str(meta, STR("name"));
    (void) json_set(run->arena, labels, STR(WORKLOAD_LABEL_ORDINAL),
                    json_string(arena_printf(run->arena, "%" PRId64, ordinal)));
    if (name.n <= LABEL_VALUE_MAX_BYTES)
        (void) json_set(run->arena, labels, STR(WORKLOAD_LABEL_NAME), json_string(name));
}

static int create_member(struct run *run, int64_t ordinal)
{
    const struct index_revision *revision =
        ordinal < partition_end(run) ? current_revision(run) : &run->update;
    const struct json *template = NULL;
    int r = revisions_template(run, revision, &template);
    if (r < 0)
        return r;
    r = claims_make(run, ordinal);
    if (r < 0)
        return r;
    const struct str name =
        arena_printf(run->arena, "%.*s-%" PRId64, STR_ARG(run->at.name), ordinal);
    struct json *draft = children_draft(run, name, template, revision->hash);
    set_identity(run, draft, ordinal);
    claims_mount(run, ordinal, draft);
    return children_create(run, draft);
}

/* 0: all are there and, unless their order does not matter, stand; > 0: not yet. */
static int fill(struct run *run, const struct set *s)
{
    const bool in_order = !is_parallel(run);
    int waiting = 0;
    for (size_t i = 0; i < s->n_wanted; i++) {
        const struct member *m = &s->wanted[i];
        const bool is_missing = !m->app;
        int r = is_missing ? create_member(run, m->ordinal) : 0;
        if (r != 0)
            return r;
        /* One that was made just now does not stand, nor does one that goes. */
        if (is_missing || m->app->is_deleting || !children_stands(run, m->app)) {
            if (in_order)
                return 1;
            waiting |= is_missing;
        }
    }
    if (s->is_cut)
        run_again(run, 1);
    return waiting || s->is_cut;
}

/* ---- taking away --------------------------------------------------------------------------- */

static int delete_condemned(struct run *run, const struct set *s)
{
    const bool in_order = !is_parallel(run);
    for (size_t i = 0; i < s->n_condemned; i++) {
        const struct member *m = &s->condemned[i];
        if (m->app->is_deleting) {
            if (in_order)
                return 1;
            continue;
        }
        int r = claims_set_owners(run, m->ordinal, m->app);
        if (r == 0)
            r = children_delete(run, m->app);
        if (r != 0 || in_order)
            return r != 0 ? r : 1;
    }
    return 0;
}

/* From the highest number down. What is out of touch is replaced in its turn and not waited for. */
static int roll(struct run *run, const struct set *s)
{
    const int64_t max = rollout_stateful_unavailable(rolling_update(run), run_replicas(run)),
                  end = partition_end(run);
    int64_t n_missing = 0;
    for (size_t i = s->n_wanted; i-- > 0 && n_missing < max;) {
        const struct member *m = &s->wanted[i];
        if (m->ordinal < end)
            break;
        if (m->app && !m->app->is_deleting && !children_is_new(run, m->app)) {
            int r = children_delete(run, m->app);
            if (r != 0)
                return r;
            n_missing += !m->app->is_offline;
        } else if (!m->app || m->app->is_deleting || !children_stands(run, m->app)) {
            n_missing++;
        }
    }
    return 0;
}

/* Claims follow the policy when it is changed; the rest of the time they are left alone. */
static int follow_policy(struct run *run, const struct set *s)
{
    const int64_t generation =
        json_get_int(json_get(run->object, STR("metadata")), STR("generation"), 0);
    if (run->memory.claims_generation == generation)
        return 0;
    for (size_t i = 0; i < s->n_wanted; i++) {
        int r = s->wanted[i].app ? claims_set_owners(run, s->wanted[i].ordinal, NULL) : 0;
        if (r < 0)
            return r;
    }
    run->memory.claims_generation = generation;
    return 0;
}

static int act(struct run *run)
{
    const struct set s = set_of(run);
    int r = follow_policy(run, &s);
    if (r == 0)
        r = fill(run, &s);
    if (r == 0)
        r = delete_condemned(run, &s);
    if (r == 0 && !is_on_delete(run))
        r = roll(run, &s);
    return MIN(r, 0);
}

/* ---- describing ---------------------------------------------------------------------------- */

struct counts {
    int64_t total, ready, current, updated, available, standing;
};

static struct counts count(struct run *run, struct str current_hash)
{
    struct counts c = {0};
    for (size_t i = 0; i < run->view.n_applications; i++) {
        const struct index_application *app = &run->view.applications[i];
        if (!app->is_ours || workload_ordinal(run->at.name, app->name) < 0)
            continue;
        c.total++;
        c.ready += app->is_ready;
        c.available += children_is_available(run, app);
        c.standing += children_stands(run, app);
        if (app->is_deleting)
            continue;
        c.current += str_eq(app->revision, current_hash);
        c.updated += children_is_new(run, app);
    }
    return c;
}

/* When all are of the newest template it is the current one. */
static bool is_complete(const struct run *run, const struct counts *c)
{
    return c->updated == c->total && c->total == run_replicas(run) && c->standing == c->total;
}

static void describe(struct run *run)
{
    const struct index_revision *current = current_revision(run);
    struct counts c = count(run, current->hash);
    if (!str_eq(current->name, run->update.name) && !is_on_delete(run) && is_complete(run, &c)) {
        current = &run->update;
        c.current = c.updated;
    }
    summary_count(run, "replicas", c.total);
    summary_count(run, "readyReplicas", c.ready);
    summary_count(run, "currentReplicas", c.current);
    summary_count(run, "updatedReplicas", c.updated);
    summary_count(run, "availableReplicas", c.available);
    summary_text(run, "currentRevision", current->name);
    summary_text(run, "updateRevision", run->update.name);
    const struct summary_tally tally = {.n_wanted = run_replicas(run),
                                        .n_needed = run_replicas(run),
                                        .n_standing = c.standing,
                                        .n_available = c.available};
    summary_available(run, &tally);
}

const struct run_kind run_stateful_set = {.act = act, .describe = describe};
