/* SPDX-License-Identifier: Apache-2.0 */
/* Between what is counted and what is asked of others. */
#pragma once

#include "api/metrics.h"

enum {
    FAMILY_REQUESTS,
    FAMILY_DURATIONS,
    FAMILY_SLI_DURATIONS,
    FAMILY_RESPONSE_SIZES,
    FAMILY_LONG_RUNNING,
    FAMILY_TERMINATIONS,
    FAMILY_WATCH_EVENTS,
    FAMILY_WATCH_SIZES,
    FAMILY_LOGINS,
    FAMILY_LOGIN_USERS,
    FAMILY_COUNT,
};

#define METER_USERS 7

struct api_metrics {
    struct api_metrics_options options;
    struct metrics *metrics;
    struct metric *families[FAMILY_COUNT];
    struct metric_series *logins[3]; /* by enum login_result */
    struct metric_series *users[METER_USERS];
    const struct listener *listener;
    size_t (*get_queues)(void *ctx, struct queue_figures *to, size_t max);
    void *queues_ctx;
};

/* Lines of what others keep: the store, the audit log, queues, health, the process. */
void metrics_collect(void *m, struct buf *b);
