/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "controllers/controller.h"

/* ApplicationDeployments, ApplicationDaemonSets and ApplicationStatefulSets: makes Applications of
 * their templates. */
extern const struct controller workloads_controller;
