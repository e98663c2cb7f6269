/* SPDX-License-Identifier: Apache-2.0 */
/* Watches: a hub per loop follows the store and feeds its watchers, each an open HTTP answer.
 * Events are written once per form and shared by all watchers of that kind and form. A watcher that
 * does not keep up is ended, never buffered without bound. */
#pragma once

#include "api/call.h"
#include "api/list_options.h"
#include "api/metrics.h"
#include "api/reply.h"

#define WATCH_MIN_TIMEOUT_S \
    1800 /* without timeoutSeconds: between this and twice of it, at random */

/* What verb_watch() has understood; in the call's arena. */
struct watch_request {
    struct list_options options;
    struct reply_form form;
    struct str collection, namespace; /* namespace STR_NONE: all */
    struct registry *registry; /* borrowed from the call; a watcher takes its own reference */
    bool is_from_start;        /* initial state first, as ADDED events */
};

struct watch_hub;
/* Belongs to the loop's thread, as all else here. */
struct watch_hub *watch_hub_new(struct api *api, struct loop *loop);
/* Ends all watchers. */
void watch_hub_drain(struct watch_hub *h);
void watch_hub_free(struct watch_hub *h);
size_t watch_hub_watchers(const struct watch_hub *h);

struct watch_start {
    const struct watch_request *request; /* kept by the exchange's arena */
    const struct http_header *headers;
    size_t n_headers;
    struct watch_meter meter;
    void (*on_end)(void *arg); /* however it ends, while the exchange still exists */
    void *arg;
};

/* Answers the exchange with the watch, over WebSocket when it asks so. */
void watch_begin(struct watch_hub *h, struct http_exchange *x, const struct watch_start *start);
