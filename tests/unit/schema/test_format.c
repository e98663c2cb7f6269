/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "schema/format.h"

TEST(accepts_and_refuses_as_kube_apiserver_does)
{
    static const struct {
        const char *format, *text;
        bool matches;
    } cases[] = {
        {"date", "2024-02-29", true},
        {"date", "2023-02-29", false},
        {"date", "2023-2-1", false},
        {"date-time", "2026-01-02T03:04:05Z", true},
        {"date-time", "2026-01-02t03:04:05.123+01:00", true},
        {"datetime", "2026-01-02T03:04:05z", true},
        {"date-time", "2026-01-02T24:04:05Z", false},
        {"date-time", "2026-01-02T03:04:05", false},
        {"date-time", "2026-01-02 03:04:05Z", false},
        {"date-time", "yesterday", false},
        {"byte", "aGk=", true},
        {"byte", "aGk", false},
        {"byte", "%%", false},
        {"byte", "a===", false},
        {"ipv4", "10.0.0.1", true},
        {"ipv4", "10.0.0.256", false},
        {"ipv4", "::1", false},
        {"ipv6", "::1", true},
        {"ipv6", "fe80::1%eth0", false},
        {"ipv6", "1.2.3.4", false},
        {"cidr", "10.0.0.0/8", true},
        {"cidr", "10.0.0.0/33", false},
        {"cidr", "fd00::/64", true},
        {"cidr", "10.0.0.0", false},
        {"cidr", "10.0.0.0/+8", false},
        {"mac", "00:11:22:aa:BB:cc", true},
        {"mac", "00-11-22-aa-bb-cc", true},
        {"mac", "0011.22aa.bbcc", true},
        {"mac", "00:11:22:aa:bb", false},
        {"mac", "00:11-22:aa:bb:cc", false},
        {"uuid", "123e4567-e89b-12d3-a456-426614174000", true},
        {"uuid", "123E4567E89B12D3A456426614174000", true},
        {"uuid", "123e4567-e89b-12d3-a456-42661417400", false},
        {"uuid", "123e4567--e89b-12d3-a456-426614174000", false},
        {"uuid4", "123e4567-e89b-42d3-a456-426614174000", true},
        {"uuid4", "123e4567-e89b-42d3-c456-426614174000", false},
        {"uuid3", "123e4567-e89b-32d3-c456-426614174000", true},
        {"uuid5", "123e4567-e89b-52d3-b456-426614174000", true},
        {"hostname", "a", true},
        {"hostname", "edge-7.example.com", true},
        {"hostname", "-a.example.com", false},
        {"hostname", "a..b", false},
        {"hostname", "a_b.example", false},
        {"hostname", "example.com.", false},
        {"email", "a@b.c", true},
        {"email", "Joe <joe@example.com>", true},
        {"email", "\"a b\"@example.com", true},
        {"email", "a@", false},
        {"email", "a.example.com", false},
        {"email", "a..b@example.com", false},
        {"uri", "https://example.com/a?b=c", true},
        {"uri", "/only/a/path", true},
        {"uri", "mailto:a@b", true},
        {"uri", "no scheme", false},
        {"uri", "relative/path", false},
        {"uri", "http://a/%zz", false},
        {"uri", "http://a:b/", false},
        {"uri", "http://[::1]:80/", true},
        {"uri", "http://a b/", false},
        {"duration", "1h2m3.5s", true},
        {"duration", "-1ms", true},
        {"duration", "0", true},
        {"duration", "3 days", true},
        {"duration", "2w", true},
        {"duration", "5", false},
        {"duration", "", false},
        {"duration", "5 fortnights", false},
        {"bsonobjectid", "507f1f77bcf86cd799439011", true},
        {"bsonobjectid", "507f1f77", false},
        {"isbn10", "0-321-75104-3", true},
        {"isbn13", "978-0321751041", true},
        {"isbn", "978-0321751042", false},
        {"creditcard", "4111 1111 1111 1111", true},
        {"creditcard", "4111 1111 1111 1112", false},
        {"ssn", "111-22-3333", true},
        {"ssn", "111223333", false},
        {"hexcolor", "#fff", true},
        {"hexcolor", "#ffff", false},
        {"rgbcolor", "rgb(0, 128,255)", true},
        {"rgbcolor", "rgb(0,0,256)", false},
        {"rgbcolor", "rgb(0,0)", false},
        {"password", "anything", true},
        {"k8s-short-name", "a-b", true},
        {"k8s-short-name", "a.b", false},
        {"k8s-long-name", "a.b", true},
        {"k8s-long-name", "a..b", false},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        const struct format *f = format_find(str_of(cases[i].format));
        assert_non_null(f);
        if (f->matches(str_of(cases[i].text)) != cases[i].matches)
            fail_msg("%s of \"%s\"", cases[i].format, cases[i].text);
    }
}

TEST(unknown_formats_are_not_checked)
{
    assert_null(format_find(STR("nope")));
    assert_null(format_find(STR("")));
    assert_null(format_find(STR("a-very-long-name-of-a-format-that-nobody-knows-at-all")));
}
