/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/queue.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/map.h"

#define MAX_SLEEP_US ((int64_t) 3600 * 1000000)
#define QUEUE_MAX_THREADS 32

/* A key that waits or is being worked on. */
struct work {
    struct str key; /* owned */
    int64_t due_us;
    int64_t retry_ms; /* of the last failure; 0: the last time went well */
    bool is_waiting;  /* in the heap */
    bool is_worked_on;
    bool is_wanted; /* woken meanwhile: waits again, until due_us, when it has been worked on */
    size_t heap_at;
};

struct controller_queue {
    const struct controller *controller;
    const struct controller_context *ctx;
    void *state;
    pthread_mutex_t lock;
    /* Of those who have nothing to do one waits for the time of the first key, the others to take
     * his place: a key wakes one of them, not all. */
    pthread_cond_t lead, wake;
    bool has_leader;
    size_t n_idle;
    pthread_t threads[QUEUE_MAX_THREADS];
    unsigned n_threads; /* of those that were started here */
    struct map works;   /* key -> struct work */
    struct work **heap; /* waiting ones, earliest first */
    size_t n_heap, capacity;
    bool is_synced, is_stopping;
    struct queue_figures figures;
};

/* ---- a heap by due time ------------------------------------------------------------------- */

static void heap_place(struct controller_queue *q, size_t at, struct work *w)
{
    q->heap[at] = w;
    w->heap_at = at;
}

static void heap_up(struct controller_queue *q, size_t at)
{
    struct work *w = q->heap[at];
    for (; at > 0 && q->heap[(at - 1) / 2]->due_us > w->due_us; at = (at - 1) / 2)
        heap_place(q, at, q->heap[(at - 1) / 2]);
    heap_place(q, at, w);
}

static void heap_down(struct controller_queue *q, size_t at)
{
    struct work *w = q->heap[at];
    for (size_t child = 2 * at + 1; child < q->n_heap; child = 2 * at + 1) {
        if (child + 1 < q->n_heap && q->heap[child + 1]->due_us < q->heap[child]->due_us)
            child++;
        if (q->heap[child]->due_us >= w->due_us)
            break;
        heap_place(q, at, q->heap[child]);
        at = child;
    }
    heap_place(q, at, w);
}

static void heap_push(struct controller_queue *q, struct work *w)
{
    if (q->n_heap == q->capacity) {
        q->capacity = MAX(q->capacity * 2, (size_t) 16);
        q->heap = mem_realloc_array(q->heap, q->capacity, sizeof(struct work *));
    }
    heap_place(q, q->n_heap++, w);
    heap_up(q, q->n_heap - 1);
}

static struct work *heap_pop(struct controller_queue *q)
{
    struct work *first = q->heap[0], *last = q->heap[--q->n_heap];
    if (q->n_heap) {
        heap_place(q, 0, last);
        heap_down(q, 0);
    }
    return first;
}

/* ---- keys --------------------------------------------------------------------------------- */

static int64_t now_us(const struct controller_queue *q)
{
    return q->ctx->clock->monotonic_us(q->ctx->clock);
}

/* Only the first key changes how long anybody sleeps. */
static void call_somebody(struct controller_queue *q, const struct work *w)
{
    if (w->heap_at == 0)
        (void) pthread_cond_signal(q->has_leader ? &q->lead : &q->wake);
}

/* A key already waiting for an earlier time keeps it. */
static void schedule(struct controller_queue *q, struct work *w, int64_t delay_ms)
{
    int64_t due_us = now_us(q) + delay_ms * 1000;
    if ((w->is_waiting || w->is_wanted) && w->due_us <= due_us)
        return;
    w->due_us = due_us;
    if (w->is_waiting) {
        heap_up(q, w->heap_at);
    } else if (!w->is_wanted) {
        q->figures.n_adds++;
        w->is_wanted = w->is_worked_on;
        w->is_waiting = !w->is_worked_on;
        if (w->is_waiting)
            heap_push(q, w);
    }
    if (w->is_waiting)
        call_somebody(q, w);
}

