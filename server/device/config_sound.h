/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "eve/config.pb-c.h"

/* Leaves out what a device cannot take, whoever wrote it: parts of lists without what tells them
 * apart, applications without resources (the device's agent would end, and the device reboot), and
 * settings without a value. Users' fields may be all that is left of a part that is not composed
 * any more. */
void config_make_sound(Eve__Config__EdgeDevConfig *config);
