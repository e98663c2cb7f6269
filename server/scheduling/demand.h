/* SPDX-License-Identifier: Apache-2.0 */
/* What an Application asks of the Device it runs on. Pure functions. */
#pragma once

#include "json/json.h"

#define DEMAND_MAX_NAMES 128 /* networks, or claims, of one Application */

struct demand {
    int64_t memory_kib, cpu_milli; /* more than zero */
    struct str selection; /* text of an object: spec.nodeSelector and spec.affinity; "": none */
    struct str networks, claims; /* their names, each with a comma after it */
};

/* NULL, or (static) what cannot be read; then the demand is as if it were not there. Strings are in
 * the arena. */
const char *demand_of(struct arena *a, const struct json *application, struct demand *ret);
/* The selectors of any spec as the text of an object, "" when it has none. */
struct str demand_selection(struct arena *a, const struct json *spec);

enum demand_rounding { DEMAND_UP, DEMAND_DOWN };
/* An amount in units of 10^-3 (unit_milli 1) or more; absent is -ENOENT, what is no amount or too
 * much -EINVAL. */
int demand_amount(const struct json *value, int64_t unit_milli, enum demand_rounding rounding,
                  int64_t *ret);
