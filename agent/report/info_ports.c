/* SPDX-License-Identifier: Apache-2.0 */
/* Ports: their state now, and the configurations of them that nim has in store. */
#include "report/info.h"

#define MAX_CONFIGS 32
#define MAX_PORTS 64
#define WIRELESS_CELLULAR 1

Eve__Info__ProxyStatus *info_proxy(struct world *w, const struct json *port)
{
    Eve__Info__ProxyStatus *p = MAKE(w, Eve__Info__ProxyStatus, eve__info__proxy_status);
    JSON_FOR_EACH_ITEM (json_get(port, STR("Proxies")), item) {
        Eve__Info__ProxyEntry *e = MAKE(w, Eve__Info__ProxyEntry, eve__info__proxy_entry);
        e->type = (uint32_t) NUMBER(item, "type");
        e->server = TEXT(w, item, "server");
        e->port = (uint32_t) NUMBER(item, "port");
        PUSH(w, p, proxies, e);
    }
    p->exceptions = TEXT(w, port, "Exceptions");
    p->pacfile = TEXT(w, port, "Pacfile");
    p->networkproxyenable = FLAG(port, "NetworkProxyEnable");
    p->networkproxyurl = TEXT(w, port, "NetworkProxyURL");
    p->wpadurl = TEXT(w, port, "WpadURL");
    return p;
}

static Eve__Info__ZInfoDNS *make_dns(struct world *w, const struct json *port)
{
    Eve__Info__ZInfoDNS *d = MAKE(w, Eve__Info__ZInfoDNS, eve__info__zinfo_dns);
    d->dnsdomain = TEXT(w, port, "DomainName");
    d->n_dnsservers = make_texts(w, json_get(port, STR("DNSServers")), NULL, &d->dnsservers);
    return d;
}

/* Of the first address that is known to be somewhere. */
static Eve__Info__GeoLoc *make_location(struct world *w, const struct json *port)
{
    JSON_FOR_EACH_ITEM (json_get(port, STR("AddrInfoList")), item) {
        const struct json *geo = json_get(item, STR("Geo"));
        if (!json_get_str(geo, STR("ip")).n)
            continue;
        Eve__Info__GeoLoc *g = MAKE(w, Eve__Info__GeoLoc, eve__info__geo_loc);
        g->underlayip = TEXT(w, geo, "ip");
        g->hostname = TEXT(w, geo, "hostname");
        g->city = TEXT(w, geo, "city");
        g->region = TEXT(w, geo, "region");
        g->country = TEXT(w, geo, "country");
        g->loc = TEXT(w, geo, "loc");
        g->org = TEXT(w, geo, "org");
        g->postal = TEXT(w, geo, "postal");
        return g;
    }
    return NULL;
}

/* ---- the state now -------------------------------------------------------------------------- */

Eve__Info__ZCellularModuleInfo *info_cellular_module(struct world *w, const struct json *cellular)
{
    static const char *const modes[] = {"",       "offline",   "radio-off",
                                        "online", "connected", "unrecognized"};
    const struct json *module = json_get(cellular, STR("Module"));
    Eve__Info__ZCellularModuleInfo *m =
        MAKE(w, Eve__Info__ZCellularModuleInfo, eve__info__zcellular_module_info);
    m->name = TEXT(w, module, "Name");
    m->imei = TEXT(w, module, "IMEI");
    m->model = TEXT(w, module, "Model");
    m->manufacturer = TEXT(w, module, "Manufacturer");
    m->firmware_version = TEXT(w, module, "Revision");
    for (size_t i = 0; i < N_ELEMENTS(modes); i++)
        if (str_is(json_get_str(module, STR("OpMode")), modes[i]))
            m->operating_state = (Eve__Info__ZCellularOperatingState) i;
    const struct str protocol = json_get_str(module, STR("ControlProtocol"));
    m->control_protocol = str_is(protocol, "qmi") ? 1 : str_is(protocol, "mbim") ? 2 : 0;
    return m;
}

Eve__Info__ZSimcardInfo *info_sim_card(struct world *w, const struct json *card, char *module_name)
{
    Eve__Info__ZSimcardInfo *s = MAKE(w, Eve__Info__ZSimcardInfo, eve__info__zsimcard_info);
    s->name = TEXT(w, card, "Name");
    s->cell_module_name = module_name;
    s->imsi = TEXT(w, card, "IMSI");
    s->iccid = TEXT(w, card, "ICCID");
    s->state = TEXT(w, card, "State");
    s->slot_number = (uint32_t) NUMBER(card, "SlotNumber");
    s->slot_activated = FLAG(card, "SlotActivated");
    return s;
}

