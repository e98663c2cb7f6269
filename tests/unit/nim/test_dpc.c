/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations: the JSON of 2025 and of 2026, by hand and by machine, and what is decided about
 * one. */
#include "test.h"

#include <errno.h>

#include "base/buf.h"
#include "machine/machine.h"
#include "nim/dpc.h"

#define SECOND ((int64_t) 1000 * 1000)
#define YEAR_2020 ((int64_t) 1577836800 * SECOND)
#define NOW ((int64_t) 1793000000 * SECOND)

static const struct dpc_defaults of_file = {
    .key = {"override", 8}, .priority_us = 5, .origin = DPC_ORIGIN_OVERRIDE, .submitted_us = NOW};

static int read_text(const char *text, struct dpc **ret)
{
    ARENA_AUTO a = arena_new();
    const struct json *v = json_parse_quick(a, str_of(text));
    assert_non_null(v);
    return dpc_read(v, &of_file, ret);
}

static struct dpc *must_read(const char *text)
{
    struct dpc *d = NULL;
    assert_int_equal(read_text(text, &d), 0);
    return d;
}

static void assert_config(const struct dpc *d, const char *expected)
{
    assert_string_equal(d->config, expected);
}

TEST(minimal_file_is_filled_in)
{
    CLEANUP(dpc_freep)
    struct dpc *d =
        must_read("{\"Version\":1,\"TimePriority\":\"2020-01-01T00:00:00Z\",\"Ports\":[{"
                  "\"IfName\":\"eth0\",\"IsMgmt\":true,\"Dhcp\":4,\"Type\":4}]}");
    assert_string_equal(d->key, "override");
    assert_int_equal(d->priority_us, YEAR_2020);
    assert_int_equal(d->n_ports, 1);
    assert_string_equal(d->ports[0].label, "eth0");
    assert_true(d->ports[0].is_l3 && d->ports[0].is_management);
    assert_int_equal(d->ports[0].dhcp, MACHINE_DHCP);
    assert_int_equal(d->ports[0].submitted_us, NOW);
    assert_true(dpc_is_untested(d));
    assert_config(d, "[{\"ConfigSource\":{\"Origin\":3},\"Dhcp\":4,\"IfName\":\"eth0\","
                     "\"IsL3Port\":true,\"IsMgmt\":true,\"Logicallabel\":\"eth0\",\"Phylabel\":"
                     "\"eth0\",\"SharedLabels\":[\"all\",\"uplink\",\"freeuplink\"],\"Type\":4}]");
}

TEST(names_of_people_need_not_have_the_right_case)
{
    CLEANUP(dpc_freep)
    struct dpc *d = must_read("{\"version\":1,\"ports\":[{\"ifname\":\"eth0\",\"ISMGMT\":true,"
                              "\"DnsServers\":[\"10.0.0.1\"],\"NtpServer\":\"ntp.example\"}]}");
    assert_int_equal(d->version, 1);
    assert_int_equal(d->priority_us, 5);
    ARENA_AUTO a = arena_new();
    const struct json *port = &dpc_config(a, d)->items[0];
    assert_str(json_get_str(port, STR("IfName")), "eth0");
    assert_int_equal(json_count(json_get(port, STR("DNSServers"))), 1);
    assert_str(json_str(&json_get(port, STR("NTPServers"))->items[0]), "ntp.example");
    assert_null(json_get(port, STR("NtpServer")));
}

TEST(shared_labels_of_people_stay_and_ours_follow_the_cost)
{
    CLEANUP(dpc_freep)
    struct dpc *d =
        must_read("{\"Version\":1,\"Ports\":[{\"IfName\":\"a\",\"IsMgmt\":true,\"Cost\""
                  ":10,\"SharedLabels\":[\"freeuplink\",\"mine\"]},{\"IfName\":\"b\"}]}");
    ARENA_AUTO a = arena_new();
    const struct json *ports = dpc_config(a, d);
    assert_str(json_text(a, json_get(&ports->items[0], STR("SharedLabels"))),
               "[\"mine\",\"all\",\"uplink\"]");
    assert_str(json_text(a, json_get(&ports->items[1], STR("SharedLabels"))), "[\"all\"]");
}

