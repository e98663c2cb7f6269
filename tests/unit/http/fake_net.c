/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_net.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/list.h"

struct loop_timer {
    struct list link;
    struct loop *loop;
    void (*on_timeout)(void *arg);
    void *arg;
    int64_t at_ms, repeat_ms;
    bool is_on;
};

struct loop {
    int64_t now_ms;
    struct list deferred;
    struct list timers;
    struct list streams;
};

struct stream {
    struct list link;
    struct loop *loop;
    const struct stream_events *events;
    void *ctx; /* NULL once on_closed was called */
    struct buf incoming, pending, output;
    size_t appetite;
    bool is_paused, is_closing, was_flushed;
};

/* ---- the loop ----------------------------------------------------------------------------- */

struct loop *fake_loop_new(void)
{
    struct loop *l = NEW(struct loop);
    l->now_ms = 1000000;
    list_init(&l->deferred);
    list_init(&l->timers);
    list_init(&l->streams);
    return l;
}

static void close_stream(struct stream *s)
{
    void *ctx = TAKE(s->ctx);
    if (ctx)
        s->events->on_closed(ctx, 0);
}

void fake_loop_free(struct loop *l)
{
    LIST_FOR_EACH (&l->streams, item) {
        struct stream *s = CONTAINER_OF(item, struct stream, link);
        close_stream(s);
        buf_done(&s->incoming);
        buf_done(&s->pending);
        buf_done(&s->output);
        mem_free(s);
    }
    assert(list_is_empty(&l->timers));
    mem_free(l);
}

int64_t loop_now_ms(const struct loop *l)
{
    return l->now_ms;
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
    if (d->is_queued)
        list_remove(&d->link);
    d->is_queued = false;
}

static bool run_deferred(struct loop *l)
{
    bool worked = false;
    for (struct list *item; (item = list_pop_first(&l->deferred)); worked = true) {
        struct loop_deferred *d = CONTAINER_OF(item, struct loop_deferred, link);
        d->is_queued = false;
        d->fn(d);
    }
    return worked;
}

static bool take_output(struct stream *s)
{
    size_t n = MIN(s->appetite, s->pending.n);
    if (n == 0 || !s->ctx)
        return false;
    buf_append(&s->output, s->pending.p, n);
    buf_consume(&s->pending, n);
    if (s->pending.n == 0 && !s->is_closing)
        s->events->on_drained(s->ctx);
    return true;
}

static bool give_input(struct stream *s)
{
    if (s->is_paused || s->is_closing || !s->ctx || s->incoming.n == 0)
        return false;
    struct buf now = s->incoming;
    s->incoming = (struct buf){0};
    s->events->on_bytes(s->ctx, buf_str(&now));
    buf_done(&now);
    return true;
}

static bool run_stream(struct stream *s)
{
    bool worked = give_input(s);
    worked |= run_deferred(s->loop);
    worked |= take_output(s);
    bool is_flushed = !s->was_flushed || s->pending.n == 0;
    if (s->is_closing && is_flushed && s->ctx) {
        close_stream(s);
        worked = true;
    }
    return worked;
}

void fake_loop_turn(struct loop *l)
{
    bool worked;
    do {
        worked = run_deferred(l);
        LIST_FOR_EACH (&l->streams, item) {
            struct stream *s = CONTAINER_OF(item, struct stream, link);
            worked |= run_stream(s);
            /* A limited appetite is one meal per turn. */
            if (s->appetite != SIZE_MAX)
                s->appetite = 0;
        }
    } while (worked);
}

static void run_timers(struct loop *l)
{
    LIST_FOR_EACH (&l->timers, item) {
        struct loop_timer *t = CONTAINER_OF(item, struct loop_timer, link);
        if (!t->is_on || t->at_ms > l->now_ms)
            continue;
        t->is_on = t->repeat_ms > 0;
        t->at_ms = l->now_ms + t->repeat_ms;
        t->on_timeout(t->arg);
    }
}

void fake_loop_advance(struct loop *l, int64_t ms)
{
    while (ms > 0) {
        int64_t step = MIN(ms, (int64_t) 1000);
        l->now_ms += step;
        ms -= step;
        run_timers(l);
        fake_loop_turn(l);
    }
}

struct loop_timer *loop_timer_new(struct loop *l, void (*on_timeout)(void *arg), void *arg)
{
    struct loop_timer *t = NEW(struct loop_timer);
    t->loop = l;
    t->on_timeout = on_timeout;
    t->arg = arg;
    list_append(&l->timers, &t->link);
    return t;
}

void loop_timer_start(struct loop_timer *t, int64_t after_ms, int64_t repeat_ms)
{
    t->is_on = true;
    t->at_ms = t->loop->now_ms + after_ms;
    t->repeat_ms = repeat_ms;
}

void loop_timer_stop(struct loop_timer *t)
{
    t->is_on = false;
}

void loop_timer_free(struct loop_timer *t)
{
    if (!t)
        return;
    list_remove(&t->link);
    mem_free(t);
}

/* ---- streams ------------------------------------------------------------------------------ */

struct stream *fake_stream_open(struct loop *l, struct http_server *h, const char *alpn)
{
    struct stream *s = NEW(struct stream);
    s->loop = l;
    s->appetite = SIZE_MAX;
    s->ctx = http_server_accept(h, s, &s->events);
    if (!s->ctx) {
        mem_free(s);
        return NULL;
    }
    list_append(&l->streams, &s->link);
    s->events->on_open(s->ctx, s, str_of(alpn));
    fake_loop_turn(l);
    return s;
}

void fake_stream_feed(struct stream *s, struct str bytes)
{
    buf_append_str(&s->incoming, bytes);
    fake_loop_turn(s->loop);
}

void fake_stream_hang_up(struct stream *s)
{
    close_stream(s);
    fake_loop_turn(s->loop);
}

void fake_stream_set_appetite(struct stream *s, size_t n_bytes)
{
    s->appetite = n_bytes;
}

struct fake_stream_state fake_stream_state(const struct stream *s)
{
    return (struct fake_stream_state){
        .output = buf_str(&s->output),
        .is_open = s->ctx,
        .is_closed = !s->ctx,
        .was_flushed = s->was_flushed,
        .is_paused = s->is_paused,
    };
}

void fake_stream_forget_output(struct stream *s)
{
    buf_reset(&s->output);
}

const struct stream_peer *stream_peer(const struct stream *s)
{
    static const struct stream_peer peer = {.address = {"192.0.2.1", 9}, .port = 4711};
    (void) s;
    return &peer;
}

struct loop *stream_loop(const struct stream *s)
{
    return s->loop;
}

void stream_write(struct stream *s, const void *p, size_t n)
{
    assert(!s->is_closing);
    buf_append(&s->pending, p, n);
}

size_t stream_pending(const struct stream *s)
{
    return s->pending.n;
}

size_t stream_untaken(const struct stream *s)
{
    return s->pending.n;
}

void stream_pause_reading(struct stream *s, bool paused)
{
    s->is_paused = paused;
}

void stream_close(struct stream *s, bool after_flush)
{
    s->was_flushed = after_flush && (!s->is_closing || s->was_flushed);
    s->is_closing = true;
}
