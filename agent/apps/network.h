/* SPDX-License-Identifier: Apache-2.0 */
/* How network instances and the interfaces of applications are made: a table of functions. What is
 * wanted is said by calls, which may be repeated; what is so comes back by events, never before a
 * call has returned. Names on the machine follow from the ids, so that a later agent finds what an
 * earlier one has made. */
#pragma once

#include "apps/apps.h"

#define NETWORK_MAX_RULES 128
#define NETWORK_NAME_BYTES 16 /* of an interface, with its NUL */

struct network_subnet {
    uint32_t address, gateway; /* host order */
    uint32_t first, last;      /* of what applications get */
    unsigned prefix_bits;      /* 0: none */
};

struct network_instance {
    struct str id;
    bool is_switch;
    struct network_subnet subnet;
    /* Of the ports that lead outside; the first is used by a switch. None: it has no outside. */
    const struct str *ports;
    size_t n_ports;
    const uint32_t *resolvers; /* of its applications: whose answers are believed */
    size_t n_resolvers;
    unsigned mtu; /* 0: the machine's */
};

/* One access rule; the first that matches counts, and nothing else passes. */
struct network_rule {
    struct str remote;                /* "10.0.0.0/8"; absent: any */
    struct str host;                  /* "example.com" and all below it; absent: any */
    struct str protocol;              /* "tcp", "udp", "icmp"; absent: any */
    uint16_t remote_port, local_port; /* 0: any */
    bool drops;
    uint16_t target_port; /* local_port of the device leads to this one; 0: no mapping */
    /* Packets beyond it do not pass, each way by itself. */
    struct network_limit {
        uint32_t rate, burst; /* rate 0: no limit */
        const char *unit;     /* "second", static */
    } limit;
};

struct network_interface {
    struct str network;
    uint32_t address;
    unsigned char mac[6];
    const struct network_rule *rules;
    size_t n_rules;
};

struct network_app {
    struct str id;
    bool is_machine; /* a virtual machine: taps, and it asks for its addresses */
    const struct network_interface *interfaces;
    size_t n_interfaces;
};

struct network_counters {
    uint64_t rx_bytes, tx_bytes, rx_packets, tx_packets, rx_errors, tx_errors, rx_drops, tx_drops;
};

struct network_events {
    /* error absent: it is there. */
    void (*on_instance)(void *arg, struct str id, struct str error);
    void (*on_app)(void *arg, struct str id, struct str error);
    void *arg;
};

struct apps_network {
    const struct apps_network_functions {
        const char *name;
        /* One listener; NULL: no events any more. */
        void (*listen)(struct apps_network *w, const struct network_events *events);
        void (*open_instance)(struct apps_network *w, const struct network_instance *i);
        void (*close_instance)(struct apps_network *w, struct str id);
        /* Rules may change while it is open, interfaces only when it was closed. */
        void (*open_app)(struct apps_network *w, const struct network_app *app);
        void (*close_app)(struct apps_network *w, struct str id);
        /* Of an open application, in the arena. */
        struct str (*namespace_path)(struct apps_network *w, struct arena *a, struct str app);
        void (*bridge_name)(struct apps_network *w, struct str instance,
                            char out[NETWORK_NAME_BYTES]);
        void (*interface_name)(struct apps_network *w, struct str app, unsigned index,
                               char out[NETWORK_NAME_BYTES]);
        /* -ENOENT: no such interface. */
        int (*counters)(struct apps_network *w, const char *interface,
                        struct network_counters *ret);
        /* What is left of applications and instances that nobody has opened goes. */
        void (*sweep)(struct apps_network *w);
        void (*free)(struct apps_network *w);
    } * functions;
};
