/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "controllers/controller.h"

/* Ends with NULL. */
extern const struct controller *const controller_table[];
