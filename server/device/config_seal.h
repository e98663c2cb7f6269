/* SPDX-License-Identifier: Apache-2.0 */
/* The encrypted parts of a configuration after the controller's ECDH key was rotated. */
#pragma once

#include "device/config_settle.h"

/* Seals with the present key what an earlier one sealed. 0 also when there is nothing to do;
 * negative with s->reason: a part cannot be opened. Blocks when there is. */
int config_reseal(struct config_settling *s, Eve__Config__EdgeDevConfig *config);
