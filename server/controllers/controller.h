/* SPDX-License-Identifier: Apache-2.0 */
/* Controllers: each says which objects wake it and how to bring one key to where it should be.
 * reconcile() is level-triggered and idempotent; the runner calls it on threads of its own, never
 * twice at once for one key, again later when it fails or asks for it, and not before on_event()
 * has seen all that existed at the start. */
#pragma once

#include "api/client.h"
#include "base/clock.h"

struct device_api;
struct fleet;
struct pki_cert;
struct pki_key;
struct token_issuer;

struct controller_context {
    struct kube_client *client;
    const struct clock *clock;
    struct str root_ca_pem;                  /* for kube-root-ca.crt */
    const struct token_issuer *token_issuer; /* signs what Secrets of ServiceAccounts hold */
    const struct pki_cert *ca_cert;          /* issues certificates of clients */
    const struct pki_key *ca_key;
    int64_t signing_duration_s; /* how long they are valid at most */
    struct fleet *fleet;        /* what applies to which device */
    struct device_api *devices; /* what devices are told and by whom; NULL: there are none */
};

struct controller_queue;
/* Wakes the controller for a key ("namespace/name", or whatever it calls its keys) after delay_ms.
 */
void controller_enqueue(struct controller_queue *q, struct str key, int64_t delay_ms);

struct controller {
    const char *name;
    /* State of this controller, made before the first event; NULL: none. */
    void *(*start)(const struct controller_context *ctx, struct controller_queue *q);
    /* An object changed: enqueue the keys it concerns. Cheap; no requests. */
    void (*on_event)(void *state, const struct kube_event *e, struct controller_queue *q);
    /* All that existed at the start has been seen; NULL: nothing depends on it. */
    void (*on_synced)(void *state);
    /* 0: done; > 0: call again in that many ms; < 0: failed, retried with growing delays. */
    int64_t (*reconcile)(void *state, const struct controller_context *ctx, struct str key);
    void (*stop)(void *state);
    /* Keys worked on at once; 0: one. More for those that mostly wait for their writes: what is
     * written together is synced together. */
    unsigned n_workers;
};

struct controller_runner;
/* Starts every controller of the table, which ends with NULL. Each event goes to them in its order.
 */
struct controller_runner *controller_runner_new(const struct controller_context *ctx,
                                                const struct controller *const *table);
/* Stops the threads and frees; reconciles under way finish first. */
void controller_runner_free(struct controller_runner *r);
/* What its queues have counted, for the metrics (ctx is the runner): fills at most max and returns
 * how many there are. From any thread. */
struct queue_figures;
size_t controller_runner_figures(void *runner, struct queue_figures *to, size_t max);
