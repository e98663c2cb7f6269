/* SPDX-License-Identifier: Apache-2.0 */
/* The objects that reports speak of, by the UUID devices know them by, and to which device each
 * belongs. Kept true by events; asked by the worker. Has a lock of its own. */
#pragma once

#include <pthread.h>

#include "api/client.h"
#include "base/list.h"
#include "base/map.h"
#include "base/uuid.h"

enum catalog_kind {
    CATALOG_DEVICE,
    CATALOG_APPLICATION, /* belongs to status.device */
    CATALOG_VOLUME,      /* belongs to spec.device */
    CATALOG_IMAGE,       /* shared within its namespace, as are */
    CATALOG_NETWORK,
    CATALOG_KINDS
};
struct str catalog_resource(enum catalog_kind kind); /* "applications" */

enum catalog_ready { CATALOG_READY_NONE, CATALOG_READY_UNKNOWN, CATALOG_READY_KNOWN };

struct catalog {
    pthread_mutex_t lock;
    struct map by_name;   /* "<kind>/<namespace>/<name>" */
    struct map by_uuid;   /* kind and 16 bytes */
    struct map homes;     /* "<namespace>/<device>": the applications of a device */
    struct map intervals; /* "<namespace>": what its options say; "": all devices */
    struct list changed;  /* homes whose counts may be others */
};
void catalog_init(struct catalog *c);
void catalog_done(struct catalog *c);
/* True when a Device or its applications changed: somebody should look. */
bool catalog_on_event(struct catalog *c, const struct kube_event *e);

/* Copies in the arena. */
struct catalog_view {
    enum catalog_kind kind;
    struct uuid uuid;
    struct str namespace, name, uid;
    struct str device;          /* it belongs to; empty: to none */
    bool is_deleting;           /* the object */
    bool has_state;             /* of an Application: some device has told of it, and has it */
    bool is_delivered;          /* of an Application: its device has it as it is now */
    enum catalog_ready ready;   /* of a Device */
    int64_t heartbeat_us;       /* of a Device: as it is written; 0: none */
    int64_t poll_interval_s;    /* of a Device */
    size_t n_running, n_wanted; /* of a Device: applications */
    size_t n_undelivered;       /* of them */
};
/* False when there is no such object. */
bool catalog_find(struct catalog *c, struct arena *a, enum catalog_kind kind,
                  const struct uuid *uuid, struct catalog_view *ret);
bool catalog_has(struct catalog *c, enum catalog_kind kind, const struct uuid *uuid);
/* The applications that belong to a device, at most max. Returns how many. */
size_t catalog_applications(struct catalog *c, struct arena *a, const struct catalog_view *device,
                            size_t max, struct catalog_view **ret);
/* Takes one device whose applications changed; false when there is none (any more). */
bool catalog_take_changed(struct catalog *c, struct uuid *ret_device);
