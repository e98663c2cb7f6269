/* SPDX-License-Identifier: Apache-2.0 */
/* One simulated device: the services of an agent on a machine that is made up. What it remembers
 * over a restart is what is in its files. */
#pragma once

#include "fleet/sample.h"

struct fleet_ground;
struct fleet_device;

/* Switched off; `number` begins at 0. The ground outlives it. */
struct fleet_device *fleet_device_new(const struct fleet_ground *g, size_t number);
/* The first time; later it restarts by itself. */
void fleet_device_start(struct fleet_device *d);
/* Then the loop must settle. NULL allowed. */
void fleet_device_free(struct fleet_device *d);
/* Adds it to the population. */
void fleet_device_count(const struct fleet_device *d, struct fleet_population *p);
