/* SPDX-License-Identifier: Apache-2.0 */
/* `seth server`: wires the parts together, runs them, takes them apart in order. */
#pragma once

#include "cli/options.h"

#define SERVE_MAX_THREADS 64

extern const struct option_spec serve_options[];
int serve(const struct options *o);
