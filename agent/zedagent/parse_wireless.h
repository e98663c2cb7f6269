/* SPDX-License-Identifier: Apache-2.0 */
/* How a network without wires is reached. */
#pragma once

#include "eve/profile.pb-c.h"
#include "zedagent/parse.h"

/* WirelessConfig of pillar. Returns an error in words, absent: none; *ret_is_set: it names a
 * network or an access point. */
struct str parse_wireless(struct parse *p, struct str key, const Eve__Config__WirelessConfig *w,
                          struct json **ret, bool *ret_is_set);
/* The same of what a local profile server says; *ret NULL: it has a cable. */
struct str parse_local_wireless(struct parse *p, const Eve__Profile__NetworkPortConfig *c,
                                struct json **ret);
/* Of a port whose network does not say how. */
enum parse_wireless_type { PARSE_WIRED = 0, PARSE_CELLULAR = 1, PARSE_WIFI = 2 };
struct json *parse_wireless_of_type(struct arena *a, enum parse_wireless_type type);
