/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/workers.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "base/alloc.h"
#include "base/list.h"

#define WORKERS_IDLE_SECONDS 10

struct job {
    struct list link;
    void (*work)(void *arg);
    void *arg;
};

struct worker {
    struct list link; /* in `finished`, once its thread is about to return */
    struct workers *pool;
    pthread_t thread;
};

struct workers {
    pthread_mutex_t lock;
    pthread_cond_t has_work; /* a job, or is_closing */
    pthread_cond_t changed;  /* a job is done, or a thread has finished */
    struct list jobs;        /* not yet begun */
    struct list finished;    /* workers to join */
    size_t max_threads, max_waiting;
    size_t n_jobs, n_threads, n_idle;
    bool is_closing;
};

struct workers *workers_new(size_t max_threads, size_t max_waiting)
{
    struct workers *w = NEW(struct workers);
    w->max_threads = MAX(max_threads, (size_t) 1);
    w->max_waiting = max_waiting;
    list_init(&w->jobs);
    list_init(&w->finished);
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&w->has_work, &attributes);
    pthread_cond_init(&w->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    return w;
}

/* ---- threads, all under the lock except for the work itself ---------------------------------- */

static void run_jobs(struct workers *w)
{
    struct list *item = NULL;
    while ((item = list_pop_first(&w->jobs))) {
        struct job *j = CONTAINER_OF(item, struct job, link);
        w->n_jobs--;
        pthread_mutex_unlock(&w->lock);
        j->work(j->arg);
        mem_free(j);
        pthread_mutex_lock(&w->lock);
    }
}

/* False when nothing came for a while. */
static bool wait_for_job(struct workers *w)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += WORKERS_IDLE_SECONDS;
    w->n_idle++;
    pthread_cond_broadcast(&w->changed);
    int r = 0;
    while (list_is_empty(&w->jobs) && !w->is_closing && r == 0)
        r = pthread_cond_timedwait(&w->has_work, &w->lock, &until);
    w->n_idle--;
    return !list_is_empty(&w->jobs);
}

static void *run_worker(void *arg)
{
    struct worker *self = arg;
    struct workers *w = self->pool;
    pthread_mutex_lock(&w->lock);
    do
        run_jobs(w);
    while (wait_for_job(w));
    w->n_threads--;
    list_append(&w->finished, &self->link);
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* They do no more than return, so joining them under the lock does not wait for anything. */
static void join_finished(struct workers *w)
{
    struct list *item = NULL;
    while ((item = list_pop_first(&w->finished))) {
        struct worker *gone = CONTAINER_OF(item, struct worker, link);
        pthread_join(gone->thread, NULL);
        mem_free(gone);
    }
}

/* Signals are for the loops' threads: these take none. */
static int start_thread(struct workers *w)
{
    struct worker *worker = NEW(struct worker);
    worker->pool = w;
    list_init(&worker->link);
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int r = pthread_create(&worker->thread, NULL, run_worker, worker);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (r != 0) {
        mem_free(worker);
        return -r;
    }
    w->n_threads++;
    return 0;
}

/* ---- jobs ------------------------------------------------------------------------------------ */

/* Some thread will take one more job: one that idles, a new one, or later one that is busy. */
static int find_room(struct workers *w)
{
    if (w->n_idle > w->n_jobs)
        return 0;
    if (w->n_threads < w->max_threads && start_thread(w) == 0)
        return 0;
    if (w->n_threads == 0 || w->n_jobs >= w->max_waiting)
        return -EAGAIN;
    return 0;
}

int workers_run(struct workers *w, void (*work)(void *arg), void *arg)
{
    pthread_mutex_lock(&w->lock);
    join_finished(w);
    int r = find_room(w);
    if (r == 0) {
        struct job *j = NEW(struct job);
        j->work = work;
        j->arg = arg;
        list_append(&w->jobs, &j->link);
        w->n_jobs++;
        pthread_cond_signal(&w->has_work);
    }
    pthread_mutex_unlock(&w->lock);
    return r;
}

static void wait_settled(struct workers *w)
{
    while (w->n_jobs > 0 || w->n_idle < w->n_threads)
        pthread_cond_wait(&w->changed, &w->lock);
}

void workers_settle(struct workers *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    wait_settled(w);
    pthread_mutex_unlock(&w->lock);
}

void workers_free(struct workers *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    wait_settled(w);
    w->is_closing = true;
    pthread_cond_broadcast(&w->has_work);
    while (w->n_threads > 0)
        pthread_cond_wait(&w->changed, &w->lock);
    join_finished(w);
    pthread_mutex_unlock(&w->lock);
    pthread_cond_destroy(&w->has_work);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    mem_free(w);
}
