/* SPDX-License-Identifier: Apache-2.0 */
/* What devices send, for users to read: /edgenode/<uuid>/log and the like, and the same as
 * subresources of Devices. */
#pragma once

#include "api/annex.h"
#include "roster/roster.h"
#include "telemetry/telemetry.h"

/* Lives as long as the annex. */
struct reading {
    struct telemetry *telemetry;
    struct roster *roster;
};

struct annex reading_annex(struct reading *r);
