/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>

#include "json/json.h"

static struct json *parse(struct arena *a, const char *text)
{
    struct json_parse_result r;
    assert_int_equal(json_parse(a, str_of(text), &r), 0);
    assert_non_null(r.value);
    return r.value;
}

TEST(parse_writes_back_the_same_text)
{
    static const char *const texts[] = {
        "null",
        "true",
        "false",
        "0",
        "-1",
        "9223372036854775807",
        "-9223372036854775808",
        "0.5",
        "1e+21",
        "1e-7",
        "\"\"",
        "\"a\\\"b\\\\c\\n\\t\\u0001\xc3\xa9\"",
        "[]",
        "{}",
        "[1,[2,[3]],{}]",
        "{\"b\":1,\"a\":{\"c\":[true,null]}}",
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(texts); i++)
        assert_str(json_text(a, parse(a, texts[i])), texts[i]);
}

TEST(integers_stay_integers_and_larger_ones_become_doubles)
{
    ARENA_AUTO a = arena_new();
    assert_true(json_is(parse(a, "9223372036854775807"), JSON_INT));
    assert_true(json_is(parse(a, "9223372036854775808"), JSON_DOUBLE));
    assert_true(json_is(parse(a, "18446744073709551615"), JSON_DOUBLE));
    assert_true(json_is(parse(a, "123456789012345678901234567890"), JSON_DOUBLE));
    assert_true(json_is(parse(a, "-9223372036854775809"), JSON_DOUBLE));
    assert_true(json_is(parse(a, "1.0"), JSON_DOUBLE));
    assert_true(json_is(parse(a, "1e3"), JSON_DOUBLE));
    assert_true(parse(a, "18446744073709551615")->d == 18446744073709551615.0);
}

TEST(strings_outlive_the_text)
{
    ARENA_AUTO a = arena_new();
    char text[] = "{\"k\":\"v\\u00e9\"}";
    struct json *v = parse(a, text);
    memset(text, 'x', sizeof(text) - 1);
    assert_str(json_get_str(v, STR("k")), "v\xc3\xa9");
}

TEST(errors_speak_as_go_does)
{
    static const struct {
        const char *text, *error;
        size_t at;
    } cases[] = {
        {"", "unexpected end of JSON input", 0},
        {"  ", "unexpected end of JSON input", 2},
        {"{", "unexpected end of JSON input", 1},
        {"{\"a\":1", "unexpected end of JSON input", 6},
        {"[1,", "unexpected end of JSON input", 3},
        {"\"a", "unexpected end of JSON input", 2},
        {"nul", "unexpected end of JSON input", 3},
        {"-", "unexpected end of JSON input", 1},
        {"not json", "invalid character 'o' in literal null (expecting 'u')", 1},
        {"trux", "invalid character 'x' in literal true (expecting 'e')", 3},
        {"fxlse", "invalid character 'x' in literal false (expecting 'a')", 1},
        {"x", "invalid character 'x' looking for beginning of value", 0},
        {"[1,]", "invalid character ']' looking for beginning of value", 3},
        {"\x81", "invalid character '\\u0081' looking for beginning of value", 0},
        {"\xe9", "invalid character '\xc3\xa9' looking for beginning of value", 0},
        {"'", "invalid character '\\'' looking for beginning of value", 0},
        {"{} trailing", "invalid character 't' after top-level value", 3},
        {"{a:1}", "invalid character 'a' looking for beginning of object key string", 1},
        {"{\"a\":1,}", "invalid character '}' looking for beginning of object key string", 7},
        {"{\"a\" 1}", "invalid character '1' after object key", 5},
        {"{\"a\":1 \"b\"}", "invalid character '\"' after object key:value pair", 7},
        {"[1 2]", "invalid character '2' after array element", 3},
        {"[}", "invalid character '}' looking for beginning of value", 1},
        {"[1}", "invalid character '}' after array element", 2},
        {"01", "invalid character '1' after top-level value", 1},
        {"-a", "invalid character 'a' in numeric literal", 1},
        {"1.x", "invalid character 'x' after decimal point in numeric literal", 2},
        {"1ex", "invalid character 'x' in exponent of numeric literal", 2},
        {"\"\\x\"", "invalid character 'x' in string escape code", 2},
        {"\"\\u12g4\"", "invalid character 'g' in \\u hexadecimal character escape", 5},
        {"\"a\nb\"", "invalid character '\\n' in string literal", 2},
        {"\"\x01\"", "invalid character '\\x01' in string literal", 1},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct json_parse_result r;
        assert_int_equal(json_parse(a, str_of(cases[i].text), &r), -EINVAL);
        assert_null(r.value);
        assert_str(r.error, cases[i].error);
        assert_int_equal(r.error_at, cases[i].at);
        assert_null(json_parse_quick(a, str_of(cases[i].text)));
    }
}

