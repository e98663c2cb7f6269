/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "controllers/controller.h"

/* Chooses the Device of every Application. */
extern const struct controller scheduler_controller;
