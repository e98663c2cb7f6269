/* SPDX-License-Identifier: Apache-2.0 */
/* A subscription whose handlers write down what they are told. */
#pragma once

#include "world.h"

struct trace {
    struct world *world;
    struct subscription *subscription;
    struct buf text;
    const char *until;         /* for trace_has_ended() */
    const char *freed_after;   /* the handler that frees the subscription */
    struct publication *freed; /* by that handler in its place */
};

extern const struct subscription_handlers trace_handlers;

void trace_subscribe(struct world *w, struct pubsub *ps, struct trace *t,
                     const struct pubsub_name *name);
bool trace_has_ended(void *arg);
/* Runs until the text ends so, and compares all of it. */
void trace_expect(struct trace *t, const char *all);
void trace_done(struct trace *t);
