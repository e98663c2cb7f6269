/* SPDX-License-Identifier: Apache-2.0 */
/* What a local profile server wants of ports, judged and turned into the DevicePortConfig "lps". */
#pragma once

#include "eve/profile.pb-c.h"
#include "zedagent/parse.h"

#define PARSE_LOCAL_MAX_PORTS 64   /* as many as a device has */
#define PARSE_LOCAL_MAX_SERVERS 16 /* of each list: names, times, proxies, certificates */
#define PARSE_LOCAL_MAX_NAME_BYTES 255
#define PARSE_LOCAL_MAX_TEXT_BYTES 2048
#define PARSE_LOCAL_MAX_SCRIPT_BYTES ((size_t) 48 * 1024)
#define PARSE_LOCAL_MAX_CERTIFICATE_BYTES ((size_t) 16 * 1024)

/* The first thing that is wrong, in words that end in what the server is told: then nothing of it
 * counts. Absent: *ret is the configuration, of no port too. `in_use` are the ports of the
 * configuration in use, NULL: there is none. */
struct str parse_local_network(struct arena *a, const Eve__Profile__LocalNetworkConfig *c,
                               const struct json *in_use, int64_t received_us, struct json **ret);