Eve__Info__ZCellularProvider *info_provider(struct world *w, const struct json *item)
{
    Eve__Info__ZCellularProvider *p =
        MAKE(w, Eve__Info__ZCellularProvider, eve__info__zcellular_provider);
    p->plmn = TEXT(w, item, "PLMN");
    p->description = TEXT(w, item, "Description");
    p->current_serving = FLAG(item, "CurrentServing");
    p->roaming = FLAG(item, "Roaming");
    p->forbidden = FLAG(item, "Forbidden");
    return p;
}

static void add_cellular(struct world *w, Eve__Info__ZInfoDevice *d, const struct json *cellular)
{
    Eve__Info__ZCellularModuleInfo *m = info_cellular_module(w, cellular);
    PUSH(w, d, cell_radios, m);
    JSON_FOR_EACH_ITEM (json_get(cellular, STR("SimCards")), card)
        PUSH(w, d, sims, info_sim_card(w, card, m->name));
}

static void add_network(struct world *w, Eve__Info__ZInfoDevice *d, const struct json *port)
{
    Eve__Info__ZInfoNetwork *n = MAKE(w, Eve__Info__ZInfoNetwork, eve__info__zinfo_network);
    n->localname = TEXT(w, port, "IfName");
    n->devname = TEXT(w, port, "Logicallabel");
    n->alias = TEXT(w, port, "Alias");
    n->macaddr = make_mac(w, json_get(port, STR("MacAddr")));
    n->ipv4_up = FLAG(port, "Up");
    n->uplink = FLAG(port, "IsMgmt");
    n->n_ipaddrs = make_texts(w, json_get(port, STR("AddrInfoList")), "Addr", &n->ipaddrs);
    n->n_defaultrouters =
        make_texts(w, json_get(port, STR("DefaultRouters")), NULL, &n->defaultrouters);
    n->n_ntp_servers = make_texts(w, json_get(port, STR("NtpServers")), NULL, &n->ntp_servers);
    n->dns = make_dns(w, port);
    n->location = make_location(w, port);
    n->networkerr = make_test_results(w, port);
    n->proxy = info_proxy(w, port);
    PUSH(w, d, network, n);
    const struct json *wireless = json_get(port, STR("WirelessStatus"));
    if (NUMBER(wireless, "WType") == WIRELESS_CELLULAR)
        add_cellular(w, d, json_get(wireless, STR("Cellular")));
}

/* ---- configurations ------------------------------------------------------------------------- */

static Eve__Info__WirelessStatus *make_wireless(struct world *w, const struct json *port)
{
    const struct json *wireless = json_get(port, STR("WirelessStatus"));
    if (NUMBER(wireless, "WType") != WIRELESS_CELLULAR)
        return NULL;
    const struct json *cellular = json_get(wireless, STR("Cellular"));
    Eve__Info__WirelessStatus *s = MAKE(w, Eve__Info__WirelessStatus, eve__info__wireless_status);
    Eve__Info__ZCellularStatus *c =
        MAKE(w, Eve__Info__ZCellularStatus, eve__info__zcellular_status);
    s->type = EVE__INFO__WIRELESS_TYPE__WIRELESS_TYPE_CELLULAR;
    s->cellular = c;
    c->cellular_module = TEXT(w, json_get(cellular, STR("Module")), "Name");
    c->n_sim_cards = make_texts(w, json_get(cellular, STR("SimCards")), "Name", &c->sim_cards);
    c->config_error = TEXT(w, cellular, "ConfigError");
    c->probe_error = TEXT(w, cellular, "ProbeError");
    JSON_FOR_EACH_ITEM (json_get(cellular, STR("VisibleProviders")), item)
        PUSH(w, c, providers, info_provider(w, item));
    return s;
}

/* What is true of it now, of a port that is in use. */
static void add_state(struct world *w, Eve__Info__DevicePort *p, const struct json *port)
{
    p->up = FLAG(port, "Up");
    p->mtu = (uint32_t) NUMBER(port, "MTU");
    p->macaddr = make_mac(w, json_get(port, STR("MacAddr")));
    p->n_ipaddrs = make_texts(w, json_get(port, STR("AddrInfoList")), "Addr", &p->ipaddrs);
    p->n_defaultrouters =
        make_texts(w, json_get(port, STR("DefaultRouters")), NULL, &p->defaultrouters);
    p->dns = make_dns(w, port);
    p->domainname = p->dns->dnsdomain;
    p->location = make_location(w, port);
    p->proxy = info_proxy(w, port);
    p->wireless_status = make_wireless(w, port);
    p->bond_status = info_bond(w, port);
    p->err = make_test_results(w, port);
}

