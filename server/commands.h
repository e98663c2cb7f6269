/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of `seth` that have no header of their own. */
#pragma once

#include "cli/program.h"

/* Options of commands that only need to know where the data is. */
extern const struct option_spec data_options[];

int health_command(const struct options *o);
