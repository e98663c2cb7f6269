/* SPDX-License-Identifier: Apache-2.0 */
/* Reports over a real API server and telemetry in this process, on a clock that the test moves and
 * without the worker's thread: what devices send goes the same way as in the server. */
#pragma once

#include "api/api.h"
#include "base/clock.h"
#include "reports/reports_internal.h"

#define WORLD_NOW_US ((int64_t) 1800000000 * 1000000) /* 2027-01-15T08:00:00Z */
#define SECOND_US ((int64_t) 1000000)

/* Devices edge-1 and edge-2 in namespace "site", edge-3 in "other". */
#define DEVICE_1 "11111111-0000-4000-8000-000000000001"
#define DEVICE_2 "11111111-0000-4000-8000-000000000002"
#define DEVICE_3 "11111111-0000-4000-8000-000000000003"

#define WORLD_MAX_ALIASES 32

/* Other threads read it while the test moves it. */
struct world_clock {
    struct clock clock;
    atomic_llong now_us;
};

struct faulty_client {
    struct kube_client client; /* first */
    struct kube_client *real;
    unsigned n_to_fail; /* writes that fail without effect */
    unsigned n_to_lose; /* writes that fail after it */
    size_t n_writes;
};

struct world {
    char directory[40];
    struct arena *arena;
    struct world_clock clock;
    struct store *store;
    struct rbac *rbac;
    struct api *api;
    struct kube_client *user, *watcher;
    struct faulty_client client;
    struct roster *roster;
    struct telemetry *telemetry;
    struct reports *reports;
    pthread_mutex_t lock;
    pthread_cond_t seen;
    int64_t n_seen, n_marks;
    bool is_synced;
    struct alias {
        const char *alias, *uuid;
    } aliases[WORLD_MAX_ALIASES];
    size_t n_aliases;
    bool is_not_told; /* records come to the disk and no further, as before a crash */
};

void world_open(struct world *w);
void world_close(struct world *w);
/* The reports end cleanly, or as a process that is killed, and begin again. */
void world_restart(struct world *w, bool is_crash);

/* Text is JSON with ' for ". */
void world_create(struct world *w, const char *plural, const char *namespace, const char *text);
void world_patch(struct world *w, const char *plural, const char *namespace, const char *name,
                 const char *subresource, const char *text);
void world_delete(struct world *w, const char *plural, const char *namespace, const char *name);
/* NULL when there is none. */
const struct json *world_get(struct world *w, const char *plural, const char *namespace,
                             const char *name);
struct str world_condition(struct world *w, const char *plural, const char *namespace,
                           const char *name, const char *type, const char *key);
/* How often the Event of this reason about this object was told; 0: never. */
int64_t world_events(struct world *w, const char *namespace, const char *name, const char *reason);
/* The server gives UUIDs; tests call an object by a UUID of theirs. The real one, or what it was
 * when it is nobody's. */
const char *world_uuid(struct world *w, const char *alias);
/* The object that was just made is called so. */
void world_alias(struct world *w, const char *plural, const char *namespace, const char *name,
                 const char *alias);
/* Application `name`, called by this UUID, on this device. */
void world_application(struct world *w, const char *namespace, const char *name, const char *uuid,
                       const char *device);

/* Everything that happened is known to the roster and the reports. */
void world_settle(struct world *w);
/* Works on what is due in so much time. */
void world_pass(struct world *w, int64_t ms);
/* The device is heard of without a message. */
void world_poll(struct world *w, const char *uuid);

/* Sent by the device with this UUID. Returns the record's id. */
uint64_t world_send(struct world *w, const char *device, enum telemetry_stream stream,
                    struct str bytes);
uint64_t world_send_info(struct world *w, const char *device, Eve__Info__ZInfoMsg *m);
/* An application's state at so many seconds after the start. */
uint64_t world_send_app(struct world *w, const char *device, const char *app, int state,
                        int64_t at_s);
struct reports_stats world_stats(struct world *w);
