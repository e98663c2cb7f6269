/* SPDX-License-Identifier: Apache-2.0 */
/* A device's request on its way: what is kept of it while it is answered. Belongs to its loop's
 * thread; only its call may be with a worker for a while. */
#pragma once

#include "device/pressure.h"
#include "device/route.h"

#define DEVICE_SPARE_VISITS 64

/* One loop's half of the device API. */
struct device_door {
    struct device_server *server;
    struct device_api *api;
    struct loop *loop;
    struct http_server *http;
    struct pressure pressure;
    struct device_visit *spare;
    size_t n_spare;
};

struct device_visit {
    struct device_door *door;
    struct http_exchange *exchange; /* NULL: the peer is gone */
    struct route route;
    struct device_call call;
    struct arena *own_arena; /* NULL: the exchange's is enough, it is answered at once */
    bool is_counted;         /* among those in flight */
    int64_t began_us;        /* monotonic */
    struct telemetry_record record;
    struct device_visit *next_spare;
};

/* http_server_options.on_request; ctx is the door. */
void device_on_request(void *door, struct http_exchange *x);
/* From here on the exchange may go before the visit: what the call refers to becomes its own. */
void device_visit_keep(struct device_visit *v);
/* Sends the call's answer and ends the visit. */
void device_visit_answer(struct device_visit *v);
/* Runs the endpoint's handler on a worker, then answers. */
void device_visit_run(struct device_visit *v);
void device_door_done(struct device_door *door);

/* What answers on the loop (endpoint.begin). */
void device_visit_ping(struct device_visit *v);
void device_visit_certs(struct device_visit *v);
void device_visit_config(struct device_visit *v);
