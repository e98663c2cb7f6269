/* SPDX-License-Identifier: Apache-2.0 */
/* VLANs and bonds of a configuration: what the machine is to make so that its ports exist, and what
 * has become of a bond. */
#pragma once

#include "nim/status.h"

struct links_link {
    struct machine_link link;
    size_t port; /* in the configuration */
    int error;   /* -EINVAL: it makes no sense, and is not for the machine */
};
/* ports: objects of a DevicePortConfig, which name each other by logical label. */
struct links_link *links_of(struct arena *a, const struct json *ports, size_t *ret_n);
/* BondStatus of a port that is one; members are named by their ports' labels. */
struct json links_bond_status(struct arena *a, const struct status_inputs *in,
                              const struct json *ports, const struct machine_interface *bond);
