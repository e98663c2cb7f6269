/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the index; with its lock held, all of it. */
#pragma once

#include <pthread.h>

#include "api/selector.h"
#include "base/list.h"
#include "base/map.h"
#include "workloads/index.h"

/* A namespace. */
struct space {
    char *name;
    struct list owners, devices, orphans;
    size_t n_refs; /* records that are in it */
};

struct owner {
    char *uid;
    bool is_known;    /* an event has told of it; until then only others name it */
    struct list link; /* space->owners, when it is known */
    struct space *space;
    enum workload_kind kind;
    char *key, *name;
    struct arena *arena; /* of the selector */
    struct selector selector;
    char *selector_text; /* it was read from this */
    int64_t generation;
    bool is_deleting;
    struct list applications, candidates, revisions;
    size_t n_applications;
    char **doubts;
    size_t n_doubts;
    struct index_memory memory;
};

struct device {
    char *key, *name; /* "<namespace>/<name>"; name is within key */
    bool is_known;
    struct list link; /* space->devices, when it is known */
    struct space *space;
    struct json *labels;
    bool is_active, is_offline;
    struct list applications;
};

/* Where an Application's link is. */
enum app_place { APP_OF_OWNER, APP_CANDIDATE, APP_ORPHAN };

struct app {
    char *uid, *name, *revision;
    struct json *labels;
    struct space *space;
    enum app_place place;
    struct owner *owner; /* of APP_OF_OWNER and APP_CANDIDATE */
    struct list link;
    struct device *device;
    struct list device_link;
    int64_t version, created_us, deleted_us, ready_since_us;
    bool is_scheduled, is_ready, is_deleting, is_ours;
    bool is_gone; /* we know, its last event has not come yet */
};

struct revision {
    char *uid, *name, *hash;
    struct owner *owner;
    struct list link;
    int64_t version, number;
    unsigned char digest[INDEX_DIGEST_BYTES];
};

struct workload_index {
    pthread_mutex_t lock;
    workload_wake *wake;
    void *ctx;
    struct map spaces, owners, devices, apps, revisions; /* by name, uid, key, uid, uid */
    int64_t app_version, revision_version;               /* the latest that an event told of */
};

/* ---- index_records.c ----------------------------------------------------------------------- */

struct space *index_space(struct workload_index *ix, struct str name);
void index_space_drop(struct workload_index *ix, struct space *s);
struct owner *index_owner(struct workload_index *ix, struct str uid);
/* Frees it when nothing names it any more. */
void index_owner_drop(struct workload_index *ix, struct owner *o);
struct device *index_device(struct workload_index *ix, struct str namespace, struct str name);
void index_device_drop(struct workload_index *ix, struct device *d);
void index_wake(struct workload_index *ix, const struct owner *o);
void index_app_unlink(struct workload_index *ix, struct app *app);
void index_app_free(struct workload_index *ix, struct app *app);
void index_revision_free(struct workload_index *ix, struct revision *r);
/* Puts an Application that no controller owns with the owner that may adopt it, or aside. */
void index_orphan_place(struct workload_index *ix, struct app *app);
bool index_fits(const struct owner *o, const struct app *app);

/* ---- index_applications.c, index_owners.c, index_revisions.c ------------------------------- */

void index_application_event(struct workload_index *ix, const struct kube_event *e);
void index_revision_event(struct workload_index *ix, const struct kube_event *e);
void index_owner_event(struct workload_index *ix, enum workload_kind kind,
                       const struct kube_event *e);
void index_device_event(struct workload_index *ix, const struct kube_event *e);
/* The controller among the object's owners, if it is of our kinds. */
struct str index_controller(const struct json *object, bool *ret_has_controller);
int64_t index_version(const struct json *object);
