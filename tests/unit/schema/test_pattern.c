/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "schema/pattern.h"

static bool matches_by(const char *pattern, struct str text, bool is_fast)
{
    ARENA_AUTO a = arena_new();
    const struct pattern *p = NULL;
    struct str error = STR_NONE;
    if (pattern_compile(a, str_of(pattern), is_fast, &p, &error) < 0)
        fail_msg("%s: %.*s", pattern, STR_ARG(error));
    struct pattern_matcher m = {0};
    bool found = pattern_matches(&m, p, text);
    pattern_matcher_done(&m);
    return found;
}

/* Machine code and interpreter must agree. */
static bool matches(const char *pattern, struct str text)
{
    bool found = matches_by(pattern, text, true);
    assert_int_equal(matches_by(pattern, text, false), found);
    return found;
}

TEST(means_what_go_means)
{
    static const struct {
        const char *pattern, *text;
        bool matches;
    } cases[] = {
        {"^[A-Z0-9-]+$", "AB-1", true},
        {"^[A-Z0-9-]+$", "ab", false},
        {"b", "abc", true},
        {"^a$", "a\n", false}, /* $ is the end, not before a last line break */
        {"(?m)^a$", "b\na\nc", true},
        {"a.b", "a\nb", false},
        {"(?s)a.b", "a\nb", true},
        {"^\\s$", "\v", false}, /* no vertical tab in \s */
        {"^\\s$", "\f", true},
        {"^[\\s]$", "\v", false},
        {"^\\S$", "\v", true},
        {"^[\\S]$", "\v", true},
        {"^\\v$", "\v", true},
        {"^\\v$", "\n", false},
        {"^\\d$", "\xd9\xa3", false}, /* ARABIC-INDIC DIGIT THREE */
        {"^\\w$", "\xc3\xa9", false},
        {"^\\pL$", "\xc3\xa9", true},
        {"^\\p{Greek}$", "\xce\xb1", true},
        {"^\\P{Greek}$", "a", true},
        {"^\\p{^Lu}$", "a", true},
        {"^.$", "\xc3\xa9", true},
        {"^(?i)straSSe$", "STRASSE", true},
        {"^\\x41\\x{42}\\103$", "ABC", true},
        {"^\\Qa.b\\E$", "a.b", true},
        {"^\\Qa.b\\E$", "axb", false},
        {"^a{2}$", "aa", true},
        {"^a{,2}$", "a{,2}", true}, /* no repetition in Go */
        {"^a{02}$", "a{02}", true},
        {"^{$", "{", true},
        {"^[]a]$", "]", true},
        {"^[^]a]$", "b", true},
        {"^[a-]$", "-", true},
        {"^[[.]$", "[", true},
        {"^[[:alpha:]]+$", "abc", true},
        {"^[[:^alpha:]]+$", "123", true},
        {"^[\\d-]+$", "1-2", true},
        {"^*a", "a", true},
        {"(?P<name>a)(?<other>b)", "ab", true},
        {"(|a)b", "b", true},
        {"", "anything", true},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        if (matches(cases[i].pattern, str_of(cases[i].text)) != cases[i].matches)
            fail_msg("%s on \"%s\"", cases[i].pattern, cases[i].text);
}

TEST(refuses_what_go_refuses_in_its_words)
{
    static const struct {
        const char *pattern, *error;
    } cases[] = {
        {"(", "missing closing ): `(`"},
        {"a)", "unexpected ): `a)`"},
        {"[a", "missing closing ]: `[a`"},
        {"x[b-a]", "invalid character class range: `b-a`"},
        {"[[:nope:]]", "invalid character class range: `[:nope:]`"},
        {"*a", "missing argument to repetition operator: `*`"},
        {"a|+", "missing argument to repetition operator: `+`"},
        {"(*UTF)", "missing argument to repetition operator: `*`"},
        {"a**", "invalid nested repetition operator: `**`"},
        {"a++", "invalid nested repetition operator: `++`"},
        {"a{1001}", "invalid repeat count: `{1001}`"},
        {"a{3,2}", "invalid repeat count: `{3,2}`"},
        {"(?=a)", "invalid or unsupported Perl syntax: `(?=`"},
        {"(?!a)", "invalid or unsupported Perl syntax: `(?!`"},
        {"(?>a)", "invalid or unsupported Perl syntax: `(?>`"},
        {"(?#a)", "invalid or unsupported Perl syntax: `(?#`"},
        {"(?P<a-b>x)", "invalid named capture: `(?P<a-b>`"},
        {"(a)\\1", "invalid escape sequence: `\\1`"},
        {"\\k", "invalid escape sequence: `\\k`"},
        {"\\C", "invalid escape sequence: `\\C`"},
        {"[\\b]", "invalid escape sequence: `\\b`"},
        {"\\x{110000}", "invalid escape sequence: `\\x{110000`"},
        {"a\\", "trailing backslash at end of expression: ``"},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct str error = STR_NONE;
        assert_true(pattern_check(a, str_of(cases[i].pattern), &error) < 0);
        assert_true(str_starts_with(error, STR("error parsing regexp: ")));
        assert_str(str_from(error, strlen("error parsing regexp: ")), cases[i].error);
    }
}

TEST(a_match_ends_whatever_the_pattern)
{
    char text[4096];
    memset(text, 'a', sizeof(text));
    text[sizeof(text) - 1] = 'b';
    assert_false(matches("^(a+)+$", str_range(text, sizeof(text))));
    assert_false(matches("^(a|aa)*c$", str_range(text, sizeof(text))));
    assert_true(matches("^a*b$", str_range(text, sizeof(text))));
}

TEST(too_many_groups_and_bytes_are_refused)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO deep = {0};
    struct str error = STR_NONE;
    for (int i = 0; i < 300; i++)
        buf_append_char(&deep, '(');
    assert_true(pattern_check(a, buf_str(&deep), &error) < 0);
    for (int i = 0; i < PATTERN_MAX_BYTES; i++)
        buf_append_char(&deep, 'a');
    assert_true(pattern_check(a, buf_str(&deep), &error) < 0);
}
