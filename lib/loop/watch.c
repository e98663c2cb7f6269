/* SPDX-License-Identifier: Apache-2.0 */
/* What a loop watches: timers, file descriptors, signals, work on other threads. */
#include <assert.h>

#include "base/alloc.h"
#include "loop/loop_internal.h"

/* ---- timers -------------------------------------------------------------------------------- */

struct loop_timer {
    uv_timer_t uv; /* its data is the loop_timer */
    struct loop *loop;
    void (*on_timeout)(void *arg);
    void *arg;
    int64_t due_ms, repeat_ms; /* in the loop's time */
    bool is_real;              /* in the machine's */
};

struct loop_timer *loop_timer_new(struct loop *l, void (*on_timeout)(void *arg), void *arg)
{
    struct loop_timer *t = NEW(struct loop_timer);
    t->loop = l;
    t->on_timeout = on_timeout;
    t->arg = arg;
    t->uv.data = t;
    (void) uv_timer_init(&l->uv, &t->uv);
    return t;
}

static void on_timer(uv_timer_t *handle)
{
    struct loop_timer *t = handle->data;
    if (t->repeat_ms)
        t->due_ms = loop_now_ms(t->loop) + t->repeat_ms;
    t->on_timeout(t->arg);
}

/* In the machine's milliseconds: rounded up, so that it is due in the loop's time when it comes. */
static uint64_t real_ms(const struct loop *l, int64_t ms)
{
    if (l->speed == 1)
        return (uint64_t) ms;
    const double exact = (double) ms / l->speed;
    const uint64_t whole = (uint64_t) exact;
    return whole + ((double) whole < exact);
}

/* The cached time only moves while the loop runs. */
static void update_time(struct loop *l)
{
    if (!l->is_running)
        uv_update_time(&l->uv);
}

void loop_timer_start(struct loop_timer *t, int64_t after_ms, int64_t repeat_ms)
{
    struct loop *l = t->loop;
    update_time(l);
    after_ms = MAX(after_ms, 0);
    t->is_real = false;
    t->due_ms = loop_now_ms(l) + after_ms;
    t->repeat_ms = MAX(repeat_ms, 0);
    (void) uv_timer_start(&t->uv, on_timer, real_ms(l, after_ms), real_ms(l, t->repeat_ms));
}

void loop_timer_start_real(struct loop_timer *t, int64_t after_ms, int64_t repeat_ms)
{
    update_time(t->loop);
    t->is_real = true;
    t->repeat_ms = 0;
    (void) uv_timer_start(&t->uv, on_timer, (uint64_t) MAX(after_ms, 0),
                          (uint64_t) MAX(repeat_ms, 0));
}

static void retime(uv_handle_t *handle, void *arg)
{
    struct loop *l = arg;
    if (handle->type != UV_TIMER || !uv_is_active(handle))
        return;
    struct loop_timer *t = handle->data;
    const int64_t left_ms = MAX(t->due_ms - loop_now_ms(l), 0);
    if (!t->is_real)
        (void) uv_timer_start(&t->uv, on_timer, real_ms(l, left_ms), real_ms(l, t->repeat_ms));
}

void loop_timers_retime(struct loop *l)
{
    uv_walk(&l->uv, retime, l);
}

void loop_timer_stop(struct loop_timer *t)
{
    (void) uv_timer_stop(&t->uv);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct loop_timer *t = handle->data;
    t->loop->n_closing--;
    mem_free(t);
}

void loop_timer_free(struct loop_timer *t)
{
    if (!t)
        return;
    t->loop->n_closing++;
    uv_close((uv_handle_t *) &t->uv, on_timer_closed);
}

/* ---- file descriptors ---------------------------------------------------------------------- */

struct loop_fd {
    uv_poll_t uv; /* its data is the loop_fd */
    struct loop *loop;
    unsigned watched; /* of enum loop_ready */
    void (*on_ready)(void *arg, unsigned ready);
    void *arg;
    void (*on_closed)(void *arg);
    void *closed_arg;
};

_Static_assert((int) LOOP_READABLE == (int) UV_READABLE, "masks pass as they are");
_Static_assert((int) LOOP_WRITABLE == (int) UV_WRITABLE, "masks pass as they are");

