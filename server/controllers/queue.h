/* SPDX-License-Identifier: Apache-2.0 */
/* One controller with the keys that wait for it, each at most once, earliest first. The runner
 * drives it with threads, simulations by hand. Every function may be called from any thread; a key
 * is worked on by one at a time. */
#pragma once

#include "api/queue_figures.h"
#include "controllers/controller.h"

#define QUEUE_RETRY_MIN_MS 50
#define QUEUE_RETRY_MAX_MS 60000

/* ctx must outlive the queue. Calls the controller's start(). */
struct controller_queue *controller_queue_new(const struct controller *c,
                                              const struct controller_context *ctx);
/* Calls the controller's stop(); nobody may be working. */
void controller_queue_free(struct controller_queue *q);

/* Nothing is worked on before the first KUBE_SYNCED, which is not passed on. */
void controller_queue_event(struct controller_queue *q, const struct kube_event *e);
/* Reconciles one key that is due; false when there is none. */
bool controller_queue_step(struct controller_queue *q);
/* When the earliest key is due on the context's monotonic clock; INT64_MAX: nothing waits. */
int64_t controller_queue_due_us(struct controller_queue *q);
void controller_queue_figures(struct controller_queue *q, struct queue_figures *ret);
/* Works until controller_queue_stop(), sleeping while nothing is due. */
void controller_queue_run(struct controller_queue *q);
void controller_queue_stop(struct controller_queue *q);
/* Runs it on a thread, and on more when keys wait and all are busy, as many as the controller
 * wants.
 */
void controller_queue_start(struct controller_queue *q);
/* After controller_queue_stop(): returns when nobody works any more. */
void controller_queue_join(struct controller_queue *q);
