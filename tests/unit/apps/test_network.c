/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "site.h"

#include "apps/network_plan.h"

static struct str address_of(struct site *s, const char *app)
{
    const struct json *adapters = json_get(site_told(s, OUT_APP, app), STR("AppNetAdapters"));
    assert_int_equal(json_count(adapters), 1);
    const struct json *list = json_at(&adapters->items[0], "AssignedAddresses", "IPv4Addrs", NULL);
    return json_count(list) ? json_get_str(&list->items[0], STR("Address")) : STR("");
}

TEST(an_application_waits_for_its_network_instance)
{
    struct site s;
    site_init(&s);
    s.config.has_network = false;
    site_start(&s);
    site_run(&s, 300);
    assert_int_equal(site_state(&s, WEB), SW_AWAIT_NETWORK_INSTANCE);
    s.config.has_network = true;
    site_configure(&s);
    site_run(&s, 60);
    assert_int_equal(site_state(&s, WEB), SW_RUNNING);
    const struct json *n = site_told(&s, OUT_NETWORK, NETWORK);
    assert_true(json_get_bool(n, STR("Activated"), false));
    assert_str(json_get_str(n, STR("UUID")), NETWORK);
    assert_int_equal(json_get_int(n, STR("Activate"), 0), 1);
    assert_int_equal(json_count(json_get(n, STR("Vifs"))), 1);
    assert_int_equal(json_count(json_get(n, STR("IPAssignments"))), 1);
    site_done(&s);
}

TEST(addresses_are_of_the_range_and_stay)
{
    struct site s;
    site_init(&s);
    s.config.is_second = true;
    site_start(&s);
    site_run(&s, 300);
    assert_str(address_of(&s, WEB), "10.1.0.2");
    assert_str(address_of(&s, DB), "10.1.0.3");
    /* Whoever comes first after a restart gets what it had. */
    site_kill(&s);
    site_start(&s);
    site_run(&s, 60);
    assert_str(address_of(&s, WEB), "10.1.0.2");
    assert_str(address_of(&s, DB), "10.1.0.3");
    site_done(&s);
}

/* ---- what is run for it -------------------------------------------------------------------- */

static const struct str ports[] = {{"eth0", 4}};
static const struct network_instance instance = {
    .id = {"net-1", 5},
    .subnet = {.address = 0x0a010000,
               .gateway = 0x0a010001,
               .first = 0x0a010002,
               .last = 0x0a0100fe,
               .prefix_bits = 24},
    .ports = ports,
    .n_ports = 1,
};
static const struct network_rule rules[] = {
    {.remote = {"192.0.2.0/24", 12}, .drops = true},
    {.protocol = {"tcp", 3}, .local_port = 8080, .target_port = 80},
    {.protocol = {"tcp; drop", 9}},     /* nothing of this may reach nft */
    {.remote = {"1.2.3.4 accept", 14}}, /* nor of this */
    {.remote_port = 53},                /* of no protocol */
    {.drops = false},
};
static const struct network_interface interface = {
    .network = {"net-1", 5},
    .address = 0x0a010002,
    .mac = {2, 0x16, 0x3e, 1, 2, 3},
    .rules = rules,
    .n_rules = N_ELEMENTS(rules),
};
static const struct network_app app = {
    .id = {"app-1", 5}, .interfaces = &interface, .n_interfaces = 1};

static struct str text_of(struct plan *p)
{
    BUF_AUTO b = {0};
    for (size_t i = 0; i < p->n_steps; i++) {
        for (size_t k = 0; p->steps[i].words[k]; k++)
            buf_printf(&b, "%s ", p->steps[i].words[k]);
        buf_printf(&b, "%s\n", p->steps[i].may_fail ? "?" : ";");
    }
    return arena_str(p->arena, buf_str(&b));
}

