/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "workloads/index.h"
#include "workloads/kinds.h"
#include "workloads/labels.h"
#include "workloads/names.h"
#include "workloads/summary.h"

static struct json *parse(struct arena *a, const char *text)
{
    struct json *v = json_parse_quick(a, str_of(text));
    assert_non_null(v);
    return v;
}

TEST(hashes_fit_into_labels)
{
    char one[NAMES_HASH_BYTES], same[NAMES_HASH_BYTES], other[NAMES_HASH_BYTES];
    names_hash(STR("one"), one);
    names_hash(STR("one"), same);
    names_hash(STR("two"), other);
    assert_string_equal(one, same);
    assert_string_not_equal(one, other);
    assert_int_equal(strspn(one, "bcdfghjklmnpqrstvwxz2456789"), 10);
    assert_int_equal(strlen(one), 10);
}

TEST(long_names_are_cut_and_told_apart)
{
    ARENA_AUTO a = arena_new();
    char text[301];
    memset(text, 'x', 300);
    text[300] = '\0';
    assert_str(names_fit(a, STR("web-0")), "web-0");
    const struct str whole = names_fit(a, str_range(text, 253)),
                     cut = names_fit(a, str_range(text, 254)),
                     other = names_fit(a, str_range(text, 255));
    assert_int_equal(whole.n, 253);
    assert_int_equal(cut.n, 253);
    assert_false(str_eq(cut, other));
    text[241] = '-';
    text[240] = '.';
    const struct str edge = names_fit(a, str_of(text));
    assert_int_equal(edge.n, 251);
    assert_true(edge.p[239] == 'x' && edge.p[240] == '-');
}

TEST(numbers_of_sets)
{
    static const struct {
        const char *name;
        int64_t ordinal;
    } cases[] = {{"web-0", 0},           {"web-12", 12},
                 {"web-", -1},           {"web", -1},
                 {"web-01", -1},         {"web-+1", -1},
                 {"web-x", -1},          {"web--1", -1},
                 {"webx-1", -1},         {"other-1", -1},
                 {"web-1-2", -1},        {"web-4294967295", 4294967295},
                 {"web-4294967296", -1}, {"web-99999999999999999999", -1}};
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        assert_int_equal(workload_ordinal(STR("web"), str_of(cases[i].name)), cases[i].ordinal);
}

TEST(selectors_as_text)
{
    static const struct {
        const char *selector, *text;
    } cases[] = {
        {"{}", ""},
        {"{\"matchLabels\":{\"b\":\"2\",\"a\":\"1\"}}", "a=1,b=2"},
        {"{\"matchLabels\":{\"m\":\"\"},\"matchExpressions\":[{\"key\":\"z\",\"operator\":"
         "\"Exists\"},"
         "{\"key\":\"a\",\"operator\":\"DoesNotExist\"},{\"key\":\"i\",\"operator\":\"In\","
         "\"values\":["
         "\"x\",\"y\"]},{\"key\":\"n\",\"operator\":\"NotIn\",\"values\":[\"x\"]}]}",
         "!a,i in (x,y),m=,n notin (x),z"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        assert_str(summary_selector(a, parse(a, cases[i].selector)), cases[i].text);
    }
}

TEST(a_template_is_the_same_in_any_order)
{
    ARENA_AUTO a = arena_new();
    unsigned char one[INDEX_DIGEST_BYTES], two[INDEX_DIGEST_BYTES];
    workload_index_digest(a, parse(a, "{\"a\":[{\"x\":1,\"y\":2}],\"b\":{\"c\":1,\"d\":2}}"), one);
    workload_index_digest(a, parse(a, "{\"b\":{\"d\":2,\"c\":1},\"a\":[{\"y\":2,\"x\":1}]}"), two);
    assert_memory_equal(one, two, sizeof(one));
    workload_index_digest(a, parse(a, "{\"b\":{\"d\":2,\"c\":1},\"a\":[{\"y\":2,\"x\":3}]}"), two);
    assert_memory_not_equal(one, two, sizeof(one));
}

TEST(labels_are_kept_in_one_piece)
{
    ARENA_AUTO a = arena_new();
    const struct json *given = parse(a, "{\"a\":\"1\",\"empty\":\"\",\"odd\":5}");
    struct json *kept = labels_pack(given);
    assert_int_equal(json_count(kept), 2);
    assert_str(json_get_str(kept, STR("a")), "1");
    assert_str(json_get_str(kept, STR("empty")), "");
    assert_true(labels_equal(kept, parse(a, "{\"empty\":\"\",\"a\":\"1\"}")));
    assert_false(labels_equal(kept, parse(a, "{\"empty\":\"\",\"a\":\"2\"}")));
    assert_false(labels_equal(kept, NULL));
    assert_true(labels_equal(NULL, parse(a, "{}")));
    assert_null(labels_pack(NULL));
    labels_free(kept);
}
