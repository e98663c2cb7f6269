/* SPDX-License-Identifier: Apache-2.0 */
/* Ports that a local profile server configures: what is refused, what is published, what is kept.
 */
#include "desk.h"
#include "protobuf/protojson.h"
#include "test.h"
#include "zedagent/parse_local.h"

#define NOW_US 1767225600000000 /* 2026-01-01 */
#define CONFIG(rest) "{\"id\":{\"uuid\":\"" DEVICE_UUID "\",\"version\":\"1\"}" rest "}"
#define SERVER ",\"localProfileServer\":\"10.1.0.2\",\"profileServerToken\":\"secret\""
#define CONFIGS \
    "{\"CurrentIndex\":1,\"PortConfigList\":[{\"Ports\":[{\"Logicallabel\":\"other\"}]}," \
    "{\"Ports\":[{\"Logicallabel\":\"up\",\"IfName\":\"eth0\",\"Phylabel\":\"ethernet0\"," \
    "\"PCIAddr\":\"0000:01:00.0\"},{\"Logicallabel\":\"air\",\"IfName\":\"wlan0\"}]}]}"
#define FILE_NAME "persist/checkpoint/localnetworkconfig"

static const Eve__Profile__LocalNetworkConfig *order_of(struct arena *a, const char *text)
{
    struct str error = STR_NONE;
    const void *m =
        protojson_read(a, &eve__profile__local_network_config__descriptor,
                       json_parse_quick(a, str_of(text)), PROTOJSON_REFUSE_UNKNOWN, NULL, &error);
    if (!m)
        fail_msg("%s: %.*s", text, STR_ARG(error));
    return m;
}

static const struct json *in_use(struct arena *a)
{
    const struct json *list = json_get(json_parse_quick(a, STR(CONFIGS)), STR("PortConfigList"));
    return json_get(&list->items[1], STR("Ports"));
}

/* ---- judged --------------------------------------------------------------------------------- */

TEST(a_port_becomes_what_nim_understands)
{
    ARENA_AUTO a = arena_new();
    struct json *v = NULL;
    const struct str error = parse_local_network(
        a,
        order_of(a, "{\"ports\":[{\"logicalLabel\":\"up\",\"ipVersion\":\"IP_VERSION_IPV4_ONLY\","
                    "\"ipAddresses\":[\"10.1.0.2/24\"],\"gateways\":[\"10.1.0.1\"],"
                    "\"dnsServers\":[\"10.1.0.53\"],\"dnsDomain\":\"lan\",\"ntpServers\":[\"ntp\"],"
                    "\"mtu\":1400,\"proxyConfig\":{\"networkProxyEnable\":true,\"exceptions\":"
                    "\"10.0.0.0/8\",\"proxies\":[{\"proto\":\"PROXY_HTTPS\",\"server\":\"proxy\","
                    "\"port\":3128}]},\"dhcpOptionsIgnore\":{\"gatewaysExclusively\":true}}]}"),
        in_use(a), NOW_US, &v);
    assert_str(error.p ? error : STR(""), "");
    assert_str(
        json_text(a, v),
        "{\"Version\":1,\"Key\":\"lps\",\"Ports\":[{\"IfName\":\"eth0\",\"PCIAddr\":"
        "\"0000:01:00.0\",\"Phylabel\":\"ethernet0\",\"Logicallabel\":\"up\",\"MTU\":1400,"
        "\"Dhcp\":1,\"AddrSubnet\":\"10.1.0.2/24\",\"Type\":5,\"Gateway\":\"10.1.0.1\","
        "\"DomainName\":\"lan\",\"NTPServers\":[\"ntp\"],\"DNSServers\":[\"10.1.0.53\"],"
        "\"IgnoreDhcpGateways\":true,\"Proxies\":[{\"type\":1,\"server\":\"proxy\",\"port\":3128}],"
        "\"Exceptions\":\"10.0.0.0/8\",\"NetworkProxyEnable\":true,\"ConfigSource\":{\"Origin\":7,"
        "\"SubmittedAt\":\"2026-01-01T00:00:00Z\"}}]}");
}

