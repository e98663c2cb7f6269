/* SPDX-License-Identifier: Apache-2.0 */
#include "device/bootstrap_config.h"

#include <arpa/inet.h>
#include <errno.h>

#include "base/buf.h"
#include "base/random.h"
#include "eve/auth.pb-c.h"
#include "eve/certs.pb-c.h"
#include "eve/config.pb-c.h"
#include "google/protobuf/timestamp.pb-c.h"
#include "protobuf/message.h"

static int refuse(char **ret_error, const char *option, struct str value, const char *why)
{
    struct buf b = {0};
    buf_printf(&b, "--%s: '%.*s' %s", option, STR_ARG(value), why);
    *ret_error = buf_take(&b);
    return -EINVAL;
}

/* ---- addresses ------------------------------------------------------------------------------ */

struct address {
    int family;
    unsigned char bytes[16];
};

static bool parse_address(struct arena *a, struct str text, struct address *ret)
{
    const char *z = arena_strz(a, text);
    *ret = (struct address){.family = AF_INET};
    if (inet_pton(AF_INET, z, ret->bytes) == 1)
        return true;
    ret->family = AF_INET6;
    return inet_pton(AF_INET6, z, ret->bytes) == 1;
}

/* What is left of the address when only its prefix counts, as "192.0.2.0/24". */
static struct str subnet_of(struct arena *a, struct address address, int64_t prefix)
{
    char text[INET6_ADDRSTRLEN] = "";
    for (int64_t bit = prefix; bit < (address.family == AF_INET ? 32 : 128); bit++)
        address.bytes[bit / 8] &= (unsigned char) ~(0x80U >> (bit % 8));
    (void) inet_ntop(address.family, address.bytes, text, sizeof(text));
    return arena_printf(a, "%s/%d", text, (int) prefix);
}

/* ---- the network ---------------------------------------------------------------------------- */

static int set_servers(struct arena *a, Eve__Common__Ipspec *ip, struct str list, int family,
                       char **ret_error)
{
    struct str one = STR_NONE;
    ip->dns = ARENA_ARRAY(a, char *, BOOTSTRAP_MAX_SERVERS);
    while (str_split(&list, ',', &one)) {
        struct address address;
        if (!parse_address(a, str_trim(one), &address) || address.family != family)
            return refuse(ret_error, "dns", one, "is no address of the same kind as --address");
        if (ip->n_dns == BOOTSTRAP_MAX_SERVERS)
            return refuse(ret_error, "dns", one, "is one too many");
        ip->dns[ip->n_dns++] = arena_strz(a, str_trim(one));
    }
    return ip->n_dns ? 0 : refuse(ret_error, "dns", STR(""), "is needed with --address");
}

/* A static address goes half to the adapter, half to the network. */
static int set_static(struct arena *a, const struct bootstrap_port *p,
                      Eve__Config__NetworkConfig *network, Eve__Config__SystemAdapter *adapter,
                      char **ret_error)
{
    struct address address, gateway;
    int64_t prefix = 0;
    ptrdiff_t slash = str_find(p->address, '/');
    struct str host = slash < 0 ? p->address : str_sub(p->address, 0, (size_t) slash);
    if (slash < 0 || !parse_address(a, host, &address) ||
        str_to_i64(str_from(p->address, (size_t) slash + 1), &prefix) < 0 || prefix < 1 ||
        prefix > (address.family == AF_INET ? 32 : 128))
        return refuse(ret_error, "address", p->address, "is not as in 192.0.2.7/24");
    if (!parse_address(a, p->gateway, &gateway) || gateway.family != address.family)
        return refuse(ret_error, "gateway", p->gateway,
                      "is no address of the same kind as --address");
    if (address.family == AF_INET6)
        network->type = EVE__COMMON__NETWORK_TYPE__V6;
    network->ip->dhcp = EVE__COMMON__DHCPTYPE__Static;
    network->ip->subnet = arena_strz(a, subnet_of(a, address, prefix));
    network->ip->gateway = arena_strz(a, p->gateway);
    adapter->addr = arena_strz(a, host);
    return set_servers(a, network->ip, p->dns, address.family, ret_error);
}

