/* SPDX-License-Identifier: Apache-2.0 */
/* Ports while a DevicePortConfig is put together of system adapters, and the layers below them:
 * VLANs, bonds, physical adapters. */
#pragma once

#include "zedagent/parse_internal.h"

enum port_link { PORT_PHYSICAL = 0, PORT_VLAN = 1, PORT_BOND = 2 };

struct port_lower {
    struct str label;
    struct port_lower *next;
};

struct port {
    struct str ifname, usb, pci, phylabel, label, alias, network, subnet_text;
    struct json *shared_labels; /* array */
    bool allows_local_changes, is_management, is_l3, has_invalid_labels;
    unsigned cost, mtu;
    int dhcp;
    const struct json *addressing; /* NetworkXObjectConfig it takes the rest from; NULL: none */
    struct json *wireless;
    struct json *pnac; /* NULL: none */
    enum port_link link;
    struct str parent; /* of a VLAN */
    unsigned vlan_id;
    struct port_lower *members; /* of a bond, in order */
    int bond_mode, lacp_rate;
    struct json *mii, *arp;
    struct str error; /* absent: none */
    struct port *next;
};

/* A VLAN or bond as it was configured, with what is below it. */
struct port_layer {
    struct port port; /* label, interface, link, error */
    struct port_lower *physical;
    struct port_layer *below; /* a VLAN's bond */
    struct port_layer *next;
};

struct port_model {
    struct parse *parse;
    struct map physical; /* logical label: Eve__Config__PhysicalIO */
    struct map pnacs;    /* logical label: struct port_access */
    struct map networks; /* UUID: struct parse_network */
    struct port_layer *bonds, *vlans;
    bool has_free_uplink;
};

/* Network access control of a physical adapter. */
struct port_access {
    struct json *value;
    struct str error;
};

void port_model_init(struct port_model *m, struct parse *p);
void port_model_done(struct port_model *m);
const Eve__Config__PhysicalIO *port_model_physical(const struct port_model *m, struct str label);
struct port_layer *port_layer_find(struct port_layer *list, struct str label);
struct str port_io_label(const Eve__Config__PhysicalIO *io);
/* An address of the adapter ("ifname"); "" when absent. */
struct str port_io_address(const Eve__Config__PhysicalIO *io, const char *key);

/* The newest error counts. */
void port_fail(struct port *port, struct str error);
/* Marks what collides or refers to what is wrong; equal ones are dropped. */
struct port *port_validate(struct parse *p, struct port *list);
struct json *port_value(struct parse *p, const struct port *port);
