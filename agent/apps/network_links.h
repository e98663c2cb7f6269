/* SPDX-License-Identifier: Apache-2.0 */
/* The interfaces of this network namespace, and what has passed through them. */
#pragma once

#include "apps/network.h"

/* Calls fn for every one; /sys may show another namespace's. */
void links_each(void (*fn)(void *arg, const char *name, const struct network_counters *c),
                void *arg);
/* -ENOENT: no such interface. */
int links_counters(const char *interface, struct network_counters *ret);
