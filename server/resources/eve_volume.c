/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes of devices, as eve.lfedge.org has them. */
#include "resources/identity.h"
#include "resources/resources.h"

const struct kind_hooks eve_volume_hooks = {
    .group = STR("eve.lfedge.org"),
    .plural = STR("volumes"),
    .prepare = identity_prepare,
    .validate_update = identity_check,
};
