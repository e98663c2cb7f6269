/* SPDX-License-Identifier: Apache-2.0 */
/* The order of API versions by their names. */
#pragma once

#include "base/str.h"

/* As Kubernetes ranks them: v10 > v2 > v1 > v11beta2 > v3beta1 > v12alpha1 > foo1 > foo10; positive
 * when a ranks above b. */
int version_compare(struct str a, struct str b);
