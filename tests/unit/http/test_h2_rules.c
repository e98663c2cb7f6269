/* SPDX-License-Identifier: Apache-2.0 */
/* Our rules against nghttp2's own, byte by byte and at random, and the cases that are no matter of
 * characters. */
#include "http/h2_rules.h"

#include <nghttp2/nghttp2.h>
#include <stdlib.h>

#include "test.h"

#define MAX_TEXT 40
#define N_RANDOM 200000

static bool breaks(const char *name, struct str value)
{
    struct h2_rules r = {0};
    h2_rules_header(&r, str_of(name), value);
    return r.is_broken;
}

static bool name_breaks(struct str name)
{
    struct h2_rules r = {0};
    h2_rules_header(&r, name, STR("x"));
    return r.is_broken;
}

static void compare(struct str s)
{
    const uint8_t *p = (const uint8_t *) s.p;
    assert_int_equal(!breaks("x", s), nghttp2_check_header_value_rfc9113(p, s.n) != 0);
    if (s.n && s.p[0] != ':' && !str_is(s, "te") && !str_is(s, "upgrade"))
        assert_int_equal(!name_breaks(s), nghttp2_check_header_name(p, s.n) != 0);
    if (s.n) {
        assert_int_equal(!breaks(":method", s), nghttp2_check_method(p, s.n) != 0);
        assert_int_equal(!breaks(":path", s), nghttp2_check_path(p, s.n) != 0);
    }
    assert_int_equal(!breaks(":authority", s), nghttp2_check_authority(p, s.n) != 0);
    assert_int_equal(!breaks("host", s), nghttp2_check_authority(p, s.n) != 0);
}

TEST(every_byte_at_every_place)
{
    for (int byte = 0; byte < 256; byte++) {
        for (size_t at = 0; at < 20; at++) {
            char text[20];
            memset(text, 'a', sizeof(text));
            text[at] = (char) byte;
            compare(str_range(text, sizeof(text)));
            compare(str_range(text + at, 1));
        }
    }
    compare(STR(""));
}

TEST(random_texts)
{
    static const char likely[] = "azAZ09 \t:/-_.~%\x7f\x80\xff\r\n*[]@";
    srand(1);
    for (size_t i = 0; i < N_RANDOM; i++) {
        char text[MAX_TEXT];
        size_t n = (size_t) rand() % MAX_TEXT;
        for (size_t k = 0; k < n; k++)
            text[k] = rand() % 8
                          ? (rand() % 4 ? 'a' : likely[(size_t) rand() % (sizeof(likely) - 1)])
                          : (char) rand();
        compare(str_range(text, n));
    }
}

struct pair {
    const char *name, *value;
};

static bool head_breaks(const struct pair *pairs, size_t n)
{
    struct h2_rules r = {0};
    for (size_t i = 0; i < n; i++)
        h2_rules_header(&r, str_of(pairs[i].name), str_of(pairs[i].value));
    h2_rules_end_head(&r);
    return r.is_broken;
}

#define HEAD(...) \
    head_breaks((const struct pair[]){__VA_ARGS__}, \
                N_ELEMENTS(((const struct pair[]){__VA_ARGS__})))
#define METHOD \
    { \
        ":method", "GET" \
    }
#define SCHEME \
    { \
        ":scheme", "https" \
    }
#define PATH \
    { \
        ":path", "/" \
    }
#define AUTHORITY \
    { \
        ":authority", "a" \
    }

TEST(a_head_has_what_it_needs)
{
    assert_false(HEAD(METHOD, SCHEME, PATH, AUTHORITY));
    assert_false(HEAD(METHOD, SCHEME, PATH, {"host", "a"}));
    assert_true(HEAD(METHOD, SCHEME, PATH));
    assert_true(HEAD(SCHEME, PATH, AUTHORITY));
    assert_true(HEAD(METHOD, PATH, AUTHORITY));
    assert_true(HEAD(METHOD, SCHEME, AUTHORITY));
    assert_true(HEAD(METHOD, SCHEME, {"x", "y"}, PATH, AUTHORITY));
    assert_true(HEAD(METHOD, METHOD, SCHEME, PATH, AUTHORITY));
    assert_true(HEAD(METHOD, SCHEME, {":path", ""}, AUTHORITY));
    assert_true(HEAD(METHOD, SCHEME, {":path", "*"}, AUTHORITY));
    assert_false(HEAD({":method", "OPTIONS"}, SCHEME, {":path", "*"}, AUTHORITY));
    assert_false(HEAD({":method", "CONNECT"}, AUTHORITY));
    assert_true(HEAD({":method", "CONNECT"}, SCHEME, PATH, AUTHORITY));
    assert_true(HEAD({":method", "CONNECT"}, {"host", "a"}));
}

TEST(headers_of_a_connection_do_not_belong)
{
    static const char *const names[] = {"connection", "keep-alive", "proxy-connection",
                                        "transfer-encoding", "upgrade"};
    for (size_t i = 0; i < N_ELEMENTS(names); i++)
        assert_true(breaks(names[i], STR("x")));
    assert_false(breaks("te", STR("trailers")));
    assert_true(breaks("te", STR("gzip")));
    assert_true(breaks("te", STR("trailers, gzip")));
}

static bool body_breaks(const char *length, size_t n_bytes)
{
    struct h2_rules r = {0};
    h2_rules_header(&r, STR("content-length"), str_of(length));
    h2_rules_data(&r, n_bytes);
    h2_rules_end(&r);
    return r.is_broken;
}

TEST(a_body_is_as_long_as_was_said)
{
    assert_false(body_breaks("3", 3));
    assert_true(body_breaks("3", 2));
    assert_true(body_breaks("3", 4));
    assert_true(body_breaks("+3", 3));
    assert_true(body_breaks("", 0));
    assert_true(body_breaks("-0", 0));
    assert_true(body_breaks("3 ", 3));
    assert_true(body_breaks("18446744073709551617", 1));
    struct h2_rules twice = {0};
    h2_rules_header(&twice, STR("content-length"), STR("3"));
    assert_false(twice.is_broken);
    h2_rules_header(&twice, STR("content-length"), STR("3"));
    assert_true(twice.is_broken);
}

TEST(trailers_are_plain_fields)
{
    struct h2_rules r = {0};
    h2_rules_trailer(&r, STR("x-checksum"), STR("1"));
    assert_false(r.is_broken);
    h2_rules_trailer(&r, STR(":path"), STR("/"));
    assert_true(r.is_broken);
}
