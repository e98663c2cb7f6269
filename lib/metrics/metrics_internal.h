/* SPDX-License-Identifier: Apache-2.0 */
/* Between the counting and the writing of it. */
#pragma once

#include "metrics/metrics.h"

/* 1.5, 1e+06, +Inf */
void metrics_write_number(struct buf *b, double value);
void metrics_write_count(struct buf *b, int64_t n);
