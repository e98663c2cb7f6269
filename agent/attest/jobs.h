/* SPDX-License-Identifier: Apache-2.0 */
/* Work on other threads for an owner that may go meanwhile: then what it has brought is thrown
 * away. */
#pragma once

#include "base/arena.h"
#include "base/list.h"

struct loop;
struct job;

struct jobs {
    struct loop *loop;
    struct list running;
};
void jobs_init(struct jobs *s, struct loop *loop);
/* No end of a job comes after it. */
void jobs_done(struct jobs *s);
bool jobs_are_running(const struct jobs *s);

/* The beginning of whatever a job must know, all of it in the arena of its own. */
struct job {
    struct arena *arena;
    void (*work)(struct job *j);   /* on another thread */
    void (*finish)(struct job *j); /* on the loop's */
    void (*drop)(struct job *j);   /* always, at last: for what no arena can hold; NULL: nothing */
    void *owner;
    struct jobs *jobs; /* NULL: they are no more */
    struct list link;
};
/* With the first four set. */
void job_run(struct jobs *s, struct job *j);
