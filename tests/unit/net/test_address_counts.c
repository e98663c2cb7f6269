/* SPDX-License-Identifier: Apache-2.0 */
#include "net/address_counts.h"

#include <arpa/inet.h>

#include "test.h"

static uint64_t key(const char *text)
{
    struct sockaddr_storage a = {0};
    if (inet_pton(AF_INET, text, &((struct sockaddr_in *) &a)->sin_addr) == 1)
        a.ss_family = AF_INET;
    else if (inet_pton(AF_INET6, text, &((struct sockaddr_in6 *) &a)->sin6_addr) == 1)
        a.ss_family = AF_INET6;
    else
        fail_msg("no address: %s", text);
    return address_key(&a);
}

TEST(addresses_count_by_machine)
{
    static const struct {
        const char *one, *other;
        bool is_same;
    } cases[] = {
        {"192.0.2.1", "192.0.2.1", true},
        {"192.0.2.1", "192.0.2.2", false},
        {"192.0.2.1", "::ffff:192.0.2.1", true},
        {"::ffff:192.0.2.1", "::ffff:192.0.2.2", false},
        {"2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", true},
        {"2001:db8:1:2::1", "2001:db8:1:3::1", false},
        {"::1", "127.0.0.1", false},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        if ((key(cases[i].one) == key(cases[i].other)) != cases[i].is_same)
            fail_msg("%s and %s", cases[i].one, cases[i].other);
}

TEST(each_address_has_its_limit)
{
    struct address_counts *c = address_counts_new();
    for (uint64_t k = 0; k < 10000; k++)
        for (int i = 0; i < 5; i++)
            assert_int_equal(address_counts_add(c, k, 3), i < 3);
    address_counts_remove(c, 77);
    assert_true(address_counts_add(c, 77, 3));
    assert_false(address_counts_add(c, 77, 3));
    for (uint64_t k = 0; k < 10000; k++)
        for (int i = 0; i < 3; i++)
            address_counts_remove(c, k);
    assert_true(address_counts_add(c, 5, 1));
    address_counts_remove(c, 5);
    address_counts_free(c);
}
