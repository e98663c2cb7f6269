/* SPDX-License-Identifier: Apache-2.0 */
/* What decides without touching the network: order of ports, URLs, proxies, outcomes, counters. */
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "controllerconn/metrics.h"
#include "controllerconn/netdump.h"
#include "controllerconn/outcome.h"
#include "controllerconn/ports.h"
#include "controllerconn/proxy.h"
#include "controllerconn/trace.h"
#include "controllerconn/url.h"
#include "json/json.h"

/* ---- ports --------------------------------------------------------------------------------- */

struct order_case {
    const char *what;
    const char *ports; /* "name cost flags": m management, e error, 2 without L3 */
    unsigned version;
    uint64_t iteration;
    const char *order;
};

static const struct order_case order_cases[] = {
    {"by cost, not by place", "a:10:m b:0:m c:5:m", 1, 0, "bca"},
    {"equals keep their order", "a:0:m b:0:m c:0:m", 1, 0, "abc"},
    {"equals rotate", "a:0:m b:0:m c:0:m", 1, 4, "bca"},
    {"each cost rotates by itself", "a:0:m b:0:m c:1:m d:1:m e:1:m", 1, 1, "badec"},
    {"the dear ones stay behind", "a:1:m b:0:m", 1, 1, "ba"},
    {"only management", "a:0: b:0:m", 1, 0, "b"},
    {"version 0 takes all", "a:0: b:0:m", 0, 0, "ab"},
    {"not without L3", "a:0:m2 b:0:m", 1, 0, "b"},
    {"not with an error", "a:0:me b:9:m", 1, 0, "b"},
    {"errors everywhere: all again", "a:3:me b:0:me", 1, 0, "ba"},
    {"none", "a:0:", 1, 0, ""},
    {"nothing at all", "", 1, 7, ""},
};

static struct uplink_ports *make_ports(const char *text, unsigned version)
{
    struct uplink_port items[8];
    size_t n = 0;
    struct str rest = str_of(text), one, part;
    while (str_split(&rest, ' ', &one)) {
        struct uplink_port *p = &items[n++];
        *p = (struct uplink_port){.is_l3 = true, .last_succeeded_us = 5};
        (void) str_split(&one, ':', &p->name);
        (void) str_split(&one, ':', &part);
        int64_t cost = 0;
        assert_int_equal(str_to_i64(part, &cost), 0);
        p->cost = (unsigned) cost;
        p->is_management = str_find(one, 'm') >= 0;
        p->is_l3 = str_find(one, '2') < 0;
        p->last_failed_us = str_find(one, 'e') >= 0 ? 6 : 0;
    }
    return uplink_ports_new(version, items, n);
}

TEST(ports_are_tried_by_cost_and_rotated_among_equals)
{
    for (size_t i = 0; i < N_ELEMENTS(order_cases); i++) {
        const struct order_case *c = &order_cases[i];
        CLEANUP(uplink_ports_unrefp)
        struct uplink_ports *p = make_ports(c->ports, c->version);
        size_t order[UPLINK_MAX_PORTS];
        const size_t n = uplink_ports_order(p, c->iteration, order);
        char got[UPLINK_MAX_PORTS + 1] = "";
        for (size_t k = 0; k < n; k++)
            got[k] = p->items[order[k]].name.p[0];
        if (strcmp(got, c->order) != 0)
            fail_msg("%s: got \"%s\", expected \"%s\"", c->what, got, c->order);
    }
}

TEST(an_address_counts_on_management_ports_only)
{
    struct str global = STR("10.0.0.2"), local = STR("fe80::1");
    struct uplink_port ports[] = {
        {.name = STR("a"), .is_l3 = true, .addresses = &global, .n_addresses = 1},
        {.name = STR("b"),
         .is_l3 = true,
         .is_management = true,
         .addresses = &local,
         .n_addresses = 1},
    };
    assert_false(uplink_ports_have_address(NULL));
    for (unsigned is_management = 0; is_management < 2; is_management++) {
        ports[0].is_management = is_management;
        CLEANUP(uplink_ports_unrefp) struct uplink_ports *p = uplink_ports_new(1, ports, 2);
        assert_int_equal(uplink_ports_have_address(p), is_management);
    }
}