void controller_enqueue(struct controller_queue *q, struct str key, int64_t delay_ms)
{
    (void) pthread_mutex_lock(&q->lock);
    struct work *w = map_get(&q->works, key);
    if (!w) {
        w = NEW(struct work);
        w->key = str_range(mem_dup(key.p, key.n), key.n);
        (void) map_put(&q->works, w->key, w);
    }
    schedule(q, w, delay_ms);
    (void) pthread_mutex_unlock(&q->lock);
}

static void work_free(struct work *w)
{
    mem_free((char *) w->key.p);
    mem_free(w);
}

/* ---- working ------------------------------------------------------------------------------ */

/* Takes the first key if it is due. What follows from the absence of something can only be told
 * when all that exists has been seen: nothing is due before. With the lock held, as all below. */
static struct work *take_due(struct controller_queue *q)
{
    if (!q->is_synced || !q->n_heap || q->heap[0]->due_us > now_us(q))
        return NULL;
    struct work *w = heap_pop(q);
    w->is_waiting = false;
    w->is_worked_on = true;
    queue_histogram_add(&q->figures.waited, now_us(q) - w->due_us);
    return w;
}

/* Nobody works on it any more: what woke it meanwhile counts from here on. */
static void put_back(struct controller_queue *q, struct work *w)
{
    w->is_worked_on = false;
    if (!w->is_wanted)
        return;
    w->is_wanted = false;
    w->is_waiting = true;
    heap_push(q, w);
    call_somebody(q, w);
}

static void settle(struct controller_queue *q, struct work *w, int64_t result)
{
    put_back(q, w);
    if (result < 0) {
        w->retry_ms =
            MIN(MAX(w->retry_ms * 2, (int64_t) QUEUE_RETRY_MIN_MS), (int64_t) QUEUE_RETRY_MAX_MS);
        log_debug("reconcile failed, retrying", LOG_TEXT("controller", q->controller->name),
                  LOG_STR("key", w->key), LOG_INT("in_ms", w->retry_ms), LOG_ERRNO((int) result));
        q->figures.n_retries++;
        schedule(q, w, w->retry_ms);
        return;
    }
    w->retry_ms = 0;
    if (result > 0) {
        schedule(q, w, result);
    } else if (!w->is_waiting) {
        (void) map_remove(&q->works, w->key);
        work_free(w);
    }
}

static void work_on(struct controller_queue *q, struct work *w)
{
    (void) pthread_mutex_unlock(&q->lock);
    int64_t begin_us = now_us(q);
    int64_t result = q->controller->reconcile(q->state, q->ctx, w->key);
    int64_t end_us = now_us(q);
    (void) pthread_mutex_lock(&q->lock);
    queue_histogram_add(&q->figures.worked, end_us - begin_us);
    settle(q, w, result);
}

bool controller_queue_step(struct controller_queue *q)
{
    (void) pthread_mutex_lock(&q->lock);
    struct work *w = take_due(q);
    if (w)
        work_on(q, w);
    (void) pthread_mutex_unlock(&q->lock);
    return w != NULL;
}

int64_t controller_queue_due_us(struct controller_queue *q)
{
    (void) pthread_mutex_lock(&q->lock);
    int64_t due_us = q->n_heap ? q->heap[0]->due_us : INT64_MAX;
    (void) pthread_mutex_unlock(&q->lock);
    return due_us;
}

void controller_queue_figures(struct controller_queue *q, struct queue_figures *ret)
{
    (void) pthread_mutex_lock(&q->lock);
    *ret = q->figures;
    ret->name = q->controller->name;
    int64_t now = now_us(q);
    for (size_t i = 0; i < q->n_heap; i++)
        ret->depth += q->heap[i]->due_us <= now;
    (void) pthread_mutex_unlock(&q->lock);
}

