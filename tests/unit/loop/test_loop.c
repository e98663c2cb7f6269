/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/loop.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "test.h"

/* What happened, in order, as characters. */
struct trace {
    struct loop *loop;
    char text[64];
    size_t n;
};

static void note(struct trace *t, char c)
{
    assert_true(t->n + 1 < sizeof(t->text));
    t->text[t->n++] = c;
    t->text[t->n] = '\0';
}

/* ---- posting ------------------------------------------------------------------------------- */

#define N_POSTERS 4
#define N_POSTS 2000

struct poster {
    struct loop *loop;
    int id;
    int next_expected;
    atomic_int *left;
};

struct posted {
    struct poster *from;
    int number;
};

static struct posted posted_items[N_POSTERS][N_POSTS];

static void on_posted(void *arg)
{
    struct posted *p = arg;
    assert_int_equal(p->number, p->from->next_expected);
    p->from->next_expected++;
    if (atomic_fetch_sub(p->from->left, 1) == 1)
        loop_stop(p->from->loop);
}

static void *post_many(void *arg)
{
    struct poster *p = arg;
    for (int i = 0; i < N_POSTS; i++) {
        posted_items[p->id][i] = (struct posted){p, i};
        loop_post(p->loop, on_posted, &posted_items[p->id][i]);
    }
    return NULL;
}

TEST(posts_of_each_thread_arrive_in_order)
{
    struct loop *l = loop_new();
    atomic_int left = N_POSTERS * N_POSTS;
    struct poster posters[N_POSTERS];
    pthread_t threads[N_POSTERS];
    for (int i = 0; i < N_POSTERS; i++) {
        posters[i] = (struct poster){l, i, 0, &left};
        assert_int_equal(pthread_create(&threads[i], NULL, post_many, &posters[i]), 0);
    }
    loop_run(l);
    for (int i = 0; i < N_POSTERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(posters[i].next_expected, N_POSTS);
    }
    loop_free(l);
}

static void note_p(void *arg)
{
    note(arg, 'p');
}

TEST(what_was_posted_before_stop_still_runs)
{
    struct trace t = {.loop = loop_new()};
    loop_post(t.loop, note_p, &t);
    loop_post(t.loop, note_p, &t);
    loop_stop(t.loop);
    loop_run(t.loop);
    assert_string_equal(t.text, "pp");
    loop_free(t.loop);
}

TEST(a_loop_never_run_can_be_freed)
{
    loop_free(loop_new());
    loop_free(NULL);
}

/* ---- deferring ----------------------------------------------------------------------------- */

struct deferrals {
    struct trace trace;
    struct loop_deferred a, b, again;
    int n_again;
    struct loop_timer *timer;
};

static void on_deferred_a(struct loop_deferred *d)
{
    note(&CONTAINER_OF(d, struct deferrals, a)->trace, 'a');
}

static void on_deferred_b(struct loop_deferred *d)
{
    note(&CONTAINER_OF(d, struct deferrals, b)->trace, 'b');
}

static void post_deferring(void *arg)
{
    struct deferrals *d = arg;
    loop_defer(d->trace.loop, &d->a);
    loop_defer(d->trace.loop, &d->b);
    loop_defer(d->trace.loop, &d->a);
    note(&d->trace, '1');
}

static void post_stop(void *arg)
{
    struct deferrals *d = arg;
    note(&d->trace, '2');
    loop_stop(d->trace.loop);
}

TEST(deferred_runs_once_after_the_callbacks_of_its_turn)
{
    struct deferrals d = {.trace.loop = loop_new(), .a.fn = on_deferred_a, .b.fn = on_deferred_b};
    loop_post(d.trace.loop, post_deferring, &d);
    loop_post(d.trace.loop, post_stop, &d);
    loop_run(d.trace.loop);
    assert_string_equal(d.trace.text, "12ab");
    loop_free(d.trace.loop);
}

static void on_deferred_again(struct loop_deferred *x)
{
    struct deferrals *d = CONTAINER_OF(x, struct deferrals, again);
    if (++d->n_again == 1000)
        loop_stop(d->trace.loop);
    else
        loop_defer(d->trace.loop, x);
}