TEST(a_network_instance_is_a_bridge_with_two_addresses)
{
    ARENA_AUTO arena = arena_new();
    struct plan p = {.arena = arena, .prefix = "s12345"};
    char bridge[NETWORK_NAME_BYTES];
    plan_bridge_name("s12345", instance.id, bridge);
    assert_true(strlen(bridge) < NETWORK_NAME_BYTES);
    plan_open_instance(&p, &instance);
    struct str wanted = arena_printf(arena,
                                     "ip link add name %s type bridge ?\n"
                                     "ip -4 addr flush dev %s ;\n"
                                     "ip addr replace 10.1.0.1/24 dev %s ;\n"
                                     "ip addr replace 169.254.169.254/32 dev %s ;\n"
                                     "ip link set dev %s up ;\n",
                                     bridge, bridge, bridge, bridge, bridge);
    assert_str(text_of(&p), wanted.p);
}

TEST(an_application_has_a_namespace_with_an_address)
{
    ARENA_AUTO arena = arena_new();
    struct plan p = {.arena = arena, .prefix = "t"};
    const struct network_instance *networks[] = {&instance};
    char bridge[NETWORK_NAME_BYTES], vif[NETWORK_NAME_BYTES];
    plan_bridge_name("t", instance.id, bridge);
    plan_interface_name("t", app.id, 0, vif);
    plan_open_app(&p, &app, networks);
    struct str wanted = arena_printf(arena,
                                     "ip netns add t-app-1 ?\n"
                                     "ip -n t-app-1 link set dev lo up ;\n"
                                     "ip link add %s type veth peer name eth0 netns t-app-1 ?\n"
                                     "ip link set dev %s master %s ;\n"
                                     "ip link set dev %s up ;\n"
                                     "ip -n t-app-1 link set dev eth0 address 02:16:3e:01:02:03 ;\n"
                                     "ip -n t-app-1 link set dev eth0 up ;\n"
                                     "ip -n t-app-1 addr replace 10.1.0.2/24 dev eth0 ;\n"
                                     "ip -n t-app-1 route add default via 10.1.0.1 dev eth0 ?\n",
                                     vif, vif, bridge, vif);
    assert_str(text_of(&p), wanted.p);
}

TEST(rules_say_what_the_configuration_says_and_nothing_else)
{
    const struct network_instance *networks[] = {&instance};
    const struct network_app *apps[] = {&app};
    BUF_AUTO text = {0};
    plan_rules(&text, "t", networks, 1, apps, 1);
    static const char *const wanted[] = {
        "delete table ip t\n",
        "iifname { \"eth0\" } tcp dport 8080 dnat to 10.1.0.2:80\n",
        "ip saddr 10.1.0.0/24 oifname { \"eth0\" } masquerade\n",
        "    ip daddr 192.0.2.0/24 drop\n",
        "    tcp dport 80 ct status dnat accept\n",
        "ether saddr != 02:16:3e:01:02:03 drop\n",
        "arp saddr ip != 10.1.0.2 drop\n",
    };
    for (size_t i = 0; i < N_ELEMENTS(wanted); i++)
        if (str_find_str(buf_str(&text), str_of(wanted[i])) < 0)
            fail_msg("'%s' is not in\n%s", wanted[i], text.p);
    assert_true(str_find_str(buf_str(&text), STR("; drop")) < 0);
    assert_true(str_find_str(buf_str(&text), STR("1.2.3.4")) < 0);
    assert_true(str_find_str(buf_str(&text), STR("sport 53 ")) < 0);
    /* Nobody is left: neither are rules. */
    buf_reset(&text);
    plan_rules(&text, "t", NULL, 0, NULL, 0);
    assert_str(buf_str(&text),
               "table ip t\ndelete table ip t\ntable bridge t\ndelete table bridge t\n");
}

TEST(only_networks_of_ipv4_are_taken)
{
    static const struct {
        const char *text;
        bool is_one;
    } cases[] = {
        {"10.0.0.0/8", true}, {"1.2.3.4", true},   {"0.0.0.0/0", true}, {"10.0.0.0/33", false},
        {"10.0.0.0/", false}, {"fd00::/8", false}, {"", false},         {"10.0.0.0/8 drop", false}};
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        assert_int_equal(plan_is_network(str_of(cases[i].text)), cases[i].is_one);
}