/* As zedagent of 2026 writes it, with every member that Go writes although it is zero. */
static const char full[] =
    "{\"Version\":1,\"Key\":\"zedagent\",\"TimePriority\":\"2026-08-01T10:20:30.123456789Z\","
    "\"State\":3,\"LastFailed\":\"0001-01-01T00:00:00Z\","
    "\"LastSucceeded\":\"2026-08-01T10:21:00.5Z\",\"LastIPAndDNS\":\"0001-01-01T00:00:00Z\","
    "\"Ports\":[{\"IfName\":\"eth0\",\"Phylabel\":\"eth0\",\"Logicallabel\":\"uplink0\","
    "\"SharedLabels\":[\"all\",\"uplink\",\"freeuplink\"],"
    "\"NetworkUUID\":\"00000000-0000-0000-0000-000000000000\",\"IsMgmt\":true,\"IsL3Port\":true,"
    "\"Dhcp\":1,\"AddrSubnet\":\"10.1.0.2/24\",\"Gateway\":\"10.1.0.1\","
    "\"DNSServers\":[\"10.1.0.1\"],\"Type\":4,"
    "\"Proxies\":[{\"server\":\"proxy.example\",\"port\":3128}],"
    "\"pubsub-large-ProxyCertPEM\":null,\"VLAN\":{},\"Bond\":{\"MIIMonitor\":{},\"ARPMonitor\":{}},"
    "\"WirelessCfg\":{\"CellularV2\":{\"Probe\":{}}},\"PNAC\":{},"
    "\"LastFailed\":\"2026-08-01T10:20:00Z\",\"LastSucceeded\":\"0001-01-01T00:00:00Z\","
    "\"LastError\":\"no route\",\"SomethingOf2027\":{\"Answer\":42},"
    "\"ConfigSource\":{\"Origin\":1,\"SubmittedAt\":\"2026-08-01T10:20:30Z\"}}]}";

TEST(what_is_zero_is_dropped_and_what_is_unknown_is_handed_on)
{
    CLEANUP(dpc_freep) struct dpc *d = must_read(full);
    assert_int_equal(d->state, NODE_NETWORK_SUCCESS);
    assert_true(dpc_was_working(d));
    assert_string_equal(d->ports[0].results.error, "no route");
    assert_config(
        d, "[{\"AddrSubnet\":\"10.1.0.2/24\",\"ConfigSource\":{\"Origin\":1},\"DNSServers\":"
           "[\"10.1.0.1\"],\"Dhcp\":1,\"Gateway\":\"10.1.0.1\",\"IfName\":\"eth0\",\"IsL3Port\":"
           "true,\"IsMgmt\":true,\"Logicallabel\":\"uplink0\",\"Phylabel\":\"eth0\",\"Proxies\":[{"
           "\"port\":3128,\"server\":\"proxy.example\"}],\"SharedLabels\":[\"all\",\"uplink\","
           "\"freeuplink\"],\"SomethingOf2027\":{\"Answer\":42},\"Type\":4}]");
}

TEST(written_and_read_again_it_is_the_same)
{
    CLEANUP(dpc_freep) struct dpc *d = must_read(full);
    ARENA_AUTO a = arena_new();
    CLEANUP(dpc_freep) struct dpc *again = NULL;
    const struct json *v = dpc_write(a, d);
    assert_str(json_get_str(v, STR("TimePriority")), "2026-08-01T10:20:30.123456Z");
    assert_str(json_get_str(v, STR("LastSucceeded")), "2026-08-01T10:21:00.5Z");
    assert_str(json_get_str(v, STR("LastFailed")), "0001-01-01T00:00:00Z");
    const struct json *source = json_get(&json_get(v, STR("Ports"))->items[0], STR("ConfigSource"));
    assert_str(json_get_str(source, STR("SubmittedAt")), "2026-08-01T10:20:30Z");
    const struct dpc_defaults none = {0};
    assert_int_equal(dpc_read(v, &none, &again), 0);
    assert_true(dpc_has_same_content(d, again));
    assert_int_equal(again->priority_us, d->priority_us);
    assert_int_equal(again->results.succeeded_us, d->results.succeeded_us);
    assert_string_equal(again->ports[0].results.error, "no route");
    assert_int_equal(again->ports[0].submitted_us, d->ports[0].submitted_us);
}

TEST(epoch_is_a_priority_and_no_missing_one)
{
    ARENA_AUTO a = arena_new();
    CLEANUP(dpc_freep)
    struct dpc *d = must_read("{\"Key\":\"lastresort\",\"TimePriority\":\"1970-01-01T00:00:00Z\"}");
    assert_int_equal(d->priority_us, 0);
    assert_str(json_get_str(dpc_write(a, d), STR("TimePriority")), "1970-01-01T00:00:00Z");
    CLEANUP(dpc_freep)
    struct dpc *zero = must_read("{\"Key\":\"x\",\"TimePriority\":\"0001-01-01T00:00:00Z\"}");
    assert_int_equal(zero->priority_us, 5);
}

