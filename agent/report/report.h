/* SPDX-License-Identifier: Apache-2.0 */
/* What the device says about itself: info messages when something changes, metrics by the clock,
 * the inventory of its hardware, its health, flow logs. Reads topics of all services and the
 * machine. */
#pragma once

#include "node/node.h"

struct zedagent;
struct report;
int report_new(struct zedagent *z, struct node *n, struct report **ret);
/* NULL allowed. */
void report_free(struct report *r);

/* For tests and for a fleet's view. */
struct report_counts {
    size_t waiting; /* messages in the queues */
    uint64_t delivered, dropped, metrics_sent, metrics_lost;
};
struct report_counts report_counts(const struct report *r);
