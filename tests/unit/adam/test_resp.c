/* SPDX-License-Identifier: Apache-2.0 */
#include "adam/resp.h"

#include <errno.h>

#include "test.h"

/* Hands out a text, so many bytes at a time. */
struct source {
    struct str rest;
    size_t step;
};

static int hand_out(void *ctx, struct buf *to)
{
    struct source *s = ctx;
    const size_t n = MIN(s->step, s->rest.n);
    if (n == 0)
        return -EPIPE;
    buf_append(to, s->rest.p, n);
    s->rest = str_from(s->rest, n);
    return 0;
}

static int read_text(struct arena *a, struct str text, size_t step, struct resp *ret)
{
    struct source s = {text, step};
    struct resp_reader r = {.more = hand_out, .ctx = &s};
    const int result = resp_read(&r, a, ret);
    resp_reader_done(&r);
    return result;
}

TEST(replies_are_read_in_whatever_pieces_they_come)
{
    const struct str text = STR("*5\r\n$3\r\na\r\n\r\n$0\r\n\r\n$-1\r\n:-7\r\n*1\r\n+OK\r\n");
    for (size_t step = 1; step <= text.n; step++) {
        ARENA_AUTO a = arena_new();
        struct resp v;
        assert_int_equal(read_text(a, text, step, &v), 0);
        assert_int_equal(v.type, RESP_LIST);
        assert_int_equal(v.n_items, 5);
        assert_str(v.items[0].text, "a\r\n");
        assert_int_equal(v.items[1].type, RESP_TEXT);
        assert_int_equal(v.items[1].text.n, 0);
        assert_int_equal(v.items[2].type, RESP_NIL);
        assert_int_equal(v.items[3].number, -7);
        assert_str(v.items[4].items[0].text, "OK");
    }
}

TEST(replies_follow_each_other)
{
    ARENA_AUTO a = arena_new();
    struct source s = {STR("+OK\r\n-ERR no\r\n*0\r\n"), 4};
    struct resp_reader r = {.more = hand_out, .ctx = &s};
    struct resp v;
    assert_int_equal(resp_read(&r, a, &v), 0);
    assert_str(v.text, "OK");
    assert_int_equal(resp_read(&r, a, &v), 0);
    assert_int_equal(v.type, RESP_ERROR);
    assert_str(v.text, "ERR no");
    assert_int_equal(resp_read(&r, a, &v), 0);
    assert_int_equal(v.type, RESP_LIST);
    assert_int_equal(resp_read(&r, a, &v), -EPIPE);
    resp_reader_done(&r);
}

TEST(what_is_no_reply_is_refused)
{
    static const struct {
        const char *text;
        int error;
    } cases[] = {
        {"", -EPIPE},
        {"\r\n", -EBADMSG},
        {"x\r\n", -EBADMSG},
        {"%1\r\n", -EBADMSG},
        {":x\r\n", -EBADMSG},
        {"+OK\n", -EBADMSG},
        {"$3\r\nabcd\r\n", -EBADMSG},
        {"$3\r\nab", -EPIPE},
        {"$-2\r\n", -EBADMSG},
        {"*-2\r\n", -EBADMSG},
        {"$99999999\r\n", -E2BIG},
        {"$999999999999999999999\r\n", -EBADMSG},
        {"*99999999\r\n", -E2BIG},
        {"*1000000\r\n+a\r\n", -EPIPE},
        {"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n+deep\r\n", -E2BIG},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        struct resp v;
        assert_int_equal(read_text(a, str_of(cases[i].text), 3, &v), cases[i].error);
    }
}

TEST(a_line_without_an_end_is_not_waited_for)
{
    ARENA_AUTO a = arena_new();
    struct resp v;
    char *text = arena_alloc(a, 2 * RESP_MAX_LINE_BYTES);
    memset(text, '+', 2 * RESP_MAX_LINE_BYTES);
    assert_int_equal(read_text(a, str_range(text, 2 * RESP_MAX_LINE_BYTES), 4096, &v), -E2BIG);
}

TEST(commands_are_lists_of_texts)
{
    BUF_AUTO b = {0};
    const struct str words[] = {STR("HGETALL"), STR("a b")};
    resp_write_command(&b, words, N_ELEMENTS(words));
    assert_str(buf_str(&b), "*2\r\n$7\r\nHGETALL\r\n$3\r\na b\r\n");
}
