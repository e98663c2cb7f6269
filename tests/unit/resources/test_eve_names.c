/* SPDX-License-Identifier: Apache-2.0 */
/* Texts in specs that name networks, hosts and addresses. */
#include "resources/addresses.h"
#include "resources/application_networks.h"
#include "test.h"

static bool is_in(const char *network, const char *address)
{
    struct ip_network n;
    struct ip_address a;
    assert_true(ip_network_parse(str_of(network), &n));
    assert_true(ip_address_parse(str_of(address), &a));
    return ip_network_has(&n, &a);
}

TEST(networks_have_their_addresses_and_no_others)
{
    assert_true(is_in("10.0.0.0/8", "10.255.255.255"));
    assert_false(is_in("10.0.0.0/8", "11.0.0.0"));
    assert_true(is_in("10.0.1.0/23", "10.0.0.1"));
    assert_false(is_in("10.0.1.0/23", "10.0.2.1"));
    assert_true(is_in("10.0.0.1/32", "10.0.0.1"));
    assert_false(is_in("10.0.0.1/32", "10.0.0.2"));
    assert_true(is_in("0.0.0.0/0", "255.255.255.255"));
    assert_false(is_in("0.0.0.0/0", "::1"));
    assert_true(is_in("2001:db8::/63", "2001:db8:0:1::5"));
    assert_false(is_in("2001:db8::/63", "2001:db8:0:2::5"));
    assert_true(is_in("::1/128", "::1"));
}

TEST(what_is_no_network_is_refused)
{
    static const char *const bad[] = {
        "",       "10.0.0.0",    "10.0.0.0/",   "10.0.0.0/33", "10.0.0/8",    "/8",
        "::/129", "10.0.0.0/-1", "10.0.0.0/+1", "a/8",         "10.0.0.0/8 ", "10.0.0.0/8/8"};
    struct ip_network n;
    for (size_t i = 0; i < N_ELEMENTS(bad); i++)
        if (ip_network_parse(str_of(bad[i]), &n))
            fail_msg("%s is taken for a network", bad[i]);
    assert_false(ip_network_parse(str_range("1.1.1.1\0/8", 10), &n));
}

TEST(urls_are_split)
{
    struct url_parts u;
    assert_true(url_split(STR("https://[2001:db8::1]:8443/a?b"), &u));
    assert_true(str_is(u.scheme, "https") && str_is(u.host, "2001:db8::1"));
    assert_true(u.port == 8443 && str_is(u.rest, "/a?b"));
    assert_true(url_split(STR("http://a.org"), &u));
    assert_true(str_is(u.host, "a.org") && u.port == 0 && u.rest.n == 0);
    static const char *const bad[] = {"",           "a.org",       "://a",         "http://",
                                      "http://:80", "http://a:",   "http://a:0",   "http://a:65536",
                                      "http://u@a", "http://[::1", "http://[::1]x"};
    for (size_t i = 0; i < N_ELEMENTS(bad); i++)
        if (url_split(str_of(bad[i]), &u))
            fail_msg("%s is taken for a URL", bad[i]);
}

TEST(networks_of_an_application_in_both_forms)
{
    ARENA_AUTO a = arena_new();
    struct network_choices c;
    assert_null(networks_parse(a, STR(" one , site/two@eth1"), &c));
    assert_int_equal(c.n, 2);
    assert_true(str_is(c.items[0].name, "one") && !c.items[0].namespace.p);
    assert_true(str_is(c.items[1].name, "two") && str_is(c.items[1].namespace, "site") &&
                str_is(c.items[1].interface, "eth1"));
    assert_null(networks_parse(a, STR(" [{\"name\":\"x\",\"interface\":\"e\"}]"), &c));
    assert_true(c.n == 1 && str_is(c.items[0].name, "x") && str_is(c.items[0].interface, "e"));
    assert_null(networks_parse(a, STR(""), &c));
    assert_int_equal(c.n, 0);
    assert_non_null(networks_parse(a, STR("a,,b"), &c));
    assert_non_null(networks_parse(a, STR("a/b/c"), &c));
    assert_non_null(networks_parse(a, STR("[1]"), &c));
    assert_non_null(networks_parse(a, STR("[{}"), &c));
}
