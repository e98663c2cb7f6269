/* SPDX-License-Identifier: Apache-2.0 */
/* One event loop on one thread: file descriptors, timers, signals, calls from other threads, work
 * that may block. The only module that knows libuv. Every function but loop_post() and loop_stop()
 * belongs to the loop's own thread. */
#pragma once

#include "base/list.h"

struct loop;

struct loop *loop_new(void);
/* After loop_run() has returned and everything was closed. */
void loop_free(struct loop *l);
/* Until loop_stop(); then lets what is already closing, deferred, posted or at work come to its
 * end. */
void loop_run(struct loop *l);
/* From any thread; what that thread posted before still runs. */
void loop_stop(struct loop *l);
/* Monotonic, cached for this turn. */
int64_t loop_now_ms(const struct loop *l);

/* From now on time runs so many times (> 0) faster than the machine's for loop_now_ms() and timers,
 * also for those that run already: a simulation lives through a day in a minute. Timers stay as
 * coarse as before, a millisecond of the machine's. 1 at first. */
void loop_set_speed(struct loop *l, double factor);
double loop_speed(const struct loop *l);

/* Lets what was closed, deferred or posted after loop_run() has returned come to its end, too. */
void loop_settle(struct loop *l);

/* Calls fn(arg) on the loop's thread soon. From any thread; in order per caller. What comes once
 * loop_run() has returned waits for loop_settle() or loop_free(). */
void loop_post(struct loop *l, void (*fn)(void *arg), void *arg);

/* At the end of this turn, once however often asked (the caller embeds it, zeroed). What a deferred
 * call defers runs in the next turn, which then does not wait. */
struct loop_deferred {
    void (*fn)(struct loop_deferred *d);
    struct list link;
    bool is_queued;
};
void loop_defer(struct loop *l, struct loop_deferred *d);
void loop_undefer(struct loop *l, struct loop_deferred *d);

struct loop_timer;
struct loop_timer *loop_timer_new(struct loop *l, void (*on_timeout)(void *arg), void *arg);
/* repeat_ms 0: once. Starting again moves it. */
void loop_timer_start(struct loop_timer *t, int64_t after_ms, int64_t repeat_ms);
/* By the machine's time whatever the speed: for whoever waits for the world outside. */
void loop_timer_start_real(struct loop_timer *t, int64_t after_ms, int64_t repeat_ms);
void loop_timer_stop(struct loop_timer *t);
void loop_timer_free(
    struct loop_timer *t); /* NULL allowed; memory goes when the loop has let go of it */

enum loop_ready { LOOP_READABLE = 1, LOOP_WRITABLE = 2 };
struct loop_fd;
/* The fd stays the caller's, to be closed in or after on_closed. */
/* NULL when the kernel cannot watch this fd. An error on the fd counts as ready for both. */
struct loop_fd *loop_fd_new(struct loop *l, int fd, void (*on_ready)(void *arg, unsigned ready),
                            void *arg);
/* 0 stops; the same mask again costs nothing. */
void loop_fd_watch(struct loop_fd *w, unsigned ready_mask);
/* NULL allowed for w, on_closed; no on_ready comes after this call. */
void loop_fd_free(struct loop_fd *w, void (*on_closed)(void *arg), void *arg);

void loop_on_signal(struct loop *l, int signal_number,
                    void (*on_signal)(void *arg, int signal_number), void *arg);

/* fn runs on a worker thread, then done (NULL: nothing) on the loop's. */
void loop_work(struct loop *l, void (*fn)(void *arg), void (*done)(void *arg), void *arg);