struct loop_fd *loop_fd_new(struct loop *l, int fd, void (*on_ready)(void *arg, unsigned ready),
                            void *arg)
{
    struct loop_fd *w = NEW(struct loop_fd);
    w->loop = l;
    w->on_ready = on_ready;
    w->arg = arg;
    w->uv.data = w;
    if (uv_poll_init(&l->uv, &w->uv, fd) < 0) {
        mem_free(w);
        return NULL;
    }
    return w;
}

static void on_poll(uv_poll_t *handle, int status, int events)
{
    struct loop_fd *w = handle->data;
    if (status < 0) {
        /* libuv has stopped watching; the owner learns the error from its next read or write. */
        w->watched = 0;
        events = LOOP_READABLE | LOOP_WRITABLE;
    }
    w->on_ready(w->arg, (unsigned) events);
}

void loop_fd_watch(struct loop_fd *w, unsigned ready_mask)
{
    if (ready_mask == w->watched)
        return;
    w->watched = ready_mask;
    if (ready_mask)
        (void) uv_poll_start(&w->uv, (int) ready_mask, on_poll);
    else
        (void) uv_poll_stop(&w->uv);
}

static void on_poll_closed(uv_handle_t *handle)
{
    struct loop_fd *w = handle->data;
    w->loop->n_closing--;
    if (w->on_closed)
        w->on_closed(w->closed_arg);
    mem_free(w);
}

void loop_fd_free(struct loop_fd *w, void (*on_closed)(void *arg), void *arg)
{
    if (!w)
        return;
    w->on_closed = on_closed;
    w->closed_arg = arg;
    w->loop->n_closing++;
    uv_close((uv_handle_t *) &w->uv, on_poll_closed);
}

/* ---- signals ------------------------------------------------------------------------------- */

struct loop_signal {
    uv_signal_t uv; /* its data is the loop_signal */
    struct loop *loop;
    struct list link;
    void (*on_signal)(void *arg, int signal_number);
    void *arg;
};

static void on_uv_signal(uv_signal_t *handle, int signal_number)
{
    struct loop_signal *s = handle->data;
    s->on_signal(s->arg, signal_number);
}

void loop_on_signal(struct loop *l, int signal_number,
                    void (*on_signal)(void *arg, int signal_number), void *arg)
{
    struct loop_signal *s = NEW(struct loop_signal);
    s->loop = l;
    s->on_signal = on_signal;
    s->arg = arg;
    s->uv.data = s;
    int r = uv_signal_init(&l->uv, &s->uv);
    if (r == 0)
        r = uv_signal_start(&s->uv, on_uv_signal, signal_number);
    assert(r == 0); /* the signal can be caught, and there were descriptors for the loop itself */
    list_append(&l->signals, &s->link);
    l->n_handles++;
}

static void on_signal_closed(uv_handle_t *handle)
{
    struct loop_signal *s = handle->data;
    s->loop->n_handles--;
    mem_free(s);
}

void loop_signals_close(struct loop *l)
{
    LIST_FOR_EACH (&l->signals, item) {
        struct loop_signal *s = CONTAINER_OF(item, struct loop_signal, link);
        list_remove(item);
        uv_close((uv_handle_t *) &s->uv, on_signal_closed);
    }
}

/* ---- work ---------------------------------------------------------------------------------- */

struct loop_work {
    uv_work_t uv; /* its data is the loop_work */
    struct loop *loop;
    void (*fn)(void *arg);
    void (*done)(void *arg);
    void *arg;
};

static void on_work(uv_work_t *request)
{
    struct loop_work *w = request->data;
    w->fn(w->arg);
}

static void on_work_done(uv_work_t *request, int status)
{
    (void) status; /* never cancelled */
    struct loop_work *w = request->data;
    w->loop->n_working--;
    if (w->done)
        w->done(w->arg);
    mem_free(w);
}

void loop_work(struct loop *l, void (*fn)(void *arg), void (*done)(void *arg), void *arg)
{
    struct loop_work *w = NEW(struct loop_work);
    w->loop = l;
    w->fn = fn;
    w->done = done;
    w->arg = arg;
    w->uv.data = w;
    l->n_working++;
    int r = uv_queue_work(&l->uv, &w->uv, on_work, on_work_done);
    assert(r == 0);
    (void) r;
}