static void set_ntp(struct world *w, Eve__Info__DevicePort *p, const struct json *config)
{
    char **servers;
    const size_t n = make_texts(w, json_get(config, STR("NTPServers")), NULL, &servers);
    if (!n)
        return;
    p->ntpserver = servers[0];
    p->more_ntp_servers = servers + 1;
    p->n_more_ntp_servers = n - 1;
}

Eve__Common__PortConfigSource *info_source(struct world *w, const struct json *source)
{
    if (!NUMBER(source, "Origin"))
        return NULL;
    Eve__Common__PortConfigSource *s =
        MAKE(w, Eve__Common__PortConfigSource, eve__common__port_config_source);
    s->origin = (Eve__Common__NetworkConfigOrigin) NUMBER(source, "Origin");
    s->submitted_at = TIME(w, source, "SubmittedAt");
    return s;
}

static Eve__Info__DevicePort *make_port(struct world *w, const struct json *config, bool is_current)
{
    const struct str label = json_get_str(config, STR("Logicallabel"));
    const struct json *adapter =
        world_adapter(w, "Phylabel", json_get_str(config, STR("Phylabel")));
    const struct str network = json_get_str(config, STR("NetworkUUID"));
    const struct str gateway = json_get_str(config, STR("Gateway"));
    Eve__Info__DevicePort *p = MAKE(w, Eve__Info__DevicePort, eve__info__device_port);
    p->ifname = TEXT(w, config, "IfName");
    p->name = make_text(w, label);
    p->usage = (Eve__Common__PhyIoMemberUsage) NUMBER(adapter, "Usage");
    p->ismgmt = FLAG(config, "IsMgmt");
    p->cost = (uint32_t) NUMBER(config, "Cost");
    p->free = p->cost == 0;
    p->dhcptype = (uint32_t) NUMBER(config, "Dhcp");
    p->subnet = TEXT(w, config, "AddrSubnet");
    p->gateway = make_text(w, gateway);
    p->domainname = TEXT(w, config, "DomainName");
    p->n_dnsservers = make_texts(w, json_get(config, STR("DNSServers")), NULL, &p->dnsservers);
    p->mtu = (uint32_t) NUMBER(config, "MTU");
    p->networkuuid = make_text(w, make_is_nil_uuid(network) ? STR("") : network);
    p->config_source = info_source(w, json_get(config, STR("ConfigSource")));
    p->proxy = info_proxy(w, config);
    p->dns = make_dns(w, config);
    p->err = make_test_results(w, config);
    if (gateway.n)
        PUSH(w, p, defaultrouters, make_text(w, gateway));
    set_ntp(w, p, config);
    const struct json *port = is_current ? world_port(w, label) : NULL;
    if (port)
        add_state(w, p, port);
    return p;
}

static Eve__Info__DevicePortStatus *make_config(struct world *w, const struct json *config,
                                                bool is_current)
{
    Eve__Info__DevicePortStatus *s =
        MAKE(w, Eve__Info__DevicePortStatus, eve__info__device_port_status);
    s->version = (uint32_t) NUMBER(config, "Version");
    s->key = TEXT(w, config, "Key");
    s->timepriority = TIME(w, config, "TimePriority");
    s->lastfailed = TIME(w, config, "LastFailed");
    s->lastsucceeded = TIME(w, config, "LastSucceeded");
    s->lasterror = TEXT(w, config, "LastError");
    JSON_FOR_EACH_ITEM (json_get(config, STR("Ports")), port)
        if (json_get_bool(port, STR("IsL3Port"), true) && s->n_ports < MAX_PORTS)
            PUSH(w, s, ports, make_port(w, port, is_current));
    return s;
}

void info_device_ports(struct world *w, Eve__Info__ZInfoDevice *d)
{
    const struct json *list = world_only(w, REPORT_PORT_CONFIGS);
    Eve__Info__SystemAdapterInfo *s =
        MAKE(w, Eve__Info__SystemAdapterInfo, eve__info__system_adapter_info);
    d->systemadapter = s;
    s->currentindex = (uint32_t) MAX(make_number(list, STR("CurrentIndex")), 0);
    JSON_FOR_EACH_ITEM (json_get(list, STR("PortConfigList")), config)
        if (s->n_status < MAX_CONFIGS)
            PUSH(w, s, status, make_config(w, config, s->n_status == s->currentindex));
    const struct json *ports = json_get(world_only(w, REPORT_NETWORK), STR("Ports"));
    JSON_FOR_EACH_ITEM (ports, port)
        /* Those of one label are one. */
        if (world_port(w, json_get_str(port, STR("Logicallabel"))) == port &&
            d->n_network < MAX_PORTS)
            add_network(w, d, port);
}
