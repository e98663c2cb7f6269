/* SPDX-License-Identifier: Apache-2.0 */
/* One look at one owner: what is wanted, what there is, and what came of it. */
#pragma once

#include "controllers/objects.h"
#include "workloads/index.h"

/* Writes of one look; then the status tells how far it is, and the next look goes on. */
#define RUN_MAX_WRITES 500

struct run;

/* What the kinds do differently. */
struct run_kind {
    /* Makes and takes away Applications. 0, or a negative errno; it may also stop half way, having
     * called run_again(). */
    int (*act)(struct run *run);
    /* Writes the counts and conditions of run->view into the status. */
    void (*describe)(struct run *run);
    /* Whether a template that is new may be rolled out now; NULL: always. */
    bool (*may_roll)(const struct run *run);
};
extern const struct run_kind run_deployment, run_daemon_set, run_stateful_set;

struct run {
    const struct controller_context *ctx;
    struct workload_index *ix;
    struct arena *arena;
    const struct registry *kinds;
    const struct run_kind *behaviour;
    enum workload_kind kind;
    struct object_place at;
    struct json *object; /* as it is now; its status is changed in place */
    const struct json *spec, *template;
    struct str uid;
    int64_t now_us;
    struct index_view view;
    struct index_memory memory;
    struct index_revision update; /* of the template */
    bool has_update;              /* not while a new template waits */
    int64_t n_collisions;
    int64_t next_ms; /* 0: nothing is due by itself */
    size_t n_writes;
    struct str failure;        /* why an Application could not be made; STR_NONE: all could */
    struct str delete_failure; /* or taken away */
};

/* Look again in that many ms, or earlier. */
static inline void run_again(struct run *run, int64_t ms)
{
    run->next_ms = run->next_ms ? MIN(run->next_ms, MAX(ms, (int64_t) 1)) : MAX(ms, (int64_t) 1);
}
/* False when this look has written enough: it ends here and comes again. */
static inline bool run_may_write(struct run *run)
{
    if (run->n_writes++ < RUN_MAX_WRITES)
        return true;
    run_again(run, 1);
    return false;
}
static inline int64_t run_replicas(const struct run *run)
{
    return json_get_int(run->spec, STR("replicas"), 1);
}
/* What there is now, own writes included. */
static inline void run_refresh(struct run *run)
{
    (void) workload_index_view(run->ix, run->arena, run->uid, json_get(run->template, STR("spec")),
                               &run->view);
}
