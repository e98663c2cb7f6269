/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

#include "test.h"

#include "controllers/queue.h"

#define MAX_CALLS 64

/* A controller that notes the keys it is called with, and answers as told. */
struct notes {
    char keys[MAX_CALLS];
    size_t n;
    int64_t answer;
    struct controller_queue *queue;
    bool must_enqueue_self;
    sem_t called;
};

static struct notes notes;

static void *start(const struct controller_context *ctx, struct controller_queue *q)
{
    (void) ctx;
    notes.queue = q;
    return &notes;
}

static void on_event(void *state, const struct kube_event *e, struct controller_queue *q)
{
    (void) state;
    controller_enqueue(q, e->name, 0);
}

static int64_t reconcile(void *state, const struct controller_context *ctx, struct str key)
{
    struct notes *n = state;
    (void) ctx;
    assert_int_equal(key.n, 1);
    n->keys[n->n++] = key.p[0];
    if (n->must_enqueue_self)
        controller_enqueue(n->queue, key, 0);
    n->must_enqueue_self = false;
    (void) sem_post(&n->called);
    return n->answer;
}

static const struct controller noting = {
    .name = "noting", .start = start, .on_event = on_event, .reconcile = reconcile};

struct fixture {
    struct clock_virtual clock;
    struct controller_context ctx;
    struct controller_queue *q;
};

static void sync(struct controller_queue *q)
{
    controller_queue_event(q, &(struct kube_event){.type = KUBE_SYNCED});
}

static void fixture_init(struct fixture *f)
{
    notes = (struct notes){0};
    (void) sem_init(&notes.called, 0, 0);
    clock_virtual_init(&f->clock, 1000000);
    f->ctx = (struct controller_context){.clock = &f->clock.clock};
    f->q = controller_queue_new(&noting, &f->ctx);
    sync(f->q);
}

static void fixture_done(struct fixture *f)
{
    controller_queue_free(f->q);
    (void) sem_destroy(&notes.called);
}

#define FIXTURE \
    CLEANUP(fixture_done) struct fixture f; \
    fixture_init(&f)

static void run(struct fixture *f)
{
    while (controller_queue_step(f->q))
        ;
}

static void assert_keys(const char *expected)
{
    assert_str(str_range(notes.keys, notes.n), expected);
}

TEST(a_key_waits_once_however_often_it_is_enqueued)
{
    FIXTURE;
    for (int i = 0; i < 5; i++)
        controller_enqueue(f.q, STR("a"), 0);
    controller_enqueue(f.q, STR("b"), 0);
    run(&f);
    assert_keys("ab");
    assert_true(controller_queue_due_us(f.q) == INT64_MAX);
}

TEST(keys_come_in_the_order_of_their_time)
{
    FIXTURE;
    static const struct {
        const char *key;
        int64_t delay_ms;
    } table[] = {{"e", 50}, {"b", 20}, {"d", 40}, {"a", 10}, {"c", 30}};
    for (size_t i = 0; i < N_ELEMENTS(table); i++)
        controller_enqueue(f.q, str_of(table[i].key), table[i].delay_ms);
    run(&f);
    assert_keys("");
    f.clock.now_us += 25 * 1000;
    run(&f);
    assert_keys("ab");
    f.clock.now_us += 25 * 1000;
    run(&f);
    assert_keys("abcde");
}

TEST(the_earlier_of_two_times_holds)
{
    FIXTURE;
    int64_t start_us = f.clock.now_us;
    controller_enqueue(f.q, STR("a"), 100);
    controller_enqueue(f.q, STR("a"), 10);
    assert_int_equal(controller_queue_due_us(f.q), start_us + 10000);
    controller_enqueue(f.q, STR("a"), 500);
    assert_int_equal(controller_queue_due_us(f.q), start_us + 10000);
}

