/* SPDX-License-Identifier: Apache-2.0 */
/* ApplicationDeployments: so many Applications that are all alike. Those of an earlier template are
 * replaced little by little, or all at once. */
#include "base/random.h"
#include "workloads/children.h"
#include "workloads/names.h"
#include "workloads/revisions.h"
#include "workloads/rollout.h"
#include "workloads/summary.h"

#define RANDOM_BYTES 5

/* The Applications that stay, by what is to become of them. */
struct groups {
    struct index_application **new, **old;
    size_t n_new, n_old;
    size_t n_going; /* of the old, those on their way out */
};

static struct groups group(struct run *run)
{
    struct groups g = {0};
    const size_t n = run->view.n_applications;
    g.new = ARENA_ARRAY(run->arena, struct index_application *, n + 1);
    g.old = ARENA_ARRAY(run->arena, struct index_application *, n + 1);
    for (size_t i = 0; i < n; i++) {
        struct index_application *app = &run->view.applications[i];
        const bool is_new = children_is_new(run, app);
        if (!app->is_ours)
            continue;
        if (app->is_deleting)
            g.n_going += !is_new;
        else if (is_new)
            g.new[g.n_new++] = app;
        else
            g.old[g.n_old++] = app;
    }
    children_sort_to_delete(g.new, g.n_new);
    children_sort_to_delete(g.old, g.n_old);
    return g;
}

static bool is_paused(const struct run *run)
{
    return json_get_bool(run->spec, STR("paused"), false);
}

static bool may_roll(const struct run *run)
{
    return !is_paused(run);
}

static struct rollout_limits limits_of(const struct run *run)
{
    const struct json *strategy = json_get(run->spec, STR("strategy"));
    if (str_is(json_get_str(strategy, STR("type")), "Recreate"))
        return (struct rollout_limits){0};
    return rollout_deployment_limits(json_get(strategy, STR("rollingUpdate")), run_replicas(run));
}

/* ---- acting -------------------------------------------------------------------------------- */

static int create_some(struct run *run, const struct index_revision *revision, int64_t n)
{
    const struct json *template = NULL;
    int r = n > 0 ? revisions_template(run, revision, &template) : 0;
    for (int64_t i = 0; i < n && r == 0; i++) {
        char suffix[RANDOM_BYTES + 1];
        random_name(suffix, RANDOM_BYTES);
        const struct str name =
            names_fit(run->arena, arena_printf(run->arena, "%.*s-%.*s-%s", STR_ARG(run->at.name),
                                               STR_ARG(revision->hash), suffix));
        r = children_create(run, children_draft(run, name, template, revision->hash));
    }
    return r;
}

static int delete_some(struct run *run, struct index_application **apps, size_t n_apps, int64_t n)
{
    int r = 0;
    for (size_t i = 0; i < n_apps && (int64_t) i < n && r == 0; i++)
        r = children_delete(run, apps[i]);
    return r;
}

/* Those of the old that stand, or those that do not, in the order in which they go. */
static int delete_old(struct run *run, const struct groups *g, bool stands, int64_t n)
{
    struct index_application **chosen =
        ARENA_ARRAY(run->arena, struct index_application *, g->n_old + 1);
    size_t n_chosen = 0;
    for (size_t i = 0; i < g->n_old; i++)
        if (children_stands(run, g->old[i]) == stands)
            chosen[n_chosen++] = g->old[i];
    return delete_some(run, chosen, n_chosen, n);
}

static int64_t count_standing(struct run *run, struct index_application **apps, size_t n)
{
    int64_t n_standing = 0;
    for (size_t i = 0; i < n; i++)
        n_standing += children_stands(run, apps[i]);
    return n_standing;
}

static int roll(struct run *run)
{
    const struct groups g = group(run);
    const struct rollout_limits limits = limits_of(run);
    const struct rollout_counts counts = {.replicas = run_replicas(run),
                                          .n_new = (int64_t) g.n_new,
                                          .n_new_standing = count_standing(run, g.new, g.n_new),
                                          .n_old = (int64_t) g.n_old,
                                          .n_old_standing = count_standing(run, g.old, g.n_old)};
    const struct rollout_step step = rollout_step(&counts, &limits);
    int r = delete_some(run, g.new, g.n_new, step.n_delete_new);
    if (r == 0)
        r = delete_old(run, &g, /* stands= */ false, step.n_delete_fallen);
    if (r == 0)
        r = delete_old(run, &g, /* stands= */ true, step.n_delete_old);
    return r == 0 ? create_some(run, &run->update, step.n_create) : r;
}

