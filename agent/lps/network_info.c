/* SPDX-License-Identifier: Apache-2.0 */
/* The device's ports as a local profile server sees them: how they are configured, what became of
 * it. Passwords are not told. */
#include "lps/messages.h"
#include "node/node.h"
#include "report/info.h"

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
    JSON_FOR_EACH_ITEM (json_get(port, STR("Proxies")), item) {
        Eve__Common__ProxyServer *s = MAKE(w, Eve__Common__ProxyServer, eve__common__proxy_server);
        s->proto = (Eve__Common__ProxyProto) NUMBER(item, "type");
        s->server = TEXT(w, item, "server");
        s->port = (uint32_t) NUMBER(item, "port");
        PUSH(w, c, proxies, s);
    }
    return c;
}

static Eve__Profile__NetworkPortAddresses *make_place(struct world *w, const struct json *port)
{
    Eve__Profile__NetworkPortAddresses *a =
        MAKE(w, Eve__Profile__NetworkPortAddresses, eve__profile__network_port_addresses);
    a->interface_name = TEXT(w, port, "IfName");
    a->pci_address = TEXT(w, port, "PCIAddr");
    a->usb_address = TEXT(w, port, "USBAddr");
    return a;
}

static bool has_failed(const struct json *tested)
{
    return node_json_time_us(json_get(tested, STR("LastFailed"))) >
           node_json_time_us(json_get(tested, STR("LastSucceeded")));
}

static Eve__Profile__NetworkPortConfig *make_port(struct world *w, const struct json *port)
{
    const struct json *status = world_port(w, json_get_str(port, STR("Logicallabel")));
    Eve__Profile__NetworkPortConfig *p =
        MAKE(w, Eve__Profile__NetworkPortConfig, eve__profile__network_port_config);
    p->logical_label = TEXT(w, port, "Logicallabel");
    p->port_addresses = make_place(w, port);
    p->config_applied = status && json_equal(json_get(port, STR("ConfigSource")),
                                             json_get(status, STR("ConfigSource")));
    set_addresses(w, p, port);
    p->dhcp_options_ignore = make_ignored(w, port);
    p->n_dns_servers = make_texts(w, json_get(port, STR("DNSServers")), NULL, &p->dns_servers);
    p->dns_domain = TEXT(w, port, "DomainName");
    p->n_ntp_servers = make_texts(w, json_get(port, STR("NTPServers")), NULL, &p->ntp_servers);
    p->mtu = (uint32_t) NUMBER(port, "MTU");
    p->proxy_config = make_proxies(w, port);
    p->wireless_device_type =
        (Eve__Profile__WirelessType) NUMBER(json_get(port, STR("WirelessCfg")), "WType");
    p->config_source = info_source(w, json_get(port, STR("ConfigSource")));
    p->local_modifications_allowed = FLAG(port, "AllowLocalModifications");
    const struct json *judged = p->config_applied ? status : port;
    if (has_failed(judged))
        p->error_message = TEXT(w, judged, "LastError");
    return p;
}

static Eve__Profile__NetworkPortStatus *make_status(struct world *w, const struct json *port)
{
    Eve__Profile__NetworkPortStatus *s =
        MAKE(w, Eve__Profile__NetworkPortStatus, eve__profile__network_port_status);
    s->logical_label = TEXT(w, port, "Logicallabel");
    s->interface_name = TEXT(w, port, "IfName");
    s->link_up = FLAG(port, "Up");
    s->mac_address = make_mac(w, json_get(port, STR("MacAddr")));
    s->n_ip_addresses =
        make_texts(w, json_get(port, STR("AddrInfoList")), "Addr", &s->ip_addresses);
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

Eve__Profile__NetworkInfo *lps_network_info(struct world *w, struct str error)
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
    n->local_config =
        MAKE(w, Eve__Profile__LocalNetworkConfigInfo, eve__profile__local_network_config_info);
    n->local_config->error_message = make_text(w, error);
    JSON_FOR_EACH_ITEM (json_get(world_only(w, REPORT_NETWORK), STR("Ports")), port)
        if (n->n_port_status < LPS_MAX_PORTS)
            PUSH(w, n, port_status, make_status(w, port));
    return n;
}
