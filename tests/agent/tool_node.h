/* SPDX-License-Identifier: Apache-2.0 */
/* A device in a process of its own, as the tools of this directory have it: a loop and a clock that
 * may run fast, the wire, and a node on them. */
#pragma once

#include "node/node.h"

struct tool_node {
    struct loop *loop;
    struct clock_scaled clock;
    struct uplink_wire *wire;
    struct node *node;
};

/* Time runs `speed` times as fast as the machine's. */
void tool_node_init(struct tool_node *t, double speed);
/* directories: config, persist and run. Says on standard error why it could not. */
int tool_node_start(struct tool_node *t, struct machine *m, char **directories);
/* All services, publications and lines are gone before it. */
void tool_node_done(struct tool_node *t);

/* As zedagent does: values is {"<name>":"<value>"}. */
int tool_publish_items(struct publication *p, const struct json *values);
