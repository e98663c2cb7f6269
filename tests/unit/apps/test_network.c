/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "site.h"

#include "apps/network_plan.h"
#include "base/alloc.h"

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

TEST(a_machine_has_a_tap_and_may_ask_for_its_address)
{
    ARENA_AUTO arena = arena_new();
    struct plan p = {.arena = arena, .prefix = "t"};
    const struct network_instance *networks[] = {&instance};
    const struct network_app machine = {app.id, true, app.interfaces, app.n_interfaces};
    const struct network_app *apps[] = {&machine};
    char bridge[NETWORK_NAME_BYTES], vif[NETWORK_NAME_BYTES];
    BUF_AUTO text = {0};
    plan_bridge_name("t", instance.id, bridge);
    plan_interface_name("t", app.id, 0, vif);
    plan_open_app(&p, &machine, networks);
    struct str wanted = arena_printf(arena,
                                     "ip netns add t-app-1 ?\n"
                                     "ip -n t-app-1 link set dev lo up ;\n"
                                     "ip tuntap add dev %s mode tap ?\n"
                                     "ip link set dev %s master %s ;\n"
                                     "ip link set dev %s up ;\n",
                                     vif, vif, bridge, vif);
    assert_str(text_of(&p), wanted.p);
    /* Before its address is known to it: between the guards of both of its addresses. */
    plan_rules(&text, "t", &(struct plan_wishes){networks, 1, apps, 1, NULL});
    wanted = arena_printf(
        arena,
        "    iifname \"%s\" ether saddr != 02:16:3e:01:02:03 drop\n"
        "    iifname \"%s\" ip saddr 0.0.0.0 ip daddr 255.255.255.255 udp sport 68 udp "
        "dport 67 accept\n"
        "    iifname \"%s\" arp saddr ip 0.0.0.0 accept\n"
        "    iifname \"%s\" udp sport 67 udp dport 68 drop\n"
        "    iifname \"%s\" ether type ip ip saddr != 10.1.0.2 drop\n",
        vif, vif, vif, vif, vif);
    assert_true(str_find_str(buf_str(&text), wanted) >= 0);
}

