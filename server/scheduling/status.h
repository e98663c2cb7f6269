/* SPDX-License-Identifier: Apache-2.0 */
/* How a choice is written into an Application. Pure. */
#pragma once

#include "scheduling/view.h"

/* Changes application.status: device, observedGeneration, conditions Accepted and Scheduled; and
 * when it leaves a Device, what that one said of it. */
void scheduling_set_status(struct arena *a, struct json *application, const struct view_outcome *o,
                           int64_t now_us);
