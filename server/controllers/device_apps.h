/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "controllers/controller.h"

/* Device.status.apps: how many Applications are wanted on it, and how many run. */
extern const struct controller device_apps_controller;
