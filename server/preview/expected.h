/* SPDX-License-Identifier: Apache-2.0 */
/* What controllers would make of Applications that are not there yet, as far as their device is
 * told of it: the claims of their own, and the Volumes of all claims. */
#pragma once

#include "composer/composer.h"
#include "fleet/fleet.h"

/* Adds it to the inputs of the device. */
void expected_add(struct arena *a, struct str device, const struct fleet_change *changes, size_t n,
                  struct compose_inputs *in);
