/* SPDX-License-Identifier: Apache-2.0 */
/* The device's ports as a local profile server sees them: how they are configured, what became of
 * it. Passwords are not told. */
#include "base/base64.h"
#include "lps/messages.h"
#include "node/node.h"
#include "report/info.h"
#include "zedagent/local.h"

enum { DHCP_STATIC = 1, DHCP_CLIENT = 4 };
enum { TYPE_IPV4 = 4, TYPE_IPV4_ONLY = 5, TYPE_IPV6 = 6, TYPE_IPV6_ONLY = 7, TYPE_DUAL = 8 };
enum { STATE_FIRST_WAIT = NODE_NETWORK_IPDNS_WAIT };

static Eve__Profile__IPVersion version_of(int64_t type)
{
    switch (type) {
    case TYPE_IPV4:
    case TYPE_IPV6:
    case TYPE_DUAL:
        return EVE__PROFILE__IPVERSION__IP_VERSION_DUAL_STACK;
    case TYPE_IPV4_ONLY:
        return EVE__PROFILE__IPVERSION__IP_VERSION_IPV4_ONLY;
    case TYPE_IPV6_ONLY:
        return EVE__PROFILE__IPVERSION__IP_VERSION_IPV6_ONLY;
    default:
        return EVE__PROFILE__IPVERSION__IP_VERSION_UNSPECIFIED;
    }
}

static void set_addresses(struct world *w, Eve__Profile__NetworkPortConfig *p,
                          const struct json *port)
{
    const struct str subnet = json_get_str(port, STR("AddrSubnet"));
    const struct str gateway = json_get_str(port, STR("Gateway"));
    const int64_t dhcp = json_get_int(port, STR("Dhcp"), 0);
    p->use_dhcp = dhcp == DHCP_CLIENT;
    p->ip_version = version_of(json_get_int(port, STR("Type"), 0));
    if (subnet.n)
        PUSH(w, p, ip_addresses, make_text(w, subnet));
    if (gateway.n)
        PUSH(w, p, gateways, make_text(w, gateway));
    p->without_default_route =
        str_is(gateway, "0.0.0.0") || str_is(gateway, "::") ||
        (!gateway.n && (dhcp == DHCP_STATIC || (p->use_dhcp && FLAG(port, "IgnoreDhcpGateways"))));
}

static Eve__Common__DhcpOptionsIgnore *make_ignored(struct world *w, const struct json *port)
{
    Eve__Common__DhcpOptionsIgnore *d =
        MAKE(w, Eve__Common__DhcpOptionsIgnore, eve__common__dhcp_options_ignore);
    d->ntp_server_exclusively = FLAG(port, "IgnoreDhcpNtpServers");
    d->ip_addresses_exclusively = FLAG(port, "IgnoreDhcpIPAddresses");
    d->dns_config_exclusively = FLAG(port, "IgnoreDhcpDNSConfig");
    d->gateways_exclusively = FLAG(port, "IgnoreDhcpGateways");
    return d;
}

static Eve__Common__ProxyConfig *make_proxies(struct world *w, const struct json *port)
{
    Eve__Common__ProxyConfig *c = MAKE(w, Eve__Common__ProxyConfig, eve__common__proxy_config);
    c->networkproxyenable = FLAG(port, "NetworkProxyEnable");
    c->networkproxyurl = TEXT(w, port, "NetworkProxyURL");
    c->exceptions = TEXT(w, port, "Exceptions");
    c->pacfile = TEXT(w, port, "Pacfile");
    JSON_FOR_EACH_ITEM (json_get(port, STR("pubsub-large-ProxyCertPEM")), item) {
        struct str pem;
        if (base64_decode(w->arena, json_str(item), BASE64_STANDARD, &pem, NULL) == 0)
            PUSH(w, c, proxycertpem, pb_data(pem));
    }
    JSON_FOR_EACH_ITEM (json_get(port, STR("Proxies")), item) {
        Eve__Common__ProxyServer *s = MAKE(w, Eve__Common__ProxyServer, eve__common__proxy_server);
        s->proto = (Eve__Common__ProxyProto) NUMBER(item, "type");
        s->server = TEXT(w, item, "server");
        s->port = (uint32_t) NUMBER(item, "port");
        PUSH(w, c, proxies, s);
    }
    return c;
}

/* ---- without wires -------------------------------------------------------------------------- */

