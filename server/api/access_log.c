/* SPDX-License-Identifier: Apache-2.0 */
#include "api/access_log.h"

void access_log_request(const struct access_entry *e)
{
    bool is_slow = !e->is_long_running && e->duration_us > ACCESS_LOG_SLOW_US;
    LOG_AT(is_slow ? LOG_INFO : LOG_DEBUG, is_slow ? "slow request" : "request",
           LOG_STR("method", e->method), LOG_STR("path", e->path), LOG_INT("code", e->code),
           LOG_INT("duration_us", e->duration_us),
           LOG_INT("response_bytes", (int64_t) e->response_bytes), LOG_STR("user", e->user),
           LOG_STR("user_agent", e->user_agent), LOG_STR("address", e->address),
           LOG_STR("audit_id", e->audit_id));
}
