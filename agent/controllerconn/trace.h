/* SPDX-License-Identifier: Apache-2.0 */
/* What happened to one request, for diagnosis: a bounded list of events with their times. Bodies
 * and headers never get in. And how often traces are worth keeping. */
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

/* Which traces are archived: of each topic at most one in an interval, and only so many in all, the
 * oldest going first. */
#define UPLINK_TRACE_MAX_TOPICS 16
struct uplink_trace_gate {
    int64_t interval_us;
    struct {
        const char *topic; /* static */
        int64_t last_us;   /* monotonic */
    } topics[UPLINK_TRACE_MAX_TOPICS];
    size_t n_topics;
};
/* True at most once in an interval for a topic: the caller then keeps the trace. */
bool uplink_trace_gate_pass(struct uplink_trace_gate *g, const char *topic, int64_t monotonic_us);
/* Writes `<directory>/<topic>-<time>.json` whole or not at all and removes the oldest of that topic
 * beyond max_files. Negative errno. */
int uplink_trace_archive(const struct uplink_trace *t, const char *directory, const char *topic,
                         size_t max_files);