TEST(without_wires_there_is_more_to_say)
{
    ARENA_AUTO a = arena_new();
    struct json *v = NULL;
    struct str error = parse_local_network(
        a,
        order_of(a, "{\"ports\":[{\"logicalLabel\":\"air\",\"useDhcp\":true,"
                    "\"withoutDefaultRoute\":true,\"wirelessDeviceType\":\"WIRELESS_TYPE_WIFI\","
                    "\"wifiConfig\":{\"ssid\":\"home\",\"keyScheme\":\"WPAPSK\",\"password\":"
                    "\"x\"}}]}"),
        in_use(a), NOW_US, &v);
    assert_null(error.p);
    const struct json *port = &json_get(v, STR("Ports"))->items[0];
    const struct json *wireless = json_get(port, STR("WirelessCfg"));
    assert_int_equal(json_get_int(wireless, STR("WType"), 0), 2);
    const struct json *wifi = &json_get(wireless, STR("Wifi"))->items[0];
    assert_str(json_get_str(wifi, STR("SSID")), "home");
    assert_int_equal(json_get_int(wifi, STR("KeyScheme"), 0), 1);
    assert_str(json_get_str(wifi, STR("Password")), "x");
    assert_str(json_get_str(port, STR("Gateway")), "0.0.0.0");
    assert_int_equal(json_get_int(port, STR("Dhcp"), 0), 4);
    error = parse_local_network(
        a,
        order_of(a, "{\"ports\":[{\"logicalLabel\":\"air\",\"useDhcp\":true,"
                    "\"wirelessDeviceType\":\"WIRELESS_TYPE_CELLULAR\",\"cellularConfig\":{"
                    "\"apn\":\"net\",\"activateSimSlot\":2,\"defaultBearerAuth\":{"
                    "\"authProtocol\":\"CELLULAR_AUTH_PROTOCOL_PAP\",\"username\":\"u\"}}}]}"),
        in_use(a), NOW_US, &v);
    assert_null(error.p);
    wireless = json_get(&json_get(v, STR("Ports"))->items[0], STR("WirelessCfg"));
    const struct json *point = &json_at(wireless, "CellularV2", "AccessPoints", NULL)->items[0];
    assert_str(json_get_str(point, STR("APN")), "net");
    assert_str(json_get_str(point, STR("AuthProtocol")), "pap");
    assert_true(json_get_bool(point, STR("Activated"), false));
    assert_str(json_get_str(json_get(point, STR("CleartextCredentials")), STR("Username")), "u");
}