/* The words of the wwan service, in the order of the API. */
static int place_of(struct str word, const char *const *words, int n)
{
    for (int i = 0; i < n; i++)
        if (str_is(word, words[i]))
            return i;
    return 0;
}

static Eve__Common__CellularIPType ip_type_of(const struct json *point, struct str name)
{
    static const char *const words[] = {"", "ipv4", "ipv4v6", "ipv6"};
    return (Eve__Common__CellularIPType) place_of(json_get_str(point, name), words,
                                                  (int) N_ELEMENTS(words));
}

/* How it is said who we are, not who. */
static Eve__Profile__CellularNetworkAuth *make_auth(struct world *w, const struct json *point,
                                                    struct str name)
{
    static const char *const words[] = {"", "pap", "chap", "pap-and-chap"};
    Eve__Profile__CellularNetworkAuth *a =
        MAKE(w, Eve__Profile__CellularNetworkAuth, eve__profile__cellular_network_auth);
    a->auth_protocol = (Eve__Common__CellularAuthProtocol) place_of(json_get_str(point, name),
                                                                    words, (int) N_ELEMENTS(words));
    return a;
}

static Eve__Profile__CellularConnectivityProbe *make_probe(struct world *w, const struct json *v)
{
    const struct json *custom = json_get(v, STR("UserDefinedProbe"));
    Eve__Profile__CellularConnectivityProbe *p =
        MAKE(w, Eve__Profile__CellularConnectivityProbe, eve__profile__cellular_connectivity_probe);
    p->disable = FLAG(v, "Disable");
    if (!NUMBER(custom, "Method"))
        return p;
    p->custom_probe = MAKE(w, Eve__Common__ConnectivityProbe, eve__common__connectivity_probe);
    p->custom_probe->probe_method = (Eve__Common__ConnectivityProbeMethod) NUMBER(custom, "Method");
    p->custom_probe->probe_endpoint =
        MAKE(w, Eve__Common__ProbeEndpoint, eve__common__probe_endpoint);
    p->custom_probe->probe_endpoint->host = TEXT(w, custom, "ProbeHost");
    p->custom_probe->probe_endpoint->port = (uint32_t) NUMBER(custom, "ProbePort");
    return p;
}

static Eve__Profile__CellularConfig *make_cellular(struct world *w, const struct json *v)
{
    Eve__Profile__CellularConfig *c =
        MAKE(w, Eve__Profile__CellularConfig, eve__profile__cellular_config);
    c->probe = make_probe(w, json_get(v, STR("Probe")));
    c->location_tracking = FLAG(v, "LocationTracking");
    JSON_FOR_EACH_ITEM (json_get(v, STR("AccessPoints")), point) {
        if (!FLAG(point, "Activated"))
            continue;
        c->apn = TEXT(w, point, "APN");
        c->attach_apn = TEXT(w, point, "AttachAPN");
        c->ip_type = ip_type_of(point, STR("IPType"));
        c->attach_ip_type = ip_type_of(point, STR("AttachIPType"));
        c->activate_sim_slot = (uint32_t) NUMBER(point, "SIMSlot");
        c->forbid_roaming = FLAG(point, "ForbidRoaming");
        c->default_bearer_auth = make_auth(w, point, STR("AuthProtocol"));
        c->attach_bearer_auth = make_auth(w, point, STR("AttachAuthProtocol"));
        break;
    }
    return c;
}

static Eve__Profile__WifiConfig *make_wifi(struct world *w, const struct json *list)
{
    Eve__Profile__WifiConfig *c = MAKE(w, Eve__Profile__WifiConfig, eve__profile__wifi_config);
    if (json_count(list) == 0)
        return c;
    c->ssid = TEXT(w, &list->items[0], "SSID");
    c->key_scheme = (Eve__Common__WiFiKeyScheme) NUMBER(&list->items[0], "KeyScheme");
    return c;
}

static void set_wireless(struct world *w, Eve__Profile__NetworkPortConfig *p,
                         const struct json *config)
{
    p->wireless_device_type = (Eve__Profile__WirelessType) NUMBER(config, "WType");
    if (p->wireless_device_type == EVE__PROFILE__WIRELESS_TYPE__WIRELESS_TYPE_CELLULAR) {
        p->wireless_config_case =
            EVE__PROFILE__NETWORK_PORT_CONFIG__WIRELESS_CONFIG_CELLULAR_CONFIG;
        p->cellular_config = make_cellular(w, json_get(config, STR("CellularV2")));
    } else if (p->wireless_device_type == EVE__PROFILE__WIRELESS_TYPE__WIRELESS_TYPE_WIFI) {
        p->wireless_config_case = EVE__PROFILE__NETWORK_PORT_CONFIG__WIRELESS_CONFIG_WIFI_CONFIG;
        p->wifi_config = make_wifi(w, json_get(config, STR("Wifi")));
    }
}

