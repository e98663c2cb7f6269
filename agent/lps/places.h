/* SPDX-License-Identifier: Apache-2.0 */
/* Where the local profile server is: which of the device's applications has its address, and over
 * which bridge it is reached. Pure functions of topics. */
#pragma once

#include "base/arena.h"
#include "json/json.h"

#define PLACES_DEFAULT_PORT 8888
#define PLACES_MAX 16

struct place {
    struct str bridge, source; /* interface, and our address on it */
    struct str url;            /* "http://10.1.0.2:8888", without a path */
};
struct places {
    struct place items[PLACES_MAX];
    size_t n;
};

/* "host", "host:port", "[v6]:port"; -EINVAL. */
int places_parse(struct str address, struct str *ret_host, unsigned *ret_port);
/* AppNetworkStatus and NetworkInstanceConfig, each an object by key; either may be NULL. A name is
 * looked up among those that network instances know. What is beyond PLACES_MAX is left out. */
void places_find(struct arena *a, struct str address, const struct json *app_networks,
                 const struct json *instances, struct places *ret);
