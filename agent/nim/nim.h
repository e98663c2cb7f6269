/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses a port configuration, applies it, verifies it by reaching the controller, falls back to
 * one that worked: DeviceNetworkStatus and DevicePortConfigList. */
#pragma once

#include "node/node.h"

struct nim;

struct nim_options {
    /* The machine's configured ports are taken as a configuration of the least priority at once,
     * without waiting a minute for another (where nobody hands the agent one). */
    bool starts_with_machine;
    /* Who is asked where an address is seen from outside; NULL or "": nobody. A simulated device
     * asks nobody. */
    const char *geo_url;
};
int nim_new(struct node *n, const struct nim_options *o, struct nim **ret);
/* NULL allowed. */
void nim_free(struct nim *m);