/* There is no other event that could wake the loop: were it to sleep, this would hang. */
TEST(deferred_work_keeps_the_loop_from_sleeping)
{
    struct deferrals d = {.trace.loop = loop_new(), .again.fn = on_deferred_again};
    loop_defer(d.trace.loop, &d.again);
    loop_run(d.trace.loop);
    assert_int_equal(d.n_again, 1000);
    loop_free(d.trace.loop);
}

static void on_timeout_defer(void *arg)
{
    struct deferrals *d = arg;
    note(&d->trace, 't');
    loop_defer(d->trace.loop, &d->again);
    loop_timer_free(d->timer);
}

static void on_deferred_stop(struct loop_deferred *x)
{
    struct deferrals *d = CONTAINER_OF(x, struct deferrals, again);
    note(&d->trace, 'd');
    loop_stop(d->trace.loop);
}

TEST(deferred_from_a_timer_runs_without_another_event)
{
    struct deferrals d = {.trace.loop = loop_new(), .again.fn = on_deferred_stop};
    d.timer = loop_timer_new(d.trace.loop, on_timeout_defer, &d);
    loop_timer_start(d.timer, 1, 0);
    loop_run(d.trace.loop);
    assert_string_equal(d.trace.text, "td");
    loop_free(d.trace.loop);
}

static void on_deferred_undefer_b(struct loop_deferred *x)
{
    struct deferrals *d = CONTAINER_OF(x, struct deferrals, a);
    note(&d->trace, 'a');
    loop_undefer(d->trace.loop, &d->b);
    loop_undefer(d->trace.loop, &d->b);
}

TEST(undefer_works_from_a_deferred_call_of_the_same_turn)
{
    struct deferrals d = {
        .trace.loop = loop_new(), .a.fn = on_deferred_undefer_b, .b.fn = on_deferred_b};
    loop_post(d.trace.loop, post_deferring, &d);
    loop_post(d.trace.loop, post_stop, &d);
    loop_run(d.trace.loop);
    assert_string_equal(d.trace.text, "12a");
    assert_false(d.b.is_queued);
    loop_free(d.trace.loop);
}

/* ---- timers -------------------------------------------------------------------------------- */

#define N_TIMERS 5000

struct timers {
    struct loop *loop;
    struct loop_timer *all[N_TIMERS];
    struct loop_timer *repeating, *stopped, *once;
    int n_fired, n_repeats;
    bool stopped_fired;
};

static void on_one_of_many(void *arg)
{
    struct timers *t = arg;
    t->n_fired++;
}

static void on_stopped(void *arg)
{
    ((struct timers *) arg)->stopped_fired = true;
}

static void on_repeat(void *arg)
{
    struct timers *t = arg;
    if (++t->n_repeats < 3 || t->n_fired < N_TIMERS)
        return;
    loop_timer_free(t->repeating);
    loop_stop(t->loop);
}

TEST(many_timers_fire_each_once_and_a_stopped_one_never)
{
    static struct timers t;
    t.loop = loop_new();
    for (int i = 0; i < N_TIMERS; i++) {
        t.all[i] = loop_timer_new(t.loop, on_one_of_many, &t);
        loop_timer_start(t.all[i], i % 20, 0);
    }
    t.stopped = loop_timer_new(t.loop, on_stopped, &t);
    loop_timer_start(t.stopped, 1, 0);
    loop_timer_stop(t.stopped);
    t.repeating = loop_timer_new(t.loop, on_repeat, &t);
    loop_timer_start(t.repeating, 1, 5);
    int64_t before = loop_now_ms(t.loop);
    loop_run(t.loop);
    assert_true(loop_now_ms(t.loop) >= before + 19);
    assert_int_equal(t.n_fired, N_TIMERS);
    assert_false(t.stopped_fired);
    for (int i = 0; i < N_TIMERS; i++)
        loop_timer_free(t.all[i]);
    loop_timer_free(t.stopped);
    loop_timer_free(NULL);
    loop_free(t.loop);
}

static void on_moved(void *arg)
{
    struct timers *t = arg;
    t->n_fired++;
    loop_stop(t->loop);
}

TEST(starting_a_timer_again_moves_it)
{
    static struct timers t;
    t.loop = loop_new();
    t.once = loop_timer_new(t.loop, on_moved, &t);
    loop_timer_start(t.once, 60 * 1000, 0);
    loop_timer_start(t.once, -5, 0);
    loop_run(t.loop);
    assert_int_equal(t.n_fired, 1);
    loop_timer_free(t.once);
    loop_free(t.loop);
}

