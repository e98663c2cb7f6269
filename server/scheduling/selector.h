/* SPDX-License-Identifier: Apache-2.0 */
/* Which Devices an object is for: nodeSelector and affinity.nodeAffinity of its spec, as pods have
 * them. `name` stands for the Device's name beside its labels, as does the field metadata.name.
 * Pure functions. */
#pragma once

#include "json/json.h"

#define SELECTOR_WEIGHT_MAX 100 /* of one preference, as Kubernetes has it */

/* spec: of an Application, DeviceNetwork or template; NULL and one that says nothing fit all.
 * labels: metadata.labels of the Device, may be NULL. An expression that cannot be read fits
 * nothing. */
bool device_selector_matches(const struct json *spec, struct str device_name,
                             const struct json *labels);
/* The sum of the weights of what is preferred and holds. */
int64_t device_selector_preference(const struct json *spec, struct str device_name,
                                   const struct json *labels);
