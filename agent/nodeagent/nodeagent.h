/* SPDX-License-Identifier: Apache-2.0 */
/* Why the device last started, and when it must start again: NodeAgentStatus. Carries out the
 * commands of ZedAgentStatus once applications have halted, and restarts a device that has not
 * reached its controller for a week. */
#pragma once

#include "node/node.h"

struct nodeagent;
int nodeagent_new(struct node *n, struct nodeagent **ret);
/* NULL allowed. */
void nodeagent_free(struct nodeagent *a);
