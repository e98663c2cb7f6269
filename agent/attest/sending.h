/* SPDX-License-Identifier: Apache-2.0 */
/* The device's certificates on their way to the controller, until it has taken them. */
#pragma once

#include "node/node.h"

struct zedagent;
struct sending;

int sending_new(struct zedagent *z, struct node *n, struct sending **ret);
/* NULL allowed. */
void sending_free(struct sending *s);
/* The controller says that it has none. */
void sending_again(struct sending *s);
