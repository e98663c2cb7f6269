/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol by which virtual machines learn their addresses (RFC 2131), as far as a server needs
 * it whose leases are fixed. Pure functions over packets. */
#pragma once

#include "base/buf.h"

#define DHCP_MAX_BYTES ((size_t) 1500)
#define DHCP_MAX_RESOLVERS 3
#define DHCP_LEASE_S 86400

struct dhcp_request {
    unsigned type; /* its message type, one of those that are answered */
    uint32_t xid;
    unsigned char mac[6];
    uint16_t flags;
    uint32_t client;    /* the address it has, in host order; 0: none */
    uint32_t requested; /* 0: none */
    uint32_t server;    /* whom it has chosen; 0: nobody yet */
};

struct dhcp_lease {
    uint32_t address, gateway; /* host order; the gateway is the server, too */
    unsigned prefix_bits;
    uint32_t resolvers[DHCP_MAX_RESOLVERS];
    size_t n_resolvers;
    unsigned mtu;                 /* 0: not told */
    struct str host_name, domain; /* absent: not told */
};

/* -EBADMSG: nothing that a client says, or nothing to be answered. */
int dhcp_read(struct str packet, struct dhcp_request *ret);
/* False: no answer is due. */
bool dhcp_answer(const struct dhcp_request *q, const struct dhcp_lease *l, struct buf *to);
