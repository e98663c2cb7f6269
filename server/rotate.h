/* SPDX-License-Identifier: Apache-2.0 */
/* `seth rotate-key`: a new key for the encrypted objects, all of them written again with it. */
#pragma once

#include "cli/options.h"

extern const struct option_spec rotate_options[];
int rotate_key(const struct options *o);
