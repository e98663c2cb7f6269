/* SPDX-License-Identifier: Apache-2.0 */
#include "api/call_blocking.h"

#include <pthread.h>

struct wait {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool must_continue, is_done;
};

static void signal_flag(struct wait *w, bool *flag)
{
    (void) pthread_mutex_lock(&w->lock);
    *flag = true;
    (void) pthread_cond_signal(&w->wake);
    (void) pthread_mutex_unlock(&w->lock);
}

static void on_resume(struct call *c)
{
    struct wait *w = c->host;
    signal_flag(w, &w->must_continue);
}

static void on_done(struct call *c)
{
    struct wait *w = c->host;
    signal_flag(w, &w->is_done);
}

void call_run_blocking(struct call *c)
{
    struct wait w = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};
    c->host = &w;
    c->resume = on_resume;
    c->on_done = on_done;
    c->may_block = true;
    call_run(c);
    for (;;) {
        (void) pthread_mutex_lock(&w.lock);
        while (!w.is_done && !w.must_continue)
            (void) pthread_cond_wait(&w.wake, &w.lock);
        bool is_done = w.is_done;
        w.must_continue = false;
        (void) pthread_mutex_unlock(&w.lock);
        if (is_done)
            return;
        call_continue(c);
    }
}
