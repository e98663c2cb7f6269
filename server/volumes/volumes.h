/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "controllers/controller.h"

/* Claims of Applications' own, and a Volume for each claim on each Device where it is used. */
extern const struct controller volumes_controller;
