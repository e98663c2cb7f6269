/* SPDX-License-Identifier: Apache-2.0 */
/* A line for each request that is over, at level debug; one that took long also at level info. */
#pragma once

#include "base/log.h"

/* Long-running requests apart. */
#define ACCESS_LOG_SLOW_US 1000000

struct access_entry {
    struct str method,
        path; /* path as sent, without the query, which may hold more than is wanted */
    int code; /* 0: the peer had gone */
    int64_t duration_us;
    size_t response_bytes;
    struct str user, user_agent, address;
    struct str audit_id;
    bool is_long_running;
};

/* Whether it writes anything: most often not, and then the entry need not be made. */
static inline bool access_log_wants(int64_t duration_us, bool is_long_running)
{
    return log_is_on(LOG_DEBUG) ||
           (duration_us > ACCESS_LOG_SLOW_US && !is_long_running && log_is_on(LOG_INFO));
}
void access_log_request(const struct access_entry *e);
