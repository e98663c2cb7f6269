/* SPDX-License-Identifier: Apache-2.0 */
#include "attest/jobs.h"

#include "loop/loop.h"

void jobs_init(struct jobs *s, struct loop *loop)
{
    s->loop = loop;
    list_init(&s->running);
}

void jobs_done(struct jobs *s)
{
    struct list *item;
    if (!s->loop)
        return;
    while ((item = list_pop_first(&s->running)))
        CONTAINER_OF(item, struct job, link)->jobs = NULL;
}

bool jobs_are_running(const struct jobs *s)
{
    return !list_is_empty(&s->running);
}

static void on_work(void *arg)
{
    struct job *j = arg;
    j->work(j);
}

static void on_done(void *arg)
{
    struct job *j = arg;
    struct arena *arena = j->arena;
    if (j->jobs) {
        list_remove(&j->link);
        j->finish(j);
    }
    if (j->drop)
        j->drop(j);
    arena_free(arena);
}

void job_run(struct jobs *s, struct job *j)
{
    j->jobs = s;
    list_append(&s->running, &j->link);
    loop_work(s->loop, on_work, on_done, j);
}
