/* SPDX-License-Identifier: Apache-2.0 */
/* What PersistentVolumes and their claims have in common. */
#pragma once

#include "schema/causes.h"

void volume_add_finalizer(struct arena *a, struct json *object, struct str finalizer);
/* Known modes, and ReadWriteOncePod alone. */
void volume_check_modes(struct causes *causes, const struct field_path *at,
                        const struct json *modes);
void volume_check_volume_mode(struct causes *causes, const struct field_path *at_spec,
                              const struct json *spec);
