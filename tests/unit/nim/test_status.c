/* SPDX-License-Identifier: Apache-2.0 */
/* DeviceNetworkStatus of a configuration and of what the machine's interfaces are. */
#include "test.h"

#include "nim/status.h"

static struct dpc_list list_of(const char *text)
{
    ARENA_AUTO a = arena_new();
    struct dpc_list l;
    dpc_list_init(&l);
    const struct dpc_defaults d = {.key = STR("override"), .origin = DPC_ORIGIN_OVERRIDE};
    struct dpc *dpc = NULL;
    assert_int_equal(dpc_read(json_parse_quick(a, str_of(text)), &d, &dpc), 0);
    (void) dpc_list_put(&l, dpc);
    l.current = 0;
    return l;
}

static const struct str resolver = {"10.9.9.9", 8}, router = {"10.1.0.1", 8};
static const struct machine_address addresses[] = {
    {.text = {"fe80::1", 7}, .prefix_bits = 64},
    {.text = {"10.1.0.2", 8}, .prefix_bits = 20},
    {.text = {"2001:db8::2", 11}, .prefix_bits = 64},
};
static struct machine_interface eth0 = {.name = {"eth0", 4},
                                        .mac = {2, 0, 0, 0, 0, 1},
                                        .is_up = true,
                                        .mtu = 1400,
                                        .addresses = addresses,
                                        .n_addresses = 3,
                                        .routers = &router,
                                        .n_routers = 1,
                                        .dns_servers = &resolver,
                                        .n_dns_servers = 1,
                                        .domain = {"lan.example", 11}};

TEST(a_port_has_what_the_machine_has)
{
    ARENA_AUTO a = arena_new();
    struct dpc_list l = list_of("{\"Version\":1,\"Ports\":[{\"IfName\":\"eth0\",\"IsMgmt\":true,"
                                "\"Cost\":3,\"Dhcp\":4,\"Type\":4},{\"IfName\":\"eth7\"}]}");
    l.items[0]->state = NODE_NETWORK_SUCCESS;
    const struct status_inputs in = {
        .list = &l, .interfaces = &eth0, .n_interfaces = 1, .binds_device = true};
    const struct json *status = status_write(a, &in);
    assert_str(json_get_str(status, STR("DPCKey")), "override");
    assert_int_equal(json_get_int(status, STR("State"), 0), NODE_NETWORK_SUCCESS);
    const struct json *p = &json_get(status, STR("Ports"))->items[0];
    assert_str(json_text(a, json_get(p, STR("AddrInfoList"))),
               "[{\"Addr\":\"10.1.0.2\",\"Mask\":\"///wAA==\"},"
               "{\"Addr\":\"fe80::1\",\"Mask\":\"//////////8AAAAAAAAAAA==\"},"
               "{\"Addr\":\"2001:db8::2\",\"Mask\":\"//////////8AAAAAAAAAAA==\"}]");
    assert_str(json_text(a, json_get(p, STR("IPv4Subnet"))),
               "{\"IP\":\"10.1.0.0\",\"Mask\":\"///wAA==\"}");
    assert_str(json_get_str(p, STR("MacAddr")), "AgAAAAAB");
    assert_str(json_get_str(p, STR("DomainName")), "lan.example");
    assert_str(json_text(a, json_get(p, STR("DNSServers"))), "[\"10.9.9.9\"]");
    assert_str(json_text(a, json_get(p, STR("DefaultRouters"))), "[\"10.1.0.1\"]");
    assert_int_equal(json_get_int(p, STR("MTU"), 0), 1400);
    assert_true(json_get_bool(p, STR("Up"), false));
    const struct json *gone = &json_get(status, STR("Ports"))->items[1];
    assert_false(json_get_bool(gone, STR("Up"), true));
    assert_int_equal(json_count(json_get(gone, STR("AddrInfoList"))), 0);
    struct uplink_ports *ports = NULL;
    assert_int_equal(uplink_ports_parse(status, &ports), 0);
    assert_int_equal(ports->n_items, 2);
    assert_true(ports->items[0].binds_device && ports->items[0].is_management);
    assert_int_equal(ports->items[0].cost, 3);
    assert_true(uplink_port_has_address(&ports->items[0]));
    assert_false(uplink_port_has_address(&ports->items[1]));
    uplink_ports_unref(ports);
    dpc_list_done(&l);
}

TEST(addresses_of_a_link_that_is_down_are_left_out)
{
    ARENA_AUTO a = arena_new();
    struct dpc_list l =
        list_of("{\"Version\":1,\"Ports\":[{\"IfName\":\"eth0\",\"IsMgmt\":true}]}");
    struct machine_interface down = eth0;
    down.is_up = false;
    const struct status_inputs in = {.list = &l, .interfaces = &down, .n_interfaces = 1};
    const struct json *p = &json_get(status_write(a, &in), STR("Ports"))->items[0];
    assert_int_equal(json_count(json_get(p, STR("AddrInfoList"))), 0);
    assert_null(json_get(p, STR("BindsDevice")));
    dpc_list_done(&l);
}

