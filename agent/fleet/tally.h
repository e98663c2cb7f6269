/* SPDX-License-Identifier: Apache-2.0 */
/* What a fleet asked of its controller and what came back: counts, times and errors by endpoint,
 * and how many there were in each second. One for each loop; they are added up to be shown. */
#pragma once

#include "controllerconn/outcome.h"
#include "fleet/histogram.h"

enum fleet_endpoint {
    FLEET_REGISTER,
    FLEET_CERTS,
    FLEET_UUID,
    FLEET_CONFIG,
    FLEET_ATTEST,
    FLEET_INFO,
    FLEET_METRICS,
    FLEET_LOGS,
    FLEET_APP_LOGS,
    FLEET_FLOWLOG,
    FLEET_HARDWARE_HEALTH,
    FLEET_PING,
    FLEET_OTHER, /* not of the device API: a datastore, a proxy */
    FLEET_ENDPOINTS
};
const char *fleet_endpoint_name(enum fleet_endpoint e);
enum fleet_endpoint fleet_endpoint_of(struct str url);

#define FLEET_FAULTS (UPLINK_FAULT_OTHER + 1)
#define FLEET_HTTP_STATUSES 600
const char *fleet_fault_name(enum uplink_fault f);

struct fleet_exchanges {
    uint64_t n_started, n_answered, n_failed; /* failed: no answer, or one of 400 and above */
    uint64_t n_unheard;                       /* lost on purpose */
    uint64_t n_resumed;                       /* of the answers, on a resumed TLS session */
    uint64_t bytes_sent, bytes_received;      /* of bodies */
    struct fleet_histogram latency;           /* of those that were answered */
};

struct fleet_tally {
    struct fleet_exchanges endpoints[FLEET_ENDPOINTS];
    uint64_t faults[FLEET_FAULTS];      /* why there was no answer */
    uint64_t http[FLEET_HTTP_STATUSES]; /* answers of 400 and above, by status */
    uint64_t n_delayed;                 /* on purpose */
};

/* status 0: there was no answer, but a fault. */
struct fleet_outcome {
    enum fleet_endpoint endpoint;
    enum uplink_fault fault;
    int http_status;
    bool is_resumed;
    size_t bytes_received;
    int64_t latency_us;
};
void fleet_tally_outcome(struct fleet_tally *t, const struct fleet_outcome *o);
bool fleet_outcome_is_failure(const struct fleet_outcome *o);
void fleet_tally_merge(struct fleet_tally *to, const struct fleet_tally *from);
/* The endpoints together; the histogram, too. */
void fleet_tally_sum(const struct fleet_tally *t, struct fleet_exchanges *ret);

/* ---- seconds --------------------------------------------------------------------------------- */

#define FLEET_MAX_SECONDS ((size_t) 7 * 86400) /* later ones are not kept */
struct fleet_second {
    uint32_t n_started, n_answered, n_failed;
};
/* Since the fleet began, by the machine's time. */
struct fleet_timeline {
    struct fleet_second *seconds;
    size_t n, capacity;
};
/* NULL: that second is not kept. Valid until the next call. */
struct fleet_second *fleet_timeline_at(struct fleet_timeline *t, int64_t since_begin_us);
void fleet_timeline_merge(struct fleet_timeline *to, const struct fleet_timeline *from);
void fleet_timeline_done(struct fleet_timeline *t);
