/* SPDX-License-Identifier: Apache-2.0 */
/* A registry with the built-in kinds and one custom kind in three versions, for tests of the
 * documents. */
#pragma once

#include "api/registry.h"

/* things.example.org: v1 with status and scale, v2beta1, v1alpha1. */
struct registry *thing_registry(void);
