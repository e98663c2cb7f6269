/* SPDX-License-Identifier: Apache-2.0 */
/* When devices were last heard of, for the column of that name: a heartbeat is not a write, so
 * the objects do not know. */
#pragma once

#include "api/table.h"
#include "roster/roster.h"

/* For struct table_live, with the roster as its ctx. */
int64_t roster_last_seen_us(void *roster, const struct kind *kind, struct str column,
                            const struct json *object);
