/* SPDX-License-Identifier: Apache-2.0 */
#include "adam/records.h"

#include "eve/info.pb-c.h"
#include "test.h"

static void assert_line(const struct line *line, bool is_binary, const char *text)
{
    BUF_AUTO b = {0};
    adam_write_line(line, is_binary, &b);
    assert_str(buf_str(&b), text);
}

TEST(log_entries_are_as_protojson_has_them)
{
    ARENA_AUTO a = arena_new();
    struct line line = {.kind = LINE_ENTRY,
                        .entry = {.severity = STR("info"),
                                  .source = STR("s"),
                                  .iid = STR("7"),
                                  .content = STR("a \"b\"\n"),
                                  .filename = STR("f"),
                                  .function = STR("g"),
                                  .msgid = UINT64_MAX,
                                  .seconds = 1700000000,
                                  .nanos = 1000}};
    line.entry.tags = json_parse_quick(a, STR("{\"k\":\"v\"}"));
    assert_line(&line, false,
                "{\"severity\":\"info\",\"source\":\"s\",\"iid\":\"7\",\"content\":\"a "
                "\\\"b\\\"\\n\",\"msgid\":\"18446744073709551615\",\"tags\":{\"k\":\"v\"},"
                "\"timestamp\":\"2023-11-14T22:13:20.000001Z\",\"filename\":\"f\",\"function\":"
                "\"g\"}\n");
    line.entry = (struct newlog_entry){.content = STR("x")};
    assert_line(&line, true, "{\"content\":\"x\"}\n");
}

TEST(messages_are_json_or_bytes)
{
    Eve__Info__ZInfoMsg m = EVE__INFO__ZINFO_MSG__INIT;
    m.devid = (char *) "d";
    const struct line line = {.kind = LINE_MESSAGE,
                              .message = &m.base,
                              .text = STR("\x12\x01"
                                          "d")};
    assert_line(&line, false, "{\"devId\":\"d\"}\n");
    assert_line(&line, true,
                "\x12\x01"
                "d\n");
}

TEST(requests_have_adams_names)
{
    ARENA_AUTO a = arena_new();
    const struct line line = {
        .kind = LINE_OBJECT,
        .object = json_parse_quick(a, STR("{\"timestamp\":\"t\",\"uuid\":\"u\",\"clientIP\":\"c\","
                                          "\"method\":\"GET\",\"url\":\"/x\",\"status\":200}"))};
    assert_line(
        &line, false,
        "{\"timestamp\":\"t\",\"uuid\":\"u\",\"client-ip\":\"c\",\"method\":\"GET\",\"url\":"
        "\"/x\"}\n");
}

TEST(what_cannot_be_read_is_not_there)
{
    assert_line(&(struct line){.kind = LINE_BAD, .text = STR("x"), .reason = "bad"}, false, "");
}
