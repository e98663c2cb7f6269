/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/workloads.h"

#include <errno.h>

#include "workloads/children.h"
#include "workloads/revisions.h"
#include "workloads/summary.h"

#define WORKERS 4

static const struct run_kind *const behaviours[WORKLOAD_KINDS] = {
    [WORKLOAD_DEPLOYMENT] = &run_deployment,
    [WORKLOAD_DAEMON_SET] = &run_daemon_set,
    [WORKLOAD_STATEFUL_SET] = &run_stateful_set,
};

/* ---- waking -------------------------------------------------------------------------------- */

static void wake(void *queue, struct str key, int64_t delay_ms)
{
    controller_enqueue(queue, key, delay_ms);
}

static void *start(const struct controller_context *ctx, struct controller_queue *q)
{
    (void) ctx;
    return workload_index_new(wake, q);
}

static void stop(void *index)
{
    workload_index_free(index);
}

static void on_event(void *index, const struct kube_event *e, struct controller_queue *q)
{
    (void) q;
    workload_index_event(index, e);
}

/* ---- reconciling --------------------------------------------------------------------------- */

/* Keys are "<Kind>/<namespace>/<name>". */
static bool parse_key(struct run *run, struct str key)
{
    struct str rest = key, kind = STR_NONE;
    (void) str_split(&rest, '/', &kind);
    (void) str_split(&rest, '/', &run->at.namespace);
    run->at.name = rest;
    run->kind = workload_kind_of(kind);
    if (run->kind == WORKLOAD_KINDS)
        return false;
    run->behaviour = behaviours[run->kind];
    run->at.kind = registry_find(run->kinds, STR(WORKLOAD_GROUP), STR("v1beta1"),
                                 str_of(workload_kinds[run->kind].plural));
    return run->at.kind != NULL;
}

/* 0: there is nothing to be done; > 0: go on. */
static int begin(struct run *run)
{
    int r = objects_get(run->ctx, run->arena, &run->at, &run->object);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    run->uid = object_meta_text(run->object, "uid");
    run->spec = json_get(run->object, STR("spec"));
    run->template = json_get(run->spec, STR("template"));
    /* What is on its way out makes nothing any more; its Applications are the garbage collector's
     * affair. */
    if (object_is_deleting(run->object) ||
        !workload_index_view(run->ix, run->arena, run->uid, json_get(run->template, STR("spec")),
                             &run->view))
        return 0;
    run->memory = run->view.memory;
    return 1;
}

static int bring_about(struct run *run)
{
    int r = children_settle(run);
    if (r == 0)
        r = children_claim(run);
    if (r == 0)
        r = revisions_sync(run);
    if (r == 0)
        r = run->behaviour->act(run);
    return r;
}

/* However far it came, the status says how things are. */
static int sum_up(struct run *run, const struct json *before)
{
    run_refresh(run);
    run->behaviour->describe(run);
    summary_common(run);
    int r = summary_write(run, before);
    if (r == 0)
        r = revisions_trim(run);
    summary_tell(run);
    workload_index_remember(run->ix, run->uid, &run->memory);
    return r;
}

static int64_t reconcile(void *index, const struct controller_context *ctx, struct str key)
{
    ARENA_AUTO a = arena_new();
    CLEANUP(registry_unrefp) struct registry *kinds = kube_kinds(ctx->client);
    struct run run = {.ctx = ctx,
                      .ix = index,
                      .arena = a,
                      .kinds = kinds,
                      .now_us = ctx->clock->wall_us(ctx->clock)};
    if (!parse_key(&run, key))
        return 0;
    int r = begin(&run);
    if (r <= 0)
        return r;
    const struct json before = json_clone(a, run.object);
    r = bring_about(&run);
    if (!run.has_update && r < 0)
        return r;
    const int written = sum_up(&run, &before);
    if (r < 0 || written < 0)
        return r < 0 ? r : written;
    return run.next_ms;
}

const struct controller workloads_controller = {.name = "workloads",
                                                .start = start,
                                                .on_event = on_event,
                                                .reconcile = reconcile,
                                                .stop = stop,
                                                .n_workers = WORKERS};
