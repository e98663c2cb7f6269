/* SPDX-License-Identifier: Apache-2.0 */
/* IP addresses, networks and URLs in specs. */
#pragma once

#include "schema/causes.h"

struct ip_address {
    unsigned char bytes[16]; /* the first 4 of version 4 */
    int version;             /* 4 or 6 */
};

struct ip_network {
    struct ip_address address;
    unsigned n_bits; /* of the prefix */
};

/* False when it is none. */
bool ip_address_parse(struct str text, struct ip_address *ret);
/* "10.0.0.0/8" */
bool ip_network_parse(struct str text, struct ip_network *ret);
bool ip_network_has(const struct ip_network *n, const struct ip_address *a);

/* scheme://host[:port][/path]: the parts point into the text. port 0: none. */
struct url_parts {
    struct str scheme, host, rest;
    int64_t port;
};
bool url_split(struct str text, struct url_parts *ret);
/* An IP address or a DNS name. */
bool host_is_valid(struct arena *a, struct str host);
