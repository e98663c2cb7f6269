/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>

#include "json/yaml.h"

static struct str to_json(struct arena *a, const char *yaml)
{
    struct json_parse_result r;
    if (yaml_parse(a, str_of(yaml), &r) < 0)
        return r.error;
    return json_text(a, r.value);
}

struct conversion {
    const char *yaml, *json;
};

static void check_all(const struct conversion *cases, size_t n)
{
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < n; i++)
        assert_str(to_json(a, cases[i].yaml), cases[i].json);
}

TEST(plain_scalars_resolve_as_go_yaml_does)
{
    static const struct conversion cases[] = {
        {"", "null"},
        {"~", "null"},
        {"null", "null"},
        {"NULL", "null"},
        {"a:", "{\"a\":null}"},
        {"true", "true"},
        {"Yes", "true"},
        {"on", "true"},
        {"y", "true"},
        {"n", "false"},
        {"OFF", "false"},
        {"yEs", "\"yEs\""},
        {"tru", "\"tru\""},
        {"0", "0"},
        {"-17", "-17"},
        {"+17", "17"},
        {"1_000", "1000"},
        {"_1", "\"_1\""},
        {"0x1F", "31"},
        {"-0x1F", "-31"},
        {"0x", "\"0x\""},
        {"0xg", "\"0xg\""},
        {"0b101", "5"},
        {"-0b101", "-5"},
        {"0777", "511"},
        {"0o777", "511"},
        {"08", "8"},
        {"9223372036854775807", "9223372036854775807"},
        {"-9223372036854775808", "-9223372036854775808"},
        {"9223372036854775808", "9223372036854776000"},
        {"0xFFFFFFFFFFFFFFFFFFFF", "1.2089258196146292e+24"},
        {"123456789012345678901234567890", "1.2345678901234568e+29"},
        {"1.5", "1.5"},
        {"1.0", "1"},
        {"1.", "1"},
        {".5", "0.5"},
        {"-.5", "-0.5"},
        {"1e3", "1000"},
        {"1e-7", "1e-7"},
        {"1e999", "\"1e999\""},
        {"1e", "\"1e\""},
        {".", "\".\""},
        {"-", "[null]"},
        {"+", "\"+\""},
        {"1:30", "\"1:30\""},
        {"1.2.3", "\"1.2.3\""},
        {"2001-12-14", "\"2001-12-14\""},
        {"2001-12-14T21:59:43Z", "\"2001-12-14T21:59:43Z\""},
        {"100m", "\"100m\""},
    };
    check_all(cases, N_ELEMENTS(cases));
}

TEST(one_point_zero_becomes_an_integer)
{
    ARENA_AUTO a = arena_new();
    static const char *const texts[] = {"1.0", "&a 1.0", "{\"a\":1.0}"};
    for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
        struct json_parse_result r;
        assert_int_equal(yaml_parse(a, str_of(texts[i]), &r), 0);
        const struct json *v = json_get(r.value, STR("a"));
        assert_true(json_is(v ? v : r.value, JSON_INT));
    }
}

TEST(quotes_blocks_and_tags_decide_the_type)
{
    static const struct conversion cases[] = {
        {"'yes'", "\"yes\""},
        {"\"5\"", "\"5\""},
        {"\"a\\tb\\u00e9\"", "\"a\\tb\xc3\xa9\""},
        {"|\n  two\n  lines\n", "\"two\\nlines\\n\""},
        {"|-\n  two\n  lines\n", "\"two\\nlines\""},
        {">\n  two\n  lines\n", "\"two lines\\n\""},
        {"|\n  5\n", "\"5\\n\""},
        {"!!str 5", "\"5\""},
        {"!!int '5'", "5"},
        {"!!float 5", "5"},
        {"!!bool yes", "true"},
        {"!!null ''", "null"},
        {"!!binary aGVsbG8=", "\"hello\""},
        {"!!binary '*'", "yaml: !!binary value contains invalid base64 data"},
        {"!!int abc", "yaml: cannot decode !!str `abc` as a !!int"},
        {"!!int 1.5", "yaml: cannot decode !!float `1.5` as a !!int"},
        {"!custom 5", "\"5\""},
        {"!!timestamp 2001-12-14", "\"2001-12-14\""},
    };
    check_all(cases, N_ELEMENTS(cases));
}

TEST(containers_nest_and_comments_vanish)
{
    static const struct conversion cases[] = {
        {"# comment\na: 1 # more\nb:\n  c: [x, 'y', {d: e}]\n",
         "{\"a\":1,\"b\":{\"c\":[\"x\",\"y\",{\"d\":\"e\"}]}}"},
        {"- a\n- - b\n  - c\n-\n", "[\"a\",[\"b\",\"c\"],null]"},
        {"{a, b: 1}", "{\"a\":null,\"b\":1}"},
        {"[]", "[]"},
        {"{}", "{}"},
        {"{\"a\": [1, 2.5e1], \"b\": null}", "{\"a\":[1,25],\"b\":null}"},
        {"{\"a\": \"\\ud83d\\ude00\"}", "{\"a\":\"\xf0\x9f\x98\x80\"}"},
        {"\xef\xbb\xbf"
         "a: 1\nb: 2\n",
         "{\"a\":1,\"b\":2}"},
    };
    check_all(cases, N_ELEMENTS(cases));
}