/* Nothing new before the last of the old is gone. */
static int recreate(struct run *run)
{
    struct groups g = group(run);
    int r = delete_some(run, g.old, g.n_old, (int64_t) g.n_old);
    if (r != 0)
        return r;
    if (g.n_old)
        run_refresh(run);
    g = group(run);
    if (g.n_old || g.n_going)
        return 0;
    const int64_t n_missing = run_replicas(run) - (int64_t) g.n_new;
    r = delete_some(run, g.new, g.n_new, -n_missing);
    return r == 0 ? create_some(run, &run->update, n_missing) : r;
}

/* ---- while it is paused -------------------------------------------------------------------- */

/* Applications of one template. */
struct generation {
    const struct index_revision *revision;
    struct index_application **apps; /* in the order in which they go */
    size_t n, n_gone;
};

static size_t generations(struct run *run, struct generation **ret)
{
    const size_t n = run->view.n_revisions;
    *ret = ARENA_ARRAY(run->arena, struct generation, n + 1);
    for (size_t i = 0; i < n; i++) {
        struct generation *g = &(*ret)[i];
        g->revision = &run->view.revisions[i];
        g->apps = ARENA_ARRAY(run->arena, struct index_application *, run->view.n_applications + 1);
        for (size_t k = 0; k < run->view.n_applications; k++) {
            struct index_application *app = &run->view.applications[k];
            if (app->is_ours && !app->is_deleting && str_eq(app->revision, g->revision->hash))
                g->apps[g->n++] = app;
        }
        children_sort_to_delete(g->apps, g->n);
    }
    return n;
}

/* The one with the most Applications left, the newest of several. */
static struct generation *largest(struct generation *all, size_t n)
{
    struct generation *best = NULL;
    for (size_t i = 0; i < n; i++)
        if (!best || all[i].n - all[i].n_gone >= best->n - best->n_gone)
            best = &all[i];
    return best;
}

/* The number follows what is wanted, the mixture of templates stays about as it is. */
static int scale_paused(struct run *run)
{
    struct generation *all = NULL;
    const size_t n = generations(run, &all);
    int64_t total = 0, n_mixed = 0;
    for (size_t i = 0; i < run->view.n_applications; i++)
        total += run->view.applications[i].is_ours && !run->view.applications[i].is_deleting;
    for (size_t i = 0; i < n; i++)
        n_mixed += all[i].n > 0;
    const int64_t wanted = run_replicas(run);
    const int64_t most = wanted + (n_mixed > 1 && wanted ? limits_of(run).surge : 0);
    int r = 0;
    for (; total > most && r == 0; total--) {
        struct generation *g = largest(all, n);
        /* The rest has been adopted and is of no template that is known. */
        if (!g || g->n_gone == g->n)
            break;
        r = children_delete(run, g->apps[g->n_gone++]);
    }
    if (r == 0 && total < wanted && n)
        r = create_some(run, largest(all, n)->revision, wanted - total);
    return r;
}

static int act(struct run *run)
{
    int r = 0;
    if (is_paused(run))
        r = scale_paused(run);
    else if (str_is(json_str(json_at(run->spec, "strategy", "type", NULL)), "Recreate"))
        r = recreate(run);
    else
        r = roll(run);
    return MIN(r, 0);
}

/* ---- progress ------------------------------------------------------------------------------ */

struct counts {
    int64_t total, updated, ready, available, standing;
};

static struct counts counts_before(const struct run *run)
{
    const struct json *s = json_get(run->object, STR("status"));
    return (struct counts){.total = json_get_int(s, STR("replicas"), 0),
                           .updated = json_get_int(s, STR("updatedReplicas"), 0),
                           .ready = json_get_int(s, STR("readyReplicas"), 0),
                           .available = json_get_int(s, STR("availableReplicas"), 0)};
}

static bool has_progressed(const struct counts *before, const struct counts *now)
{
    return now->updated > before->updated || now->ready > before->ready ||
           now->available > before->available ||
           now->total - now->updated < before->total - before->updated;
}

