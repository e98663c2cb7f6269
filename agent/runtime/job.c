/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that block, on worker threads. A job owns copies of what it works on, so that its object
 * may be forgotten meanwhile. */
#include <unistd.h>

#include "base/alloc.h"
#include "runtime/process_internal.h"
#include "runtime/runtime_internal.h"

static void job_unref(struct job *j)
{
    if (atomic_fetch_sub(&j->refs, 1) != 1)
        return;
    if (j->pidfd >= 0)
        (void) close(j->pidfd); /* it runs on: the next agent adopts it */
    for (int s = 0; s < 2; s++)
        if (j->pipes[s] >= 0)
            (void) close(j->pipes[s]);
    arena_free(j->arena);
    mem_free(j->error);
    mem_free(j);
}

static void on_worker(void *arg)
{
    struct job *j = arg;
    j->run(j);
}

static void on_done(void *arg)
{
    struct job *j = arg;
    struct process *p = j->process;
    if (j->object) {
        tenant_of(p, j->object)->job = NULL;
        j->done(j);
        j->object = NULL; /* a note that comes late finds nobody */
    }
    job_unref(j);
    process_job_over(p);
}

static void copy_asked(struct job *j)
{
    const struct runtime_object *o = j->object;
    uint64_t unused;
    /* What is copied was within the limits before. */
    if (o->kind == RUNTIME_CONTENT) {
        j->content = o->content;
        (void) runtime_copy_content(j->arena, &j->content, &unused);
    } else if (o->kind == RUNTIME_VOLUME) {
        j->volume = o->volume;
        (void) runtime_copy_volume(j->arena, &j->volume, &unused);
    } else {
        j->instance = o->instance;
        (void) runtime_copy_instance(j->arena, &j->instance, &unused);
    }
}

/* Behind what takes minutes, the start and the end of an instance would have to wait. */
static void on_slow_worker(void *arg)
{
    struct job *j = arg;
    j->run(j);
    loop_post(j->process->loop, on_done, j);
}

void job_begin(struct process *p, struct runtime_object *o, void (*run)(struct job *j),
               void (*done)(struct job *j))
{
    struct job *j = NEW(struct job);
    j->process = p;
    j->object = o;
    j->arena = arena_new();
    j->id = arena_str(j->arena, o->id);
    j->kind = o->kind;
    j->run = run;
    j->done = done;
    j->pidfd = j->pipes[0] = j->pipes[1] = -1;
    atomic_init(&j->refs, 1);
    copy_asked(j);
    tenant_of(p, o)->job = j;
    p->n_jobs++;
    bool is_slow = o->kind != RUNTIME_INSTANCE && o->state != RUNTIME_INVALID;
    if (!is_slow || workers_run(p->slow, on_slow_worker, j) < 0)
        loop_work(p->loop, on_worker, on_done, j);
}

/* ---- how far a content has got ------------------------------------------------------------- */

struct note {
    struct job *job;
    enum runtime_state state;
    int percent;
};

/* Its own states lie between: they are passed in order. */
static void on_note(void *arg)
{
    struct note *n = arg;
    struct runtime_object *o = n->job->object;
    while (o && o->state != n->state && o->state != RUNTIME_LOADING)
        runtime_move(o, runtime_content_next(o));
    if (o)
        runtime_progress(o, n->percent);
    job_unref(n->job);
    mem_free(n);
}

void job_note(struct job *j, enum runtime_state state, int percent)
{
    struct note *n = NEW(struct note);
    *n = (struct note){j, state, percent};
    atomic_fetch_add(&j->refs, 1);
    loop_post(j->process->loop, on_note, n);
}
