/* SPDX-License-Identifier: Apache-2.0 */
/* What was sent, by interface and URL: the MetricsMap a service publishes. One may serve several
 * uplinks of a service. */
#pragma once

#include "base/buf.h"

/* Beyond these the totals of an interface still count, a further URL or interface does not. */
#define UPLINK_METRICS_MAX_INTERFACES 64
#define UPLINK_METRICS_MAX_URLS 256

struct uplink_url_counters {
    struct str url; /* in full, with its scheme */
    uint64_t tried_messages, tried_bytes;
    uint64_t sent_messages, sent_bytes;
    uint64_t received_messages, received_bytes;
    uint64_t time_spent_ms;
    uint64_t resumed_sessions;
};

struct uplink_interface_counters {
    struct str interface; /* "" holds what belongs to none */
    uint64_t failures, successes, auth_failures;
    int64_t last_failure_us, last_success_us; /* wall time, 0: never */
    struct uplink_url_counters *urls;
    size_t n_urls;
};

struct uplink_metrics;
struct uplink_metrics *uplink_metrics_new(void);
void uplink_metrics_free(struct uplink_metrics *m);

struct uplink_success {
    struct str url;
    uint64_t sent_bytes, received_bytes;
    int64_t time_spent_ms;
    bool is_resumed;
};
/* Any HTTP answer is one, whatever its code. */
void uplink_metrics_success(struct uplink_metrics *m, struct str interface, int64_t wall_us,
                            const struct uplink_success *s);
/* A port on which no address got an answer: once, however many addresses it has. */
void uplink_metrics_failure(struct uplink_metrics *m, struct str interface, int64_t wall_us,
                            struct str url);
/* An envelope was not believed. */
void uplink_metrics_auth_failure(struct uplink_metrics *m);

/* NULL: nothing counted there. Valid until the next count. */
const struct uplink_interface_counters *uplink_metrics_get(const struct uplink_metrics *m,
                                                           struct str interface);
/* Grows with every count: what has not changed need not be written again. */
uint64_t uplink_metrics_changes(const struct uplink_metrics *m);
/* Appends the JSON object as EVE's services publish it, in the order of names. */
void uplink_metrics_write(const struct uplink_metrics *m, struct buf *to);
