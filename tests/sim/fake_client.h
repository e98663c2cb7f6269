/* SPDX-License-Identifier: Apache-2.0 */
/* An API server in memory for controllers under test: revisions, finalizers, deletion and
 * namespaces as the real one has them, the kinds with their hooks, and faults on demand. No
 * validation, no managedFields. Memory is freed with the client. */
#pragma once

#include "api/client.h"
#include "api/registry.h"
#include "base/clock.h"

struct fake_event {
    enum kube_event_type type;
    struct str collection;
    const struct json *object;
};

struct fake_client {
    struct kube_client client; /* first */
    struct arena *arena;
    const struct clock *clock;
    struct registry *kinds;
    struct fake_object *objects;
    size_t n_objects, capacity;
    int64_t revision;
    uint64_t n_uids;
    uint64_t random; /* state of the generator; the seed at first */
    /* Of 100 requests of controllers, this many fail without effect, and this many after it. */
    unsigned fail_percent, lose_percent;
    /* So many writes of controllers are made; after them every request of theirs fails, as in a
     * process that was killed there. Negative: no end. */
    int64_t n_writes_left;
    enum verb failing_verb; /* of controllers always fails; VERB_COUNT: none */
    /* Everything that was written since the caller last emptied it. */
    struct fake_event *events;
    size_t n_events, event_capacity;
    size_t n_writes;
    /* Called after each; may be NULL. */
    void (*on_write)(void *ctx);
    void *on_write_ctx;
};

void fake_client_init(struct fake_client *f, const struct clock *clock, uint64_t seed);
void fake_client_done(struct fake_client *f);

/* Below bound; from the seed alone. */
uint64_t fake_random(struct fake_client *f, uint64_t bound);

/* As a user: never a fault. */
int fake_request(struct fake_client *f, struct arena *a, const struct kube_request *r,
                 struct json **ret_object);
/* NULL when absent. */
const struct json *fake_get(struct fake_client *f, const char *collection, const char *namespace,
                            const char *name);
size_t fake_count(struct fake_client *f, const char *collection);
/* For each object there is, in no order. */
void fake_each(struct fake_client *f,
               void (*fn)(void *ctx, struct str collection, const struct json *o), void *ctx);
