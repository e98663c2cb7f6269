/* SPDX-License-Identifier: Apache-2.0 */
/* What the keeper's files share. All with keep_lock held. */
#pragma once

#include "telemetry/telemetry_internal.h"

/* Takes it out of the array and deletes its file; readers that hold it read on. */
void keeper_delete(struct telemetry *t, struct segment *s);
/* Replaces a segment by one with what may still be read. true: that was nothing, it is gone. */
bool keeper_rewrite(struct telemetry *t, struct segment *s, bool is_oldest);
/* Raises the floor of devices that have more than they may. */
void keeper_trim_devices(struct telemetry *t);
