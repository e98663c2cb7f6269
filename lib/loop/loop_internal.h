/* SPDX-License-Identifier: Apache-2.0 */
/* The loop as its own files see it. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <uv.h>

#include "loop/loop.h"

struct loop_call {
    void (*fn)(void *arg);
    void *arg;
};

struct loop_calls {
    struct loop_call *items;
    size_t n, capacity;
};

struct loop {
    uv_loop_t uv;
    uv_async_t wake;
    uv_prepare_t before_poll;
    uv_check_t after_poll;
    uv_idle_t no_sleep; /* active: the next poll does not wait */
    struct list deferred;
    struct list signals;
    size_t n_handles; /* the loop's own that libuv still holds */
    size_t n_closing; /* timers and fds on their way out */
    size_t n_working; /* loop_work() not done */
    bool is_running;
    atomic_bool is_stopping;

    double speed;
    int64_t sped_ms;     /* loop_now_ms() when the speed was set, */
    uint64_t sped_uv_ms; /* and libuv's time then */

    pthread_mutex_t post_lock;
    struct loop_calls posted;  /* under post_lock */
    struct loop_calls running; /* of the loop's thread: taken off posted at once */
};

/* Moves what waits to where it is due at the new speed. */
void loop_timers_retime(struct loop *l);
/* Closes every signal handle; each counts in n_handles until it is gone. */
void loop_signals_close(struct loop *l);