/* ---- ports ---------------------------------------------------------------------------------- */

static Eve__Profile__NetworkPortAddresses *make_place(struct world *w, const struct json *port)
{
    Eve__Profile__NetworkPortAddresses *a =
        MAKE(w, Eve__Profile__NetworkPortAddresses, eve__profile__network_port_addresses);
    a->interface_name = TEXT(w, port, "IfName");
    a->pci_address = TEXT(w, port, "PCIAddr");
    a->usb_address = TEXT(w, port, "USBAddr");
    return a;
}

/* However the time is written. */
static bool is_same_source(const struct json *x, const struct json *y)
{
    return NUMBER(x, "Origin") == NUMBER(y, "Origin") &&
           node_json_time_us(json_get(x, STR("SubmittedAt"))) ==
               node_json_time_us(json_get(y, STR("SubmittedAt")));
}

static bool has_failed(const struct json *tested)
{
    return node_json_time_us(json_get(tested, STR("LastFailed"))) >
           node_json_time_us(json_get(tested, STR("LastSucceeded")));
}

static char *error_of(struct world *w, const Eve__Profile__NetworkPortConfig *p,
                      const struct json *port, const struct json *status)
{
    const struct json *judged = p->config_applied ? status : port;
    if (p->config_source &&
        p->config_source->origin == EVE__COMMON__NETWORK_CONFIG_ORIGIN__NETWORK_CONFIG_ORIGIN_LPS &&
        json_get_str(status, STR("LpsConfigError")).n)
        return TEXT(w, status, "LpsConfigError");
    return has_failed(judged) ? TEXT(w, judged, "LastError") : make_text(w, STR(""));
}

static Eve__Profile__NetworkPortConfig *make_port(struct world *w, const struct json *port)
{
    const struct json *status = world_port(w, json_get_str(port, STR("Logicallabel")));
    Eve__Profile__NetworkPortConfig *p =
        MAKE(w, Eve__Profile__NetworkPortConfig, eve__profile__network_port_config);
    p->logical_label = TEXT(w, port, "Logicallabel");
    p->port_addresses = make_place(w, port);
    p->config_applied = status && is_same_source(json_get(port, STR("ConfigSource")),
                                                 json_get(status, STR("ConfigSource")));
    set_addresses(w, p, port);
    p->dhcp_options_ignore = make_ignored(w, port);
    p->n_dns_servers = make_texts(w, json_get(port, STR("DNSServers")), NULL, &p->dns_servers);
    p->dns_domain = TEXT(w, port, "DomainName");
    p->n_ntp_servers = make_texts(w, json_get(port, STR("NTPServers")), NULL, &p->ntp_servers);
    p->mtu = (uint32_t) NUMBER(port, "MTU");
    p->proxy_config = make_proxies(w, port);
    set_wireless(w, p, json_get(port, STR("WirelessCfg")));
    p->config_source = info_source(w, json_get(port, STR("ConfigSource")));
    p->local_modifications_allowed = FLAG(port, "AllowLocalModifications");
    p->error_message = error_of(w, p, port, status);
    return p;
}

/* With the length of its subnet's prefix, where that is known. */
static char *make_address(struct world *w, const struct json *item)
{
    const struct str address = json_get_str(item, STR("Addr"));
    struct str mask;
    unsigned bits = 0;
    if (base64_decode(w->arena, json_get_str(item, STR("Mask")), BASE64_STANDARD, &mask, NULL) <
            0 ||
        !mask.n)
        return make_text(w, address);
    for (size_t i = 0; i < mask.n; i++)
        bits += (unsigned) __builtin_popcount((unsigned char) mask.p[i]);
    return make_text(w, arena_printf(w->arena, "%.*s/%u", STR_ARG(address), bits));
}

