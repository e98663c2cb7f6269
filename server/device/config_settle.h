/* SPDX-License-Identifier: Apache-2.0 */
/* From a DeviceConfig to the bytes that its device is told, and the version, time and hash by which
 * they are known: in the DeviceConfig's status before any device hears of them, so that neither
 * version nor time ever goes back, whoever makes them and however often. */
#pragma once

#include "device/endpoint.h"
#include "eve/config.pb-c.h"

struct config_settling {
    struct device_api *api;
    struct arena *arena;
    struct device *device;
    const struct controller_set *set;
    /* For the device's own request: what it remembers is about to be of this, and the events of
     * what is written here are no news. */
    bool is_making;
    unsigned config_generation; /* of the device, when it began to ask */
    /* It needs another version and time, although nothing has changed. */
    bool is_forced;
    /* What the status says of this generation is taken for true: nothing else has changed. */
    bool trusts_status;

    /* What comes of it, in the arena. */
    Eve__Config__EdgeDevConfig *config;
    struct str bytes, hash;
    struct config_mark mark;
    struct str reason; /* of a failure, in words */
};

/* Reads the DeviceConfig, makes of it what the device is told, and writes version, time and hash
 * into its status unless they are there; one write at the most. 0; -ENOENT: there is no
 * DeviceConfig, or nothing in it; other negative errnos with s->reason: nothing may be told.
 * Blocks. */
int device_config_settle(struct config_settling *s);

/* The same for who has the DeviceConfig and is about to write its status: fills it in. */
int device_config_fill(struct config_settling *s, struct json *object);

/* Whether its status is of its present generation. */
bool device_config_is_settled(const struct json *object);
