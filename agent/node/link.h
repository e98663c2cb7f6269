/* SPDX-License-Identifier: Apache-2.0 */
/* A service's uplink, kept up to date with what the node knows: ports, server, UUID, time-outs,
 * certificates; and its MetricsMap, published. */
#pragma once

#include "node/node.h"

struct node_link_options {
    struct str agent;          /* who publishes the MetricsMap: "zedagent" */
    bool uses_onboarding;      /* shows the onboarding identity where there is no other */
    bool has_nil_device;       /* never names the UUID: nim's and diag's */
    bool publishes_no_metrics; /* the owner does it, or another link of the same agent */
    int64_t
        metrics_interval_s; /* between publications, 0.3 to 1.0 of it; 0: timer.metric.interval */
};

struct node_link {
    struct node *node;
    struct uplink *uplink;
    struct uplink_metrics *metrics;
    struct node_link_internal *internal;
};

int node_link_new(struct node *n, const struct node_link_options *o, struct node_link **ret);
/* NULL allowed. */
void node_link_free(struct node_link *l);
/* Publishes the metrics now. */
void node_link_publish(struct node_link *l);
/* URL of an action with the device's UUID: "config", "apps/instanceid/<uuid>/newlogs". */
struct str node_link_url(struct arena *a, const struct node_link *l, struct str action);
