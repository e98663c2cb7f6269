/* SPDX-License-Identifier: Apache-2.0 */
/* The encrypted parts of a configuration after the controller's ECDH key was rotated. */
#pragma once

#include "device/endpoint.h"
#include "eve/config.pb-c.h"

/* Seals with the present key what an earlier one sealed. 0 also when there is nothing to do;
 * negative with c->reason: a part cannot be opened. Blocks when there is. */
int config_reseal(struct device_call *c, Eve__Config__EdgeDevConfig *config,
                  const struct controller_set *set);
