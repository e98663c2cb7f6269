/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "json/json.h"

static struct str text_of(struct arena *a, struct json v)
{
    return json_text(a, &v);
}

TEST(doubles_are_written_as_go_writes_them)
{
    static const struct {
        double d;
        const char *text;
    } cases[] = {
        {0, "0"},
        {-0.0, "-0"},
        {1, "1"},
        {-1.5, "-1.5"},
        {0.1, "0.1"},
        {0.1 + 0.2, "0.30000000000000004"},
        {100, "100"},
        {123456789.125, "123456789.125"},
        {0.25, "0.25"},
        {1.000001, "1.000001"},
        {0.1000005, "0.1000005"},
        {450359962737049.5, "450359962737049.5"},
        {-12.05, "-12.05"},
        {1e20, "100000000000000000000"},
        {1e21, "1e+21"},
        {-1e21, "-1e+21"},
        {1.5e300, "1.5e+300"},
        {1e-6, "0.000001"},
        {1.25e-6, "0.00000125"},
        {1e-7, "1e-7"},
        {1.5e-10, "1.5e-10"},
        {9007199254740992.0, "9007199254740992"},
        {9223372036854775808.0, "9223372036854776000"},
        {18446744073709551616.0, "18446744073709552000"},
        {DBL_MAX, "1.7976931348623157e+308"},
        {DBL_MIN, "2.2250738585072014e-308"},
        {4.9406564584124654e-324, "5e-324"},
        {1e-310, "1e-310"},
        {INFINITY, "null"},
        {NAN, "null"},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        assert_str(text_of(a, json_double(cases[i].d)), cases[i].text);
}

TEST(strings_of_any_length_are_copied_within_their_bounds)
{
    static const char text[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    ARENA_AUTO a = arena_new();
    for (size_t n = 0; n < sizeof(text); n++) {
        char *exact = malloc(n + !n), expected[64];
        memcpy(exact, text, n);
        (void) snprintf(expected, sizeof(expected), "\"%.*s\"", (int) n, text);
        assert_str(text_of(a, json_string(str_range(exact, n))), expected);
        free(exact);
    }
}

TEST(integers_are_exact)
{
    ARENA_AUTO a = arena_new();
    assert_str(text_of(a, json_int(0)), "0");
    assert_str(text_of(a, json_int(-7)), "-7");
    assert_str(text_of(a, json_int(INT64_MAX)), "9223372036854775807");
    assert_str(text_of(a, json_int(INT64_MIN)), "-9223372036854775808");
}

TEST(strings_are_escaped_minimally)
{
    ARENA_AUTO a = arena_new();
    assert_str(text_of(a, json_string(STR("\"\\/\b\f\n\r\t\x01\x1f\x7f<>&'"))),
               "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f<>&'\"");
    assert_str(text_of(a, json_string(STR("\0"))), "\"\\u0000\"");
    assert_str(text_of(a, json_string(STR("h\xc3\xa9llo \xe2\x82\xac"))),
               "\"h\xc3\xa9llo \xe2\x82\xac\"");
    assert_str(text_of(a, json_string(STR_NONE)), "\"\"");
}

TEST(an_escape_is_found_at_every_position)
{
    for (size_t n = 1; n < 40; n++) {
        for (size_t at = 0; at < n; at++) {
            char bytes[40];
            memset(bytes, 'a' | 0x80, sizeof(bytes));
            bytes[at] = '"';
            BUF_AUTO b = {0};
            json_write_str(&b, str_range(bytes, n));
            assert_int_equal(b.n, n + 3);
            assert_int_equal(b.p[at + 1], '\\');
            assert_int_equal(b.p[b.n], '\0');
        }
    }
}

TEST(long_strings_are_written_whole)
{
    ARENA_AUTO a = arena_new();
    char *bytes = arena_alloc(a, 10000);
    for (size_t n = 500; n < 10000; n += 511) {
        memset(bytes, '\n', n);
        BUF_AUTO b = {0};
        json_write_str(&b, str_range(bytes, n));
        assert_int_equal(b.n, 2 * n + 2);
        assert_int_equal(b.p[b.n - 1], '"');
    }
}

TEST(writing_appends_and_terminates)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO b = {0};
    buf_append_str(&b, STR("x="));
    json_write(&b, json_parse_quick(a, STR("{ \"a\" : [ 1 , true ] }")));
    assert_string_equal(b.p, "x={\"a\":[1,true]}");
}

TEST(pretty_text_is_indented_by_two)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO b = {0};
    json_write_pretty(&b, json_parse_quick(a, STR("{\"a\":[1,{\"b\":null}],\"c\":{},\"d\":[]}")));
    assert_string_equal(b.p, "{\n"
                             "  \"a\": [\n"
                             "    1,\n"
                             "    {\n"
                             "      \"b\": null\n"
                             "    }\n"
                             "  ],\n"
                             "  \"c\": {},\n"
                             "  \"d\": []\n"
                             "}");
}

