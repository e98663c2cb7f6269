/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the fleet. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "base/map.h"
#include "fleet/fleet.h"

#define FLEET_GROUP "eve.lfedge.org"
#define FLEET_DEVICES "devices.eve.lfedge.org"
#define FLEET_APPLICATIONS "applications.eve.lfedge.org"
#define FLEET_VOLUMES "volumes.eve.lfedge.org"
#define FLEET_NETWORKS "devicenetworks.eve.lfedge.org"
#define FLEET_CONFIGS "deviceconfigs.eve.lfedge.org"
#define FLEET_IMAGES "images.eve.lfedge.org"

/* How a kind reaches devices. */
enum fleet_role {
    ROLE_NONE,
    ROLE_DEVICE,
    ROLE_CONFIG,  /* the DeviceConfig of the same name */
    ROLE_MEMBER,  /* names its device: Applications, Volumes */
    ROLE_NETWORK, /* selects its devices */
    ROLE_PART,    /* by those that refer to it */
};
enum fleet_role fleet_role(struct str collection);

/* A namespace. */
struct fleet_space {
    struct str name; /* owned */
    struct list devices, networks;
};

struct fleet_device {
    struct str key; /* "<namespace>/<name>"; owned */
    struct str namespace, name;
    bool is_there;     /* false: something is on it, the Device itself is not (yet, any more) */
    struct str labels; /* JSON; owned */
    struct list link;  /* of the space */
    struct list members;
    uint64_t digest, config_digest; /* of the Device and its DeviceConfig; 0: not there */
    int64_t config_generation; /* of its DeviceConfig as the composer last left it; 0: not known */
};

/* Any other object that may concern devices, with as little of it as tells whom, and whether it
 * changed.
 */
struct fleet_node {
    struct str key; /* "<collection>/<namespace>/<name>"; owned */
    uint64_t digest;
    struct fleet_device *on; /* of a member */
    struct list link;        /* of its device's members, or of its space's networks */
    struct arena *arena;     /* of a network */
    const struct json *spec;
};

struct fleet {
    struct fleet_options options;
    atomic_bool is_synced;      /* the index knows all that is there */
    pthread_mutex_t lock;       /* of what follows */
    struct map nodes;           /* by key */
    struct map devices;         /* by key */
    struct map spaces;          /* by name */
    pthread_mutex_t turns[512]; /* see fleet_begin(); many, for who waits for a write holds one */
};

/* ---- index.c, with the lock held ------------------------------------------------------------- */

struct fleet_node *fleet_node(const struct fleet *f, struct arena *a, struct str collection,
                              struct str namespace, struct str name);
struct fleet_device *fleet_device(const struct fleet *f, struct arena *a, struct str namespace,
                                  struct str name);
/* The device that a member says it is on; STR_NONE: none. */
struct str fleet_device_of(struct str collection, const struct json *object);
struct str fleet_key(struct arena *a, struct str collection, struct str namespace, struct str name);

/* ---- concern.c, with the lock held ----------------------------------------------------------- */

/* Everybody concerned by the object as it is in the index or as the change has it. */
void fleet_walk(struct fleet *f, const struct fleet_change *c, fleet_touch *touch, void *ctx);

/* ---- turns ----------------------------------------------------------------------------------- */

/* One at a time composes for a device: who asked for it, the controller or the device itself. */
pthread_mutex_t *fleet_begin(struct fleet *f, struct str device_key);
void fleet_end(pthread_mutex_t *turn);
/* What the composer has left behind, so that its own write does not wake it. */
void fleet_note_config(struct fleet *f, struct str namespace, struct str name, int64_t generation);
