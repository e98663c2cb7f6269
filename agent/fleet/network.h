/* SPDX-License-Identifier: Apache-2.0 */
/* How this machine reaches the controller: what the simulated ones are told they have. */
#pragma once

#include "base/arena.h"

struct fleet_network {
    struct str address; /* to send from; absent: any of 127.0.0.0/8 */
    struct str *dns_servers;
    size_t n_dns_servers;
};
/* -EINVAL: no host:port; -EHOSTUNREACH: no way there. */
int fleet_network_find(struct arena *a, struct str server, struct fleet_network *ret);
