/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/tally.h"

#include "base/alloc.h"

static const struct {
    const char *name;
    struct str action; /* the last part of its path */
} endpoints[FLEET_ENDPOINTS] = {
    [FLEET_REGISTER] = {"register", {"register", 8}},
    [FLEET_CERTS] = {"certs", {"certs", 5}},
    [FLEET_UUID] = {"uuid", {"uuid", 4}},
    [FLEET_CONFIG] = {"config", {"config", 6}},
    [FLEET_ATTEST] = {"attest", {"attest", 6}},
    [FLEET_INFO] = {"info", {"info", 4}},
    [FLEET_METRICS] = {"metrics", {"metrics", 7}},
    [FLEET_LOGS] = {"logs", {"newlogs", 7}},
    [FLEET_APP_LOGS] = {"app-logs", {NULL, 0}},
    [FLEET_FLOWLOG] = {"flowlog", {"flowlog", 7}},
    [FLEET_HARDWARE_HEALTH] = {"hardwarehealth", {"hardwarehealth", 14}},
    [FLEET_PING] = {"ping", {"ping", 4}},
    [FLEET_OTHER] = {"other", {NULL, 0}},
};

static const char *const fault_names[FLEET_FAULTS] = {
    [UPLINK_FAULT_NONE] = "none",
    [UPLINK_FAULT_REFUSED] = "refused",
    [UPLINK_FAULT_CERT_TIME] = "certificate-expired",
    [UPLINK_FAULT_CERT_AUTHORITY] = "certificate-authority",
    [UPLINK_FAULT_NO_ADDRESS] = "no-address",
    [UPLINK_FAULT_TIMEOUT] = "timeout",
    [UPLINK_FAULT_LOOKUP] = "lookup",
    [UPLINK_FAULT_TOO_LARGE] = "too-large",
    [UPLINK_FAULT_OTHER] = "connection",
};

const char *fleet_endpoint_name(enum fleet_endpoint e)
{
    return endpoints[e].name;
}

const char *fleet_fault_name(enum uplink_fault f)
{
    return fault_names[f];
}

enum fleet_endpoint fleet_endpoint_of(struct str url)
{
    const ptrdiff_t query = str_find(url, '?');
    const struct str path = query < 0 ? url : str_sub(url, 0, (size_t) query);
    if (str_find_str(path, STR("/edgedevice/")) < 0)
        return FLEET_OTHER;
    const struct str action = str_from(path, (size_t) str_find_last(path, '/') + 1);
    if (str_find_str(path, STR("/apps/instanceid/")) >= 0)
        return str_is(action, "newlogs") ? FLEET_APP_LOGS : FLEET_OTHER;
    for (size_t i = 0; i < FLEET_ENDPOINTS; i++)
        if (endpoints[i].action.n > 0 && str_eq(action, endpoints[i].action))
            return (enum fleet_endpoint) i;
    return FLEET_OTHER;
}

bool fleet_outcome_is_failure(const struct fleet_outcome *o)
{
    return o->fault != UPLINK_FAULT_NONE || o->http_status >= 400;
}

void fleet_tally_outcome(struct fleet_tally *t, const struct fleet_outcome *o)
{
    struct fleet_exchanges *x = &t->endpoints[o->endpoint];
    x->n_failed += fleet_outcome_is_failure(o);
    if (o->fault != UPLINK_FAULT_NONE) {
        t->faults[o->fault]++;
        return;
    }
    if (o->http_status >= 400)
        t->http[MIN(o->http_status, FLEET_HTTP_STATUSES - 1)]++;
    x->n_answered++;
    x->n_resumed += o->is_resumed;
    x->bytes_received += o->bytes_received;
    fleet_histogram_add(&x->latency, o->latency_us);
}

static void merge_exchanges(struct fleet_exchanges *to, const struct fleet_exchanges *from)
{
    to->n_started += from->n_started;
    to->n_answered += from->n_answered;
    to->n_failed += from->n_failed;
    to->n_unheard += from->n_unheard;
    to->n_resumed += from->n_resumed;
    to->bytes_sent += from->bytes_sent;
    to->bytes_received += from->bytes_received;
    fleet_histogram_merge(&to->latency, &from->latency);
}

void fleet_tally_merge(struct fleet_tally *to, const struct fleet_tally *from)
{
    for (size_t i = 0; i < FLEET_ENDPOINTS; i++)
        merge_exchanges(&to->endpoints[i], &from->endpoints[i]);
    for (size_t i = 0; i < FLEET_FAULTS; i++)
        to->faults[i] += from->faults[i];
    for (size_t i = 0; i < FLEET_HTTP_STATUSES; i++)
        to->http[i] += from->http[i];
    to->n_delayed += from->n_delayed;
}

void fleet_tally_sum(const struct fleet_tally *t, struct fleet_exchanges *ret)
{
    *ret = (struct fleet_exchanges){0};
    for (size_t i = 0; i < FLEET_ENDPOINTS; i++)
        merge_exchanges(ret, &t->endpoints[i]);
}

/* ---- seconds --------------------------------------------------------------------------------- */

static bool reach(struct fleet_timeline *t, size_t second)
{
    if (second >= FLEET_MAX_SECONDS)
        return false;
    if (second >= t->capacity) {
        const size_t capacity = MIN(MAX(t->capacity * 2, second + 64), FLEET_MAX_SECONDS);
        t->seconds = mem_realloc_array(t->seconds, capacity, sizeof(*t->seconds));
        memset(t->seconds + t->capacity, 0, (capacity - t->capacity) * sizeof(*t->seconds));
        t->capacity = capacity;
    }
    t->n = MAX(t->n, second + 1);
    return true;
}

struct fleet_second *fleet_timeline_at(struct fleet_timeline *t, int64_t since_begin_us)
{
    const size_t second = (size_t) (MAX(since_begin_us, 0) / 1000000);
    return reach(t, second) ? &t->seconds[second] : NULL;
}

void fleet_timeline_merge(struct fleet_timeline *to, const struct fleet_timeline *from)
{
    if (from->n == 0 || !reach(to, from->n - 1))
        return;
    for (size_t i = 0; i < from->n; i++) {
        to->seconds[i].n_started += from->seconds[i].n_started;
        to->seconds[i].n_answered += from->seconds[i].n_answered;
        to->seconds[i].n_failed += from->seconds[i].n_failed;
    }
}

void fleet_timeline_done(struct fleet_timeline *t)
{
    mem_free(t->seconds);
    *t = (struct fleet_timeline){0};
}
