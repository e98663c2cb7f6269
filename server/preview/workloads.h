/* SPDX-License-Identifier: Apache-2.0 */
/* How many Applications a change of an ApplicationDeployment, -StatefulSet or -DaemonSet would
 * make, replace or remove. Pure. */
#pragma once

#include "api/forecast.h"

struct workload_counts {
    int64_t n_made, n_replaced, n_gone;
    bool is_everywhere; /* one would be made on every device that fits */
};

bool workloads_is_one(struct str collection);
/* Adds up. A change of any other kind adds nothing. */
void workloads_count(const struct forecast_change *c, struct workload_counts *counts);
