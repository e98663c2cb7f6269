/* SPDX-License-Identifier: Apache-2.0 */
/* `seth device-media`: the files a new device needs in EVE's /config, and the manifest that lets it
 * in. */
#pragma once

#include "cli/options.h"

extern const struct option_spec device_media_options[];
int device_media_command(const struct options *o);
