/* SPDX-License-Identifier: Apache-2.0 */
/* What a local profile server wants of ports, laid over the configuration in use, whichever that
 * is: of each port that may be changed nearby all that can be (addresses, proxies, radio), never
 * what it is for, what it costs or what it stands on. The overlay is a configuration that is in no
 * list; what is found of a port that it covers is kept with it. Pure functions. */
#pragma once

#include "nim/dpc.h"

/* The overlay's port that covers the other. NULL: none does; *ret_error (NULL with the arena
 * allowed) then says why the one that is meant for it does not, absent: there is none. */
struct dpc_port *overlay_find(const struct dpc *overlay, const struct dpc_port *port,
                              struct arena *a, struct str *ret_error);
/* As dpc_config(). The overlay may be NULL, here and below. */
struct json *overlay_config(struct arena *a, const struct dpc *d, const struct dpc *overlay);
/* Some port is covered. */
bool overlay_touches(const struct dpc *d, const struct dpc *overlay);
/* Every management port is, and there is one: no other configuration would help. */
bool overlay_covers_uplinks(const struct dpc *d, const struct dpc *overlay);
