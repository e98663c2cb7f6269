/* SPDX-License-Identifier: Apache-2.0 */
#include "eve/newlog.h"

#include <errno.h>
#include <zlib.h>

#include "hex.h"
#include "test.h"
#include "json/json.h"

/* ---- uploads -------------------------------------------------------------------------------- */

/* With what zlib can write and more than a device would. */
static struct str compress_with(struct arena *a, struct str content, gz_header *head)
{
    z_stream z = {.next_in = (unsigned char *) (uintptr_t) content.p,
                  .avail_in = (unsigned) content.n};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    if (head)
        assert_int_equal(deflateSetHeader(&z, head), Z_OK);
    size_t room = deflateBound(&z, content.n) + 2 * NEWLOG_MAX_HEADER_BYTES;
    z.next_out = arena_alloc(a, room);
    z.avail_out = (unsigned) room;
    struct str made = str_range((char *) z.next_out, 0);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    made.n = z.total_out;
    deflateEnd(&z);
    return made;
}

static struct str compress_plain(struct arena *a, struct str content)
{
    return compress_with(a, content, NULL);
}

static unsigned char *bytes_of(const char *text)
{
    return (unsigned char *) (uintptr_t) text;
}

#define COMMENT "{\"devID\":\"8a5d\",\"image\":\"IMGA\",\"eveVersion\":\"14.5.0\"}"

TEST(a_head_gives_comment_name_and_time)
{
    ARENA_AUTO a = arena_new();
    gz_header device = {.comment = bytes_of(COMMENT), .time = 1700000000};
    gz_header app = {.name = bytes_of("web"), .time = 4000000000u};
    gz_header all = {.name = bytes_of("n"),
                     .comment = bytes_of("c"),
                     .hcrc = 1,
                     .extra = bytes_of("extra"),
                     .extra_len = 5};
    const struct {
        gz_header *head;
        const char *name, *comment;
        int64_t created_s;
    } cases[] = {
        {&device, "", COMMENT, 1700000000},
        {&app, "web", "", 4000000000},
        {&all, "n", "c", 0},
        {NULL, "", "", 0},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct newlog_head head;
        struct str gzip = compress_with(a, STR("x"), cases[i].head);
        assert_int_equal(newlog_read_head(a, gzip, &head), 0);
        assert_str(head.name, cases[i].name);
        assert_str(head.comment, cases[i].comment);
        assert_int_equal(head.created_s, cases[i].created_s);
        assert_int_equal(newlog_check(gzip), 0);
    }
}

TEST(texts_of_a_head_become_utf8)
{
    static const struct {
        const char *latin1, *utf8;
    } cases[] = {
        {"caf\xe9", "caf\xc3\xa9"},
        {"\\u0416uk", "\xd0\x96uk"},
        {"\\u20ac", "\xe2\x82\xac"},
        {"\\U0001f600!", "\xf0\x9f\x98\x80!"},
        {"\\u20AC", "\xe2\x82\xac"},
        {"\\u0041\\u0000\\u00e9", "\\u0041\\u0000\\u00e9"}, /* no device writes these so */
        {"\\ud83d", "\\ud83d"},
        {"\\U00110000", "\\U00110000"},
        {"\\u20a", "\\u20a"},
        {"\\u20ag", "\\u20ag"},
        {"\\", "\\"},
        {"\\\\u20ac", "\\\\u20ac"},
        {"\\\\\\u20ac", "\\\\\xe2\x82\xac"},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        gz_header with = {.name = bytes_of(cases[i].latin1)};
        struct newlog_head head;
        assert_int_equal(newlog_read_head(a, compress_with(a, STR(""), &with), &head), 0);
        assert_str(head.name, cases[i].utf8);
        assert_true(str_is_utf8(head.name));
    }
}

