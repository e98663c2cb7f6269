/* SPDX-License-Identifier: Apache-2.0 */
/* What the patch formats share. */
#pragma once

#include "schema/patch.h"

#define PATCH_SMALL_MAP 16 /* members up to which looking at each beats an index */

/* "string", "number", "array" ...: what Go's decoder calls a value it cannot take. */
const char *patch_go_kind(const struct json *value);
