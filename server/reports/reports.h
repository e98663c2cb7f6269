/* SPDX-License-Identifier: Apache-2.0 */
/* From what devices report to the status of objects: Devices, Applications, Volumes, networks. The
 * newest report of each object wins; writes are coalesced and only made when something changed. */
#pragma once

#include "api/client.h"
#include "base/clock.h"
#include "roster/roster.h"
#include "telemetry/telemetry.h"

struct reports;
struct reports_options {
    struct kube_client *client; /* field manager "seth-reports" */
    struct roster *roster;
    struct telemetry *telemetry; /* NULL: nothing is taken up */
    const struct clock *clock;
    const char *checkpoint_path; /* up to which record statuses are written; NULL: not kept */
};
/* Takes up what was stored and not yet worked in when the server last ended. Has a thread of its
 * own, which begins when reports_on_event() has told of all objects that exist. */
int reports_new(const struct reports_options *o, struct reports **ret, char **ret_error);
void reports_free(struct reports *r); /* NULL allowed; writes what is pending first */
/* A record is on disk (info, metrics, hardware). Copies. From any thread; never blocks. */
void reports_take(struct reports *r, const struct telemetry_record *record);
/* A configuration that a device was given. */
struct config_fetched {
    struct str hash;
    int64_t version, rendered_s; /* of the DeviceConfig's status */
    bool is_confirmed; /* the device asked with this hash: it has it; false: it was sent */
};
/* Conditions of the Device, its DeviceConfig and its Applications. From any thread; never blocks.
 */
void reports_config_fetched(struct reports *r, struct device *d, const struct config_fetched *f);
void reports_attested(struct reports *r, struct device *d, bool is_good, struct str message);
/* Objects that a report may concern (from kube_watch). */
void reports_on_event(void *reports, const struct kube_event *e);

struct reports_stats {
    uint64_t n_taken;   /* messages worked in */
    uint64_t n_bad;     /* that are no message */
    uint64_t n_foreign; /* about another device, or an object that is not this device's */
    uint64_t n_stale;   /* older than what is known */
    uint64_t n_missed;  /* not queued for want of room: info is read again from the telemetry */
    uint64_t n_writes, n_failures, n_events, n_events_shed;
    size_t n_queued_bytes;
};
/* From any thread. */
void reports_stats(const struct reports *r, struct reports_stats *ret);