struct sped {
    struct loop *loop;
    struct loop_timer *hour, *day, *real;
    int64_t began_ms, hour_ms, day_ms;
    bool real_fired;
};

static void on_hour(void *arg)
{
    struct sped *s = arg;
    s->hour_ms = loop_now_ms(s->loop) - s->began_ms;
    loop_timer_stop(s->hour);
}

static void on_day(void *arg)
{
    struct sped *s = arg;
    s->day_ms = loop_now_ms(s->loop) - s->began_ms;
    loop_stop(s->loop);
}

static void on_real(void *arg)
{
    ((struct sped *) arg)->real_fired = true;
}

#define HOUR_MS ((int64_t) 3600 * 1000)
#define DAY_MS (24 * HOUR_MS)

static struct sped begin_sped(double speed)
{
    struct sped s = {.loop = loop_new()};
    loop_set_speed(s.loop, speed);
    s.began_ms = loop_now_ms(s.loop);
    return s;
}

static void end_sped(struct sped *s)
{
    loop_timer_free(s->hour);
    loop_timer_free(s->day);
    loop_timer_free(s->real);
    loop_free(s->loop);
}

TEST(a_day_passes_in_a_moment_at_high_speed)
{
    struct sped s = begin_sped(2e6);
    assert_true(loop_speed(s.loop) == 2e6);
    s.hour = loop_timer_new(s.loop, on_hour, &s);
    s.day = loop_timer_new(s.loop, on_day, &s);
    s.real = loop_timer_new(s.loop, on_real, &s);
    loop_timer_start(s.day, DAY_MS, 0);
    loop_timer_start(s.hour, HOUR_MS, HOUR_MS);
    loop_timer_start_real(s.real, HOUR_MS, 0);
    const int64_t before_us = clock_system.monotonic_us(&clock_system);
    loop_run(s.loop);
    const int64_t took_us = clock_system.monotonic_us(&clock_system) - before_us;
    assert_true(s.hour_ms >= HOUR_MS && s.hour_ms < s.day_ms);
    assert_true(s.day_ms >= DAY_MS);
    assert_true(took_us >= 43000 && took_us < (int64_t) 30 * 1000 * 1000);
    assert_false(s.real_fired);
    end_sped(&s);
}

static void speed_up(void *arg)
{
    struct sped *s = arg;
    loop_set_speed(s->loop, 1e7);
}

/* Neither the time nor what waits jumps: the timers were started while it was slow. */
TEST(a_change_of_speed_moves_timers_that_run)
{
    struct sped s = begin_sped(1);
    s.hour = loop_timer_new(s.loop, on_hour, &s);
    s.day = loop_timer_new(s.loop, on_day, &s);
    s.real = loop_timer_new(s.loop, on_real, &s);
    loop_timer_start(s.day, DAY_MS, 0);
    loop_timer_start(s.hour, HOUR_MS, 0);
    loop_timer_start_real(s.real, HOUR_MS, 0);
    loop_post(s.loop, speed_up, &s);
    loop_run(s.loop);
    assert_true(s.hour_ms >= HOUR_MS && s.day_ms >= DAY_MS && s.day_ms > s.hour_ms);
    assert_false(s.real_fired);
    loop_set_speed(s.loop, 1);
    const int64_t after_ms = loop_now_ms(s.loop);
    assert_true(after_ms >= s.began_ms + s.day_ms);
    end_sped(&s);
}

/* ---- file descriptors ---------------------------------------------------------------------- */

struct watched {
    struct loop *loop;
    int fds[2];
    struct loop_fd *watch;
    unsigned seen;
    int n_calls;
    bool is_closed;
};

static void on_watch_closed(void *arg)
{
    struct watched *w = arg;
    w->is_closed = true;
    close(w->fds[0]);
    close(w->fds[1]);
    loop_stop(w->loop);
}

static void on_watched_ready(void *arg, unsigned ready)
{
    struct watched *w = arg;
    w->n_calls++;
    w->seen |= ready;
    if (ready & LOOP_WRITABLE) {
        /* From now on only readability counts, and there is something to read. */
        loop_fd_watch(w->watch, LOOP_READABLE);
        loop_fd_watch(w->watch, LOOP_READABLE);
        assert_int_equal(write(w->fds[1], "x", 1), 1);
        return;
    }
    loop_fd_watch(w->watch, 0);
    loop_fd_free(w->watch, on_watch_closed, w);
}

