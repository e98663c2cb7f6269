/* SPDX-License-Identifier: Apache-2.0 */
/* The least that keeps a device in touch: its first Ethernet port for management, by DHCP. */
#include "device/config.h"
#include "eve/config.pb-c.h"

#define PORT "eth0"
/* Of the one network; a device has no other of that name. */
#define NETWORK_UUID "6822e35f-c1b8-43ca-b344-0bbc0ece8cf1"

static Eve__Config__PhysicalIO *port(struct arena *a)
{
    Eve__Config__PhysicalIO *io = ARENA_NEW(a, Eve__Config__PhysicalIO);
    eve__config__physical_io__init(io);
    Eve__Config__PhysicalIO__PhyaddrsEntry *name =
        ARENA_NEW(a, Eve__Config__PhysicalIO__PhyaddrsEntry);
    eve__config__physical_io__phyaddrs_entry__init(name);
    name->key = (char *) "ifname";
    name->value = (char *) PORT;
    io->ptype = EVE__COMMON__PHY_IO_TYPE__PhyIoNetEth;
    io->phylabel = io->logicallabel = io->assigngrp = (char *) PORT;
    io->usage = EVE__COMMON__PHY_IO_MEMBER_USAGE__PhyIoUsageMgmtAndApps;
    io->n_phyaddrs = 1;
    io->phyaddrs = ARENA_ARRAY(a, Eve__Config__PhysicalIO__PhyaddrsEntry *, 1);
    io->phyaddrs[0] = name;
    return io;
}

static Eve__Config__NetworkConfig *network(struct arena *a)
{
    Eve__Config__NetworkConfig *n = ARENA_NEW(a, Eve__Config__NetworkConfig);
    eve__config__network_config__init(n);
    n->id = (char *) NETWORK_UUID;
    n->type = EVE__COMMON__NETWORK_TYPE__V4;
    n->ip = ARENA_NEW(a, Eve__Common__Ipspec);
    eve__common__ipspec__init(n->ip);
    n->ip->dhcp = EVE__COMMON__DHCPTYPE__Client;
    return n;
}

static Eve__Config__SystemAdapter *adapter(struct arena *a)
{
    Eve__Config__SystemAdapter *s = ARENA_NEW(a, Eve__Config__SystemAdapter);
    eve__config__system_adapter__init(s);
    s->name = s->lowerlayername = (char *) PORT;
    s->uplink = true;
    s->networkuuid = (char *) NETWORK_UUID;
    return s;
}

Eve__Config__EdgeDevConfig *device_config_default(struct arena *a, const struct device *d)
{
    Eve__Config__EdgeDevConfig *c = ARENA_NEW(a, Eve__Config__EdgeDevConfig);
    eve__config__edge_dev_config__init(c);
    c->device_name = arena_strz(a, d->name);
    c->n_deviceiolist = c->n_networks = c->n_systemadapterlist = 1;
    c->deviceiolist = ARENA_ARRAY(a, Eve__Config__PhysicalIO *, 1);
    c->deviceiolist[0] = port(a);
    c->networks = ARENA_ARRAY(a, Eve__Config__NetworkConfig *, 1);
    c->networks[0] = network(a);
    c->systemadapterlist = ARENA_ARRAY(a, Eve__Config__SystemAdapter *, 1);
    c->systemadapterlist[0] = adapter(a);
    return c;
}
