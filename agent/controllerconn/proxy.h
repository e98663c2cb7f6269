/* SPDX-License-Identifier: Apache-2.0 */
/* Which proxy a URL takes on a port. Scripts are evaluated elsewhere (pac.h); here their answer is
 * read. */
#pragma once

#include "controllerconn/ports.h"

/* The explicit proxies of a port: `http://host:port` in the arena, or an absent string for none.
 * localhost, loopback and the exceptions go direct. */
struct str uplink_proxy_explicit(struct arena *a, const struct uplink_port *port, struct str url);

/* The same for a script's answer: DIRECT, or the second word of its first entry. */
struct str uplink_proxy_of_answer(struct arena *a, struct str answer);

/* no_proxy semantics: `*`, CIDR, IP with optional port, `domain`, `.domain`, `*.domain`. */
bool uplink_proxy_is_excepted(struct str exceptions, struct str host, unsigned port);