TEST(ports_come_from_nims_json)
{
    static const char text[] =
        "{\"Version\":1,\"Ports\":[{\"IfName\":\"eth0\",\"IsMgmt\":true,\"IsL3Port\":true,\"Cost\":"
        "3,"
        "\"DNSServers\":[\"10.0.0.1\",7],\"AddrInfoList\":[{\"Addr\":\"10.0.0.2\"},{\"Addr\":"
        "\"fe80::1\"}],"
        "\"Proxies\":[{\"type\":1,\"server\":\"proxy.example\",\"port\":3128},{\"type\":0,"
        "\"server\":\"\"}],"
        "\"Exceptions\":\"a,b\",\"Pacfile\":\"eA==\",\"LastFailed\":\"2026-01-02T00:00:00Z\","
        "\"LastSucceeded\":\"0001-01-01T00:00:00Z\"},{\"IfName\":\"wwan0\",\"IsMgmt\":true,"
        "\"IsL3Port\":true,"
        "\"Cost\":999,\"WirelessStatus\":{\"WType\":1,\"Cellular\":{\"ProbeError\":\"no "
        "signal\"}}},{}]}";
    ARENA_AUTO a = arena_new();
    CLEANUP(uplink_ports_unrefp) struct uplink_ports *p = NULL;
    assert_int_equal(uplink_ports_parse(json_parse_quick(a, str_of(text)), &p), 0);
    assert_int_equal(p->n_items, 2);
    const struct uplink_port *e = uplink_ports_find(p, STR("eth0"));
    assert_non_null(e);
    assert_int_equal(e->cost, 3);
    assert_int_equal(e->n_dns_servers, 1);
    assert_int_equal(e->n_addresses, 2);
    assert_true(uplink_port_has_address(e));
    assert_int_equal(e->n_proxies, 1);
    assert_int_equal(e->proxies[0].port, 3128);
    assert_true(uplink_port_has_error(e));
    assert_int_equal(e->last_succeeded_us, 0);
    assert_str(e->exceptions, "a,b");
    assert_int_equal(p->items[1].cost, 255);
    assert_str(p->items[1].blocked_reason, "no signal");
    assert_int_equal(uplink_ports_parse(json_parse_quick(a, STR("[]")), &p), -EINVAL);
}

TEST(link_local_addresses_are_known)
{
    assert_true(uplink_address_is_link_local(STR("169.254.1.2")));
    assert_true(uplink_address_is_link_local(STR("fe80::1")));
    assert_false(uplink_address_is_link_local(STR("169.253.1.2")));
    assert_false(uplink_address_is_link_local(STR("fd00::1")));
    assert_true(uplink_address_is_literal(STR("[::1]")));
    assert_true(uplink_address_is_literal(STR("10.0.0.1")));
    assert_false(uplink_address_is_literal(STR("example.org")));
}

/* ---- URLs ---------------------------------------------------------------------------------- */

TEST(urls_have_the_forms_of_the_api)
{
    ARENA_AUTO a = arena_new();
    struct uuid device;
    const struct uuid nil = {{0}};
    assert_int_equal(uuid_parse(STR("0F0E0D0C-0000-4000-8000-000000000001"), &device), 0);
    assert_str(
        uplink_url_build(a, UPLINK_API_V2, STR("c.example:8443"), &device, STR("config")),
        "https://c.example:8443/api/v2/edgedevice/id/0f0e0d0c-0000-4000-8000-000000000001/config");
    assert_str(uplink_url_build(a, UPLINK_API_V2, STR(" c.example\n"), &nil, STR("certs")),
               "https://c.example/api/v2/edgedevice/certs");
    assert_str(uplink_url_build(a, UPLINK_API_V2, STR("http://c"), NULL, STR("ping")),
               "http://c/api/v2/edgedevice/ping");
    assert_str(uplink_url_build(a, UPLINK_API_V1, STR("c"), &device, STR("config")),
               "https://c/api/v1/edgedevice/config");
    assert_true(uplink_url_is_wrapped(STR("https://c/api/v2/edgedevice/register")));
    assert_true(uplink_url_is_registration(STR("https://c/api/v2/edgedevice/register")));
    assert_false(uplink_url_is_registration(STR("https://c/register")));
    assert_false(uplink_url_is_wrapped(STR("https://c/api/v1/other")));
}