TEST(what_go_accepts_but_we_refuse_is_explained)
{
    static const char *const texts[] = {"\"\xff\"", "\"\xc0\x80\"", "\"\\ud800\"", "1e999"};
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
        struct json_parse_result r;
        assert_int_equal(json_parse(a, str_of(texts[i]), &r), -EINVAL);
        assert_true(r.error.n > 0);
    }
}

TEST(nul_bytes_are_data_when_escaped_and_faults_when_not)
{
    ARENA_AUTO a = arena_new();
    assert_int_equal(json_str(parse(a, "\"a\\u0000b\"")).n, 3);
    struct json_parse_result r;
    assert_int_equal(json_parse(a, STR("\"a\0b\""), &r), -EINVAL);
    assert_str(r.error, "invalid character '\\x00' in string literal");
    assert_int_equal(json_parse(a, STR("{}\0"), &r), -EINVAL);
    assert_str(r.error, "invalid character '\\x00' after top-level value");
}

static struct str nested(struct arena *a, size_t depth, const char *middle)
{
    BUF_AUTO b = {0};
    for (size_t i = 0; i < depth; i++)
        buf_append_str(&b, i % 2 ? STR("[") : STR("{\"a\":"));
    buf_append_str(&b, str_of(middle));
    for (size_t i = depth; i-- > 0;)
        buf_append_str(&b, i % 2 ? STR("]") : STR("}"));
    return arena_str(a, buf_str(&b));
}

TEST(depth_is_bounded)
{
    ARENA_AUTO a = arena_new();
    struct json_parse_result r;
    assert_int_equal(json_parse(a, nested(a, JSON_MAX_DEPTH, "1"), &r), 0);
    assert_non_null(json_parse_quick(a, nested(a, JSON_MAX_DEPTH, "1")));
    assert_int_equal(json_parse(a, nested(a, JSON_MAX_DEPTH + 1, "1"), &r), -E2BIG);
    assert_str(r.error, "exceeded max depth");
    assert_null(r.value);
    assert_null(json_parse_quick(a, nested(a, JSON_MAX_DEPTH + 1, "1")));
    assert_int_equal(json_parse(a, nested(a, 1000000, "1"), &r), -E2BIG);
}

TEST(a_million_open_brackets_fail_cleanly)
{
    ARENA_AUTO a = arena_new();
    char *text = arena_alloc(a, 1000000);
    memset(text, '[', 1000000);
    struct json_parse_result r;
    assert_int_equal(json_parse(a, str_range(text, 1000000), &r), -E2BIG);
    assert_null(json_parse_quick(a, str_range(text, 1000000)));
}

TEST(brackets_in_strings_are_no_depth)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO b = {0};
    buf_append_str(&b, STR("[\"\\\""));
    for (int i = 0; i < 1000; i++)
        buf_append_str(&b, STR("[{\\\\"));
    buf_append_str(&b, STR("\"]"));
    struct json_parse_result r;
    assert_int_equal(json_parse(a, buf_str(&b), &r), 0);
    assert_int_equal(json_str(&r.value->items[0]).n, 3001);
}

TEST(many_flat_containers_are_no_depth)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO b = {0};
    buf_append_str(&b, STR("[{}"));
    for (int i = 0; i < 1000; i++)
        buf_append_str(&b, STR(",{\"a\":[]}"));
    buf_append_str(&b, STR("]"));
    struct json_parse_result r;
    assert_int_equal(json_parse(a, buf_str(&b), &r), 0);
    assert_int_equal(json_count(r.value), 1001);
}

