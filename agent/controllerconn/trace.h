/* SPDX-License-Identifier: Apache-2.0 */
/* What happened to one request, for diagnosis: a bounded list of events with their times. Bodies
 * and headers never get in. What is kept of them, and how often: netdump.h. */
#pragma once

#include "base/buf.h"
#include "base/clock.h"

#define UPLINK_TRACE_MAX_EVENTS 256
#define UPLINK_TRACE_MAX_TEXT_BYTES ((size_t) 200) /* of one event; the rest is cut off */

struct uplink_trace;
/* The clock outlives it. */
struct uplink_trace *uplink_trace_new(const struct clock *clock);
void uplink_trace_free(struct uplink_trace *t);
DEFINE_CLEANUP(struct uplink_trace *, uplink_trace_free)
/* NULL allowed for t: nothing happens. What does not fit is counted. */
void uplink_trace_add(struct uplink_trace *t, const char *format, ...) PRINTF_LIKE(2, 3);
/* {"begin":"..","events":[{"ms":0,"text":".."}],"dropped":0} */
void uplink_trace_write(const struct uplink_trace *t, struct buf *to);