TEST(failures_are_retried_with_growing_delays_up_to_a_limit)
{
    FIXTURE;
    notes.answer = -EIO;
    controller_enqueue(f.q, STR("a"), 0);
    int64_t expected_ms = QUEUE_RETRY_MIN_MS;
    for (int i = 0; i < 15; i++) {
        run(&f);
        assert_int_equal(controller_queue_due_us(f.q) - f.clock.now_us, expected_ms * 1000);
        f.clock.now_us = controller_queue_due_us(f.q);
        expected_ms = MIN(expected_ms * 2, (int64_t) QUEUE_RETRY_MAX_MS);
    }
    assert_int_equal(expected_ms, QUEUE_RETRY_MAX_MS);
    notes.answer = 0;
    run(&f);
    assert_true(controller_queue_due_us(f.q) == INT64_MAX);
}

TEST(a_success_forgets_the_failures_before)
{
    FIXTURE;
    notes.answer = -EIO;
    controller_enqueue(f.q, STR("a"), 0);
    run(&f);
    f.clock.now_us += QUEUE_RETRY_MIN_MS * 1000;
    run(&f);
    notes.answer = 1;
    f.clock.now_us += 2 * QUEUE_RETRY_MIN_MS * 1000;
    run(&f);
    notes.answer = -EIO;
    f.clock.now_us += 1000;
    run(&f);
    assert_int_equal(controller_queue_due_us(f.q) - f.clock.now_us, QUEUE_RETRY_MIN_MS * 1000);
    assert_keys("aaaa");
}

TEST(a_key_is_called_again_when_it_asks_for_it)
{
    FIXTURE;
    notes.answer = 300;
    controller_enqueue(f.q, STR("a"), 0);
    run(&f);
    assert_int_equal(controller_queue_due_us(f.q) - f.clock.now_us, 300000);
}

TEST(what_happens_while_a_key_is_worked_on_is_not_lost)
{
    FIXTURE;
    notes.must_enqueue_self = true;
    controller_enqueue(f.q, STR("a"), 0);
    run(&f);
    assert_keys("aa");
}

TEST(nothing_is_worked_on_before_all_was_seen)
{
    FIXTURE;
    struct controller_queue *q = controller_queue_new(&noting, &f.ctx);
    controller_queue_event(q, &(struct kube_event){.type = KUBE_ADDED, .name = STR("a")});
    assert_false(controller_queue_step(q));
    sync(q);
    assert_true(controller_queue_step(q));
    assert_keys("a");
    controller_queue_free(q);
}

static void *work(void *q)
{
    controller_queue_run(q);
    return NULL;
}

TEST(a_thread_works_until_it_is_stopped)
{
    FIXTURE;
    struct controller_context ctx = {.clock = &clock_system};
    struct controller_queue *q = controller_queue_new(&noting, &ctx);
    pthread_t thread;
    sync(q);
    assert_int_equal(pthread_create(&thread, NULL, work, q), 0);
    for (int i = 0; i < 20; i++) {
        controller_enqueue(q, STR("a"), i % 3);
        (void) sem_wait(&notes.called);
    }
    controller_queue_stop(q);
    (void) pthread_join(thread, NULL);
    assert_int_equal(notes.n, 20);
    controller_queue_free(q);
}

TEST(what_waits_and_works_is_counted)
{
    FIXTURE;
    struct queue_figures figures;
    controller_enqueue(f.q, STR("a"), 0);
    controller_enqueue(f.q, STR("a"), 0); /* waits already */
    controller_enqueue(f.q, STR("b"), 5000);
    controller_queue_figures(f.q, &figures);
    assert_string_equal(figures.name, "noting");
    assert_int_equal(figures.n_adds, 2);
    assert_int_equal(figures.depth, 1); /* b is not due */
    f.clock.now_us += 2000;
    notes.answer = -EIO;
    assert_true(controller_queue_step(f.q));
    controller_queue_figures(f.q, &figures);
    assert_int_equal(figures.n_retries, 1);
    assert_int_equal(figures.n_adds, 3);
    assert_int_equal(figures.depth, 0);
    assert_int_equal(figures.waited.sum_us, 2000);
    assert_int_equal(figures.worked.counts[0], 1);
}
