/* SPDX-License-Identifier: Apache-2.0 */
/* nodeSelector and nodeAffinity of our kinds, which choose Devices. */
#pragma once

#include "schema/causes.h"

/* spec.nodeSelector and spec.affinity.nodeAffinity. */
void affinity_check(struct causes *causes, const struct field_path *at_spec,
                    const struct json *spec);
