/* SPDX-License-Identifier: Apache-2.0 */
/* The Kubernetes API over HTTP: requests in, calls run, answers out. One door per loop, all sharing
 * one API. */
#pragma once

#include "api/annex.h"
#include "api/api.h"
#include "api/health.h"
#include "http/http.h"

struct api_metrics;
struct api_server;
struct audit;
struct fairness;
struct workers;

struct api_server_options {
    struct api *api;
    struct loop *const *loops;
    size_t n_loops;
    struct str address; /* as /api shows it: "10.0.0.5:6443" */
    struct health *health;
    struct workers *workers; /* for what waits on other servers */
    struct fairness *fairness;
    struct audit *audit; /* NULL: none */
    struct api_metrics *metrics;
    const struct annex *annexes; /* live as long as the server */
    size_t n_annexes;
};

struct api_server *api_server_new(const struct api_server_options *o);
/* For listener_options: accepts on whichever loop the stream belongs to. */
void *api_server_accept(void *server, struct stream *s, const struct stream_events **ret_events);
/* Ends watches, lets the rest finish; on_drained is called once, on the first loop. From the first
 * loop's thread. */
void api_server_drain(struct api_server *s, void (*on_drained)(void *arg), void *arg);
/* Ends at once what is left. After the loops have stopped; they are to settle afterwards, and so is
 * the store before them, since calls under way still answer to us. NULL allowed. */
void api_server_close(struct api_server *s);
/* Waits for what annexes still close; the loops have settled in between. NULL allowed. */
void api_server_settle(struct api_server *s);
/* After that. NULL allowed. */
void api_server_free(struct api_server *s);
