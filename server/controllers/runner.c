/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/map.h"
#include "controllers/controller.h"

#define RETRY_MIN_MS 50
#define RETRY_MAX_MS 60000
#define MAX_CONTROLLERS 32

/* A key that is waiting, being worked on, or both. */
struct work {
    struct str key; /* owned */
    int64_t due_us;
    int64_t retry_ms;
    bool is_waiting, is_running;
    size_t heap_at;
};

struct controller_queue {
    const struct controller *controller;
    const struct controller_context *ctx;
    void *state;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct map works; /* key -> struct work */
    struct work **heap; /* waiting ones, earliest first */
    size_t n_heap, capacity;
    bool is_stopping;
};

struct controller_runner {
    struct controller_context ctx;
    struct controller_queue queues[MAX_CONTROLLERS];
    size_t n_queues;
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

/* ---- the queue ---------------------------------------------------------------------------- */

static int64_t now_us(const struct controller_queue *q)
{
    return q->ctx->clock->monotonic_us(q->ctx->clock);
}

static void schedule(struct controller_queue *q, struct work *w, int64_t delay_ms)
{
    int64_t due_us = now_us(q) + delay_ms * 1000;
    if (w->is_waiting && w->due_us <= due_us)
        return;
    w->due_us = due_us;
    if (w->is_waiting) {
        heap_up(q, w->heap_at);
    } else {
        w->is_waiting = true;
        heap_push(q, w);
    }
    (void) pthread_cond_signal(&q->wake);
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

/* The next key that is due, taken from the heap; NULL when stopping. With the lock held. */
static struct work *next_due(struct controller_queue *q)
{
    while (!q->is_stopping) {
        int64_t wait_us = q->n_heap ? q->heap[0]->due_us - now_us(q) : INT64_MAX;
        if (wait_us <= 0) {
            struct work *w = heap_pop(q);
            w->is_waiting = false;
            return w;
        }
        struct timespec until;
        (void) clock_gettime(CLOCK_MONOTONIC, &until);
        int64_t wait_ns = MIN(wait_us, (int64_t) 3600 * 1000000) * 1000 + until.tv_nsec;
        until.tv_sec += wait_ns / 1000000000;
        until.tv_nsec = wait_ns % 1000000000;
        (void) pthread_cond_timedwait(&q->wake, &q->lock, &until);
    }
    return NULL;
}

static void work_free(struct controller_queue *q, struct work *w)
{
    (void) map_remove(&q->works, w->key);
    mem_free((char *) w->key.p);
    mem_free(w);
}

static void settle(struct controller_queue *q, struct work *w, int64_t result)
{
    w->is_running = false;
    if (result < 0) {
        w->retry_ms = MIN(MAX(w->retry_ms * 2, (int64_t) RETRY_MIN_MS), (int64_t) RETRY_MAX_MS);
        log_debug("reconcile failed, retrying", LOG_TEXT("controller", q->controller->name), LOG_STR("key", w->key),
                  LOG_INT("in_ms", w->retry_ms));
        schedule(q, w, w->retry_ms);
        return;
    }
    w->retry_ms = 0;
    if (result > 0)
        schedule(q, w, result);
    else if (!w->is_waiting)
        work_free(q, w);
}

static void *run(void *arg)
{
    struct controller_queue *q = arg;
    (void) pthread_mutex_lock(&q->lock);
    for (struct work *w = next_due(q); w; w = next_due(q)) {
        w->is_running = true;
        (void) pthread_mutex_unlock(&q->lock);
        int64_t result = q->controller->reconcile(q->state, q->ctx, w->key);
        (void) pthread_mutex_lock(&q->lock);
        settle(q, w, result);
    }
    (void) pthread_mutex_unlock(&q->lock);
    return NULL;
}

/* ---- the runner --------------------------------------------------------------------------- */

static void on_event(void *ctx, const struct kube_event *e)
{
    struct controller_runner *r = ctx;
    for (size_t i = 0; i < r->n_queues; i++)
        r->queues[i].controller->on_event(r->queues[i].state, e, &r->queues[i]);
}

static void queue_start(struct controller_runner *r, struct controller_queue *q, const struct controller *c)
{
    pthread_condattr_t monotonic;
    (void) pthread_condattr_init(&monotonic);
    (void) pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    q->controller = c;
    q->ctx = &r->ctx;
    (void) pthread_mutex_init(&q->lock, NULL);
    (void) pthread_cond_init(&q->wake, &monotonic);
    (void) pthread_condattr_destroy(&monotonic);
    q->state = c->start ? c->start(&r->ctx, q) : NULL;
    if (pthread_create(&q->thread, NULL, run, q) != 0)
        abort();
}

struct controller_runner *controller_runner_new(const struct controller_context *ctx)
{
    struct controller_runner *r = NEW(struct controller_runner);
    r->ctx = *ctx;
    for (const struct controller *const *c = controllers; *c && r->n_queues < MAX_CONTROLLERS; c++)
        queue_start(r, &r->queues[r->n_queues++], *c);
    kube_watch(r->ctx.client, on_event, r);
    return r;
}

static void queue_stop(struct controller_queue *q)
{
    (void) pthread_mutex_lock(&q->lock);
    q->is_stopping = true;
    (void) pthread_cond_signal(&q->wake);
    (void) pthread_mutex_unlock(&q->lock);
    (void) pthread_join(q->thread, NULL);
}

static void queue_done(struct controller_queue *q)
{
    size_t position = 0;
    struct map_entry entry;
    while (map_next(&q->works, &position, &entry)) {
        struct work *w = entry.value;
        mem_free((char *) w->key.p);
        mem_free(w);
    }
    map_done(&q->works);
    mem_free(q->heap);
    if (q->controller->stop)
        q->controller->stop(q->state);
    (void) pthread_mutex_destroy(&q->lock);
    (void) pthread_cond_destroy(&q->wake);
}

void controller_runner_free(struct controller_runner *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n_queues; i++)
        queue_stop(&r->queues[i]);
    kube_client_free(r->ctx.client); /* ends the events */
    for (size_t i = 0; i < r->n_queues; i++)
        queue_done(&r->queues[i]);
    mem_free(r);
}
