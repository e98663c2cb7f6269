/* SPDX-License-Identifier: Apache-2.0 */
/* Controllers on a virtual clock over a fake API server, without threads: events are delivered,
 * repeated or lost as the seed has it, keys are worked on one after the other, time moves when
 * nothing is due. */
#pragma once

#include "controllers/queue.h"
#include "fake_client.h"

#define WORLD_MAX_CONTROLLERS 8
#define WORLD_START_US ((int64_t) 1800000000 * 1000000)

struct world {
    struct clock_virtual clock;
    struct fake_client api;
    struct controller_context ctx;
    const struct controller *controllers[WORLD_MAX_CONTROLLERS];
    struct controller_queue *queues[WORLD_MAX_CONTROLLERS];
    size_t n_controllers;
    unsigned drop_percent, repeat_percent; /* of events */
    /* Make and end what controllers share, with every start of theirs; NULL: nothing. */
    void (*begin)(struct world *w);
    void (*end)(struct world *w);
};

/* From the environment (SETH_SIM_SEED) or by chance; printed. */
uint64_t world_seed(void);

/* table ends with NULL. The namespace "n" exists. */
void world_init(struct world *w, uint64_t seed, const struct controller *const *table);
/* The same with something that the controllers share. */
void world_init_shared(struct world *w, uint64_t seed, const struct controller *const *table,
                       void (*begin)(struct world *w), void (*end)(struct world *w));
void world_done(struct world *w);
/* The controllers forget all and begin again, with all that exists. */
void world_restart(struct world *w);

/* Delivers what happened and works on all that comes due in this much of virtual time. */
void world_pass(struct world *w, int64_t ms);

/* As a user. Text is JSON with ' for ". kind is "v1/configmaps" or "group/version/plural". 0 or a
 * negative errno. */
int world_create(struct world *w, const char *kind, const char *namespace, const char *text);
int world_patch(struct world *w, const char *kind, const char *namespace, const char *name,
                const char *text);
/* policy NULL: the default. */
int world_delete(struct world *w, const char *kind, const char *namespace, const char *name,
                 const char *policy);
/* The value at the keys, or NULL: world_at(w, "configmaps", "n", "a", "data", "x", NULL). */
const struct json *world_at(struct world *w, const char *collection, const char *namespace,
                            const char *name, ...) __attribute__((sentinel));
struct str world_text(struct world *w, const char *collection, const char *namespace,
                      const char *name, const char *in, const char *key);
bool world_has(struct world *w, const char *collection, const char *namespace, const char *name);
struct str world_uid(struct world *w, const char *collection, const char *namespace,
                     const char *name);