static Eve__Config__NetworkConfig *network_of(struct arena *a, const struct bootstrap_port *p)
{
    Eve__Config__NetworkConfig *n = ARENA_NEW(a, Eve__Config__NetworkConfig);
    eve__config__network_config__init(n);
    n->id = arena_alloc(a, UUID_TEXT_BYTES);
    random_uuid(n->id);
    n->type = EVE__COMMON__NETWORK_TYPE__V4;
    n->ip = ARENA_NEW(a, Eve__Common__Ipspec);
    eve__common__ipspec__init(n->ip);
    n->ip->dhcp = EVE__COMMON__DHCPTYPE__Client;
    n->ip->ntp = arena_strz(a, p->ntp);
    n->ip->domain = arena_strz(a, p->domain);
    return n;
}

static Eve__Config__PhysicalIO *port_of(struct arena *a, char *name)
{
    Eve__Config__PhysicalIO__PhyaddrsEntry *entry =
        ARENA_NEW(a, Eve__Config__PhysicalIO__PhyaddrsEntry);
    eve__config__physical_io__phyaddrs_entry__init(entry);
    entry->key = (char *) "ifname";
    entry->value = name;
    Eve__Config__PhysicalIO *io = ARENA_NEW(a, Eve__Config__PhysicalIO);
    eve__config__physical_io__init(io);
    io->ptype = EVE__COMMON__PHY_IO_TYPE__PhyIoNetEth;
    io->phylabel = io->logicallabel = io->assigngrp = name;
    io->usage = EVE__COMMON__PHY_IO_MEMBER_USAGE__PhyIoUsageMgmtAndApps;
    io->n_phyaddrs = 1;
    io->phyaddrs = ARENA_ARRAY(a, Eve__Config__PhysicalIO__PhyaddrsEntry *, 1);
    io->phyaddrs[0] = entry;
    return io;
}

static int config_of(struct arena *a, const struct bootstrap_port *p, int64_t now_s,
                     struct str *ret_config, char **ret_error)
{
    Eve__Config__EdgeDevConfig c = EVE__CONFIG__EDGE_DEV_CONFIG__INIT;
    Eve__Config__SystemAdapter adapter = EVE__CONFIG__SYSTEM_ADAPTER__INIT;
    Google__Protobuf__Timestamp now = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
    char *name = arena_strz(a, p->port);
    Eve__Config__NetworkConfig *network = network_of(a, p);
    Eve__Config__PhysicalIO *port = port_of(a, name);
    adapter.name = adapter.lowerlayername = name;
    adapter.uplink = true;
    adapter.networkuuid = network->id;
    int r = p->address.n ? set_static(a, p, network, &adapter, ret_error) : 0;
    if (r < 0)
        return r;
    now.seconds = now_s;
    c.config_timestamp = &now;
    c.n_networks = c.n_deviceiolist = c.n_systemadapterlist = 1;
    c.networks = &network;
    c.deviceiolist = &port;
    c.systemadapterlist = (Eve__Config__SystemAdapter *[]){&adapter};
    *ret_config = pb_pack(a, &c.message);
    return 0;
}

/* ---- the signed message --------------------------------------------------------------------- */

int bootstrap_config(struct arena *a, const struct bootstrap_port *p,
                     const struct controller_set *set, int64_t now_s, struct str *ret_message,
                     char **ret_error)
{
    Eve__Config__BootstrapConfig m = EVE__CONFIG__BOOTSTRAP_CONFIG__INIT;
    struct str config = STR_NONE;
    if (p->port.n == 0 || p->port.n > 15)
        return refuse(ret_error, "port", p->port, "is no interface, as in eth0");
    int r = config_of(a, p, now_s, &config, ret_error);
    if (r < 0)
        return r;
    struct str sealed = envelope_seal(a, &set->signer, config);
    if (!sealed.p)
        return -EIO;
    m.signed_config = PB_UNPACK(a, eve__auth__auth_container, sealed);
    Eve__Certs__ZControllerCert *all =
        PB_UNPACK(a, eve__certs__zcontroller_cert, set->certs_message);
    if (!m.signed_config || !all)
        return -EBADMSG;
    m.controller_certs = ARENA_ARRAY(a, Eve__Certs__ZCert *, all->n_certs);
    for (size_t i = 0; i < all->n_certs; i++)
        if (all->certs[i]->type != EVE__CERTS__ZCERT_TYPE__CERT_TYPE_CONTROLLER_ECDH_EXCHANGE)
            m.controller_certs[m.n_controller_certs++] = all->certs[i];
    *ret_message = pb_pack(a, &m.base);
    return 0;
}
