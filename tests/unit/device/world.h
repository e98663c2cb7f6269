/* SPDX-License-Identifier: Apache-2.0 */
/* The device API's handlers over a real API server and store in a directory of their own, and
 * devices that call them. */
#pragma once

#include "api/api.h"
#include "device/endpoint.h"
#include "device/onboarding.h"
#include "json/json.h"

struct rbac;

/* Passes requests on, or fails them: the store that cannot be reached. */
struct faulty_client {
    struct kube_client client;
    struct kube_client *real;
    const char *failing; /* resource whose writes fail; NULL: none */
};

struct world {
    char directory[40];
    struct arena *arena;
    struct clock_virtual clock;
    struct store *store;
    struct rbac *rbac;
    struct api *server;
    struct kube_client *user;    /* as an administrator */
    struct kube_client *watcher; /* whose events roster and onboarding get */
    struct faulty_client faulty;
    struct device_api api;
    pthread_mutex_t lock;
    pthread_cond_t seen;
    int64_t n_marks, n_seen; /* of world_settle() */
};

#define WORLD_NOW_US ((int64_t) 1800000000 * 1000 * 1000)

/* Namespaces default, eve-system, factory and site exist. */
void world_open(struct world *w);
void world_close(struct world *w);
/* Until everything written so far has come to roster and onboarding. */
void world_settle(struct world *w);

/* spec is a JSON text with ' for ", %s are certificates in PEM (escaped). Settles. */
void world_create(struct world *w, const char *plural, const char *namespace, const char *name,
                  const char *rest, ...);
/* The same, and goes on at once. */
void world_write(struct world *w, const char *plural, const char *namespace, const char *name,
                 const char *rest, ...);
void world_remove(struct world *w, const char *plural, const char *namespace, const char *name);
/* A merge patch; subresource may be "". Settles. */
void world_patch(struct world *w, const char *plural, const char *namespace, const char *name,
                 const char *subresource, const char *patch);
void world_delete(struct world *w, const char *plural, const char *namespace, const char *name);
/* NULL when absent. plural of a core kind: "secrets", "events", "configmaps". */
struct json *world_get(struct world *w, const char *plural, const char *namespace,
                       const char *name);
size_t world_count(struct world *w, const char *plural, const char *namespace);
/* The Event with that reason about that object, or NULL. */
struct json *world_event(struct world *w, const char *namespace, const char *name,
                         const char *reason);

/* ---- devices --------------------------------------------------------------------------------- */

struct identity {
    struct pki_key *key;
    struct pki_cert *cert;
    struct str pem;
    unsigned char hash[SHA256_BYTES];
};
/* issuer NULL: self-signed. is_ca as EVE's own certificates are. */
void identity_init(struct world *w, struct identity *i, const char *name,
                   const struct identity *issuer, int64_t valid_days);
void identity_done(struct identity *i);
#define IDENTITY_AUTO CLEANUP(identity_done) struct identity

struct registering {
    const struct identity *device, *onboard;
    const char *serial, *soft_serial;
};
/* A registration of API v2, whole: returns the status. */
int world_register(struct world *w, const struct registering *r);
struct str world_last_reason(void); /* of this thread's last call */
/* The device the roster knows by this certificate, with a reference, or NULL. */
struct device *world_device(struct world *w, const struct identity *i);
