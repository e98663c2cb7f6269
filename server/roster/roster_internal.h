/* SPDX-License-Identifier: Apache-2.0 */
/* The roster as its own files see it. */
#pragma once

#include "roster/roster.h"
#include "json/json.h"

/* The part of a certificate's hash that the map goes by: what a device may send at least. */
#define KEY_BYTES 16

/* What is known beside the Device itself, perhaps before it: by "namespace/name". */
struct note {
    struct str key;   /* owned */
    struct str token; /* owned */
    struct str owner; /* owned: uid of the Device that the token is of */
    bool has_tpm;
};

/* A ConfigMap of options. */
struct options_map {
    struct arena *arena;
    struct str key;
    const struct json *data;
};

struct roster {
    struct roster_options options;
    int64_t started_us; /* wall clock */
    pthread_rwlock_t lock;
    struct map by_certificate, by_uuid, by_name;
    struct map notes;
    struct map option_maps; /* by namespace; GLOBAL_KEY: all devices' */
};

/* "namespace/name" stands in one piece, so that it is the key of the map. */
static inline struct str roster_key(const struct device *d)
{
    return str_range(d->namespace.p, d->namespace.n + 1 + d->name.n);
}

void device_forget_config(struct device *d);
void device_set_token(struct device *d, struct str token, bool has_tpm);
static inline void roster_changed(struct roster *r, struct device *d)
{
    if (r->options.on_change)
        r->options.on_change(r->options.ctx, d);
}

/* ---- options.c; the roster is locked -------------------------------------------------------- */

/* Reads the device's options again. */
void roster_read_options(struct roster *r, struct device *d);
/* Locks it itself. */
void roster_on_options(struct roster *r, const struct kube_event *e);
void roster_free_options(struct roster *r);

/* ---- notes.c ----------------------------------------------------------------------------------
 */

void roster_on_config(struct roster *r, const struct kube_event *e);
void roster_on_state(struct roster *r, const struct kube_event *e, struct str device_name);
void roster_free_notes(struct roster *r);