TEST(urls_are_taken_apart)
{
    static const struct {
        const char *url, *host;
        int r;
        unsigned port;
        bool is_secure;
    } cases[] = {
        {"https://a.b/c", "a.b", 0, 443, true},
        {"HTTP://a.b:81?x", "a.b", 0, 81, false},
        {"wss://[::1]:9/x", "::1", 0, 9, true},
        {"http://me:secret@p:3128", "p", 0, 3128, false},
        {"https://a:", "a", 0, 443, true},
        {"https://a:0", NULL, -EINVAL, 0, false},
        {"https://a:65536", NULL, -EINVAL, 0, false},
        {"https://a:+1", NULL, -EINVAL, 0, false},
        {"https:///x", NULL, -EINVAL, 0, false},
        {"https://[]:1", NULL, -EINVAL, 0, false},
        {"https://[::1]x", NULL, -EINVAL, 0, false},
        {"ftp://a", NULL, -EINVAL, 0, false},
        {"https://a b", NULL, -EINVAL, 0, false},
        {"https://a\r\nX: y", NULL, -EINVAL, 0, false},
        {"a.b", NULL, -EINVAL, 0, false},
        {"", NULL, -EINVAL, 0, false},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct uplink_url u = {0};
        const int r = uplink_url_parse(str_of(cases[i].url), &u);
        if (r != cases[i].r)
            fail_msg("%s: %d", cases[i].url, r);
        if (r < 0)
            continue;
        assert_str(u.host, cases[i].host);
        assert_int_equal(u.port, cases[i].port);
        assert_int_equal(uplink_url_is_secure(&u), cases[i].is_secure);
    }
}

/* ---- proxies ------------------------------------------------------------------------------- */

