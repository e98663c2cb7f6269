/* SPDX-License-Identifier: Apache-2.0 */
/* The directories of a fleet's devices: <root>/<serial>/{config,persist,run}. What is the same for
 * all is one file with many names. */
#pragma once

#include "base/arena.h"

struct fleet_settings;

/* Copies of what is shared, in <root>/.shared. -EIO and the like after saying on stderr what is
 * wrong. */
int fleet_files_prepare(struct arena *a, const struct fleet_settings *s, const char *root);
/* Makes a device's directories, and what its config directory must have. */
int fleet_files_of_device(struct arena *a, const char *root, struct str serial);
/* With all that is in it; 0 also when it is not there. */
int fleet_files_remove(const char *path);
