/* SPDX-License-Identifier: Apache-2.0 */
/* One reader's stream: what is stored, then, when it follows, what comes. Whatever a device sent, a
 * stream holds one record of it and what that inflates to, and with by=device ORDERED_MAX_BYTES
 * more. */
#pragma once

#include "api/annex.h"
#include "reading/query.h"
#include "roster/roster.h"
#include "telemetry/telemetry.h"

/* Takes a reference to the device: when it is gone, so is the stream. Strings of the query must
 * outlive the stream. Blocks on the disk. NULL with st filled: where to go on is no longer known.
 */
struct annex_stream *reading_stream_new(struct telemetry *t, struct device *device,
                                        const struct reading_query *q, struct status *st);
