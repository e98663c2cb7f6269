/* SPDX-License-Identifier: Apache-2.0 */
/* From what applies to a device to its DeviceConfig, by server-side apply. */
#pragma once

#include "controllers/controller.h"

#define COMPOSER_MANAGER "seth-composer"

/* Keys are those of Devices. */
extern const struct controller composing_controller;

/* Composes the device's DeviceConfig and writes it, now. Blocks. 0, or a negative errno with st
 * filled; -ENOENT: there is no such Device. */
int composing_run(const struct controller_context *ctx, struct str namespace, struct str name,
                  struct status *st);