static bool is_complete(const struct run *run, const struct counts *c)
{
    const int64_t replicas = run_replicas(run);
    return run->has_update && c->updated == replicas && c->total == replicas &&
           c->standing >= replicas;
}

static int64_t last_update_us(const struct json *condition)
{
    int64_t us = 0;
    (void) clock_parse(json_get_str(condition, STR("lastUpdateTime")), &us);
    return us;
}

static void stamp(struct run *run, struct json *condition, int64_t us)
{
    char text[CLOCK_SECONDS_BYTES];
    clock_format_seconds(us, text);
    (void) json_set(run->arena, condition, STR("lastUpdateTime"),
                    json_string(arena_str(run->arena, str_of(text))));
}

/* The time of the last progress stays unless there was some. */
static void set_progress(struct run *run, const char *status, const char *reason,
                         struct str message, bool is_progress)
{
    struct json *old = conditions_find(conditions_of(run->arena, run->object), "Progressing");
    const bool is_same = old && str_is(json_get_str(old, STR("reason")), reason);
    const int64_t since_us = is_same && !is_progress ? last_update_us(old) : run->now_us;
    const struct condition c = {"Progressing", status, str_of(reason), message};
    stamp(run, summary_condition(run, &c, NULL), since_us);
}

/* False: past the deadline. */
static bool is_in_time(struct run *run, const struct json *condition)
{
    const int64_t limit_us = json_get_int(run->spec, STR("progressDeadlineSeconds"), 600) * 1000000;
    const int64_t left_us = last_update_us(condition) + limit_us - run->now_us;
    if (left_us >= 0)
        run_again(run, left_us / 1000 + 1000);
    return left_us >= 0;
}

static void progress(struct run *run, const struct counts *before, const struct counts *now)
{
    struct json *old = conditions_find(conditions_of(run->arena, run->object), "Progressing");
    const struct str reason = json_get_str(old, STR("reason"));
    const struct str done =
        arena_printf(run->arena, "the rollout of %.*s is complete", STR_ARG(run->update.name));
    const bool is_done = str_is(reason, "NewRevisionAvailable");
    if (is_paused(run)) {
        set_progress(run, "Unknown", "DeploymentPaused", STR("the rollout is paused"), false);
        return;
    }
    if (is_complete(run, now)) {
        set_progress(run, "True", "NewRevisionAvailable", done, false);
        return;
    }
    /* That one of those that were rolled out fails now is another matter. */
    if (is_done && str_eq(json_get_str(old, STR("message")), done))
        return;
    const bool is_progress =
        !old || is_done || str_is(reason, "DeploymentPaused") || has_progressed(before, now);
    if (is_progress)
        set_progress(run, "True", "RolloutProgressing", STR("the rollout goes on"), true);
    old = conditions_find(conditions_of(run->arena, run->object), "Progressing");
    if (!is_in_time(run, old))
        set_progress(run, "False", "ProgressDeadlineExceeded",
                     STR("the rollout has made no progress for spec.progressDeadlineSeconds"),
                     false);
}

/* ---- describing ---------------------------------------------------------------------------- */

static struct counts count(struct run *run)
{
    struct counts c = {0};
    for (size_t i = 0; i < run->view.n_applications; i++) {
        const struct index_application *app = &run->view.applications[i];
        if (app->is_deleting || !app->is_ours)
            continue;
        c.total++;
        c.updated += children_is_new(run, app);
        c.ready += app->is_ready;
        c.available += children_is_available(run, app);
        c.standing += children_stands(run, app);
    }
    return c;
}

static void describe(struct run *run)
{
    const struct counts before = counts_before(run), now = count(run);
    summary_count(run, "replicas", now.total);
    summary_count(run, "updatedReplicas", now.updated);
    summary_count(run, "readyReplicas", now.ready);
    summary_count(run, "availableReplicas", now.available);
    summary_count(run, "unavailableReplicas", now.total - now.available);
    const struct summary_tally tally = {.n_wanted = run_replicas(run),
                                        .n_needed = run_replicas(run) - limits_of(run).unavailable,
                                        .n_standing = now.standing,
                                        .n_available = now.available};
    summary_available(run, &tally);
    progress(run, &before, &now);
}

const struct run_kind run_deployment = {.act = act, .describe = describe, .may_roll = may_roll};
