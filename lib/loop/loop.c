/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/loop.h"

#include <assert.h>

#include "base/alloc.h"
#include "loop/loop_internal.h"

/* After loop_stop(): turns granted to deferred calls that keep deferring. */
#define LOOP_MAX_LAST_TURNS 64

/* ---- deferred calls ------------------------------------------------------------------------
 * They run right after the poll and once more right before it (for what timers and close callbacks
 * deferred). What they defer themselves waits for the next of these two places, and if that comes
 * after a poll, the idle handle keeps that poll from sleeping. */

static void run_deferred(struct loop *l)
{
    if (list_is_empty(&l->deferred))
        return;
    struct list due = l->deferred;
    due.next->previous = &due;
    due.previous->next = &due;
    list_init(&l->deferred);
    struct list *item = NULL;
    while ((item = list_pop_first(&due))) {
        struct loop_deferred *d = CONTAINER_OF(item, struct loop_deferred, link);
        d->is_queued = false;
        d->fn(d);
    }
}

static void on_no_sleep(uv_idle_t *handle)
{
    (void) handle;
}

static void on_before_poll(uv_prepare_t *handle)
{
    struct loop *l = handle->data;
    run_deferred(l);
    if (list_is_empty(&l->deferred))
        (void) uv_idle_stop(&l->no_sleep);
    else
        (void) uv_idle_start(&l->no_sleep, on_no_sleep);
}

static void on_after_poll(uv_check_t *handle)
{
    run_deferred(handle->data);
}

void loop_defer(struct loop *l, struct loop_deferred *d)
{
    if (d->is_queued)
        return;
    d->is_queued = true;
    list_append(&l->deferred, &d->link);
}

void loop_undefer(struct loop *l, struct loop_deferred *d)
{
    (void) l;
    if (!d->is_queued)
        return;
    d->is_queued = false;
    list_remove(&d->link);
}

/* ---- calls from other threads -------------------------------------------------------------- */

void loop_post(struct loop *l, void (*fn)(void *arg), void *arg)
{
    pthread_mutex_lock(&l->post_lock);
    struct loop_calls *q = &l->posted;
    if (q->n == q->capacity) {
        q->capacity = MAX(q->capacity * 2, (size_t) 64);
        q->items = mem_realloc_array(q->items, q->capacity, sizeof(*q->items));
    }
    bool was_empty = q->n == 0;
    q->items[q->n++] = (struct loop_call){fn, arg};
    pthread_mutex_unlock(&l->post_lock);
    /* Whoever found the queue empty wakes the loop for all that follow until it takes them. */
    if (was_empty)
        (void) uv_async_send(&l->wake);
}

static void run_posted(struct loop *l)
{
    pthread_mutex_lock(&l->post_lock);
    struct loop_calls taken = l->posted;
    l->posted = l->running;
    pthread_mutex_unlock(&l->post_lock);
    for (size_t i = 0; i < taken.n; i++)
        taken.items[i].fn(taken.items[i].arg);
    taken.n = 0;
    l->running = taken;
}

static bool has_posted(struct loop *l)
{
    pthread_mutex_lock(&l->post_lock);
    bool any = l->posted.n > 0;
    pthread_mutex_unlock(&l->post_lock);
    return any;
}

static void on_wake(uv_async_t *handle)
{
    struct loop *l = handle->data;
    bool must_stop = atomic_load(&l->is_stopping);
    run_posted(l);
    if (must_stop)
        uv_stop(&l->uv);
}

void loop_stop(struct loop *l)
{
    atomic_store(&l->is_stopping, true);
    (void) uv_async_send(&l->wake);
}

/* ---- life ---------------------------------------------------------------------------------- */

struct loop *loop_new(void)
{
    struct loop *l = NEW(struct loop);
    /* These fail only for want of file descriptors at start, when there is nothing to run yet. */
    int r = uv_loop_init(&l->uv);
    if (r == 0)
        r = uv_async_init(&l->uv, &l->wake, on_wake);
    assert(r == 0);
    (void) uv_prepare_init(&l->uv, &l->before_poll);
    (void) uv_check_init(&l->uv, &l->after_poll);
    (void) uv_idle_init(&l->uv, &l->no_sleep);
    l->wake.data = l->before_poll.data = l->after_poll.data = l->no_sleep.data = l;
    l->n_handles = 4;
    (void) uv_prepare_start(&l->before_poll, on_before_poll);
    (void) uv_check_start(&l->after_poll, on_after_poll);
    list_init(&l->deferred);
    list_init(&l->signals);
    pthread_mutex_init(&l->post_lock, NULL);
    l->speed = 1;
    return l;
}

/* Only what cannot hang: a work item ends by itself, a closing handle needs one turn, and calls
 * that keep deferring themselves are cut off. */
void loop_settle(struct loop *l)
{
    for (int turn = 0;; turn++) {
        bool must_end = l->n_closing || l->n_working;
        bool may_go_on = !list_is_empty(&l->deferred) || has_posted(l);
        if (!must_end && (!may_go_on || turn >= LOOP_MAX_LAST_TURNS))
            return;
        bool can_sleep = l->n_working && !l->n_closing && !may_go_on;
        (void) uv_run(&l->uv, can_sleep ? UV_RUN_ONCE : UV_RUN_NOWAIT);
    }
}

void loop_run(struct loop *l)
{
    l->is_running = true;
    (void) uv_run(&l->uv, UV_RUN_DEFAULT);
    loop_settle(l);
    l->is_running = false;
    atomic_store(&l->is_stopping, false);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct loop *l = handle->data;
    l->n_handles--;
}

void loop_free(struct loop *l)
{
    if (!l)
        return;
    loop_settle(l);
    uv_close((uv_handle_t *) &l->wake, on_handle_closed);
    uv_close((uv_handle_t *) &l->before_poll, on_handle_closed);
    uv_close((uv_handle_t *) &l->after_poll, on_handle_closed);
    uv_close((uv_handle_t *) &l->no_sleep, on_handle_closed);
    loop_signals_close(l);
    while (l->n_handles)
        (void) uv_run(&l->uv, UV_RUN_NOWAIT);
    int r = uv_loop_close(&l->uv);
    assert(r == 0); /* else a timer or fd was left open */
    (void) r;
    pthread_mutex_destroy(&l->post_lock);
    mem_free(l->posted.items);
    mem_free(l->running.items);
    mem_free(l);
}

/* ---- time ---------------------------------------------------------------------------------- */

int64_t loop_now_ms(const struct loop *l)
{
    const uint64_t since_ms = uv_now(&l->uv) - l->sped_uv_ms;
    /* Whole numbers for all but simulations. */
    return l->sped_ms +
           (l->speed == 1 ? (int64_t) since_ms : (int64_t) ((double) since_ms * l->speed));
}

void loop_set_speed(struct loop *l, double factor)
{
    assert(factor > 0);
    uv_update_time(&l->uv);
    l->sped_ms = loop_now_ms(l);
    l->sped_uv_ms = uv_now(&l->uv);
    l->speed = factor;
    loop_timers_retime(l);
}

double loop_speed(const struct loop *l)
{
    return l->speed;
}
