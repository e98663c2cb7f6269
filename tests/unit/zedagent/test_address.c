/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "zedagent/address.h"

TEST(addresses_are_what_go_takes_for_one)
{
    static const struct {
        const char *text, *canonical; /* NULL: none */
    } cases[] = {
        {"10.0.0.1", "10.0.0.1"}, {"::ffff:10.0.0.1", "10.0.0.1"},
        {"FD00::0:1", "fd00::1"}, {"010.0.0.1", NULL},
        {"10.0.0", NULL},         {"10.0.0.256", NULL},
        {"fe80::1%eth0", NULL},   {"", NULL},
        {" 10.0.0.1", NULL},      {"1:2:3:4:5:6:7:8:9", NULL},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct address address;
        assert_int_equal(address_parse(str_of(cases[i].text), &address),
                         cases[i].canonical != NULL);
        assert_str(address_text(a, &address), cases[i].canonical ? cases[i].canonical : "<nil>");
    }
}

TEST(subnets_have_an_address_and_a_size)
{
    static const struct {
        const char *text, *subnet; /* NULL: none */
        uint64_t count;
    } cases[] = {
        {"10.1.2.3/24", "10.1.2.0/24", 256},
        {"10.1.2.3/32", "10.1.2.3/32", 1},
        {"10.1.2.3/0", "0.0.0.0/0", 0},
        {"fd00::5/64", "fd00::/64", UINT32_MAX},
        {"fd00::5/120", "fd00::/120", 256},
        {"10.1.2.3/33", NULL, 0},
        {"10.1.2.3/-1", NULL, 0},
        {"10.1.2.3/+1", NULL, 0},
        {"10.1.2.3/", NULL, 0},
        {"10.1.2.3", NULL, 0},
        {"/24", NULL, 0},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct address address;
        struct subnet s;
        const bool is_one = subnet_parse(str_of(cases[i].text), &address, &s);
        assert_int_equal(is_one, cases[i].subnet != NULL);
        if (!is_one)
            continue;
        assert_str(subnet_text(a, &s), cases[i].subnet);
        assert_int_equal(subnet_count(&s), cases[i].count);
        assert_true(subnet_contains(&s, &address));
    }
}

TEST(addition_carries_both_ways)
{
    ARENA_AUTO a = arena_new();
    struct address address, sum;
    assert_true(address_parse(STR("10.0.255.254"), &address));
    sum = address_add(&address, 3);
    assert_str(address_text(a, &sum), "10.1.0.1");
    sum = address_add(&sum, -3);
    assert_int_equal(address_cmp(&sum, &address), 0);
    assert_true(address_parse(STR("255.255.255.255"), &address));
    sum = address_add(&address, 1);
    assert_str(address_text(a, &sum), "0.0.0.0");
    assert_true(address_parse(STR("fd00::ffff:ffff"), &address));
    sum = address_add(&address, 1);
    assert_str(address_text(a, &sum), "fd00::1:0:0");
}

TEST(families_do_not_mix)
{
    struct address four, six;
    struct subnet s;
    assert_true(address_parse(STR("10.0.0.1"), &four));
    assert_true(address_parse(STR("fd00::1"), &six));
    assert_true(subnet_parse(STR("0.0.0.0/0"), NULL, &s));
    assert_true(subnet_contains(&s, &four));
    assert_false(subnet_contains(&s, &six));
    assert_true(address_cmp(&four, &six) < 0);
    assert_int_equal(address_distance(&four, &six), 0);
}
