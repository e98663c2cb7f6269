/* SPDX-License-Identifier: Apache-2.0 */
/* Options of devices where they are written: annotations of Devices, data of ConfigMaps. Bad values
 * are refused; what nobody knows is taken, with a warning. */
#pragma once

#include "api/hooks.h"
#include "schema/causes.h"

/* Of what old did not have already; it may be NULL. */
void device_options_check_annotations(struct hook_context *h, const struct json *old,
                                      const struct json *annotations, struct causes *causes);
void device_options_check_data(struct hook_context *h, const struct json *old,
                               const struct json *data, struct causes *causes);
