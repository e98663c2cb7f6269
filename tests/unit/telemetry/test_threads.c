/* SPDX-License-Identifier: Apache-2.0 */
/* Many who append, read and wait at once; run it under the thread sanitizer, too. */
#include "fixture.h"

#define N_THREADS 6
#define N_EACH 400

struct worker {
    struct fixture *f;
    unsigned number;
    pthread_t thread;
    struct waiting waiting;
    atomic_int n_woken;
};

static void *append_all(void *arg)
{
    struct worker *w = arg;
    char text[16];
    for (int i = 0; i < N_EACH; i++) {
        (void) snprintf(text, sizeof(text), "%d", i);
        telemetry_append(w->f->t,
                         &(struct telemetry_record){.device = device_number(w->number),
                                                    .stream = TELEMETRY_METRICS,
                                                    .bytes = str_of(text)},
                         NULL, waiting_done, &w->waiting);
        if (i % 16 == 0)
            (void) waiting_for(&w->waiting, (size_t) i + 1);
    }
    (void) waiting_for(&w->waiting, N_EACH);
    return NULL;
}

static void signal_waiting(void *arg)
{
    waiting_done(arg, 0);
}

/* Follows its device to the last record. */
static void *follow(void *arg)
{
    struct worker *w = arg;
    struct uuid device = device_number(w->number);
    struct telemetry_query q = {.streams = ALL_STREAMS, .device = &device};
    struct telemetry_cursor *c = telemetry_read(w->f->t, &q);
    struct telemetry_record r;
    int n = 0;
    while (n < N_EACH) {
        while (telemetry_next(c, &r) > 0) {
            char text[16];
            (void) snprintf(text, sizeof(text), "%d", n++);
            assert_str(r.bytes, text);
        }
        if (n == N_EACH)
            break;
        struct waiting woken;
        waiting_init(&woken);
        q.after = telemetry_cursor_position(c);
        struct telemetry_waiter *waiter = telemetry_wait(w->f->t, &q, signal_waiting, &woken);
        (void) waiting_for(&woken, 1);
        telemetry_cancel(waiter);
    }
    telemetry_cursor_free(c);
    return NULL;
}

TEST(every_record_of_every_thread_is_there_in_its_order)
{
    struct fixture f;
    fixture_prepare(&f);
    f.options.segment_bytes = 16384;
    fixture_open(&f);
    struct worker writers[N_THREADS], readers[N_THREADS];
    for (unsigned i = 0; i < N_THREADS; i++) {
        writers[i] = (struct worker){.f = &f, .number = i};
        waiting_init(&writers[i].waiting);
        readers[i] = (struct worker){.f = &f, .number = i};
        pthread_create(&readers[i].thread, NULL, follow, &readers[i]);
        pthread_create(&writers[i].thread, NULL, append_all, &writers[i]);
    }
    for (int i = 0; i < 10; i++)
        telemetry_sweep(f.t);
    for (unsigned i = 0; i < N_THREADS; i++) {
        pthread_join(writers[i].thread, NULL);
        pthread_join(readers[i].thread, NULL);
    }
    struct telemetry_stats s = stats_of(&f);
    assert_int_equal(s.n_appended[TELEMETRY_METRICS], N_THREADS * N_EACH);
    /* Groups, not one sync for each. */
    assert_true(s.n_syncs < N_THREADS * N_EACH / 2);
    fixture_reopen(&f);
    assert_int_equal(count_records(&f, &(struct telemetry_query){.streams = ALL_STREAMS}),
                     N_THREADS * N_EACH);
    fixture_done(&f);
}

static void count_wake(void *arg)
{
    atomic_fetch_add((atomic_int *) arg, 1);
}

static void *wait_and_cancel(void *arg)
{
    struct worker *w = arg;
    struct uuid device = device_number(w->number % 3);
    for (int i = 0; i < 300; i++) {
        struct telemetry_query q = {.streams = ALL_STREAMS, .after = UINT64_MAX - 1};
        q.device = i % 2 ? &device : NULL;
        if (i % 3)
            q.after = 0;
        atomic_int n = 0;
        struct telemetry_waiter *waiter = telemetry_wait(w->f->t, &q, count_wake, &n);
        telemetry_cancel(waiter);
        assert_true(atomic_load(&n) <= 1);
    }
    return NULL;
}

TEST(waiters_come_and_go_while_records_arrive)
{
    struct fixture f;
    fixture_init(&f);
    struct worker writers[2], waiters[N_THREADS];
    for (unsigned i = 0; i < 2; i++) {
        writers[i] = (struct worker){.f = &f, .number = i};
        waiting_init(&writers[i].waiting);
        pthread_create(&writers[i].thread, NULL, append_all, &writers[i]);
    }
    for (unsigned i = 0; i < N_THREADS; i++) {
        waiters[i] = (struct worker){.f = &f, .number = i};
        pthread_create(&waiters[i].thread, NULL, wait_and_cancel, &waiters[i]);
    }
    for (unsigned i = 0; i < 2; i++)
        pthread_join(writers[i].thread, NULL);
    for (unsigned i = 0; i < N_THREADS; i++)
        pthread_join(waiters[i].thread, NULL);
    assert_int_equal(f.t->n_waiters, 0);
    fixture_done(&f);
}

/* ---- on a loop --------------------------------------------------------------------------------
 */

struct on_loop {
    struct fixture *f;
    struct loop *loop;
    pthread_t thread;
    int n_done;
    int64_t last;
};

static void loop_done(void *arg, int64_t result)
{
    struct on_loop *o = arg;
    assert_true(pthread_equal(pthread_self(), o->thread));
    assert_true(result > o->last);
    o->last = result;
    if (++o->n_done == 100)
        loop_stop(o->loop);
}

static void start(void *arg)
{
    struct on_loop *o = arg;
    for (int i = 0; i < 100; i++)
        telemetry_append(o->f->t, &(struct telemetry_record){.bytes = STR("x")}, o->loop, loop_done,
                         o);
}

TEST(answers_come_on_the_loop_in_order)
{
    struct fixture f;
    fixture_init(&f);
    struct on_loop o = {.f = &f, .loop = loop_new(), .thread = pthread_self()};
    loop_post(o.loop, start, &o);
    loop_run(o.loop);
    assert_int_equal(o.n_done, 100);
    loop_free(o.loop);
    fixture_done(&f);
}
