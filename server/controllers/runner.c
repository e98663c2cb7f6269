/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/alloc.h"
#include "controllers/queue.h"

#define MAX_CONTROLLERS 32

struct controller_runner {
    struct controller_context ctx;
    struct controller_queue *queues[MAX_CONTROLLERS];
    size_t n_queues;
};

static void on_event(void *ctx, const struct kube_event *e)
{
    struct controller_runner *r = ctx;
    for (size_t i = 0; i < r->n_queues; i++)
        controller_queue_event(r->queues[i], e);
}

static void start(struct controller_runner *r, const struct controller *c)
{
    if (r->n_queues == MAX_CONTROLLERS)
        abort();
    struct controller_queue *q = r->queues[r->n_queues++] = controller_queue_new(c, &r->ctx);
    controller_queue_start(q);
}

struct controller_runner *controller_runner_new(const struct controller_context *ctx,
                                                const struct controller *const *table)
{
    struct controller_runner *r = NEW(struct controller_runner);
    r->ctx = *ctx;
    for (const struct controller *const *c = table; *c; c++)
        start(r, *c);
    kube_watch(r->ctx.client, on_event, r);
    return r;
}

void controller_runner_free(struct controller_runner *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n_queues; i++)
        controller_queue_stop(r->queues[i]);
    for (size_t i = 0; i < r->n_queues; i++)
        controller_queue_join(r->queues[i]);
    kube_client_free(r->ctx.client); /* ends the events */
    for (size_t i = 0; i < r->n_queues; i++)
        controller_queue_free(r->queues[i]);
    mem_free(r);
}

size_t controller_runner_figures(void *runner, struct queue_figures *to, size_t max)
{
    struct controller_runner *r = runner;
    for (size_t i = 0; i < MIN(r->n_queues, max); i++)
        controller_queue_figures(r->queues[i], &to[i]);
    return r->n_queues;
}