TEST(only_the_first_document_is_read)
{
    static const struct conversion cases[] = {
        {"a: 1\n---\nb: 2\n", "{\"a\":1}"},
        {"---\na: 1\n...\nb: [\n", "{\"a\":1}"},
        {"%YAML 1.1\n---\na: 1\n", "{\"a\":1}"},
        {"---\n---\na: 1\n", "null"},
        {"# nothing\n", "null"},
    };
    check_all(cases, N_ELEMENTS(cases));
}

TEST(keys_become_strings)
{
    static const struct conversion cases[] = {
        {"1: a", "{\"1\":\"a\"}"},
        {"0x10: a", "{\"16\":\"a\"}"},
        {"1.5: a", "{\"1.5\":\"a\"}"},
        {"1.0: a", "{\"1\":\"a\"}"},
        {"100000.0: a", "{\"100000\":\"a\"}"},
        {"1e6: a", "{\"1e+06\":\"a\"}"},
        {"0.00001: a", "{\"1e-05\":\"a\"}"},
        {"0.1: a", "{\"0.1\":\"a\"}"},
        {"-.inf: a", "{\"-.inf\":\"a\"}"},
        {"true: a", "{\"true\":\"a\"}"},
        {"n: yes", "{\"false\":true}"},
        {"? a\n: b\n", "{\"a\":\"b\"}"},
        {"~: a", "unsupported map key of type: null"},
        {"{a: b}: c", "yaml: invalid map key: {\"a\":\"b\"}"},
        {"[a]: c", "yaml: invalid map key: [\"a\"]"},
    };
    check_all(cases, N_ELEMENTS(cases));
}

TEST(aliases_copy_and_merges_merge)
{
    static const struct conversion cases[] = {
        {"a: &x {b: 1}\nc: *x\n", "{\"a\":{\"b\":1},\"c\":{\"b\":1}}"},
        {"- &x yes\n- *x\n- &x 2\n- *x\n", "[true,true,2,2]"},
        {"&k a: *k\n", "{\"a\":\"a\"}"},
        {"a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  c: 3\n",
         "{\"a\":{\"b\":1,\"c\":2},\"d\":{\"b\":1,\"c\":3}}"},
        {"a: &x {b: 1}\nc: &y {b: 2, e: 3}\nd:\n  <<: [*x, *y]\n",
         "{\"a\":{\"b\":1},\"c\":{\"b\":2,\"e\":3},\"d\":{\"b\":1,\"e\":3}}"},
        {"<<: {a: 1}\nb: 2\n", "{\"a\":1,\"b\":2}"},
        {"'<<': {a: 1}\n", "{\"<<\":{\"a\":1}}"},
        {"<<: 5\n", "yaml: map merge requires map or sequence of maps as the value"},
        {"<<: [5]\n", "yaml: map merge requires map or sequence of maps as the value"},
        {"a: *x\n", "yaml: unknown anchor 'x' referenced"},
        {"a: &x [*x]\n", "yaml: anchor 'x' value contains itself"},
    };
    check_all(cases, N_ELEMENTS(cases));
}

TEST(an_alias_shares_no_memory_with_its_anchor)
{
    ARENA_AUTO a = arena_new();
    struct json_parse_result r;
    assert_int_equal(yaml_parse(a, STR("a: &x {b: 1}\nc: *x\n"), &r), 0);
    (void) json_set(a, json_get(r.value, STR("c")), STR("b"), json_int(2));
    assert_str(json_text(a, r.value), "{\"a\":{\"b\":1},\"c\":{\"b\":2}}");
}

TEST(errors_speak_as_go_yaml_does)
{
    static const struct conversion cases[] = {
        {"a: b: c\n", "yaml: mapping values are not allowed in this context"},
        {"a: [b", "yaml: line 1: did not find expected ',' or ']'"},
        {"a: b\n c: d\n", "yaml: line 2: mapping values are not allowed in this context"},
        {"a: b\n\tc: d\n", "yaml: line 2: found a tab character that violates indentation"},
        {"a: 'b", "yaml: found unexpected end of stream"},
        {"a: \x01", "yaml: control characters are not allowed"},
        {"a: \xff", "yaml: invalid leading UTF-8 octet"},
        {"a: .inf", "json: unsupported value: +Inf"},
        {"a: -.inf", "json: unsupported value: -Inf"},
        {"a: .nan", "json: unsupported value: NaN"},
    };
    check_all(cases, N_ELEMENTS(cases));
}