static Eve__Profile__NetworkPortStatus *make_status(struct world *w, const struct json *port)
{
    Eve__Profile__NetworkPortStatus *s =
        MAKE(w, Eve__Profile__NetworkPortStatus, eve__profile__network_port_status);
    s->logical_label = TEXT(w, port, "Logicallabel");
    s->interface_name = TEXT(w, port, "IfName");
    s->link_up = FLAG(port, "Up");
    s->mac_address = make_mac(w, json_get(port, STR("MacAddr")));
    JSON_FOR_EACH_ITEM (json_get(port, STR("AddrInfoList")), item)
        if (json_get_str(item, STR("Addr")).n)
            PUSH(w, s, ip_addresses, make_address(w, item));
    s->n_gateways = make_texts(w, json_get(port, STR("DefaultRouters")), NULL, &s->gateways);
    s->n_dns_servers = make_texts(w, json_get(port, STR("DNSServers")), NULL, &s->dns_servers);
    s->dns_domain = TEXT(w, port, "DomainName");
    s->n_ntp_servers = make_texts(w, json_get(port, STR("NtpServers")), NULL, &s->ntp_servers);
    s->mtu = (uint32_t) NUMBER(port, "MTU");
    return s;
}

static Eve__Profile__NetworkConfigTestingStatus *make_testing(struct world *w,
                                                              const struct json *config)
{
    static const char *const phases[] = {"",
                                         "Failed",
                                         "Failed with IP and DNS",
                                         "Success",
                                         "Waiting for IP and DNS",
                                         "Waiting for PCI",
                                         "Waiting for interface",
                                         "Waiting for the remote side",
                                         "Waiting for operations to end",
                                         "Waiting for the modem"};
    const int64_t failed = node_json_time_us(json_get(config, STR("LastFailed")));
    const int64_t succeeded = node_json_time_us(json_get(config, STR("LastSucceeded")));
    const uint64_t state = NUMBER(config, "State");
    Eve__Profile__NetworkConfigTestingStatus *t = MAKE(w, Eve__Profile__NetworkConfigTestingStatus,
                                                       eve__profile__network_config_testing_status);
    t->controller_reachable = succeeded && succeeded > failed;
    if (has_failed(config))
        t->connectivity_error = TEXT(w, config, "LastError");
    t->last_test_time = make_time(w, MAX(failed, succeeded));
    t->testing_in_progress = state >= STATE_FIRST_WAIT && state != NODE_NETWORK_REMOTE_WAIT;
    t->testing_phase = make_text(w, str_of(state < N_ELEMENTS(phases) ? phases[state] : ""));
    return t;
}

static Eve__Profile__LocalNetworkConfigInfo *make_local(struct world *w, const struct zedagent *z,
                                                        struct str error)
{
    Eve__Profile__LocalNetworkConfigInfo *i =
        MAKE(w, Eve__Profile__LocalNetworkConfigInfo, eve__profile__local_network_config_info);
    i->error_message = make_text(w, error);
    JSON_FOR_EACH_ITEM (json_get(zedagent_local_network(z, w->arena), STR("Ports")), port)
        if (i->n_ports < LPS_MAX_PORTS)
            PUSH(w, i, ports, make_port(w, port));
    return i;
}

Eve__Profile__NetworkInfo *lps_network_info(struct world *w, const struct zedagent *z,
                                            struct str error)
{
    const struct json *list = world_only(w, REPORT_PORT_CONFIGS);
    const struct json *configs = json_get(list, STR("PortConfigList"));
    const int64_t current = json_get_int(list, STR("CurrentIndex"), -1);
    Eve__Profile__NetworkInfo *n;
    if (current < 0 || (size_t) current >= json_count(configs))
        return NULL;
    n = MAKE(w, Eve__Profile__NetworkInfo, eve__profile__network_info);
    JSON_FOR_EACH_ITEM (json_get(&configs->items[0], STR("Ports")), port)
        if (n->n_latest_config < LPS_MAX_PORTS)
            PUSH(w, n, latest_config, make_port(w, port));
    n->is_using_fallback_config = current > 0;
    JSON_FOR_EACH_ITEM (current ? json_get(&configs->items[current], STR("Ports")) : NULL, port)
        if (n->n_fallback_config < LPS_MAX_PORTS)
            PUSH(w, n, fallback_config, make_port(w, port));
    n->config_testing = make_testing(w, &configs->items[current]);
    n->local_config = make_local(w, z, error);
    JSON_FOR_EACH_ITEM (json_get(world_only(w, REPORT_NETWORK), STR("Ports")), port)
        if (n->n_port_status < LPS_MAX_PORTS)
            PUSH(w, n, port_status, make_status(w, port));
    return n;
}
