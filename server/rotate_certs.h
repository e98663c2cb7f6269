/* SPDX-License-Identifier: Apache-2.0 */
/* `seth rotate-certs`: new certificates for the controller; a server that runs takes them up. */
#pragma once

#include "cli/options.h"

extern const struct option_spec rotate_certs_options[];
int rotate_certs_command(const struct options *o);
