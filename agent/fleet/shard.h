/* SPDX-License-Identifier: Apache-2.0 */
/* A share of the fleet's devices on a loop and a thread of its own. */
#pragma once

#include "base/clock.h"
#include "fleet/sample.h"
#include "fleet/settings.h"

struct loop;
struct fleet_shard;

struct fleet_shard_options {
    const struct fleet_settings *settings; /* outlives it */
    size_t number, n_shards;               /* devices number, number + n_shards ... are its own */
    const char *root;                      /* directory of all */
    struct str root_pem;                   /* what is trusted */
    struct str address;                    /* as in struct fleet_ground */
    const struct str *dns_servers;
    size_t n_dns_servers;
    int64_t begin_us; /* of the ramp and of the time line, the machine's monotonic time */
    /* Called on the loop `control` with the shard whenever a sample was made. */
    struct loop *control;
    void (*on_sampled)(void *arg, const struct fleet_shard *s);
    void *arg;
};

/* Begins the ramp. -EINVAL: the trusted certificates are damaged; -ENOMEM: no more loops. */
int fleet_shard_new(const struct fleet_shard_options *o, struct fleet_shard **ret);
/* These are for the thread of `control`: */
void fleet_shard_set_speed(struct fleet_shard *s, double factor);
void fleet_shard_set_phase(struct fleet_shard *s, enum fleet_phase phase);
void fleet_shard_ask_sample(struct fleet_shard *s);
/* Of the last on_sampled, until the next fleet_shard_ask_sample(). */
const struct fleet_sample *fleet_shard_sample(const struct fleet_shard *s);
/* Switches all devices off, after a last sample, and waits for the thread. */
void fleet_shard_end(struct fleet_shard *s);
/* After the end. */
const struct fleet_timeline *fleet_shard_timeline(const struct fleet_shard *s);
/* NULL allowed. */
void fleet_shard_free(struct fleet_shard *s);