static struct str duplicates_of(struct arena *a, const char *yaml)
{
    struct json_parse_result r;
    assert_int_equal(yaml_parse(a, str_of(yaml), &r), 0);
    BUF_AUTO b = {0};
    for (const struct json_duplicate *d = r.duplicates; d; d = d->next)
        buf_printf(&b, "%.*s=%.*s;", STR_ARG(d->path), STR_ARG(d->yaml_message));
    return arena_str(a, buf_str(&b));
}

TEST(duplicates_are_reported_and_the_last_wins)
{
    ARENA_AUTO a = arena_new();
    assert_str(
        duplicates_of(a, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  name: b\n"),
        "metadata.name=line 5: key \"name\" already set in map;");
    assert_str(duplicates_of(a, "{\"a\":[{\"b\":1,\"b\":2}]}"),
               "a[0].b=line 1: key \"b\" already set in map;");
    assert_str(duplicates_of(a, "1: a\n1: b\ntrue: a\nyes: b\n"),
               "1=line 2: key 1 already set in map;true=line 4: key true already set in map;");
    assert_str(duplicates_of(a, "a: 1\nb: 2\n"), "");
    assert_str(to_json(a, "a: 1\nb: 2\na: 3\n"), "{\"a\":3,\"b\":2}");
}

TEST(depth_is_bounded)
{
    ARENA_AUTO a = arena_new();
    struct json_parse_result r;
    char *text = arena_alloc(a, 1000000);
    memset(text, '[', 1000000);
    assert_int_equal(yaml_parse(a, str_range(text, 1000000), &r), -E2BIG);
    memset(text + JSON_MAX_DEPTH, ']', JSON_MAX_DEPTH);
    assert_int_equal(yaml_parse(a, str_range(text, 2 * JSON_MAX_DEPTH), &r), 0);
    for (size_t i = 0; i < 1000000; i++)
        text[i] = i % 2 ? ' ' : '-';
    assert_int_equal(yaml_parse(a, str_range(text, 1000000), &r), -E2BIG);
}

TEST(aliases_do_not_pass_the_depth_limit)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO b = {0};
    buf_append_str(&b, STR("- &a0 [x]\n"));
    for (int i = 1; i < JSON_MAX_DEPTH; i++)
        buf_printf(&b, "- &a%d [*a%d]\n", i, i - 1);
    struct json_parse_result r;
    assert_int_equal(yaml_parse(a, buf_str(&b), &r), -E2BIG);
    assert_str(r.error, "yaml: exceeded max depth");
}

TEST(alias_bombs_are_refused)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO b = {0};
    buf_append_str(&b, STR("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"));
    for (int i = 1; i < 10; i++) {
        buf_printf(&b, "a%d: &a%d [", i, i);
        for (int j = 0; j < 10; j++)
            buf_printf(&b, "*a%d,", i - 1);
        buf_append_str(&b, STR("]\n"));
    }
    struct json_parse_result r;
    assert_int_equal(yaml_parse(a, buf_str(&b), &r), -EINVAL);
    assert_str(r.error, "yaml: document contains excessive aliasing");
    assert_true(arena_used(a) < 100 * 1000 * 1000);
}

TEST(aliases_of_long_strings_are_bounded_too)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO b = {0};
    buf_append_str(&b, STR("- &a "));
    for (int i = 0; i < 100000; i++)
        buf_append_char(&b, 'x');
    for (int i = 0; i < 1000; i++)
        buf_append_str(&b, STR("\n- *a"));
    struct json_parse_result r;
    assert_int_equal(yaml_parse(a, buf_str(&b), &r), -EINVAL);
    assert_str(r.error, "yaml: document contains excessive aliasing");
}

TEST(directives_are_bounded)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO b = {0};
    for (int i = 0; i < 100000; i++)
        buf_printf(&b, "%%TAG !a%d! b\n", i);
    buf_append_str(&b, STR("--- {}\n"));
    struct json_parse_result r;
    assert_int_equal(yaml_parse(a, buf_str(&b), &r), -E2BIG);
    buf_reset(&b);
    buf_append_str(&b, STR("a: |\n"));
    for (int i = 0; i < 1000; i++)
        buf_append_str(&b, STR(" %TAG\n"));
    assert_int_equal(yaml_parse(a, buf_str(&b), &r), 0);
}

TEST(large_mappings_are_not_quadratic)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO b = {0};
    for (int i = 0; i < 50000; i++)
        buf_printf(&b, "k%d: %d\n", i, i);
    struct json_parse_result r;
    assert_int_equal(yaml_parse(a, buf_str(&b), &r), 0);
    assert_int_equal(json_count(r.value), 50000);
    assert_null(r.duplicates);
}