TEST(exceptions_are_those_of_no_proxy)
{
    static const struct {
        const char *exceptions, *host;
        unsigned port;
        bool is_excepted;
    } cases[] = {
        {"", "c.example", 443, false},
        {"*", "c.example", 443, true},
        {"example", "c.example", 443, true},
        {"example", "example", 443, true},
        {"example", "badexample", 443, false},
        {".example", "example", 443, false},
        {"*.example", "a.b.example", 443, true},
        {"x, EXAMPLE ,y", "c.example", 443, true},
        {"c.example:8443", "c.example", 443, false},
        {"c.example:8443", "c.example", 8443, true},
        {"10.0.0.0/8", "10.1.2.3", 443, true},
        {"10.0.0.0/8", "11.1.2.3", 443, false},
        {"10.0.0.0/8", "ten.example", 443, false},
        {"10.1.2.0/23", "10.1.3.255", 443, true},
        {"10.1.2.0/23", "10.1.4.0", 443, false},
        {"10.0.0.0/33", "10.0.0.0", 443, false},
        {"fd00::/8", "fd12::1", 443, true},
        {"10.0.0.1", "10.0.0.1", 443, true},
        {"10.0.0.1:80", "10.0.0.1", 443, false},
        {"[fd00::1]:443", "fd00::1", 443, true},
        {"fd00::1", "fd00::1", 443, true},
        {"", "localhost", 443, true},
        {"", "127.0.0.9", 443, true},
        {"", "::1", 443, true},
        {"/", "10.0.0.1", 443, false},
        {",,.,*.,:", "c.example", 443, false},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        if (uplink_proxy_is_excepted(str_of(cases[i].exceptions), str_of(cases[i].host),
                                     cases[i].port) != cases[i].is_excepted)
            fail_msg("\"%s\" for %s:%u", cases[i].exceptions, cases[i].host, cases[i].port);
}

TEST(the_proxy_is_that_of_the_scheme)
{
    ARENA_AUTO a = arena_new();
    const struct uplink_proxy proxies[] = {{.type = 2, .server = STR("socks"), .port = 1},
                                           {.type = 0, .server = STR("plain"), .port = 3128},
                                           {.type = 1, .server = STR("https://secure:8080")}};
    const struct uplink_port p = {
        .proxies = proxies, .n_proxies = 3, .exceptions = STR("direct.example")};
    assert_str(uplink_proxy_explicit(a, &p, STR("http://c/")), "http://plain:3128");
    assert_str(uplink_proxy_explicit(a, &p, STR("https://c/")), "https://secure:8080");
    assert_null(uplink_proxy_explicit(a, &p, STR("https://direct.example/")).p);
    const struct uplink_port none = {.proxies = proxies, .n_proxies = 1};
    assert_null(uplink_proxy_explicit(a, &none, STR("https://c/")).p);
}

TEST(a_scripts_answer_names_at_most_one_proxy)
{
    static const struct {
        const char *answer, *proxy;
    } cases[] = {
        {"DIRECT", NULL},
        {"DIRECT; PROXY a:1", NULL},
        {"PROXY a:1; PROXY b:2", "http://a:1"},
        {" PROXY   a:1 ", "http://a:1"},
        {"HTTPS a:1;DIRECT", "http://a:1"},
        {"PROXY", NULL},
        {"PROXY ", NULL},
        {"PROXY a:x", NULL},
        {"", NULL},
        {";", NULL},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        const struct str got = uplink_proxy_of_answer(a, str_of(cases[i].answer));
        if (!got.p != !cases[i].proxy || (got.p && !str_is(got, cases[i].proxy)))
            fail_msg("\"%s\": %.*s", cases[i].answer, STR_ARG(got));
    }
}

/* ---- outcomes ------------------------------------------------------------------------------ */

TEST(http_codes_count_as_described)
{
    static const struct {
        int code;
        bool is_delivered;
        enum uplink_status status;
        bool is_final, is_final_with_bail;
        enum uplink_refusal refusal;
    } cases[] = {
        {200, true, UPLINK_NONE, false, false, UPLINK_REFUSAL_NONE},
        {201, true, UPLINK_NONE, false, false, UPLINK_REFUSAL_NONE},
        {202, false, UPLINK_NONE, false, false, UPLINK_REFUSAL_FINAL},
        {204, true, UPLINK_NONE, false, false, UPLINK_REFUSAL_NONE},
        {304, true, UPLINK_NONE, false, false, UPLINK_REFUSAL_NONE},
        {400, false, UPLINK_NOT_FOUND, false, true, UPLINK_REFUSAL_FINAL},
        {401, false, UPLINK_NONE, false, true, UPLINK_REFUSAL_LATER},
        {403, false, UPLINK_FORBIDDEN, true, true, UPLINK_REFUSAL_LATER},
        {404, false, UPLINK_NOT_FOUND, false, true, UPLINK_REFUSAL_FINAL},
        {407, false, UPLINK_NONE, false, true, UPLINK_REFUSAL_LATER},
        {408, false, UPLINK_NONE, false, true, UPLINK_REFUSAL_LATER},
        {413, false, UPLINK_NONE, false, true, UPLINK_REFUSAL_FINAL},
        {429, false, UPLINK_NONE, false, true, UPLINK_REFUSAL_LATER},
        {500, false, UPLINK_NONE, false, true, UPLINK_REFUSAL_LATER},
        {503, false, UPLINK_UPGRADE, false, true, UPLINK_REFUSAL_LATER},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        const int code = cases[i].code;
        if (uplink_http_is_delivered(code, false) != cases[i].is_delivered ||
            uplink_refusal_of(code) != cases[i].refusal)
            fail_msg("%d", code);
        assert_int_equal(uplink_http_is_delivered(code, true),
                         cases[i].is_delivered || (code >= 400 && code < 500));
        if (cases[i].is_delivered)
            continue;
        const struct uplink_verdict v = uplink_judge_http(code, false);
        const struct uplink_verdict b = uplink_judge_http(code, true);
        if (v.status != cases[i].status || b.status != v.status ||
            v.is_final != cases[i].is_final || b.is_final != cases[i].is_final_with_bail)
            fail_msg("%d: %s", code, uplink_status_name(v.status));
    }
}

TEST(faults_count_as_described)
{
    static const struct {
        enum uplink_fault fault;
        enum uplink_status direct, with_proxy;
    } cases[] = {
        {UPLINK_FAULT_REFUSED, UPLINK_REFUSED, UPLINK_NONE},
        {UPLINK_FAULT_CERT_TIME, UPLINK_CERT_INVALID, UPLINK_CERT_INVALID},
        {UPLINK_FAULT_CERT_AUTHORITY, UPLINK_CERT_UNKNOWN_AUTHORITY,
         UPLINK_CERT_UNKNOWN_AUTHORITY_PROXY},
        {UPLINK_FAULT_NO_ADDRESS, UPLINK_NONE, UPLINK_NONE},
        {UPLINK_FAULT_TIMEOUT, UPLINK_NONE, UPLINK_NONE},
        {UPLINK_FAULT_LOOKUP, UPLINK_NONE, UPLINK_NONE},
        {UPLINK_FAULT_OTHER, UPLINK_NONE, UPLINK_NONE},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        assert_int_equal(uplink_judge_fault(cases[i].fault, false).status, cases[i].direct);
        assert_int_equal(uplink_judge_fault(cases[i].fault, true).status, cases[i].with_proxy);
        assert_false(uplink_judge_fault(cases[i].fault, false).is_final);
    }
    assert_int_equal(UPLINK_FAILED, 12); /* seen in JSON */
    assert_string_equal(uplink_status_name(UPLINK_DEBUG), "Debug");
}

/* ---- counters ------------------------------------------------------------------------------ */

TEST(metrics_are_written_as_pillar_publishes_them)
{
    struct uplink_metrics *m = uplink_metrics_new();
    BUF_AUTO text = {0};
    uplink_metrics_failure(m, STR("eth1"), 1000000, STR("https://c/ping"));
    uplink_metrics_success(m, STR("eth0"), 2500000,
                           &(struct uplink_success){.url = STR("https://c/config"),
                                                    .sent_bytes = 10,
                                                    .received_bytes = 20,
                                                    .time_spent_ms = 30,
                                                    .is_resumed = true});
    uplink_metrics_auth_failure(m);
    uplink_metrics_write(m, &text);
    assert_str(
        buf_str(&text),
        "{\"\":{\"FailureCount\":0,\"SuccessCount\":0,\"LastFailure\":\"0001-01-01T00:00:00Z\","
        "\"LastSuccess\":\"0001-01-01T00:00:00Z\",\"URLCounters\":{},\"AuthFailCount\":1},"
        "\"eth0\":{\"FailureCount\":0,\"SuccessCount\":1,\"LastFailure\":\"0001-01-01T00:00:00Z\","
        "\"LastSuccess\":\"1970-01-01T00:00:02.500000Z\",\"URLCounters\":{\"https://c/config\":"
        "{\"TryMsgCount\":0,\"TryByteCount\":0,\"SentMsgCount\":1,\"SentByteCount\":10,"
        "\"RecvMsgCount\":1,"
        "\"RecvByteCount\":20,\"TotalTimeSpent\":30,\"SessionResume\":1}},\"AuthFailCount\":0},"
        "\"eth1\":{\"FailureCount\":1,\"SuccessCount\":0,\"LastFailure\":\"1970-01-01T00:00:01."
        "000000Z\","
        "\"LastSuccess\":\"0001-01-01T00:00:00Z\",\"URLCounters\":{\"https://c/"
        "ping\":{\"TryMsgCount\":1,"
        "\"TryByteCount\":0,\"SentMsgCount\":0,\"SentByteCount\":0,\"RecvMsgCount\":0,"
        "\"RecvByteCount\":0,"
        "\"TotalTimeSpent\":0,\"SessionResume\":0}},\"AuthFailCount\":0}}");
    uplink_metrics_free(m);
}

TEST(metrics_are_bounded)
{
    struct uplink_metrics *m = uplink_metrics_new();
    char name[40];
    for (int i = 0; i < 1000; i++) {
        (void) snprintf(name, sizeof(name), "https://c/%d", i);
        uplink_metrics_failure(m, STR("eth0"), 1, str_of(name));
        (void) snprintf(name, sizeof(name), "if%d", i);
        uplink_metrics_failure(m, str_of(name), 1, STR("u"));
    }
    const struct uplink_interface_counters *c = uplink_metrics_get(m, STR("eth0"));
    assert_int_equal(c->failures, 1000);
    assert_int_equal(c->n_urls, UPLINK_METRICS_MAX_URLS);
    assert_null(uplink_metrics_get(m, STR("if999")));
    uplink_metrics_free(m);
}

/* ---- traces -------------------------------------------------------------------------------- */

TEST(traces_are_bounded)
{
    struct clock_virtual v;
    clock_virtual_init(&v, 1000000);
    CLEANUP(uplink_trace_freep) struct uplink_trace *t = uplink_trace_new(&v.clock);
    for (int i = 0; i < 2 * UPLINK_TRACE_MAX_EVENTS; i++)
        uplink_trace_add(t, "%0500d", i);
    BUF_AUTO text = {0};
    uplink_trace_write(t, &text);
    assert_true(text.n < UPLINK_TRACE_MAX_EVENTS * 300);
    assert_true(str_ends_with(buf_str(&text), STR("\"dropped\":256}")));
}

/* What tar itself makes of it. */
static void assert_archive(const char *path, const char *wanted)
{
    char text[512] = "";
    BUF_AUTO command = {0};
    buf_printf(&command, "tar -tzf %s && tar -xzOf %s", path, path);
    FILE *f = popen(command.p, "r");
    assert_non_null(f);
    const size_t n = fread(text, 1, sizeof(text) - 1, f);
    text[n] = 0;
    assert_int_equal(pclose(f), 0);
    assert_string_equal(text, wanted);
}

TEST(archives_of_a_clock_that_was_ahead_give_way)
{
    char above[] = "/tmp/uplink-trace-XXXXXX";
    assert_non_null(mkdtemp(above));
    const struct uplink_netdump d = {above, .interval_s = 3600, .max_count = 2};
    const struct uplink_netdump_file file = {"eve/dns.json", STR("{}\n")};
    const int64_t hour_us = 3600000000LL;
    for (int64_t i = 8; i <= 9; i++)
        assert_int_equal(uplink_netdump_write(&d, "nim-ok", i * hour_us, &file, 1), 0);
    assert_true(uplink_netdump_is_due(&d, "nim-ok", hour_us));
    assert_int_equal(uplink_netdump_write(&d, "nim-ok", hour_us, &file, 1), 0);
    assert_false(uplink_netdump_is_due(&d, "nim-ok", hour_us + 1));
    assert_int_equal(uplink_netdump_write(&d, "nim-ok", 2 * hour_us, &file, 1), 0);
    for (int i = 1; i <= 9; i++) {
        BUF_AUTO path = {0};
        buf_printf(&path, "%s/nim-ok-1970-01-01T0%d-00-00.tgz", above, i);
        assert_int_equal(unlink(path.p), i <= 2 ? 0 : -1);
    }
    assert_int_equal(rmdir(above), 0);
}

TEST(archives_are_made_seldom_and_only_so_many_kept)
{
    char above[] = "/tmp/uplink-trace-XXXXXX";
    assert_non_null(mkdtemp(above));
    BUF_AUTO directory = {0}, path = {0};
    buf_printf(&directory, "%s/netdump", above);
    const struct uplink_netdump d = {directory.p, .interval_s = 3600, .max_count = 2};
    const struct uplink_netdump_file files[] = {{"eve/dns.json", STR("{}\n")},
                                                {"requests/ping/nettrace.json", STR("[]\n")}};
    const int64_t hour_us = 3600000000LL;
    assert_true(uplink_netdump_is_due(&d, "nim-ok", hour_us));
    for (int64_t i = 1; i <= 4; i++)
        assert_int_equal(uplink_netdump_write(&d, "nim-ok", i * hour_us, files, 2), 0);
    assert_false(uplink_netdump_is_due(&d, "nim-ok", 5 * hour_us - 1));
    assert_true(uplink_netdump_is_due(&d, "nim-ok", 5 * hour_us));
    /* Another topic is another matter, also one that begins alike; and so is a clock put back. */
    assert_true(uplink_netdump_is_due(&d, "nim-fail", 4 * hour_us));
    assert_true(uplink_netdump_is_due(&d, "nim", 4 * hour_us));
    assert_true(uplink_netdump_is_due(&d, "nim-ok", hour_us));
    char long_name[UPLINK_NETDUMP_MAX_NAME_BYTES + 1];
    memset(long_name, 'x', sizeof(long_name));
    long_name[sizeof(long_name) - 1] = 0;
    const struct uplink_netdump_file odd = {long_name, STR("")};
    assert_int_equal(uplink_netdump_write(&d, "nim-ok", 9 * hour_us, &odd, 1), -ENAMETOOLONG);
    for (int i = 1; i <= 4; i++) {
        struct stat status;
        buf_reset(&path);
        buf_printf(&path, "%s/nim-ok-1970-01-01T0%d-00-00.tgz", directory.p, i);
        assert_int_equal(stat(path.p, &status), i > 2 ? 0 : -1);
        if (i == 3) {
            assert_int_equal(status.st_mode & 0777, 0644);
            assert_archive(path.p, "nim-ok-1970-01-01T03-00-00/eve/dns.json\n"
                                   "nim-ok-1970-01-01T03-00-00/requests/ping/nettrace.json\n"
                                   "{}\n[]\n");
        }
        assert_int_equal(unlink(path.p), i > 2 ? 0 : -1);
    }
    assert_int_equal(rmdir(directory.p), 0);
    assert_int_equal(rmdir(above), 0);
}
