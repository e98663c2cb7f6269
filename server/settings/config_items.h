/* SPDX-License-Identifier: Apache-2.0 */
/* The configItems that EVE knows, with their types and ranges: a device keeps the previous value
 * when it is given a bad one, so bad ones are better refused where they are written. */
#pragma once

#include "settings/settings.h"

/* As settings_judge(), with the item's name without prefix. */
enum settings_verdict config_item_judge(struct arena *a, struct str name, struct str value,
                                        struct str *ret_reason);
