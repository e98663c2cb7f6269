/* SPDX-License-Identifier: Apache-2.0 */
/* Points in time as fields of native kinds hold them: metav1.Time (seconds) and metav1.MicroTime
 * (exactly six digits behind the point). Errors are in the words of Go's time.Parse. */
#pragma once

#include "base/arena.h"

enum timestamp_precision { TIMESTAMP_SECONDS, TIMESTAMP_MICROS };

/* -EINVAL and *ret_error. */
int timestamp_parse(struct arena *a, struct str text, enum timestamp_precision precision,
                    int64_t *ret_wall_us, struct str *ret_error);
/* In UTC, as the server writes it. */
struct str timestamp_text(struct arena *a, int64_t wall_us, enum timestamp_precision precision);
