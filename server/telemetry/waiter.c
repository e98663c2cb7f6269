/* SPDX-License-Identifier: Apache-2.0 */
/* Those who wait for new records, found by the device: a batch costs a look-up for each record,
 * however many wait for other devices. */
#include "base/alloc.h"
#include "telemetry/telemetry_internal.h"

enum waiter_state { WAITER_WAITING, WAITER_FIRING, WAITER_FIRED };

struct telemetry_waiter {
    struct telemetry *t;
    struct list link; /* of its device or of all; then of those to be fired */
    bool has_app;
    struct uuid app;
    unsigned streams;
    uint64_t after;
    void (*wake)(void *arg);
    void *arg;
    enum waiter_state state;
    pthread_t firing; /* the thread that does */
    bool is_cancelled;
};

/* Whoever waits for a device learns that it is gone for good. */
static bool wants(const struct telemetry_waiter *w, const struct frame *f)
{
    if (f->id <= w->after)
        return false;
    return f->stream == FRAME_FORGET ||
           ((w->streams >> f->stream & 1) && (!w->has_app || uuid_eq(&w->app, &f->app)));
}

static void collect(struct telemetry *t, struct list *from, const struct frame *f, struct list *to)
{
    LIST_FOR_EACH (from, link) {
        struct telemetry_waiter *w = CONTAINER_OF(link, struct telemetry_waiter, link);
        if (!wants(w, f))
            continue;
        list_remove(&w->link);
        list_append(to, &w->link);
        w->state = WAITER_FIRING;
        w->firing = pthread_self();
        t->n_waiters--;
    }
}

/* With the lock held, which it gives up meanwhile. */
static void fire(struct telemetry *t, struct telemetry_waiter *w)
{
    pthread_mutex_unlock(&t->lock);
    w->wake(w->arg);
    pthread_mutex_lock(&t->lock);
    w->state = WAITER_FIRED;
    if (w->is_cancelled)
        mem_free(w);
    else
        pthread_cond_broadcast(&t->waiter_fired);
}

void waiters_wake(struct telemetry *t, const struct append *batch)
{
    struct list due;
    list_init(&due);
    pthread_mutex_lock(&t->lock);
    for (const struct append *a = batch; a && t->n_waiters > 0; a = a->next) {
        struct track *k = track_find(t, &a->frame.device);
        if (k)
            collect(t, &k->waiters, &a->frame, &due);
        collect(t, &t->waiters, &a->frame, &due);
    }
    struct list *link;
    while ((link = list_pop_first(&due)))
        fire(t, CONTAINER_OF(link, struct telemetry_waiter, link));
    pthread_mutex_unlock(&t->lock);
}

struct telemetry_waiter *telemetry_wait(struct telemetry *t, const struct telemetry_query *q,
                                        void (*wake)(void *arg), void *arg)
{
    struct telemetry_waiter *w = NEW(struct telemetry_waiter);
    *w = (struct telemetry_waiter){
        .t = t, .streams = q->streams, .after = q->after, .wake = wake, .arg = arg};
    list_init(&w->link);
    if (q->app) {
        w->has_app = true;
        w->app = *q->app;
    }
    pthread_mutex_lock(&t->lock);
    struct track *k = q->device ? track_of(t, q->device) : NULL;
    bool is_due = (k ? k->last_id : t->last_id) > q->after;
    if (is_due) {
        w->state = WAITER_FIRED;
    } else {
        list_append(k ? &k->waiters : &t->waiters, &w->link);
        t->n_waiters++;
    }
    pthread_mutex_unlock(&t->lock);
    /* Nobody but the caller knows it yet: there is nothing to be cancelled meanwhile. */
    if (is_due)
        wake(arg);
    return w;
}

void telemetry_cancel(struct telemetry_waiter *w)
{
    if (!w)
        return;
    struct telemetry *t = w->t;
    pthread_mutex_lock(&t->lock);
    bool is_own = w->state == WAITER_FIRING && pthread_equal(w->firing, pthread_self());
    while (!is_own && w->state == WAITER_FIRING)
        pthread_cond_wait(&t->waiter_fired, &t->lock);
    if (w->state == WAITER_WAITING) {
        list_remove(&w->link);
        t->n_waiters--;
    }
    w->is_cancelled = is_own;
    pthread_mutex_unlock(&t->lock);
    if (!is_own)
        mem_free(w);
}
