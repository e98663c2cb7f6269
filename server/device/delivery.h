/* SPDX-License-Identifier: Apache-2.0 */
/* Gives every DeviceConfig that changed its version, time and hash, so that users see them before
 * the device asks; and again when the controller's certificates are others, of which the hash is.
 */
#pragma once

#include "controllers/controller.h"

/* Keys are those of DeviceConfigs, and "" for all of them. Needs controller_context.devices; does
 * nothing without. */
extern const struct controller delivery_controller;

/* For who writes a DeviceConfig and is about to write its status: fills in what this controller
 * would. ctx is the struct device_api. 0, or a negative errno: it is left to the controller. */
int delivery_fill(void *device_api, struct arena *a, struct str namespace, struct str name,
                  struct json *device_config);
