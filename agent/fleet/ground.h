/* SPDX-License-Identifier: Apache-2.0 */
/* What all devices of one loop stand on. */
#pragma once

#include "base/clock.h"
#include "fleet/settings.h"

struct loop;
struct uplink_trust;
struct uplink_wire;

struct fleet_ground {
    const struct fleet_settings *settings;
    struct loop *loop;
    const struct clock *clock; /* as fast as the loop */
    struct uplink_wire *wire;
    struct uplink_trust *trust;
    const char *root;   /* directory */
    struct str address; /* to send from; absent: a loopback address for each device */
    const struct str *dns_servers;
    size_t n_dns_servers;
};
