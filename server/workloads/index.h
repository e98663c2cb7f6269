/* SPDX-License-Identifier: Apache-2.0 */
/* Who made which Applications, as events tell it, with the little of them that decides what is to
 * be done: template, device, readiness. Also what the controller's own writes answered, so that no
 * decision is taken twice because an event is late. Functions may be called from any thread. */
#pragma once

#include "api/client.h"
#include "workloads/kinds.h"

#define INDEX_DIGEST_BYTES 32

struct workload_index;

/* wake(ctx, key, delay_ms) is called, under the index's lock, for every "<Kind>/<namespace>/<name>"
 * that should be looked at. */
typedef void workload_wake(void *ctx, struct str key, int64_t delay_ms);
struct workload_index *workload_index_new(workload_wake *wake, void *ctx);
void workload_index_free(struct workload_index *ix);

void workload_index_event(struct workload_index *ix, const struct kube_event *e);

/* ---- own writes ---------------------------------------------------------------------------- */

/* What a request answered: an Application or a ControllerRevision as it is now. */
void workload_index_learn_application(struct workload_index *ix, const struct json *object);
void workload_index_learn_revision(struct workload_index *ix, const struct json *object);
/* An Application that was asked for because events had not told of it. Whoever calls this asks once
 * more: it may have come to its end in between, and that been told of already. */
void workload_index_found(struct workload_index *ix, const struct json *object);
/* The Application is gone, whether its event was seen or not. */
void workload_index_gone(struct workload_index *ix, struct str uid);
/* A request about this Application of the owner failed in a way that leaves open whether it had its
 * effect: it is to be looked at before anything else is decided. */
void workload_index_doubt(struct workload_index *ix, struct str owner_uid, struct str name);
void workload_index_clear_doubts(struct workload_index *ix, struct str owner_uid);

/* ---- looking ------------------------------------------------------------------------------- */

struct index_application {
    struct str name, uid;
    struct str revision; /* the label; "" when it has none */
    struct str device;   /* where it runs or is pinned to; "" when it is nowhere yet */
    int64_t created_us, deleted_us, ready_since_us;
    bool is_scheduled, is_ready, is_deleting;
    bool is_offline; /* its Device is out of touch */
    bool is_ours;    /* the labels fit the selector */
};

struct index_revision {
    struct str name, uid;
    struct str hash; /* that Applications carry */
    int64_t number;
    unsigned char digest[INDEX_DIGEST_BYTES]; /* of the template */
};

struct index_device {
    struct str name;
    bool does_fit; /* the template's selectors */
    bool is_active, is_offline;
};

/* What is kept of an owner between two looks. */
struct index_memory {
    size_t n_created, n_deleted;             /* not told yet */
    char last_created[64], last_deleted[64]; /* a name, shortened */
    int64_t told_us;
    int64_t claims_generation; /* claims were last compared with this generation */
};

struct index_view {
    struct index_application *applications; /* of this owner */
    size_t n_applications;
    struct index_application *candidates; /* nobody's, and they fit */
    size_t n_candidates;
    struct index_revision *revisions; /* lowest number first */
    size_t n_revisions;
    struct index_device *devices; /* of the namespace, by name; only for an ApplicationDaemonSet */
    size_t n_devices;
    struct str *doubts; /* names of Applications */
    size_t n_doubts;
    struct index_memory memory;
};

/* Everything of the owner, in the arena. spec: of its template, which Devices may fit. False when
 * no event has told of the owner. */
bool workload_index_view(struct workload_index *ix, struct arena *a, struct str owner_uid,
                         const struct json *spec, struct index_view *ret);
void workload_index_remember(struct workload_index *ix, struct str owner_uid,
                             const struct index_memory *m);
/* The digest of a template: the same for the same template, whatever the order of its members. */
void workload_index_digest(struct arena *a, const struct json *template,
                           unsigned char out[INDEX_DIGEST_BYTES]);