TEST(what_is_configured_comes_before_what_the_network_says)
{
    ARENA_AUTO a = arena_new();
    struct dpc_list l = list_of(
        "{\"Version\":1,\"Ports\":[{\"IfName\":\"eth0\",\"IsMgmt\":true,\"Dhcp\":1,\"AddrSubnet\":"
        "\"10.1.0.2/20\",\"Gateway\":\"10.1.0.7\",\"DNSServers\":[\"10.1.0.8\"],\"DomainName\":"
        "\"mine.example\",\"NTPServers\":[\"ntp.example\"],\"Type\":5}]}");
    const struct status_inputs in = {.list = &l, .interfaces = &eth0, .n_interfaces = 1};
    const struct json *p = &json_get(status_write(a, &in), STR("Ports"))->items[0];
    assert_str(json_text(a, json_get(p, STR("DNSServers"))), "[\"10.1.0.8\",\"10.9.9.9\"]");
    assert_str(json_text(a, json_get(p, STR("DefaultRouters"))), "[\"10.1.0.7\",\"10.1.0.1\"]");
    assert_str(json_get_str(p, STR("DomainName")), "mine.example");
    assert_str(json_get_str(p, STR("ConfiguredIP")), "10.1.0.2");
    assert_str(json_text(a, json_get(p, STR("NtpServers"))), "[\"ntp.example\"]");
    assert_str(json_text(a, json_get(p, STR("ConfiguredSubnet"))),
               "{\"IP\":\"10.1.0.0\",\"Mask\":\"///wAA==\"}");
    /* Of IPv4 alone. */
    assert_int_equal(json_count(json_get(p, STR("AddrInfoList"))), 1);
    dpc_list_done(&l);
}

TEST(a_static_port_without_dns_asks_its_gateway)
{
    ARENA_AUTO a = arena_new();
    struct dpc_list l = list_of("{\"Version\":1,\"Ports\":[{\"IfName\":\"eth1\",\"IsMgmt\":true,"
                                "\"Dhcp\":1,\"Gateway\":\"10.1.0.7\"}]}");
    const struct status_inputs in = {.list = &l};
    const struct json *p = &json_get(status_write(a, &in), STR("Ports"))->items[0];
    assert_str(json_text(a, json_get(p, STR("DNSServers"))), "[\"10.1.0.7\"]");
    dpc_list_done(&l);
}

TEST(scripts_that_were_found_are_handed_to_everybody)
{
    ARENA_AUTO a = arena_new();
    struct dpc_list l = list_of("{\"Version\":1,\"Ports\":[{\"IfName\":\"eth0\",\"IsMgmt\":true,"
                                "\"NetworkProxyEnable\":true}]}");
    char name[] = "eth0", pac[] = "cGFj", url[] = "http://wpad/wpad.dat";
    const struct status_script script = {.port = name, .pac = pac, .url = url};
    const struct status_inputs in = {.list = &l, .scripts = &script, .n_scripts = 1};
    const struct json *p = &json_get(status_write(a, &in), STR("Ports"))->items[0];
    assert_str(json_get_str(p, STR("Pacfile")), "cGFj");
    assert_str(json_get_str(p, STR("WpadURL")), "http://wpad/wpad.dat");
    dpc_list_done(&l);
}

TEST(without_a_configuration_the_status_is_empty)
{
    ARENA_AUTO a = arena_new();
    struct dpc_list l;
    dpc_list_init(&l);
    const struct status_inputs in = {
        .list = &l,
        .radio_silence = json_parse_quick(a, STR("{\"Imposed\":true,\"ChangeInProgress\":true}"))};
    const struct json *status = status_write(a, &in);
    assert_int_equal(json_count(json_get(status, STR("Ports"))), 0);
    assert_int_equal(json_get_int(status, STR("CurrentIndex"), 0), -1);
    const struct json *silence = json_get(status, STR("RadioSilence"));
    assert_true(json_get_bool(silence, STR("Imposed"), false));
    assert_false(json_get_bool(silence, STR("ChangeInProgress"), true));
}

TEST(the_machine_is_told_what_the_port_wants)
{
    ARENA_AUTO a = arena_new();
    const struct json *port = json_parse_quick(
        a, STR("{\"IfName\":\"eth0\",\"Dhcp\":1,\"AddrSubnet\":\"10.1.0.2/20\",\"Gateway\":"
               "\"10.1.0.1\",\"DNSServers\":[\"10.1.0.8\",\"\"],\"MTU\":1280}"));
    const struct machine_port p = status_machine_port(a, port);
    assert_int_equal(p.dhcp, MACHINE_STATIC);
    assert_str(p.address.text, "10.1.0.2");
    assert_int_equal(p.address.prefix_bits, 20);
    assert_str(p.router, "10.1.0.1");
    assert_int_equal(p.n_dns_servers, 1);
    assert_int_equal(p.mtu, 1280);
    static const char *const bad[] = {"",    "10.0.0.1", "10.0.0.1/33", "10.0.0.1/-1",
                                      "x/8", "::1/129"};
    for (size_t i = 0; i < N_ELEMENTS(bad); i++) {
        struct machine_address address;
        assert_false(status_parse_subnet(str_of(bad[i]), &address));
    }
}