TEST(content_is_compared_without_results_and_times)
{
    CLEANUP(dpc_freep) struct dpc *d = must_read(full);
    CLEANUP(dpc_freep)
    struct dpc *other = must_read(
        "{\"Key\":\"zedagent\",\"Version\":1,\"TimePriority\":\"2026-09-01T00:00:00Z\",\"Ports\":[{"
        "\"Type\":4,\"SomethingOf2027\":{\"Answer\":42},\"Proxies\":[{\"server\":\"proxy.example\","
        "\"port\":3128}],\"DNSServers\":[\"10.1.0.1\"],\"Gateway\":\"10.1.0.1\","
        "\"AddrSubnet\":\"10.1.0.2/24\",\"Dhcp\":1,\"Logicallabel\":\"uplink0\",\"IsMgmt\":true,"
        "\"ConfigSource\":{\"Origin\":1},\"IfName\":\"eth0\"}]}");
    assert_true(dpc_has_same_content(d, other));
    CLEANUP(dpc_freep)
    struct dpc *third = must_read("{\"Key\":\"zedagent\",\"Version\":1,\"Ports\":[]}");
    assert_false(dpc_has_same_content(d, third));
}

TEST(what_is_none_is_refused)
{
    static const struct {
        const char *text;
        int error;
    } cases[] = {{"[]", -EINVAL},
                 {"{\"Ports\":{}}", -EINVAL},
                 {"{\"Ports\":[1]}", -EINVAL},
                 {"{\"Ports\":\"eth0\"}", -EINVAL},
                 {"{\"Ports\":null}", 0},
                 {"{\"Ports\":[{\"IfName\":7,\"Cost\":\"much\",\"Dhcp\":[]}]}", 0}};
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        CLEANUP(dpc_freep) struct dpc *d = NULL;
        assert_int_equal(read_text(cases[i].text, &d), cases[i].error);
    }
    ARENA_AUTO a = arena_new();
    BUF_AUTO text = {0};
    buf_append_str(&text, STR("{\"Ports\":["));
    for (size_t i = 0; i <= DPC_MAX_PORTS; i++)
        buf_printf(&text, "%s{}", i ? "," : "");
    buf_append_str(&text, STR("]}"));
    CLEANUP(dpc_freep) struct dpc *d = NULL;
    assert_int_equal(read_text(text.p, &d), -E2BIG);
    const struct dpc_defaults nameless = {0};
    assert_int_equal(dpc_read(json_parse_quick(a, STR("{}")), &nameless, &d), -EINVAL);
}

TEST(usable_is_what_has_a_management_port_that_can_work)
{
    static const struct {
        const char *text;
        bool is_usable;
    } cases[] = {
        {"{\"Version\":1,\"Ports\":[{\"IfName\":\"a\",\"IsMgmt\":true}]}", true},
        {"{\"Version\":1,\"Ports\":[{\"IfName\":\"a\"}]}", false},
        {"{\"Ports\":[{\"IfName\":\"a\"}]}", true}, /* older than the flag */
        {"{\"Version\":1,\"Ports\":[{\"IfName\":\"a\",\"IsMgmt\":true,\"Dhcp\":2}]}", false},
        {"{\"Version\":1,\"Ports\":[{\"IfName\":\"a\",\"IsMgmt\":true,\"InvalidConfig\":true}]}",
         false},
        {"{\"Version\":1,\"Ports\":[{\"IfName\":\"a\",\"IsMgmt\":true},{\"IfName\":\"v\","
         "\"IsL3Port\":true}]}",
         false},
        {"{\"Version\":1}", false},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        CLEANUP(dpc_freep) struct dpc *d = must_read(cases[i].text);
        assert_int_equal(dpc_is_usable(d), cases[i].is_usable);
    }
}

TEST(testable_again_five_minutes_after_it_failed)
{
    CLEANUP(dpc_freep)
    struct dpc *d = must_read("{\"Version\":1,\"Ports\":[{\"IfName\":\"a\",\"IsMgmt\":true}]}");
    assert_true(dpc_is_testable(d, NOW));
    dpc_results_fail(&d->results, NOW, STR("nobody"));
    assert_false(dpc_is_testable(d, NOW));
    assert_false(dpc_is_testable(d, NOW + 299 * SECOND));
    assert_true(dpc_is_testable(d, NOW + 300 * SECOND));
    /* It failed in the future: the clock is wrong. */
    assert_true(dpc_is_testable(d, NOW - SECOND));
    dpc_results_succeed(&d->results, NOW, STR("slow"));
    assert_true(dpc_was_working(d) && dpc_is_testable(d, NOW));
    assert_null(d->results.error);
    assert_string_equal(d->results.warning, "slow");
    dpc_results_fail(&d->results, NOW, STR_NONE);
    assert_false(dpc_was_working(d));
}

TEST(long_words_are_cut_between_characters)
{
    struct dpc_results r = {0};
    BUF_AUTO words = {0};
    buf_append_char(&words, 'x');
    while (words.n < 2 * DPC_MAX_WORDS_BYTES)
        buf_append_str(&words, STR("\xc3\xa9"));
    dpc_results_fail(&r, NOW, buf_str(&words));
    assert_int_equal(strlen(r.error), DPC_MAX_WORDS_BYTES - 1);
    assert_true(str_is_utf8(str_of(r.error)));
    dpc_results_clear(&r);
}
