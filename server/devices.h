/* SPDX-License-Identifier: Apache-2.0 */
/* The other door: everything that devices talk to, opened from the server's options. */
#pragma once

#include "adam/adam.h"
#include "api/annex.h"
#include "api/health.h"
#include "api/metrics.h"
#include "api/table.h"
#include "cli/options.h"
#include "device/endpoint.h"
#include "device/onboarding.h"
#include "device/server.h"
#include "fleet/fleet.h"
#include "preview/preview.h"
#include "reading/reading.h"

#define DEVICES_MAX_ANNEXES 3

struct devices {
    struct device_api api;
    struct kube_client *watcher; /* whose events keep the rest true */
    struct kube_client *reporter;
    struct device_server *server;
    struct tls_config *tls;
    struct listener *listener;
    struct loop_timer *renew_timer;
    struct kube_client *adam_client;
    struct adam *adam;
    struct reading reading;
    struct kube_client *composer;
    struct fleet *fleet;
    struct preview preview;
    struct forecast forecast;                  /* what dry runs are told */
    struct table_live live;                    /* when each was last seen, for tables */
    struct annex annexes[DEVICES_MAX_ANNEXES]; /* how users read what devices send */
    size_t n_annexes;
};

struct devices_options {
    const struct options *options;
    struct arena *arena;
    struct api *store_api;
    struct loop *const *loops;
    size_t n_loops;
    struct api_metrics *metrics;
    struct health *health;
    struct fetch_client *fetch;
    const char *certificate_path, *key_path; /* of TLS */
};
/* What needs no loop yet; annexes are there afterwards. Failure: *ret_error (heap); what was opened
 * is closed by the calls below. */
int devices_open(struct devices *d, const struct devices_options *o, char **ret_error);
/* Starts to listen. */
int devices_listen(struct devices *d, const struct devices_options *o, char **ret_error);
int devices_port(const struct devices *d);
/* Certificates on disk may be others. */
void devices_reload(struct devices *d);

/* The three steps of the end, as the loops stop, settle, and are settled (close_parts() in
 * serve.c).
 */
void devices_drain(struct devices *d, void (*on_drained)(void *arg), void *arg);
void devices_stop(
    struct devices *d); /* loops have stopped: no more events, what is under way ends */
void devices_close(struct devices *d); /* loops have settled */
