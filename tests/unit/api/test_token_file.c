/* SPDX-License-Identifier: Apache-2.0 */
#include "api/token/token_file.h"

#include <errno.h>
#include <unistd.h>

#include "api/token/csv.h"
#include "base/alloc.h"
#include "test.h"
#include "token_fixture.h"

/* ---- comma-separated values --------------------------------------------------------------- */

struct csv_case {
    const char *text, *expected; /* fields in <>, records ended by ; or ! at an error */
};

static const struct csv_case csv_cases[] = {
    {"", ""},
    {"\n\r\n\n", ""},
    {"a,b,c", "<a><b><c>;"},
    {"a,b\nc\n", "<a><b>;<c>;"},
    {"a,b\r\nc\r\n", "<a><b>;<c>;"},
    {"a\r", "<a>;"},
    {"a\rb", "<a\rb>;"},
    {"a,,\n,", "<a><><>;<><>;"},
    {" a , b", "< a >< b>;"},
    {"a,\"b,c\",d", "<a><b,c><d>;"},
    {"\"x \"\"y\"\"\"", "<x \"y\">;"},
    {"\"x\ny\",z\n", "<x\ny><z>;"},
    {"\"\"", "<>;"},
    {"a\"b", "!1"},
    {"a\nb\n\"c", "<a>;<b>;!3"},
    {"a\n\"b\"c", "<a>;!2"},
};

TEST(csv_is_read_as_go_reads_it)
{
    for (size_t i = 0; i < N_ELEMENTS(csv_cases); i++) {
        ARENA_AUTO a = arena_new();
        BUF_AUTO got = {0};
        struct csv_reader reader;
        struct csv_record record;
        const char *why = NULL;
        csv_init(&reader, str_of(csv_cases[i].text));
        int r = 0;
        while ((r = csv_next(&reader, a, &record, &why)) > 0) {
            for (size_t n = 0; n < record.n; n++)
                buf_printf(&got, "<%.*s>", STR_ARG(record.fields[n]));
            buf_append_char(&got, ';');
        }
        if (r < 0)
            buf_printf(&got, "!%zu", reader.line);
        assert_str(buf_str(&got), csv_cases[i].expected);
    }
}

TEST(csv_with_too_many_fields_is_refused)
{
    ARENA_AUTO a = arena_new();
    char text[CSV_MAX_FIELDS + 1];
    struct csv_reader reader;
    struct csv_record record;
    const char *why = NULL;
    memset(text, ',', sizeof(text));
    csv_init(&reader, str_range(text, CSV_MAX_FIELDS - 1));
    assert_int_equal(csv_next(&reader, a, &record, &why), 1);
    csv_init(&reader, str_range(text, CSV_MAX_FIELDS));
    assert_int_equal(csv_next(&reader, a, &record, &why), -EINVAL);
}

/* ---- the file ----------------------------------------------------------------------------- */

static const struct str own[] = {{"api", 3}};
static const struct audiences own_audiences = {own, 1};

static int ask(struct token_fixture *f, struct token_source *s, const char *token,
               struct token_identity *ret)
{
    return s->verify(s, f->arena, str_of(token), NULL, 0, false, ret);
}

TEST(a_line_is_a_user)
{
    struct token_fixture f;
    struct token_source *s = NULL;
    struct token_identity i;
    char *error = NULL;
    assert_true(token_fixture_init(&f));
    assert_true(token_fixture_write(&f, "tokens.csv",
                                    "secret-1,alice,uid-1\n"
                                    "secret-2,bob,uid-2,\"ops, dev\"\n"
                                    ",nobody,uid-3\n"
                                    "secret-1,carol,uid-4\n"));
    assert_int_equal(
        token_file_open(token_fixture_path(&f, "tokens.csv"), own_audiences, &s, &error), 0);
    assert_int_equal(ask(&f, s, "secret-2", &i), 0);
    assert_str(i.user.name, "bob");
    assert_str(i.user.uid, "uid-2");
    assert_int_equal(i.user.n_groups, 2);
    assert_str(i.user.groups[0], "ops");
    assert_str(i.user.groups[1], "dev");
    assert_str(i.audiences[0], "api");
    assert_int_equal(ask(&f, s, "secret-1", &i), 0);
    assert_str(i.user.name, "carol"); /* the later line counts */
    assert_int_equal(ask(&f, s, "secret-3", &i), -ENOENT);
    assert_int_equal(ask(&f, s, "", &i), -ENOENT);
    s->free(s);
    token_fixture_done(&f);
}

TEST(the_file_speaks_for_the_servers_audiences_alone)
{
    struct token_fixture f;
    struct token_source *s = NULL;
    struct token_identity i;
    char *error = NULL;
    const struct str other[] = {{"other", 5}}, both[] = {{"other", 5}, {"api", 3}};
    assert_true(token_fixture_init(&f));
    assert_true(token_fixture_write(&f, "tokens.csv", "secret-1,alice,uid-1\n"));
    assert_int_equal(
        token_file_open(token_fixture_path(&f, "tokens.csv"), own_audiences, &s, &error), 0);
    assert_int_equal(s->verify(s, f.arena, STR("secret-1"), other, 1, false, &i), -ENOENT);
    assert_int_equal(s->verify(s, f.arena, STR("secret-1"), both, 2, false, &i), 0);
    assert_int_equal(i.n_audiences, 1);
    s->free(s);
    token_fixture_done(&f);
}

TEST(a_reload_takes_the_new_file_or_keeps_the_old)
{
    struct token_fixture f;
    struct token_source *s = NULL;
    struct token_identity i;
    char *error = NULL;
    assert_true(token_fixture_init(&f));
    assert_true(token_fixture_write(&f, "tokens.csv", "secret-1,alice,uid-1\n"));
    assert_int_equal(
        token_file_open(token_fixture_path(&f, "tokens.csv"), own_audiences, &s, &error), 0);
    assert_true(token_fixture_write(&f, "tokens.csv", "secret-2,bob,uid-2\n"));
    assert_int_equal(s->reload(s, &error), 0);
    assert_int_equal(ask(&f, s, "secret-1", &i), -ENOENT);
    assert_int_equal(ask(&f, s, "secret-2", &i), 0);
    assert_true(token_fixture_write(&f, "tokens.csv", "secret-3,carol,uid-3\n\nsecret-4,dave\n"));
    assert_int_equal(s->reload(s, &error), -EINVAL);
    assert_non_null(strstr(error, "tokens.csv: line 3: must have at least 3 columns"));
    mem_free(error);
    assert_int_equal(ask(&f, s, "secret-2", &i), 0);
    assert_int_equal(ask(&f, s, "secret-3", &i), -ENOENT);
    s->free(s);
    token_fixture_done(&f);
}

TEST(a_file_that_is_not_there_is_named)
{
    struct token_source *s = NULL;
    char *error = NULL;
    assert_int_equal(token_file_open("/nonexistent/tokens.csv", own_audiences, &s, &error),
                     -ENOENT);
    assert_non_null(strstr(error, "/nonexistent/tokens.csv"));
    mem_free(error);
}
