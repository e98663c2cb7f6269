/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of a service's requests, archived now and then as the items netdump.* say: with the
 * request's events the state of the network, in persist `netdump/<topic>-ok-<time>.tgz` or
 * `-fail-`. */
#pragma once

#include "node/node.h"

/* For the request's `trace`; NULL: nothing is due, it is switched off, another than the best port
 * configuration is in use, or the device is simulated. */
struct uplink_trace *node_trace_begin(struct node *n, const char *topic);
/* Takes the trace; NULL allowed. request: its name within the archive, "ping". */
void node_trace_end(struct node *n, struct uplink_trace *t, const char *topic, const char *request,
                    bool is_good);
