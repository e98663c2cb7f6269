/* SPDX-License-Identifier: Apache-2.0 */
/* Proxy scripts: the functions they may call, and what the engine keeps them from. */
#include "test.h"

#include "base/clock.h"
#include "controllerconn/pac.h"
#include "controllerconn/pac_functions.h"
#include "controllerconn/wpad.h"

/* Thursday, 2026-11-19 13:45:30 UTC */
#define NOW "2026-11-19T13:45:30Z"

static struct uplink_pac_world make_world(void)
{
    struct uplink_pac_world w = {.my_address = STR("10.1.2.3"), .n_names = 2};
    assert_int_equal(clock_parse(STR(NOW), &w.wall_us), 0);
    w.names[0].name = STR("known.example");
    w.names[0].address = STR("192.0.2.7");
    w.names[1].name = STR("gone.example");
    w.names[1].address = STR("");
    return w;
}

/* Expressions, and what they are for the host known.example. */
TEST(scripts_may_call_the_functions_of_the_specification)
{
    static const struct {
        const char *expression, *value;
    } cases[] = {
        {"url", "https://known.example/x"},
        {"host", "known.example"},
        {"isPlainHostName('www')", "true"},
        {"isPlainHostName(host)", "false"},
        {"dnsDomainIs(host, '.example')", "true"},
        {"dnsDomainIs(host, '.org')", "false"},
        {"dnsDomainIs('a', 'much.longer')", "false"},
        {"localHostOrDomainIs('www', 'www.example')", "true"},
        {"localHostOrDomainIs('www.example', 'www.example')", "true"},
        {"localHostOrDomainIs('www.org', 'www.example')", "false"},
        {"isResolvable(host)", "true"},
        {"isResolvable('gone.example')", "false"},
        {"dnsResolve(host)", "192.0.2.7"},
        {"dnsResolve('10.0.0.1')", "10.0.0.1"},
        {"dnsResolve('gone.example')", "null"},
        {"myIpAddress()", "10.1.2.3"},
        {"dnsDomainLevels('a.b.c')", "2"},
        {"isInNet(host, '192.0.2.0', '255.255.255.0')", "true"},
        {"isInNet('10.9.9.9', '10.0.0.0', '255.0.0.0')", "true"},
        {"isInNet('11.9.9.9', '10.0.0.0', '255.0.0.0')", "false"},
        {"isInNet('gone.example', '0.0.0.0', '0.0.0.0')", "false"},
        {"convert_addr('1.2.3.4')", "16909060"},
        {"shExpMatch('http://a.b/c', '*/c')", "true"},
        {"shExpMatch('abc', 'a?c')", "true"},
        {"shExpMatch('abc', 'a?')", "false"},
        {"shExpMatch('', '*')", "true"},
        {"weekdayRange('THU', 'GMT')", "true"},
        {"weekdayRange('FRI', 'WED', 'GMT')", "false"},
        {"weekdayRange('FRI', 'THU', 'GMT')", "true"},
        {"weekdayRange('XXX', 'GMT')", "false"},
        {"dateRange(19, 'GMT')", "true"},
        {"dateRange(20, 'GMT')", "false"},
        {"dateRange(1, 20, 'GMT')", "true"},
        {"dateRange('NOV', 'GMT')", "true"},
        {"dateRange('OCT', 'JAN', 'GMT')", "true"},
        {"dateRange('JAN', 'OCT', 'GMT')", "false"},
        {"dateRange(2026, 'GMT')", "true"},
        {"dateRange(2020, 2025, 'GMT')", "false"},
        {"dateRange(1, 'JUN', 15, 'AUG', 'GMT')", "false"},
        {"dateRange(18, 'NOV', 2026, 20, 'NOV', 2026, 'GMT')", "true"},
        {"dateRange('NOV', 2026, 'DEC', 2026, 'GMT')", "true"},
        {"dateRange(1, 'JUN', 'AUG', 15, 'GMT')", "false"},
        {"dateRange(NaN, 'GMT')", "false"},
        {"timeRange(13, 'GMT')", "true"},
        {"timeRange(9, 17, 'GMT')", "true"},
        {"timeRange(22, 6, 'GMT')", "false"},
        {"timeRange(13, 30, 14, 0, 'GMT')", "true"},
        {"timeRange(13, 45, 31, 13, 46, 0, 'GMT')", "false"},
        {"timeRange(Infinity, 'GMT')", "false"},
        {"dateRange()", "false"},
        {"timeRange(1, 2, 3, 4, 5, 6, 7, 8, 9)", "false"},
        {"typeof alert('x')", "undefined"},
        {"typeof require + typeof process", "undefinedundefined"},
    };
    const struct uplink_pac_world w = make_world();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        BUF_AUTO script = {0}, text = {0};
        buf_printf(&script, "function FindProxyForURL(url, host) { return String(%s); }",
                   cases[i].expression);
        const enum uplink_pac_result r =
            uplink_pac_evaluate(buf_str(&script), STR("https://known.example/x"), &w, &text);
        if (r != UPLINK_PAC_ANSWERED || !str_is(buf_str(&text), cases[i].value))
            fail_msg("%s: %d \"%.*s\", expected \"%s\"", cases[i].expression, (int) r,
                     STR_ARG(buf_str(&text)), cases[i].value);
    }
}