/* ---- random values ------------------------------------------------------------------------ */

static uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static struct str random_string(struct arena *a, uint64_t *state)
{
    static const char *const pieces[] = {"a",
                                         "Z",
                                         "0",
                                         "\"",
                                         "\\",
                                         "/",
                                         "\n",
                                         "\x01",
                                         "\x7f",
                                         "\xc3\xa9",
                                         " ",
                                         "<",
                                         "\xe2\x82\xac",
                                         "\xf0\x9f\x98\x80",
                                         "\xe2\x80\xa8"};
    BUF_AUTO b = {0};
    for (uint64_t n = next_random(state) % 30; n > 0; n--)
        buf_append_str(&b, str_of(pieces[next_random(state) % N_ELEMENTS(pieces)]));
    return arena_str(a, buf_str(&b));
}

static double random_double(uint64_t *state)
{
    for (;;) {
        uint64_t bits = next_random(state);
        double d;
        memcpy(&d, &bits, sizeof(d));
        if (isfinite(d))
            return d;
    }
}

static struct json random_value(struct arena *a, uint64_t *state, int depth)
{
    switch (next_random(state) % (depth > 0 ? 8 : 6)) {
    case 0:
        return json_null();
    case 1:
        return json_bool(next_random(state) & 1);
    case 2:
        return json_int((int64_t) next_random(state) >> (next_random(state) % 64));
    case 3:
        return json_double(random_double(state));
    case 4:
    case 5:
        return json_string(random_string(a, state));
    default:
        break;
    }
    bool is_object = next_random(state) & 1;
    struct json v = is_object ? json_object() : json_array();
    for (uint64_t n = next_random(state) % 24; n > 0; n--) {
        struct json child = random_value(a, state, depth - 1);
        if (is_object)
            (void) json_set(a, &v, random_string(a, state), child);
        else
            (void) json_push(a, &v, child);
    }
    return v;
}

static void check_round_trip(struct arena *a, const struct json *v)
{
    BUF_AUTO compact = {0};
    BUF_AUTO pretty = {0};
    json_write(&compact, v);
    json_write_pretty(&pretty, v);
    struct json_parse_result r;
    assert_int_equal(json_parse(a, buf_str(&compact), &r), 0);
    assert_null(r.duplicates);
    assert_true(json_equal(v, r.value));
    assert_str(json_text(a, r.value), compact.p);
    assert_int_equal(json_parse(a, buf_str(&pretty), &r), 0);
    assert_true(json_equal(v, r.value));
    struct json copy = json_clone(a, v);
    assert_true(json_equal(v, &copy));
}

TEST(random_values_survive_the_round_trip)
{
    const char *given = getenv("SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t) time(NULL);
    printf("# SEED=%llu\n", (unsigned long long) seed);
    uint64_t generator = seed;
    ARENA_AUTO a = arena_new();
    for (int i = 0; i < 300; i++) {
        struct json v = random_value(a, &generator, 4);
        check_round_trip(a, &v);
        arena_reset(a);
    }
}
