/* SPDX-License-Identifier: Apache-2.0 */
/* The device's network ports as nim publishes them (DeviceNetworkStatus), and in which order they
 * are tried. Nothing here touches the network. */
#pragma once

#include "base/arena.h"

struct json;

#define UPLINK_MAX_PORTS 64
#define UPLINK_MAX_ADDRESSES 32 /* of one port, and so for its DNS servers and proxies */
#define UPLINK_MAX_PAC_BYTES ((size_t) 256 * 1024)

/* As EVE numbers them; only these two are used. */
enum uplink_proxy_type { UPLINK_PROXY_HTTP = 0, UPLINK_PROXY_HTTPS = 1 };

struct uplink_proxy {
    int type; /* of enum uplink_proxy_type, or one that is ignored */
    struct str server;
    unsigned port; /* 0: as the server says */
};

struct uplink_port {
    struct str name; /* of the interface */
    bool is_management, is_l3;
    bool has_invalid_config;   /* its configuration did not parse: never tried */
    bool has_dhcp_none;        /* an address is neither wanted nor expected */
    bool binds_device;         /* to the interface, too: where no rule routes by source address */
    unsigned cost;             /* 0..255, 0 is free */
    struct str blocked_reason; /* why no traffic can flow, as a modem tells; absent: it may */
    struct str domain;
    const struct str *addresses; /* text, in the order they are tried */
    size_t n_addresses;
    const struct str *dns_servers;
    size_t n_dns_servers;
    const struct uplink_proxy *proxies;
    size_t n_proxies;
    struct str exceptions;                     /* of the proxies: comma list as no_proxy */
    struct str pac;                            /* script in base64; absent or empty: none */
    bool discovers_proxy;                      /* NetworkProxyEnable */
    struct str wpad_url;                       /* NetworkProxyURL */
    int64_t last_failed_us, last_succeeded_us; /* wall time, 0: never */
};

/* An immutable copy, shared by the calls under way. */
struct uplink_ports {
    struct arena *arena;
    unsigned n_refs;
    unsigned version; /* of the status; 0: every port is for management */
    struct uplink_port *items;
    size_t n_items;
};

/* At most UPLINK_MAX_PORTS are taken, and UPLINK_MAX_ADDRESSES of each list. */
struct uplink_ports *uplink_ports_new(unsigned version, const struct uplink_port *items, size_t n);
/* From the JSON of a DeviceNetworkStatus, of 2025 or later: what is absent or of another type is
 * as if it were empty. -EINVAL: no object. */
int uplink_ports_parse(const struct json *status, struct uplink_ports **ret_ports);
struct uplink_ports *uplink_ports_ref(struct uplink_ports *p);
void uplink_ports_unref(struct uplink_ports *p);
DEFINE_CLEANUP(struct uplink_ports *, uplink_ports_unref)

/* NULL: none of that name. */
const struct uplink_port *uplink_ports_find(const struct uplink_ports *p, struct str name);
bool uplink_port_is_management(const struct uplink_ports *p, const struct uplink_port *port);
/* Failed later than it succeeded. */
bool uplink_port_has_error(const struct uplink_port *port);
bool uplink_address_is_link_local(struct str address);
bool uplink_address_is_literal(struct str host);
/* Some address that is not link-local. */
bool uplink_port_has_address(const struct uplink_port *port);
/* Some management port does. NULL: there are no ports yet. */
bool uplink_ports_have_address(const struct uplink_ports *p);

/* Which ports a request tries, in order: management ports without error (all of them when each has
 * one), by cost; among equals in their order, rotated left by the iteration. Returns how many. */
size_t uplink_ports_order(const struct uplink_ports *p, uint64_t iteration,
                          size_t ret_order[UPLINK_MAX_PORTS]);
/* All ports whatever their state, by cost and rotated: for verification. */
size_t uplink_ports_order_all(const struct uplink_ports *p, uint64_t iteration,
                              size_t ret_order[UPLINK_MAX_PORTS]);