TEST(rules_say_what_the_configuration_says_and_nothing_else)
{
    const struct network_instance *networks[] = {&instance};
    const struct network_app *apps[] = {&app};
    BUF_AUTO text = {0};
    plan_rules(&text, "t", &(struct plan_wishes){networks, 1, apps, 1, NULL});
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
    plan_rules(&text, "t", &(struct plan_wishes){0});
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

/* ---- hosts and limits ---------------------------------------------------------------------- */

static const struct network_rule by_host[] = {
    {.protocol = STR("tcp"), .remote_port = 22},
    {.host = STR("example.com"), .protocol = STR("tcp"), .remote_port = 443},
    {.protocol = STR("udp"), .limit = {5, 10, "second"}},
    {.protocol = STR("icmp"), .limit = {3, 0, "hour"}},
    {.remote = STR("10.9.0.0/16")},
};
static const struct network_interface by_host_interface = {
    .network = STR("net-1"),
    .address = 0x0a010003,
    .rules = by_host,
    .n_rules = N_ELEMENTS(by_host),
};
static const struct network_app by_host_app = {
    .id = STR("app-2"), .interfaces = &by_host_interface, .n_interfaces = 1};

static void assert_has(const struct buf *text, const char *wanted)
{
    if (str_find_str(buf_str(text), str_of(wanted)) < 0)
        fail_msg("'%s' is not in\n%s", wanted, text->p);
}

TEST(rules_by_host_match_what_was_learned)
{
    const struct network_instance *networks[] = {&instance};
    const struct network_app *apps[] = {&by_host_app};
    struct hosts hosts = {0};
    BUF_AUTO text = {0}, more = {0};
    hosts_take(&hosts, apps, 1);
    assert_int_equal(hosts.n_items, 1);
    const struct plan_wishes wishes = {networks, 1, apps, 1, &hosts};
    plan_rules(&text, "t", &wishes);
    assert_has(&text, " {\n    type ipv4_addr\n  }\n");
    /* Nothing is known yet: nothing is added. */
    plan_host(&more, "t", &hosts.items[0]);
    assert_int_equal(more.n, 0);
    struct hosts_answer answer = {
        .name = "www.example.com", .addresses = {0xc0000201, 0xc0000202}, .n_addresses = 2};
    assert_true(hosts_learn_all(&hosts.items[0], &answer));
    assert_false(hosts_learn_all(&hosts.items[0], &answer));
    plan_host(&more, "t", &hosts.items[0]);
    assert_has(&more, "add element ip t h");
    assert_has(&more, " { 192.0.2.1, 192.0.2.2 }\n");
    /* What is known survives other rules, and goes with the last that names it. */
    hosts_take(&hosts, apps, 1);
    buf_reset(&text);
    plan_rules(&text, "t", &wishes);
    assert_has(&text, "    elements = { 192.0.2.1, 192.0.2.2 }\n");
    hosts_take(&hosts, NULL, 0);
    assert_int_equal(hosts.n_items, 0);
    hosts_done(&hosts);
}

TEST(limits_count_every_packet_in_the_order_of_rules)
{
    const struct network_instance *networks[] = {&instance};
    const struct network_app *apps[] = {&by_host_app};
    struct hosts hosts = {0};
    BUF_AUTO text = {0};
    hosts_take(&hosts, apps, 1);
    plan_rules(&text, "t", &(struct plan_wishes){networks, 1, apps, 1, &hosts});
    assert_has(&text, "    tcp dport 22 return\n");
    assert_has(&text, "    ip protocol udp limit rate over 5/second burst 10 packets drop\n"
                      "    ip protocol udp return\n"
                      "    ip protocol icmp limit rate over 3/hour drop\n"
                      "    ip protocol icmp return\n  }\n");
    assert_has(&text, "    ip protocol udp accept\n");
    const ptrdiff_t limit = str_find_str(buf_str(&text), STR("jump outlimit_"));
    assert_true(limit >= 0 &&
                limit < str_find_str(buf_str(&text), STR("    ct state established,related")));
    hosts_done(&hosts);
}

TEST(a_host_is_its_name_and_what_is_below)
{
    char name[HOSTS_NAME_BYTES];
    assert_true(hosts_normal(STR("WWW.Example.COM."), name));
    assert_string_equal(name, "www.example.com");
    assert_true(hosts_is_of(name, "example.com") && hosts_is_of(name, name));
    assert_false(hosts_is_of("badexample.com", "example.com"));
    assert_false(hosts_is_of("com", "example.com"));
    static const char *const bad[] = {"", ".", "a..b", ".a", "a b", "a;drop", "a/24"};
    for (size_t i = 0; i < N_ELEMENTS(bad); i++)
        assert_false(hosts_normal(str_of(bad[i]), name));
}

#define HEAD "\x12\x34\x81\x80\x00\x01\x00\x03\x00\x00\x00\x00"
#define QUESTION \
    "\x03wWw\x07" \
    "example\x03" \
    "com\x00\x00\x01\x00\x01"
#define ALIAS "\xc0\x0c\x00\x05\x00\x01\x00\x00\x00\x3c\x00\x04\x01x\xc0\x10"
#define FIRST "\x01x\xc0\x10\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\xc0\x00\x02\x01"
#define SECOND "\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\xc0\x00\x02\x02"
static const char message[] = HEAD QUESTION ALIAS FIRST SECOND;

TEST(an_answer_of_dns_is_read_and_nothing_beyond_it)
{
    struct hosts_answer a;
    const struct str whole = str_range(message, sizeof(message) - 1);
    assert_true(hosts_read_answer(whole, &a));
    assert_string_equal(a.name, "www.example.com");
    assert_int_equal(a.n_addresses, 2);
    assert_int_equal(a.addresses[0], 0xc0000201);
    assert_int_equal(a.addresses[1], 0xc0000202);
    /* Cut off anywhere it is none. */
    for (size_t n = 0; n < whole.n; n++) {
        char *copy = mem_dup(whole.p, MAX(n, 1));
        assert_false(hosts_read_answer(str_range(copy, n), &a));
        mem_free(copy);
    }
    /* A question, an error, a label that points elsewhere, any byte changed. */
    for (size_t i = 0; i < whole.n; i++) {
        char *copy = mem_dup(whole.p, whole.n);
        for (unsigned bit = 0; bit < 8; bit++) {
            copy[i] = (char) (whole.p[i] ^ 1 << bit);
            (void) hosts_read_answer(str_range(copy, whole.n), &a);
        }
        mem_free(copy);
    }
}