TEST(fd_reports_what_is_watched_and_closes_later)
{
    struct watched w = {.loop = loop_new()};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, w.fds), 0);
    w.watch = loop_fd_new(w.loop, w.fds[0], on_watched_ready, &w);
    assert_non_null(w.watch);
    loop_fd_watch(w.watch, LOOP_READABLE | LOOP_WRITABLE);
    loop_run(w.loop);
    assert_true(w.is_closed);
    assert_int_equal(w.n_calls, 2);
    assert_int_equal(w.seen, LOOP_READABLE | LOOP_WRITABLE);
    loop_free(w.loop);
}

static void on_hangup(void *arg, unsigned ready)
{
    struct watched *w = arg;
    w->seen |= ready;
    loop_fd_free(w->watch, on_watch_closed, w);
}

TEST(an_error_on_the_fd_counts_as_ready)
{
    struct watched w = {.loop = loop_new()};
    assert_int_equal(pipe(w.fds), 0);
    /* The write end of a pipe without reader is in error. */
    close(w.fds[0]);
    w.fds[0] = -1;
    w.watch = loop_fd_new(w.loop, w.fds[1], on_hangup, &w);
    loop_fd_watch(w.watch, LOOP_READABLE);
    loop_run(w.loop);
    assert_true(w.seen & LOOP_READABLE);
    loop_free(w.loop);
}

TEST(an_fd_that_cannot_be_watched_is_refused)
{
    struct loop *l = loop_new();
    assert_null(loop_fd_new(l, 1 << 20, on_hangup, NULL));
    loop_fd_free(NULL, NULL, NULL);
    loop_free(l);
}

static void free_watch(void *arg)
{
    struct watched *w = arg;
    loop_stop(w->loop);
    loop_fd_free(w->watch, on_watch_closed, w);
}

TEST(closing_at_stop_still_comes_to_its_end)
{
    struct watched w = {.loop = loop_new()};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, w.fds), 0);
    w.watch = loop_fd_new(w.loop, w.fds[0], on_watched_ready, &w);
    loop_post(w.loop, free_watch, &w);
    loop_run(w.loop);
    assert_true(w.is_closed);
    loop_free(w.loop);
}

/* ---- signals and work ---------------------------------------------------------------------- */

static void on_signal(void *arg, int signal_number)
{
    struct trace *t = arg;
    note(t, signal_number == SIGUSR1 ? 's' : '?');
    loop_stop(t->loop);
}

TEST(signal_arrives_on_the_loop)
{
    struct trace t = {.loop = loop_new()};
    loop_on_signal(t.loop, SIGUSR1, on_signal, &t);
    raise(SIGUSR1);
    loop_run(t.loop);
    assert_string_equal(t.text, "s");
    loop_free(t.loop);
}

struct work {
    struct loop *loop;
    pthread_t loop_thread, worker;
    int result, *left;
};

static void work_run(void *arg)
{
    struct work *w = arg;
    w->worker = pthread_self();
    w->result *= 2;
}

static void work_done(void *arg)
{
    struct work *w = arg;
    assert_true(pthread_equal(pthread_self(), w->loop_thread));
    assert_false(pthread_equal(w->worker, w->loop_thread));
    --*w->left;
}

static void stop_at_once(void *arg)
{
    loop_stop(arg);
}

/* The loop is stopped while the work is under way: loop_run() returns only when it is done. */
TEST(work_runs_elsewhere_and_finishes_before_the_loop)
{
    struct loop *l = loop_new();
    int left = 20;
    struct work works[20];
    for (int i = 0; i < 20; i++) {
        works[i] =
            (struct work){.loop = l, .loop_thread = pthread_self(), .result = i, .left = &left};
        loop_work(l, work_run, work_done, &works[i]);
    }
    loop_work(l, stop_at_once, NULL, l);
    loop_run(l);
    assert_int_equal(left, 0);
    for (int i = 0; i < 20; i++)
        assert_int_equal(works[i].result, 2 * i);
    loop_free(l);
}