TEST(a_name_that_is_not_known_is_asked_for)
{
    static const char *const scripts[] = {
        "function FindProxyForURL(u, h) { return dnsResolve('new.example'); }",
        "function FindProxyForURL() { try { dnsResolve('new.example') } catch (e) {} return ''; }",
        "var at_start = dnsResolve('new.example'); function FindProxyForURL() {}",
    };
    const struct uplink_pac_world w = make_world();
    for (size_t i = 0; i < N_ELEMENTS(scripts); i++) {
        BUF_AUTO text = {0};
        assert_int_equal(uplink_pac_evaluate(str_of(scripts[i]), STR("https://a/"), &w, &text),
                         UPLINK_PAC_ASKS);
        assert_str(buf_str(&text), "new.example");
    }
}

TEST(scripts_that_go_wrong_give_no_answer)
{
    static const char *const scripts[] = {
        "",
        "}",
        "function FindProxyForURL() { return 1; }",
        "function FindProxyForURL() { throw {}; }",
        "function FindProxyForURL() { return 1 + FindProxyForURL(); }",
        "var FindProxyForURL = 7;",
        "function FindProxyForURL() { return new Array(5000).join('x'); }",
        "function FindProxyForURL() { for (var s = 'x', i = 0; i < 40; i++) s += s; return s; }",
        "function FindProxyForURL() { return { toString: function () { throw 1; } } + ''; }",
        "function FindProxyForURL() { return shExpMatch({ toString: function () { throw 1; } }); }",
    };
    const struct uplink_pac_world w = make_world();
    for (size_t i = 0; i < N_ELEMENTS(scripts); i++) {
        BUF_AUTO text = {0};
        const enum uplink_pac_result r =
            uplink_pac_evaluate(str_of(scripts[i]), STR("https://a/"), &w, &text);
        /* What cannot become a string is still an argument. */
        if (r != UPLINK_PAC_FAILED)
            fail_msg("%s: %d", scripts[i], (int) r);
    }
}

TEST(globs_do_not_take_for_ever)
{
    static char text[20000], pattern[2000];
    memset(text, 'a', sizeof(text) - 1);
    for (size_t i = 0; i < sizeof(pattern) - 2; i += 2)
        memcpy(pattern + i, "*a", 2);
    pattern[sizeof(pattern) - 2] = 'b';
    assert_false(uplink_pac_glob(str_of(text), str_of(pattern)));
}

TEST(discovery_stops_at_the_public_suffix)
{
    static const struct {
        const char *domain;
        size_t n;
        const char *last;
    } cases[] = {
        {"a.b.example.com", 3, "http://wpad.example.com/wpad.dat"},
        {"shop.example.co.uk.", 2, "http://wpad.example.co.uk/wpad.dat"},
        {"co.uk", 0, NULL},
        {"com", 0, NULL},
        {"", 0, NULL},
        {"site.corp.example", 2, "http://wpad.corp.example/wpad.dat"},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct str urls[UPLINK_WPAD_MAX_URLS];
        const size_t n = uplink_wpad_urls(a, str_of(cases[i].domain), urls);
        if (n != cases[i].n)
            fail_msg("%s: %zu", cases[i].domain, n);
        if (n > 0)
            assert_str(urls[n - 1], cases[i].last);
    }
    struct str urls[UPLINK_WPAD_MAX_URLS];
    assert_int_equal(
        uplink_wpad_urls(a, STR("a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.b.com"), urls),
        UPLINK_WPAD_MAX_URLS);
}