static void sleep_until_due(struct controller_queue *q)
{
    if (q->has_leader || !q->is_synced || !q->n_heap) {
        q->n_idle++;
        (void) pthread_cond_wait(&q->wake, &q->lock);
        q->n_idle--;
        return;
    }
    int64_t wait_us = q->heap[0]->due_us - now_us(q);
    struct timespec until;
    (void) clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = MAX(MIN(wait_us, MAX_SLEEP_US), (int64_t) 0) * 1000 + until.tv_nsec;
    until.tv_sec += ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    q->has_leader = true;
    (void) pthread_cond_timedwait(&q->lead, &q->lock, &until);
    q->has_leader = false;
}

static void *run(void *queue)
{
    controller_queue_run(queue);
    return NULL;
}

/* With the lock held, or before anybody else knows the queue. */
static void start_thread(struct controller_queue *q)
{
    if (pthread_create(&q->threads[q->n_threads], NULL, run, q) != 0)
        abort();
    q->n_threads++;
}

/* Whoever begins to work leaves the keys that wait to somebody else. */
static void hand_on(struct controller_queue *q)
{
    if (!q->n_heap || q->has_leader)
        return;
    const unsigned most = MIN(q->controller->n_workers, (unsigned) QUEUE_MAX_THREADS);
    if (q->n_idle)
        (void) pthread_cond_signal(&q->wake);
    else if (q->n_threads && q->n_threads < most)
        start_thread(q);
}

void controller_queue_run(struct controller_queue *q)
{
    (void) pthread_mutex_lock(&q->lock);
    while (!q->is_stopping) {
        struct work *w = take_due(q);
        if (!w) {
            sleep_until_due(q);
            continue;
        }
        hand_on(q);
        work_on(q, w);
    }
    (void) pthread_mutex_unlock(&q->lock);
}

void controller_queue_start(struct controller_queue *q)
{
    (void) pthread_mutex_lock(&q->lock);
    start_thread(q);
    (void) pthread_mutex_unlock(&q->lock);
}

void controller_queue_join(struct controller_queue *q)
{
    /* No more are started once it stops. */
    for (unsigned i = 0; i < q->n_threads; i++)
        (void) pthread_join(q->threads[i], NULL);
}

void controller_queue_stop(struct controller_queue *q)
{
    (void) pthread_mutex_lock(&q->lock);
    q->is_stopping = true;
    (void) pthread_cond_broadcast(&q->wake);
    (void) pthread_cond_broadcast(&q->lead);
    (void) pthread_mutex_unlock(&q->lock);
}

/* ---- life --------------------------------------------------------------------------------- */

struct controller_queue *controller_queue_new(const struct controller *c,
                                              const struct controller_context *ctx)
{
    struct controller_queue *q = NEW(struct controller_queue);
    pthread_condattr_t monotonic;
    (void) pthread_condattr_init(&monotonic);
    (void) pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    q->controller = c;
    q->ctx = ctx;
    (void) pthread_mutex_init(&q->lock, NULL);
    (void) pthread_cond_init(&q->wake, &monotonic);
    (void) pthread_cond_init(&q->lead, &monotonic);
    (void) pthread_condattr_destroy(&monotonic);
    q->state = c->start ? c->start(ctx, q) : NULL;
    return q;
}

void controller_queue_free(struct controller_queue *q)
{
    if (!q)
        return;
    size_t position = 0;
    struct map_entry entry;
    while (map_next(&q->works, &position, &entry))
        work_free(entry.value);
    map_done(&q->works);
    mem_free(q->heap);
    if (q->controller->stop)
        q->controller->stop(q->state);
    (void) pthread_mutex_destroy(&q->lock);
    (void) pthread_cond_destroy(&q->wake);
    (void) pthread_cond_destroy(&q->lead);
    mem_free(q);
}

static void open(struct controller_queue *q)
{
    (void) pthread_mutex_lock(&q->lock);
    q->is_synced = true;
    (void) pthread_cond_broadcast(&q->wake);
    (void) pthread_mutex_unlock(&q->lock);
}

void controller_queue_event(struct controller_queue *q, const struct kube_event *e)
{
    if (e->type != KUBE_SYNCED) {
        q->controller->on_event(q->state, e, q);
        return;
    }
    if (q->controller->on_synced)
        q->controller->on_synced(q->state);
    open(q);
}
