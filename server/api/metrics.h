/* SPDX-License-Identifier: Apache-2.0 */
/* What the API server counts, under the names that dashboards of kube-apiserver know, and the
 * document of /metrics. Labels come from the kinds that are served and from fixed lists, never from
 * objects or from what a peer sends. */
#pragma once

#include "api/api.h"
#include "api/queue_figures.h"
#include "metrics/metrics.h"

struct audit;
struct fairness;
struct health;
struct listener;

struct api_metrics;

struct api_metrics_options {
    struct api *api;
    const struct health *health; /* these three may be NULL */
    struct fairness *fairness;
    struct audit *audit;
};
struct api_metrics *api_metrics_new(const struct api_metrics_options *o);
/* NULL allowed. */
void api_metrics_free(struct api_metrics *m);

/* Where others register what they count. Before anybody asks for the text. */
struct metrics *api_metrics_registry(struct api_metrics *m);

/* What is there only later. Before anybody asks for the text; l must outlive that. */
void api_metrics_set_listener(struct api_metrics *m, const struct listener *l);
/* get() fills at most max and returns how many there are. */
void api_metrics_set_queues(struct api_metrics *m,
                            size_t (*get)(void *ctx, struct queue_figures *to, size_t max),
                            void *ctx);

/* The answer to GET /metrics: Prometheus text format 0.0.4. From any thread. */
#define API_METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"
void api_metrics_text(struct api_metrics *m, struct buf *b);

/* ---- requests ------------------------------------------------------------------------------- */

/* One thread's view, which remembers the series it needed. */
struct request_meter;
struct request_meter *request_meter_new(struct api_metrics *m);
void request_meter_free(struct request_meter *meter);

struct request_measure {
    const struct registry *registry;            /* of kind; may be NULL without one */
    const struct kind *kind;                    /* NULL: a path, or a resource that is not served */
    const struct kind_subresource *subresource; /* NULL: the object itself */
    bool is_resource;
    bool has_verb; /* a resource: `verb` holds */
    enum verb verb;
    bool is_apply, is_dry_run;
    bool has_namespace, has_name;
    struct str method, path; /* of a path */
    int code;
    int64_t duration_us;
    size_t response_bytes;
    bool is_long_running;
    bool is_shed; /* turned away to protect the server */
};

/* A request is over. */
void request_meter_count(struct request_meter *meter, const struct request_measure *r);
/* A long-running one begins (1) or ends (-1). */
void request_meter_long_running(struct request_meter *meter, const struct request_measure *r,
                                int by);

/* ---- watches -------------------------------------------------------------------------------- */

/* What one watch counts its events in. */
struct watch_meter {
    struct metric_series *events, *sizes;
};
struct watch_meter api_metrics_watch(struct api_metrics *m, const struct kind *kind);

static inline void watch_meter_event(const struct watch_meter *w, size_t n_bytes)
{
    metric_add(w->events, 1);
    metric_observe(w->sizes, (double) n_bytes);
}

/* ---- logins --------------------------------------------------------------------------------- */

enum login_result { LOGIN_SUCCESS, LOGIN_FAILURE /* nobody we know */, LOGIN_ERROR };
/* user: of a success. */
void api_metrics_login(struct api_metrics *m, enum login_result result, struct str user);