TEST(what_is_not_gzip_has_no_head)
{
    static const char *const cases[] = {
        "",
        "1f8b0800000000000",    /* nine bytes */
        "1f8c08000000000000ff", /* another magic */
        "1f8b07000000000000ff", /* another method */
        "1f8b08200000000000ff", /* a reserved flag */
        "1f8b08800000000000ff",
        "1f8b08040000000000ff0500aabbccdd", /* extra shorter than it says */
        "1f8b08040000000000ff05",
        "1f8b08080000000000ff616263", /* a name without an end */
        "1f8b08180000000000ff610062", /* a comment without one */
        "1f8b08020000000000ff00",     /* half a checksum */
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct newlog_head head = {.created_s = 5};
        struct str gzip = from_hex(a, cases[i]);
        assert_int_equal(newlog_read_head(a, gzip, &head), -EBADMSG);
        assert_int_equal(head.created_s, 5);
        assert_int_equal(newlog_check(gzip), -EBADMSG);
    }
}

TEST(a_head_beyond_its_limit_is_refused)
{
    ARENA_AUTO a = arena_new();
    char *name = arena_zalloc(a, NEWLOG_MAX_HEADER_BYTES + 1);
    memset(name, 'n', NEWLOG_MAX_HEADER_BYTES);
    gz_header with = {.name = (unsigned char *) name};
    struct newlog_head head;
    assert_int_equal(newlog_check(compress_with(a, STR("x"), &with)), -EBADMSG);
    name[NEWLOG_MAX_HEADER_BYTES - 10] = '\0';
    assert_int_equal(newlog_check(compress_with(a, STR("x"), &with)), -EBADMSG);
    name[NEWLOG_MAX_HEADER_BYTES - 11] = '\0';
    struct str gzip = compress_with(a, STR("x"), &with);
    assert_int_equal(newlog_check(gzip), 0);
    assert_int_equal(newlog_read_head(a, gzip, &head), 0);
    assert_int_equal(head.name.n, NEWLOG_MAX_HEADER_BYTES - 11);
}

TEST(content_is_inflated_behind_what_is_there)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO to = {0};
    buf_append_str(&to, STR("before "));
    size_t n = 100000;
    char *content = arena_alloc(a, n);
    for (size_t i = 0; i < n; i++)
        content[i] = (char) (i * i >> 7);
    assert_int_equal(newlog_inflate(&to, compress_plain(a, str_range(content, n))), 0);
    assert_int_equal(to.n, 7 + n);
    assert_memory_equal(to.p, "before ", 7);
    assert_memory_equal(to.p + 7, content, n);
}

TEST(an_empty_member_is_whole)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO to = {0};
    assert_int_equal(newlog_inflate(&to, compress_plain(a, STR(""))), 0);
    assert_int_equal(to.n, 0);
}

TEST(damage_anywhere_is_noticed)
{
    ARENA_AUTO a = arena_new();
    struct str gzip = compress_plain(a, STR("a line of a log\nand another line of a log\n"));
    for (size_t n = 0; n < gzip.n; n++)
        assert_int_equal(newlog_check(str_sub(gzip, 0, n)), -EBADMSG);
    for (size_t i = 10; i < gzip.n; i++) {
        if (i == gzip.n - 9)
            continue; /* what fills deflate's last byte up means nothing */
        ((char *) (uintptr_t) gzip.p)[i] ^= 0x10;
        assert_int_equal(newlog_check(gzip), -EBADMSG);
        ((char *) (uintptr_t) gzip.p)[i] ^= 0x10;
    }
    assert_int_equal(newlog_check(gzip), 0);
}

TEST(nothing_may_follow_the_member)
{
    ARENA_AUTO a = arena_new();
    struct str gzip = compress_plain(a, STR("content"));
    const struct str byte[] = {gzip, STR("\0")}, member[] = {gzip, gzip};
    BUF_AUTO to = {0};
    buf_append_str(&to, STR("before"));
    assert_int_equal(newlog_check(arena_join(a, byte, 2)), -EBADMSG);
    assert_int_equal(newlog_inflate(&to, arena_join(a, member, 2)), -EBADMSG);
    assert_str(buf_str(&to), "before");
}

