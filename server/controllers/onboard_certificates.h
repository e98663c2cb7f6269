/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "controllers/controller.h"

extern const struct controller onboard_certificates_controller;