TEST(what_is_wrong_is_said_and_nothing_of_it_counts)
{
    static const struct {
        const char *port, *error;
    } cases[] = {
        {"", "port configuration with undefined logical label"},
        {"\"logicalLabel\":\"moon\"",
         "port with logical label \"moon\" not found in the current config"},
        {"\"logicalLabel\":\"other\"",
         "port with logical label \"other\" not found in the current config"},
        {"\"logicalLabel\":\"up\",\"mtu\":1000", "port \"up\": MTU (1000) is too small"},
        {"\"logicalLabel\":\"up\",\"mtu\":65536", "port \"up\": MTU (65536) is too large"},
        {"\"logicalLabel\":\"up\",\"ipVersion\":9", "port \"up\": unrecognized IP version (9)"},
        {"\"logicalLabel\":\"up\",\"ipAddresses\":[\"10.0.0.1/8\",\"10.0.0.2/8\"]",
         "port \"up\": multiple static IP addresses are not supported"},
        {"\"logicalLabel\":\"up\",\"ipAddresses\":[\"10.0.0.1\"]",
         "port \"up\": invalid IP address \"10.0.0.1\": invalid CIDR address: 10.0.0.1"},
        {"\"logicalLabel\":\"up\",\"ipAddresses\":[\"10.0.0.1/33\"]",
         "port \"up\": invalid IP address \"10.0.0.1/33\": invalid CIDR address: 10.0.0.1/33"},
        {"\"logicalLabel\":\"up\",\"gateways\":[\"10.0.0.1\",\"10.0.0.2\"]",
         "port \"up\": multiple static IP gateways are not supported"},
        {"\"logicalLabel\":\"up\",\"gateways\":[\"gate\"]",
         "port \"up\": invalid gateway IP address \"gate\""},
        {"\"logicalLabel\":\"up\",\"ipAddresses\":[\"10.0.0.1/8\"],\"gateways\":[\"fe80::1\"]",
         "port \"up\": IP version mismatch between address and gateway (fe80::1)"},
        {"\"logicalLabel\":\"up\",\"dnsServers\":[\"10.0.0.1\",\"dns\"]",
         "port \"up\": invalid DNS server IP address \"dns\""},
        {"\"logicalLabel\":\"up\",\"dnsServers\":[\"\"]", "port \"up\": invalid DNS server"},
        {"\"logicalLabel\":\"up\",\"ntpServers\":[\"a b\"]", "port \"up\": invalid NTP server"},
        {"\"logicalLabel\":\"up\",\"dnsDomain\":\"lan\\nnameserver 1.2.3.4\"",
         "port \"up\": invalid DNS domain"},
        {"\"logicalLabel\":\"up\",\"proxyConfig\":{\"proxies\":[{\"server\":\"p\",\"port\":65536}]"
         "}",
         "port \"up\": invalid proxy"},
        {"\"logicalLabel\":\"up\",\"wirelessDeviceType\":\"WIRELESS_TYPE_WIFI\"",
         "port \"up\": missing WiFi configuration"},
        {"\"logicalLabel\":\"up\",\"wirelessDeviceType\":\"WIRELESS_TYPE_CELLULAR\"",
         "port \"up\": missing cellular configuration"},
        {"\"logicalLabel\":\"up\",\"wirelessDeviceType\":7",
         "port \"up\": unsupported wireless type: 7"},
        {"\"logicalLabel\":\"up\",\"wirelessDeviceType\":\"WIRELESS_TYPE_WIFI\",\"wifiConfig\":{"
         "\"keyScheme\":77}",
         "port \"up\": unrecognized WiFi key scheme: 77"},
        {"\"logicalLabel\":\"air\"},{\"logicalLabel\":\"air\"",
         "port \"air\": configured more than once"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        struct json *v = NULL;
        const struct str text = arena_printf(a, "{\"ports\":[{%s}]}", cases[i].port);
        assert_str(parse_local_network(a, order_of(a, text.p), in_use(a), NOW_US, &v),
                   cases[i].error);
        assert_null(v);
    }
}

TEST(there_is_a_limit_to_everything)
{
    ARENA_AUTO a = arena_new();
    struct json *v = NULL;
    char *servers[PARSE_LOCAL_MAX_SERVERS + 1], *name = arena_alloc(a, 300);
    Eve__Profile__NetworkPortConfig p = EVE__PROFILE__NETWORK_PORT_CONFIG__INIT;
    Eve__Profile__NetworkPortConfig *all[PARSE_LOCAL_MAX_PORTS + 1];
    Eve__Profile__LocalNetworkConfig c = EVE__PROFILE__LOCAL_NETWORK_CONFIG__INIT;
    memset(name, 'x', 299);
    for (size_t i = 0; i < N_ELEMENTS(servers); i++)
        servers[i] = (char *) (uintptr_t) "10.0.0.1";
    for (size_t i = 0; i < N_ELEMENTS(all); i++)
        all[i] = &p;
    p.logical_label = (char *) (uintptr_t) "up";
    p.dns_servers = servers;
    p.n_dns_servers = N_ELEMENTS(servers);
    c.ports = all;
    c.n_ports = 1;
    assert_str(parse_local_network(a, &c, in_use(a), NOW_US, &v),
               "port \"up\": too many of DNS server (17)");
    p.n_dns_servers--;
    assert_null(parse_local_network(a, &c, in_use(a), NOW_US, &v).p);
    c.n_ports = N_ELEMENTS(all);
    assert_str(parse_local_network(a, &c, in_use(a), NOW_US, &v), "too many ports (65)");
    c.n_ports = 1;
    p.dns_domain = name;
    assert_str(parse_local_network(a, &c, in_use(a), NOW_US, &v),
               "port \"up\": invalid DNS domain");
    p.logical_label = name;
    assert_str(parse_local_network(a, &c, in_use(a), NOW_US, &v),
               "port configuration with too long a logical label");
    /* What is quoted is text, whatever was sent. */
    p.logical_label = (char *) (uintptr_t) "\xff";
    assert_str(parse_local_network(a, &c, in_use(a), NOW_US, &v),
               "port with logical label \"\xef\xbf\xbd\" not found in the current config");
}

/* ---- in force ------------------------------------------------------------------------------- */

#define STATIC(address) \
    "{\"ports\":[{\"logicalLabel\":\"up\",\"ipAddresses\":[\"" address "/24\"]}]}"

static struct str take(struct desk *k, const char *text)
{
    const struct str error = zedagent_take_network(k->z, k->d.arena, order_of(k->d.arena, text),
                                                   json_parse_quick(k->d.arena, STR(CONFIGS)));
    return error.p ? error : STR("");
}

static void begin(struct desk *k)
{
    desk_init(k);
    desk_start(k);
    assert_int_equal(desk_apply(k, CONFIG(SERVER)), APPLY_OK);
}

static void begin_again(struct desk *k)
{
    desk_stop(k);
    desk_start(k);
}

/* "": nothing is published; "-": no port is. */
static struct str published(struct desk *k)
{
    const struct json *v = desk_published(k, SECTION_PORTS, "lps");
    const struct json *ports = json_get(v, STR("Ports"));
    if (!v)
        return STR("");
    return json_count(ports) ? json_get_str(&ports->items[0], STR("AddrSubnet")) : STR("-");
}

TEST(it_is_published_kept_and_published_again)
{
    struct desk k;
    begin(&k);
    assert_str(published(&k), "");
    assert_str(take(&k, STATIC("10.0.0.2")), "");
    assert_str(published(&k), "10.0.0.2/24");
    const struct json *first = desk_published(&k, SECTION_PORTS, "lps");
    /* Said again it is no newer. */
    assert_str(take(&k, STATIC("10.0.0.2")), "");
    assert_true(json_equal(first, desk_published(&k, SECTION_PORTS, "lps")));
    begin_again(&k);
    assert_true(json_equal(first, desk_published(&k, SECTION_PORTS, "lps")));
    assert_int_equal(desk_apply(&k, CONFIG(SERVER)), APPLY_OK);
    assert_str(published(&k), "10.0.0.2/24");
    /* What is refused changes nothing. */
    assert_str(take(&k, "{\"ports\":[{\"logicalLabel\":\"up\",\"mtu\":1}]}"),
               "port \"up\": MTU (1) is too small");
    assert_str(published(&k), "10.0.0.2/24");
    assert_str(take(&k, STATIC("10.0.0.3")), "");
    assert_str(published(&k), "10.0.0.3/24");
    desk_done(&k);
}

TEST(it_is_taken_back)
{
    static const struct {
        const char *config; /* NULL: the server says so itself */
    } cases[] = {
        {NULL},
        {CONFIG("")},
        {CONFIG(",\"localProfileServer\":\"10.1.0.9\",\"profileServerToken\":\"secret\"")},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct desk k;
        begin(&k);
        assert_str(take(&k, STATIC("10.0.0.2")), "");
        begin_again(&k);
        assert_int_equal(desk_apply(&k, cases[i].config ? cases[i].config : CONFIG(SERVER)),
                         APPLY_OK);
        if (!cases[i].config)
            assert_str(take(&k, "{}"), "");
        assert_str(published(&k), "-");
        assert_null(device_read(&k.d, FILE_NAME).p);
        assert_null(zedagent_local_network(k.z, k.d.arena));
        begin_again(&k);
        assert_str(published(&k), "");
        desk_done(&k);
    }
}

TEST(without_a_configuration_in_use_there_is_no_port)
{
    struct desk k;
    begin(&k);
    const Eve__Profile__LocalNetworkConfig *c = order_of(k.d.arena, STATIC("10.0.0.2"));
    assert_str(zedagent_take_network(k.z, k.d.arena, c, NULL),
               "no network configuration is currently active");
    desk_done(&k);
}

TEST(what_does_not_fit_its_topic_is_refused_and_leaves_what_was)
{
    struct desk k;
    begin(&k);
    assert_str(take(&k, STATIC("10.0.0.2")), "");
    const struct str before = device_read(&k.d, FILE_NAME);
    char *script = arena_alloc(k.d.arena, 40001);
    memset(script, 'A', 40000);
    const struct str large =
        arena_printf(k.d.arena,
                     "{\"ports\":[{\"logicalLabel\":\"up\",\"proxyConfig\":{\"pacfile\":\"%s\"}},"
                     "{\"logicalLabel\":\"air\",\"proxyConfig\":{\"pacfile\":\"%s\"}}]}",
                     script, script);
    assert_str(take(&k, large.p), "the network configuration is too large");
    assert_str(published(&k), "10.0.0.2/24");
    assert_true(str_eq(device_read(&k.d, FILE_NAME), before));
    desk_done(&k);
}

TEST(a_damaged_file_is_none)
{
    static const char *const texts[] = {"x", "[]", "{}", "{\"Ports\":7}", "{\"Ports\":[]}", ""};
    struct desk k;
    desk_init(&k);
    for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
        desk_leave(&k, FILE_NAME, str_of(texts[i]));
        desk_start(&k);
        assert_int_equal(desk_apply(&k, CONFIG(SERVER)), APPLY_OK);
        assert_str(published(&k), "");
        assert_str(take(&k, STATIC("10.0.0.2")), "");
        desk_stop(&k);
    }
    desk_start(&k);
    desk_done(&k);
}