TEST(a_bomb_is_refused_and_the_limit_is_not)
{
    ARENA_AUTO a = arena_new();
    char *zeros = arena_zalloc(a, NEWLOG_MAX_INFLATED_BYTES + 1);
    struct str largest = compress_plain(a, str_range(zeros, NEWLOG_MAX_INFLATED_BYTES));
    struct str bomb = compress_plain(a, str_range(zeros, NEWLOG_MAX_INFLATED_BYTES + 1));
    BUF_AUTO to = {0};
    assert_int_equal(newlog_check(largest), 0);
    assert_int_equal(newlog_check(bomb), -EMSGSIZE);
    assert_int_equal(newlog_inflate(&to, bomb), -EMSGSIZE);
    assert_int_equal(to.n, 0);
}

/* ---- lines ---------------------------------------------------------------------------------- */

TEST(an_entry_has_the_members_of_go)
{
    ARENA_AUTO a = arena_new();
    struct str rest =
        STR("{\"severity\":\"info\",\"source\":\"zedagent\",\"iid\":\"1612\",\"content\":"
            "\"{\\\"msg\\\":\\\"up\\\"}\",\"msgid\":18446744073709551615,\"tags\":{\"k\":\"v\"},"
            "\"timestamp\":{\"seconds\":1700000001,\"nanos\":5},\"filename\":\"f.go:7\","
            "\"function\":\"main.run\",\"newer\":[1,{}]}\n");
    struct newlog_entry e;
    assert_int_equal(newlog_next(a, &rest, &e), 0);
    assert_str(e.severity, "info");
    assert_str(e.source, "zedagent");
    assert_str(e.iid, "1612");
    assert_str(e.content, "{\"msg\":\"up\"}");
    assert_str(e.filename, "f.go:7");
    assert_str(e.function, "main.run");
    assert_true(e.msgid == UINT64_MAX);
    assert_int_equal(e.seconds, 1700000001);
    assert_int_equal(e.nanos, 5);
    assert_str(json_get_str(e.tags, STR("k")), "v");
    assert_int_equal(newlog_next(a, &rest, &e), -ENOENT);
}

TEST(members_that_are_absent_or_of_another_type_are_unset)
{
    static const char *const lines[] = {
        "{}",
        "{\"severity\":1,\"content\":null,\"msgid\":\"7\",\"tags\":[],\"timestamp\":\"now\"}",
        "{\"msgid\":-0.5,\"tags\":null,\"timestamp\":{\"seconds\":\"1\",\"nanos\":true}}",
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(lines); i++) {
        struct str rest = str_of(lines[i]);
        struct newlog_entry e;
        assert_int_equal(newlog_next(a, &rest, &e), 0);
        assert_true(e.severity.p && e.severity.n == 0 && e.content.p && e.content.n == 0);
        assert_true(e.msgid == 0 && e.seconds == 0 && e.nanos == 0);
        assert_null(e.tags);
    }
}

TEST(lines_that_are_no_entries_are_skipped_one_by_one)
{
    static const int results[] = {0, -EBADMSG, -EBADMSG, -EBADMSG, -EBADMSG, 0, -ENOENT, -ENOENT};
    ARENA_AUTO a = arena_new();
    struct str rest = STR("\n \r\n{\"msgid\":1}\r\n{\"msgid\":\n[]\nplain text\n"
                          "{\"content\":\"\xff\"}\n\n{\"msgid\":2}");
    uint64_t sum = 0;
    for (size_t i = 0; i < N_ELEMENTS(results); i++) {
        struct newlog_entry e = {0};
        assert_int_equal(newlog_next(a, &rest, &e), results[i]);
        sum += e.msgid;
    }
    assert_int_equal(sum, 3);
}
