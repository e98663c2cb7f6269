/* SPDX-License-Identifier: Apache-2.0 */
#include "json/yaml_write.h"

#include "test.h"
#include "json/yaml.h"

static void check(const char *json, const char *expected)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO b = {0};
    const struct json *v = json_parse_quick(a, str_of(json));
    assert_non_null(v);
    yaml_write(&b, v);
    if (expected)
        assert_str(buf_str(&b), expected);
    /* Whatever the style, it reads back as it was. */
    struct json_parse_result back;
    if (yaml_parse(a, buf_str(&b), &back) < 0)
        fail_msg("%s cannot be read: %.*s", b.p, STR_ARG(back.error));
    if (!json_equal(v, back.value))
        fail_msg("%s reads back as %.*s", b.p, STR_ARG(json_text(a, back.value)));
}

TEST(objects_and_lists_are_blocks)
{
    check("{\"b\":{\"z\":1,\"x\":[]},\"a\":[1,{\"k\":\"v\",\"j\":{}},[2,3],[]]}",
          "a:\n- 1\n- j: {}\n  k: v\n- - 2\n  - 3\n- []\nb:\n  x: []\n  z: 1\n");
    check("[{\"a\":{\"b\":[1]}}]", "- a:\n    b:\n    - 1\n");
    check("{}", "{}\n");
    check("[]", "[]\n");
    check("\"x\"", "x\n");
    check("{\"n\":null,\"t\":true,\"f\":-1.5}", "f: -1.5\n\"n\": null\nt: true\n");
}

TEST(managed_fields_look_as_recorded)
{
    check("{\"metadata\":{\"managedFields\":[{\"manager\":\"golden\",\"fieldsV1\":{\"f:data\":{\"."
          "\":{},\"f:k\":{}}},"
          "\"time\":\"2026-01-02T03:04:05Z\"}],\"resourceVersion\":\"12\",\"uid\":\"5c1b\"}}",
          "metadata:\n  managedFields:\n  - fieldsV1:\n      f:data:\n        .: {}\n        f:k: "
          "{}\n"
          "    manager: golden\n    time: \"2026-01-02T03:04:05Z\"\n  resourceVersion: \"12\"\n  "
          "uid: 5c1b\n");
}

static const struct {
    const char *json, *yaml;
} string_cases[] = {
    {"\"\"", "\"\""},
    {"\"yes\"", "\"yes\""},
    {"\"y\"", "\"y\""},
    {"\"Off\"", "\"Off\""},
    {"\"null\"", "\"null\""},
    {"\"~\"", "\"~\""},
    {"\"1\"", "\"1\""},
    {"\"1.5e3\"", "\"1.5e3\""},
    {"\"0x1f\"", "\"0x1f\""},
    {"\"1_000\"", "\"1_000\""},
    {"\"1:30\"", "\"1:30\""},
    {"\"2026-01-02\"", "\"2026-01-02\""},
    {"\"2026-01-02 03:04:05\"", "\"2026-01-02 03:04:05\""},
    {"\"2026-01-02x\"", "2026-01-02x"},
    {"\"1.2.3\"", "1.2.3"},
    {"\"10.0.0.1\"", "10.0.0.1"},
    {"\"v1\"", "v1"},
    {"\"<<\"", "\"<<\""},
    {"\"a: b\"", "'a: b'"},
    {"\"a:b\"", "a:b"},
    {"\"a:\"", "'a:'"},
    {"\"a #b\"", "'a #b'"},
    {"\"a#b\"", "a#b"},
    {"\"- a\"", "'- a'"},
    {"\"-a\"", "-a"},
    {"\"-\"", "'-'"},
    {"\"? a\"", "'? a'"},
    {"\"*\"", "'*'"},
    {"\"[a]\"", "'[a]'"},
    {"\"{a}\"", "'{a}'"},
    {"\"it's\"", "it's"},
    {"\"'it's\"", "'''it''s'"},
    {"\"@a\"", "'@a'"},
    {"\"a, b\"", "a, b"},
    {"\" a\"", "' a'"},
    {"\"a \"", "'a '"},
    {"\"---\"", "'---'"},
    {"\"a\\tb\"", "\"a\\tb\""},
    {"\"a\\\\b\"", "a\\b"},
    {"\"\\u0000\"", "\"\\0\""},
    {"\"\\u0001\"", "\"\\x01\""},
    {"\"\\u001b\"", "\"\\e\""},
    {"\"\\u00e9\\u4e2d\"", "\xc3\xa9\xe4\xb8\xad"},
    {"\"\\ud83d\\ude00\"", "\"\\U0001F600\""},
    {"\"\\ufeff\"", "\"\\uFEFF\""},
    {"\"\\u2028\"", "\"\\L\""},
    {"\"a\\rb\"", "\"a\\rb\""},
    {"\"a\\nb\"", "|-\n  a\n  b"},
    {"\"a\\nb\\n\"", "|\n  a\n  b"},
    {"\"a\\n\\n\"", "|+\n  a\n"},
    {"\"\\na\"", "|2-\n\n  a"},
    {"\" a\\nb\"", "|2-\n   a\n  b"},
    {"\"a\\n  b\\n\\nc\"", "|-\n  a\n    b\n\n  c"},
    {"\"a \\nb\"", "\"a \\nb\""},
    {"\"\\n\"", "|2+\n"},
};

TEST(strings_are_quoted_only_when_they_must)
{
    for (size_t i = 0; i < N_ELEMENTS(string_cases); i++) {
        ARENA_AUTO a = arena_new();
        check(arena_printf(a, "{\"k\":%s}", string_cases[i].json).p,
              arena_printf(a, "k: %s\n", string_cases[i].yaml).p);
    }
}

TEST(long_lines_are_folded_at_a_blank)
{
    check("{\"message\":\"0/1 nodes are available: one node was unschedulable and another had a "
          "volume that could not "
          "be attached to it\"}",
          "message: '0/1 nodes are available: one node was unschedulable and another had a volume\n"
          "  that could not be attached to it'\n");
    check("{\"message\":\"one node was unschedulable and another node had a volume claim that "
          "could not be attached\"}",
          "message: one node was unschedulable and another node had a volume claim that could\n  "
          "not be attached\n");
    check("{\"m\":\"tab\\tone node was unschedulable and another node had a volume claim that "
          "could not be  "
          "attached  \"}",
          NULL);
}

TEST(keys_are_in_natural_order)
{
    check("{\"a10\":1,\"a2\":2,\"B\":3,\"a\":4,\"1\":5,\"a-b\":6,\"ab\":7,\"true\":8,\"x "
          "y\":9,\"k: v\":10}",
          "\"1\": 5\nB: 3\na: 4\na-b: 6\na2: 2\na10: 1\nab: 7\n'k: v': 10\n\"true\": 8\nx y: 9\n");
}

TEST(long_keys_are_written_apart)
{
    ARENA_AUTO a = arena_new();
    char key[201];
    memset(key, 'k', sizeof(key) - 1);
    key[200] = '\0';
    check(arena_printf(a, "{\"%s\":{\"b\":[1,2]},\"z\":1}", key).p,
          arena_printf(a, "? %s\n: b:\n  - 1\n  - 2\nz: 1\n", key).p);
    check(arena_printf(a, "{\"%s\":\"v\"}", key).p, arena_printf(a, "? %s\n: v\n", key).p);
}