static const char *duplicates_of(struct arena *a, struct str text)
{
    struct json_parse_result r;
    assert_int_equal(json_parse(a, text, &r), 0);
    BUF_AUTO b = {0};
    for (const struct json_duplicate *d = r.duplicates; d; d = d->next)
        buf_printf(&b, "%s%.*s", b.n ? " " : "", STR_ARG(d->path));
    return arena_strz(a, buf_str(&b));
}

TEST(duplicate_keys_are_reported_by_path_in_order)
{
    ARENA_AUTO a = arena_new();
    static const struct {
        const char *text, *paths;
    } cases[] = {
        {"{\"a\":1,\"b\":2}", ""},
        {"{\"a\":1,\"a\":2}", "a"},
        {"{\"a\":1,\"a\":2,\"a\":3}", "a"},
        {"{\"metadata\":{\"labels\":{\"a\":1,\"a\":2}}}", "metadata.labels.a"},
        {"{\"spec\":{\"list\":[{\"x\":1,\"x\":1}]}}", "spec.list[0].x"},
        {"[[{\"x\":1,\"x\":1}]]", "[0][0].x"},
        {"{\"b\":1,\"b\":{\"c\":1,\"c\":2},\"a\":0,\"a\":0}", "b b.c a"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        assert_string_equal(duplicates_of(a, str_of(cases[i].text)), cases[i].paths);
}

TEST(the_last_duplicate_wins_at_the_place_of_the_first)
{
    ARENA_AUTO a = arena_new();
    struct json *v = parse(a, "{\"a\":1,\"b\":2,\"a\":{\"c\":3}}");
    assert_str(json_text(a, v), "{\"a\":{\"c\":3},\"b\":2}");
}

/* Each key twice: 2 n members. */
static struct str twice(struct arena *a, int n)
{
    BUF_AUTO b = {0};
    buf_append_char(&b, '{');
    for (int i = 0; i < 2 * n; i++)
        buf_printf(&b, "%s\"k%d\":%d", i ? "," : "", i % n, i);
    buf_append_char(&b, '}');
    return arena_str(a, buf_str(&b));
}

TEST(duplicates_are_found_in_objects_of_any_size)
{
    ARENA_AUTO a = arena_new();
    for (int n = 1; n < 200; n++) {
        struct json_parse_result r;
        assert_int_equal(json_parse(a, twice(a, n), &r), 0);
        assert_int_equal(json_count(r.value), n);
        int n_reported = 0;
        for (const struct json_duplicate *d = r.duplicates; d; d = d->next)
            n_reported++;
        assert_int_equal(n_reported, MIN(n, JSON_MAX_DUPLICATES));
        for (int i = 0; i < n; i++)
            assert_int_equal(r.value->members[i].value.i, n + i);
    }
}

TEST(a_huge_object_is_not_quadratic)
{
    ARENA_AUTO a = arena_new();
    struct json_parse_result r;
    assert_int_equal(json_parse(a, twice(a, 200000), &r), 0);
    assert_int_equal(json_count(r.value), 200000);
}

TEST(a_long_path_repeated_often_is_not_quadratic)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO b = {0};
    buf_append_str(&b, STR("{\""));
    memset(buf_reserve(&b, 1000000), 'k', 1000000);
    b.n += 1000000;
    buf_append_str(&b, STR("\":{\"a\":0"));
    for (int i = 0; i < 100000; i++)
        buf_append_str(&b, STR(",\"a\":{\"b\":1,\"b\":2}"));
    buf_append_str(&b, STR("}}"));
    struct json_parse_result r;
    assert_int_equal(json_parse(a, buf_str(&b), &r), 0);
    assert_non_null(r.duplicates);
    assert_true(arena_used(a) < 100 * 1000 * 1000);
}

TEST(quick_parse_reads_what_we_write)
{
    ARENA_AUTO a = arena_new();
    struct json *v = json_parse_quick(a, STR(" {\"a\":[1,2.5,\"x\"]} "));
    assert_str(json_text(a, v), "{\"a\":[1,2.5,\"x\"]}");
}
