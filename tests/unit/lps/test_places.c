/* SPDX-License-Identifier: Apache-2.0 */
#include "lps/places.h"

#include <errno.h>

#include "test.h"

TEST(an_address_is_a_host_and_perhaps_a_port)
{
    static const struct {
        const char *address, *host;
        unsigned port; /* 0: it is none */
    } cases[] = {
        {"10.1.0.2", "10.1.0.2", 8888},
        {"10.1.0.2:80", "10.1.0.2", 80},
        {"name", "name", 8888},
        {"name:65535", "name", 65535},
        {"name:", "name", 8888},
        {"fd00::2", "fd00::2", 8888},
        {"[fd00::2]", "fd00::2", 8888},
        {"[fd00::2]:7", "fd00::2", 7},
        {"", "", 0},
        {":80", "", 0},
        {"name:0", "", 0},
        {"name:65536", "", 0},
        {"name:x", "", 0},
        {"name:-1", "", 0},
        {"[fd00::2", "", 0},
        {"[fd00::2]7", "", 0},
        {"[]:7", "", 0},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct str host = STR("");
        unsigned port = 0;
        const int r = places_parse(str_of(cases[i].address), &host, &port);
        assert_int_equal(r, cases[i].port ? 0 : -EINVAL);
        if (r < 0)
            continue;
        assert_str(host, cases[i].host);
        assert_int_equal(port, cases[i].port);
    }
}

static const char networks[] =
    "{\"a\":{\"AppNetAdapterList\":["
    "{\"Bridge\":\"bn1\",\"BridgeIPAddr\":\"10.1.0.1\",\"AssignedAddresses\":"
    "{\"IPv4Addrs\":[{\"Address\":\"10.1.0.2\"}],\"IPv6Addrs\":null}},"
    "{\"Bridge\":\"bn2\",\"BridgeIPAddr\":\"\",\"AssignedAddresses\":"
    "{\"IPv4Addrs\":[{\"Address\":\"10.2.0.2\"}]}}]},"
    "\"b\":{\"AppNetAdapterList\":[{\"Bridge\":\"bn3\",\"BridgeIPAddr\":\"fd00::1\","
    "\"AssignedAddresses\":{\"IPv6Addrs\":[{\"Address\":\"fd00::2\"},7,null]}},8]},\"c\":9}";
static const char instances[] =
    "{\"x\":{\"DnsNameToIPList\":[{\"HostName\":\"lps\",\"IPs\":[\"10.1.0.7\",\"no\",5]},"
    "{\"HostName\":\"other\",\"IPs\":[\"10.1.0.8\"]}]},\"y\":{\"DnsNameToIPList\":null}}";

static struct places find(struct arena *a, const char *address)
{
    struct places p = {.n = 77};
    places_find(a, str_of(address), json_parse_quick(a, str_of(networks)),
                json_parse_quick(a, str_of(instances)), &p);
    return p;
}

TEST(a_server_is_the_application_that_has_its_address)
{
    ARENA_AUTO a = arena_new();
    struct places p = find(a, "10.1.0.2:90");
    assert_int_equal(p.n, 1);
    assert_str(p.items[0].bridge, "bn1");
    assert_str(p.items[0].source, "10.1.0.1");
    assert_str(p.items[0].url, "http://10.1.0.2:90");
    p = find(a, "fd00:0::2");
    assert_int_equal(p.n, 1);
    assert_str(p.items[0].url, "http://[fd00::2]:8888");
    assert_int_equal(find(a, "10.1.0.3").n, 0);
    /* We have no address on its bridge. */
    assert_int_equal(find(a, "10.2.0.2").n, 0);
    assert_int_equal(find(a, "bad:port").n, 0);
}

TEST(a_name_is_one_of_a_network_instance)
{
    ARENA_AUTO a = arena_new();
    const struct places p = find(a, "lps");
    assert_int_equal(p.n, 2); /* over each bridge */
    assert_str(p.items[0].url, "http://10.1.0.7:8888");
    assert_str(p.items[1].bridge, "bn3");
    assert_int_equal(find(a, "nobody").n, 0);
}

TEST(there_are_never_too_many)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO text = {0};
    struct places p;
    buf_append_str(&text, STR("{\"x\":{\"DnsNameToIPList\":[{\"HostName\":\"lps\",\"IPs\":["));
    for (int i = 0; i < 1000; i++)
        buf_printf(&text, "%s\"10.1.%d.%d\"", i ? "," : "", i / 250, i % 250);
    buf_append_str(&text, STR("]}]}}"));
    places_find(a, STR("lps"), json_parse_quick(a, str_of(networks)),
                json_parse_quick(a, buf_str(&text)), &p);
    assert_int_equal(p.n, PLACES_MAX);
    places_find(a, STR("10.1.0.2"), NULL, NULL, &p);
    assert_int_equal(p.n, 0);
}
