/* SPDX-License-Identifier: Apache-2.0 */
/* Labels kept for long: an object from names to values in one block of memory. */
#pragma once

#include "json/json.h"

/* Members that are no strings are left out. NULL when there is none. */
struct json *labels_pack(const struct json *labels);
void labels_free(struct json *labels);
/* Both may be NULL. */
bool labels_equal(const struct json *a, const struct json *b);
