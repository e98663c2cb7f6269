/* SPDX-License-Identifier: Apache-2.0 */
/* The device API over HTTP: one door per loop, all sharing one struct device_api. */
#pragma once

#include "device/endpoint.h"
#include "metrics/metrics.h"

struct device_server;

struct device_server_options {
    struct device_api *api; /* lives as long as the server */
    struct loop *const *loops;
    size_t n_loops;
    size_t max_inflight;        /* requests that wait for the disk or a worker */
    uint32_t device_per_second; /* requests of one device; 0: no limit */
    struct metrics *metrics;
};
struct device_server *device_server_new(const struct device_server_options *o);
/* For listener_options: accepts on whichever loop the stream belongs to. */
void *device_server_accept(void *server, struct stream *s, const struct stream_events **ret_events);
/* Lets what is under way finish; on_drained once, on the first loop. From its thread. */
void device_server_drain(struct device_server *s, void (*on_drained)(void *arg), void *arg);
/* Ends at once what is left. After the loops have stopped; workers and the telemetry store are to
 * settle next, then the loops. NULL allowed. */
void device_server_close(struct device_server *s);
/* After that. NULL allowed. */
void device_server_free(struct device_server *s);

/* ---- for the doors; from any thread -------------------------------------------------------- */

/* A place among the requests in flight, of which each class may fill its part. */
bool device_server_enter(struct device_server *s, enum device_class class);
void device_server_leave(struct device_server *s);
/* Whether the device is within its own limit. */
bool device_server_allows(struct device_server *s, struct device *d);
struct figures *device_server_figures(struct device_server *s);
