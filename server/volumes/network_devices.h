/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "controllers/controller.h"

/* DeviceNetwork.status.devices: how many Devices it is for. */
extern const struct controller network_devices_controller;
