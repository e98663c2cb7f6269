/* SPDX-License-Identifier: Apache-2.0 */
/* One loop's half of the API server: from an HTTP exchange to a call and back. */
#pragma once

#include "api/annex.h"
#include "api/discovery.h"
#include "api/openapi.h"
#include "api/server.h"
#include "api/watch.h"
#include "loop/workers.h"

/* The server's documents about one registry; replaced with it. */
struct documents {
    atomic_uint refs;
    struct discovery *discovery;
    struct openapi *openapi;
};
struct documents *documents_new(struct registry *r, const struct discovery_options *o);
struct documents *documents_ref(struct documents *d);
void documents_unref(struct documents *d);
DEFINE_CLEANUP(struct documents *, documents_unref)

#define DOOR_SPARE_ARENAS 32
#define DOOR_SPARE_VISITS 32

struct door {
    struct api_server *server;
    struct api *api;
    struct loop *loop;
    struct http_server *http;
    struct watch_hub *hub;
    const struct health *health;
    struct workers *workers;
    struct fairness *fairness;
    const struct annex *annexes;
    size_t n_annexes;
    struct workers *annex_workers;
    struct list annex_streams; /* under way */
    struct audit *audit;       /* NULL: none */
    struct api_metrics *metrics;
    struct request_meter *meter;
    size_t n_held;                                 /* refused logins whose answer waits */
    struct arena *spare_arenas[DOOR_SPARE_ARENAS]; /* of writes that are over */
    size_t n_spare_arenas;
    struct visit *spare_visits[DOOR_SPARE_VISITS];
    size_t n_spare_visits;
};

/* With a reference. */
struct documents *api_server_documents(struct api_server *s);

/* http_server_options.on_request and on_refused, ctx is the door. */
void door_on_request(void *door, struct http_exchange *x);
void door_on_refused(void *door, struct http_exchange *x, int status, struct str reason);
/* Frees what the door keeps for calls to come. */
void door_done(struct door *door);
/* Ends every stream of its annexes. */
void annex_drain(struct door *door);
