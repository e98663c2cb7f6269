/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/workers.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "test.h"

/* Jobs that wait for the test's leave. */
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_open;
    int n_inside, n_passed, most_inside;
};
#define GATE_INIT \
    { \
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER \
    }

static void pass_gate(void *arg)
{
    struct gate *g = arg;
    pthread_mutex_lock(&g->lock);
    g->n_inside++;
    g->most_inside = MAX(g->most_inside, g->n_inside);
    pthread_cond_broadcast(&g->changed);
    while (!g->is_open)
        pthread_cond_wait(&g->changed, &g->lock);
    g->n_inside--;
    g->n_passed++;
    pthread_mutex_unlock(&g->lock);
}

static void wait_inside(struct gate *g, int n)
{
    pthread_mutex_lock(&g->lock);
    while (g->n_inside < n)
        pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

static void open_gate(struct gate *g)
{
    pthread_mutex_lock(&g->lock);
    g->is_open = true;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

TEST(jobs_run_beside_each_other_up_to_the_limit)
{
    struct gate g = GATE_INIT;
    struct workers *w = workers_new(3, 2);
    for (int i = 0; i < 3; i++)
        assert_int_equal(workers_run(w, pass_gate, &g), 0);
    wait_inside(&g, 3);
    assert_int_equal(workers_run(w, pass_gate, &g), 0);
    assert_int_equal(workers_run(w, pass_gate, &g), 0);
    assert_int_equal(workers_run(w, pass_gate, &g), -EAGAIN);
    open_gate(&g);
    workers_settle(w);
    assert_int_equal(g.n_passed, 5);
    assert_int_equal(g.most_inside, 3);
    assert_int_equal(workers_run(w, pass_gate, &g), 0);
    workers_free(w);
    assert_int_equal(g.n_passed, 6);
}

/* A job that was taken on has a thread even if those before it never end. */
TEST(a_job_does_not_wait_while_threads_are_allowed)
{
    struct gate first = GATE_INIT, second = GATE_INIT;
    struct workers *w = workers_new(8, 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(workers_run(w, pass_gate, &first), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(workers_run(w, pass_gate, &second), 0);
    wait_inside(&second, 4);
    open_gate(&second);
    open_gate(&first);
    workers_free(w);
    assert_int_equal(first.n_passed + second.n_passed, 8);
}

static void count(void *arg)
{
    atomic_fetch_add((atomic_int *) arg, 1);
}

struct submitter {
    struct workers *w;
    atomic_int *n_run;
    int n_taken;
};

#define N_SUBMITTED 500

static void *submit(void *arg)
{
    struct submitter *s = arg;
    for (int i = 0; i < N_SUBMITTED; i++)
        s->n_taken += workers_run(s->w, count, s->n_run) == 0;
    return NULL;
}

TEST(what_was_taken_runs_once_whoever_asked)
{
    atomic_int n_run = 0;
    struct workers *w = workers_new(4, N_SUBMITTED);
    struct submitter submitters[3];
    pthread_t threads[3];
    for (size_t i = 0; i < 3; i++) {
        submitters[i] = (struct submitter){.w = w, .n_run = &n_run};
        assert_int_equal(pthread_create(&threads[i], NULL, submit, &submitters[i]), 0);
    }
    int n_taken = 0;
    for (size_t i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        n_taken += submitters[i].n_taken;
    }
    workers_settle(w);
    assert_int_equal(atomic_load(&n_run), n_taken);
    assert_true(n_taken >= N_SUBMITTED);
    workers_free(w);
    workers_free(NULL);
    workers_settle(NULL);
}
