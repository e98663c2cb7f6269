/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "apps/apps_internal.h"
#include "base/buf.h"

/* "A=1|B=2 > word|word", or what is wrong. */
static struct str read_it(struct arena *a, const char *text)
{
    struct instance_words w;
    struct str error = STR_NONE;
    BUF_AUTO out = {0};
    if (instance_read_user_data(a, str_of(text), &w, &error) < 0)
        return error;
    for (size_t i = 0; i < w.n_env; i++)
        buf_printf(&out, "%s%.*s", i ? "|" : "", STR_ARG(w.env[i]));
    for (size_t i = 0; i < w.n_args; i++)
        buf_printf(&out, "%s%.*s", i ? "|" : " > ", STR_ARG(w.args[i]));
    return arena_str(a, buf_str(&out));
}

TEST(variables_and_a_command_come_from_user_data)
{
    static const struct {
        const char *text, *wanted;
    } cases[] = {
        {"", ""},
        {"A=1\nB=two words\n", "A=1|B=two words"},
        {"A=1\r\n\r\n# remark\nB=x=y\r\n", "A=1|B=x=y"},
        {"A=\n", "A="},
        {"EVE_ECO_CMD=/bin/sh -c 'echo \"a b\"' c\\ d\nA=1\n", "A=1 > /bin/sh|-c|echo \"a b\"|c d"},
        {"EVE_ECO_CMD=\"\" x\n", " > |x"},
        {"#cloud-config\nruncmd:\n  - export A=1\n  - B=2\n  - rm -rf x\nwrite_files: []\n",
         "A=1|B=2"},
        {"#cloud-config\nruncmd: [[]]\n", ""},
        {"no variable\n", "user data: not NAME=value: 'no variable'"},
        {"1A=2\n", "user data: not NAME=value: '1A=2'"},
        {"=2\n", "user data: not NAME=value: '=2'"},
        {"EVE_ECO_CMD='x\n", "user data: a quote has no end: ''x'"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        assert_str(read_it(a, cases[i].text), cases[i].wanted);
    }
}

TEST(user_data_has_limits)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO text = {0};
    for (int i = 0; i <= APPS_MAX_ENV; i++)
        buf_printf(&text, "N%d=1\n", i);
    assert_true(str_find_str(read_it(a, text.p), STR("too many variables")) >= 0);
    buf_reset(&text);
    buf_append_str(&text, STR("EVE_ECO_CMD="));
    for (int i = 0; i <= APPS_MAX_ARGS; i++)
        buf_append_str(&text, STR("x "));
    assert_true(str_find_str(read_it(a, text.p), STR("too many words")) >= 0);
}
