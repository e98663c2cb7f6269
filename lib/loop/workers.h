/* SPDX-License-Identifier: Apache-2.0 */
/* Threads for work that blocks (asking a webhook, an OIDC issuer): made as they are needed up to a
 * limit, gone again when idle. Whoever waits for the result has it posted to a loop of its own. */
#pragma once

#include <stddef.h>

struct workers;

/* max_waiting: jobs queued beyond the threads. */
struct workers *workers_new(size_t max_threads, size_t max_waiting);
/* Runs work(arg) on one of the threads. -EAGAIN: too many wait already. From any thread. */
int workers_run(struct workers *w, void (*work)(void *arg), void *arg);
/* Waits until everything taken on is done. NULL allowed. */
void workers_settle(struct workers *w);
/* Settles and frees. NULL allowed. */
void workers_free(struct workers *w);
