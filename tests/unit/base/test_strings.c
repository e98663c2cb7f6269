/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/str.h"

TEST(compare_orders_by_bytes_then_length)
{
    assert_true(str_cmp(STR("a"), STR("b")) < 0);
    assert_true(str_cmp(STR("a"), STR("ab")) < 0);
    assert_true(str_cmp(STR("b"), STR("ab")) > 0);
    assert_int_equal(str_cmp(STR(""), STR("")), 0);
    assert_true(str_cmp(STR("a-b"), STR("a/b")) < 0);
}

TEST(a_copy_is_of_its_own_and_ends_with_a_nul)
{
    static const struct {
        struct str s;
        const char *copy;
    } cases[] = {{{"abc", 2}, "ab"}, {{"", 0}, ""}, {{NULL, 0}, ""}};
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        char *copy = str_dup(cases[i].s);
        assert_string_equal(copy, cases[i].copy);
        assert_ptr_not_equal(copy, cases[i].s.p);
        free(copy);
    }
}

TEST(split_gives_every_part_but_none_behind_a_last_separator)
{
    static const struct {
        const char *text, *parts[4];
    } cases[] = {
        {"a,b", {"a", "b"}}, {"a,,b", {"a", "", "b"}}, {"a,", {"a"}}, {",a", {"", "a"}}, {"", {0}},
        {"a", {"a"}},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct str rest = str_of(cases[i].text), part = STR_NONE;
        size_t n = 0;
        for (; str_split(&rest, ',', &part); n++)
            assert_str(part, cases[i].parts[n]);
        assert_null(cases[i].parts[n]);
    }
}

TEST(numbers_are_whole_and_bounded)
{
    static const struct {
        const char *text;
        int result;
        int64_t value;
    } cases[] = {
        {"0", 0, 0},
        {"-7", 0, -7},
        {"+7", 0, 7},
        {"9223372036854775807", 0, INT64_MAX},
        {"-9223372036854775808", 0, INT64_MIN},
        {"9223372036854775808", -ERANGE, 0},
        {"-9223372036854775809", -ERANGE, 0},
        {"", -EINVAL, 0},
        {"-", -EINVAL, 0},
        {"1x", -EINVAL, 0},
        {" 1", -EINVAL, 0},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        int64_t value = 42;
        assert_int_equal(str_to_i64(str_of(cases[i].text), &value), cases[i].result);
        assert_true(value == (cases[i].result ? 42 : cases[i].value));
    }
}

TEST(utf8_refuses_overlong_surrogate_and_cut_off)
{
    static const struct {
        const char *text;
        bool is_good;
    } cases[] = {
        {"plain", true},         {"\xc3\xa9", true},
        {"\xe2\x82\xac", true},  {"\xf0\x9f\x98\x80", true},
        {"\xc0\x80", false},     {"\xe0\x80\x80", false},
        {"\xed\xa0\x80", false}, {"\xf4\x90\x80\x80", false},
        {"\xe2\x82", false},     {"\x80", false},
        {"a\xff", false},        {"\xf0\x80\x80\x80", false},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        assert_int_equal(str_is_utf8(str_of(cases[i].text)), cases[i].is_good);
}

TEST(find_trim_and_sub_stay_inside)
{
    assert_int_equal(str_find(STR("a/b/c"), '/'), 1);
    assert_int_equal(str_find_last(STR("a/b/c"), '/'), 3);
    assert_int_equal(str_find(STR(""), '/'), -1);
    assert_int_equal(str_find_str(STR("hello"), STR("ll")), 2);
    assert_int_equal(str_find_str(STR("hello"), STR("lx")), -1);
    assert_str(str_trim(STR(" \t a b \r\n")), "a b");
    assert_str(str_sub(STR("abc"), 1, 99), "bc");
    assert_str(str_from(STR("abc"), 99), "");
    assert_true(str_eq_nocase(STR("GZip"), STR("gzip")));
}

TEST(buf_grows_prints_and_hands_over)
{
    struct buf b = {0};
    for (int i = 0; i < 1000; i++)
        buf_printf(&b, "%d,", i);
    assert_true(str_ends_with(buf_str(&b), STR(",999,")));
    assert_int_equal(b.p[b.n], '\0');
    buf_consume(&b, 2);
    assert_true(str_starts_with(buf_str(&b), STR("1,2,")));
    buf_reset(&b);
    buf_append_char(&b, 'x');
    char *taken = buf_take(&b);
    assert_string_equal(taken, "x");
    assert_null(b.p);
    free(taken);
}

TEST(a_set_of_characters_has_no_end_in_it)
{
    assert_true(char_is_in('b', "abc"));
    assert_false(char_is_in('d', "abc"));
    assert_false(char_is_in('\0', "abc"));
    assert_false(char_is_in('a', ""));
}
