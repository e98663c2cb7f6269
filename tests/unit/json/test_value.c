/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "json/json.h"

static struct json *parse(struct arena *a, const char *text)
{
    struct json *v = json_parse_quick(a, str_of(text));
    assert_non_null(v);
    return v;
}

TEST(empty_is_what_go_leaves_out)
{
    static const struct {
        const char *text;
        bool is_empty;
    } cases[] = {{"null", true},         {"false", true}, {"0", true},      {"0.0", true},
                 {"\"\"", true},         {"[]", true},    {"{}", true},     {"true", false},
                 {"-1", false},          {"0.5", false},  {"\" \"", false}, {"[0]", false},
                 {"{\"a\":null}", false}};
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        assert_int_equal(json_is_empty(json_parse_quick(a, str_of(cases[i].text))),
                         cases[i].is_empty);
}

TEST(a_value_is_sixteen_bytes)
{
    assert_int_equal(sizeof(struct json), 16);
    assert_int_equal(sizeof(struct json_member), 32);
}

TEST(get_answers_by_key_and_type)
{
    ARENA_AUTO a = arena_new();
    struct json *v =
        parse(a, "{\"s\":\"x\",\"b\":true,\"i\":5,\"d\":1.5,\"o\":{\"p\":{\"q\":7}},\"\":1}");
    assert_str(json_get_str(v, STR("s")), "x");
    assert_null(json_get_str(v, STR("i")).p);
    assert_true(json_get_bool(v, STR("b"), false));
    assert_true(json_get_bool(v, STR("s"), true));
    assert_int_equal(json_get_int(v, STR("i"), 0), 5);
    assert_int_equal(json_get_int(v, STR("d"), -1), -1);
    assert_int_equal(json_get_int(v, STR(""), 0), 1);
    assert_int_equal(json_at(v, "o", "p", "q", NULL)->i, 7);
    assert_null(json_at(v, "o", "x", "q", NULL));
    assert_ptr_equal(json_at(v, NULL), v);
    assert_null(json_get(v, STR("absent")));
    assert_null(json_get(NULL, STR("a")));
    assert_null(json_get(json_get(v, STR("s")), STR("a")));
    assert_int_equal(json_count(v), 6);
    assert_int_equal(json_count(json_get(v, STR("s"))), 0);
}

TEST(set_replaces_in_place_and_appends_what_is_new)
{
    ARENA_AUTO a = arena_new();
    struct json v = json_object();
    for (int i = 0; i < 100; i++)
        (void) json_set(a, &v, arena_printf(a, "k%d", i), json_int(i));
    for (int i = 0; i < 100; i++)
        (void) json_set(a, &v, arena_printf(a, "k%d", i), json_int(-i));
    assert_int_equal(v.n, 100);
    for (int i = 0; i < 100; i++)
        assert_int_equal(v.members[i].value.i, -i);
}

TEST(parsed_containers_grow)
{
    ARENA_AUTO a = arena_new();
    struct json *v = parse(a, "{\"a\":[1,2,3],\"b\":{\"c\":1},\"d\":[],\"e\":{}}");
    for (int i = 4; i < 40; i++)
        (void) json_push(a, json_get(v, STR("a")), json_int(i));
    (void) json_push(a, json_get(v, STR("d")), json_int(9));
    (void) json_set(a, json_get(v, STR("b")), STR("x"), json_null());
    (void) json_set(a, json_get(v, STR("e")), STR("y"), json_null());
    (void) json_set(a, v, STR("z"), json_bool(true));
    for (int i = 0; i < 39; i++)
        assert_int_equal(json_get(v, STR("a"))->items[i].i, i + 1);
    (void) json_remove(v, STR("a"));
    assert_str(json_text(a, v),
               "{\"b\":{\"c\":1,\"x\":null},\"d\":[9],\"e\":{\"y\":null},\"z\":true}");
}

TEST(containers_survive_removal_and_growth_in_turn)
{
    ARENA_AUTO a = arena_new();
    struct json *v = parse(a, "[0,1,2,3,4]");
    struct json *guard = json_new(a, json_int(77));
    for (int round = 0; round < 20; round++) {
        json_remove_at(v, 0);
        json_remove_at(v, v->n - 1);
        for (int i = 0; i < 4; i++)
            (void) json_push(a, v, json_int(round));
    }
    assert_int_equal(v->n, 45);
    assert_int_equal(guard->i, 77);
    while (v->n > 0)
        json_remove_at(v, 0);
    (void) json_push(a, v, json_int(1));
    assert_str(json_text(a, v), "[1]");
}

TEST(insert_moves_the_rest)
{
    ARENA_AUTO a = arena_new();
    struct json v = json_array();
    (void) json_insert(a, &v, 0, json_int(2));
    (void) json_insert(a, &v, 0, json_int(0));
    (void) json_insert(a, &v, 1, json_int(1));
    (void) json_insert(a, &v, 3, json_int(3));
    (void) json_insert(a, &v, 4, json_int(4));
    assert_str(json_text(a, &v), "[0,1,2,3,4]");
    json_remove_at(&v, 2);
    json_remove_at(&v, 3);
    assert_str(json_text(a, &v), "[0,1,3]");
}

TEST(remove_tells_whether_it_was_there)
{
    ARENA_AUTO a = arena_new();
    struct json *v = parse(a, "{\"a\":1,\"b\":2,\"c\":3}");
    assert_true(json_remove(v, STR("b")));
    assert_false(json_remove(v, STR("b")));
    assert_true(json_remove(v, STR("c")));
    assert_str(json_text(a, v), "{\"a\":1}");
}

TEST(ensure_object_makes_or_replaces)
{
    ARENA_AUTO a = arena_new();
    struct json *v = parse(a, "{\"a\":{\"x\":1},\"b\":5}");
    assert_int_equal(json_ensure_object(a, v, STR("a"))->n, 1);
    assert_int_equal(json_ensure_object(a, v, STR("b"))->n, 0);
    (void) json_set(a, json_ensure_object(a, v, STR("c")), STR("y"), json_null());
    assert_str(json_text(a, v), "{\"a\":{\"x\":1},\"b\":{},\"c\":{\"y\":null}}");
}

TEST(members_sort_by_bytes)
{
    ARENA_AUTO a = arena_new();
    struct json *v = parse(a, "{\"b\":1,\"a\":{\"z\":1,\"y\":2},\"B\":2,\"ab\":3,\"\":4}");
    json_sort_members(v);
    assert_str(json_text(a, v), "{\"\":4,\"B\":2,\"a\":{\"z\":1,\"y\":2},\"ab\":3,\"b\":1}");
}

TEST(a_clone_shares_nothing_but_strings)
{
    ARENA_AUTO a = arena_new();
    struct json *v = parse(a, "{\"a\":[1,{\"b\":\"s\"}],\"e\":[],\"f\":{}}");
    struct json copy = json_clone(a, v);
    assert_true(json_equal(&copy, v));
    (void) json_set(a, &json_get(&copy, STR("a"))->items[1], STR("b"), json_int(2));
    (void) json_push(a, json_get(&copy, STR("e")), json_int(2));
    (void) json_set(a, json_get(&copy, STR("f")), STR("g"), json_int(2));
    assert_str(json_text(a, v), "{\"a\":[1,{\"b\":\"s\"}],\"e\":[],\"f\":{}}");
    assert_str(json_text(a, &copy), "{\"a\":[1,{\"b\":2}],\"e\":[2],\"f\":{\"g\":2}}");
}

TEST(an_emptied_container_clones_without_its_room)
{
    ARENA_AUTO a = arena_new();
    struct json v = json_array();
    (void) json_push(a, &v, json_int(1));
    json_remove_at(&v, 0);
    struct json copy = json_clone(a, &v);
    (void) json_push(a, &v, json_int(2));
    (void) json_push(a, &copy, json_int(3));
    assert_str(json_text(a, &v), "[2]");
}

TEST(equality_is_by_value)
{
    static const struct {
        const char *a, *b;
        bool is_equal;
    } cases[] = {
        {"1", "1.0", true},
        {"1", "2", false},
        {"9007199254740993", "9007199254740992.0", false},
        {"9223372036854775807", "9223372036854775808", false},
        {"-9223372036854775808", "-9223372036854775808.0", true},
        {"0", "-0.0", true},
        {"1e300", "1e300", true},
        {"null", "false", false},
        {"true", "true", true},
        {"true", "false", false},
        {"\"a\"", "\"a\"", true},
        {"\"a\"", "\"b\"", false},
        {"\"1\"", "1", false},
        {"[1,2]", "[1,2]", true},
        {"[1,2]", "[2,1]", false},
        {"[1]", "[1,1]", false},
        {"[]", "{}", false},
        {"{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", true},
        {"{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":3}", false},
        {"{\"a\":1}", "{\"b\":1}", false},
        {"{\"a\":1}", "{\"a\":1,\"b\":1}", false},
        {"{\"a\":null}", "{\"b\":null}", false},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        assert_int_equal(json_equal(parse(a, cases[i].a), parse(a, cases[i].b)), cases[i].is_equal);
        assert_int_equal(json_equal(parse(a, cases[i].b), parse(a, cases[i].a)), cases[i].is_equal);
    }
    assert_true(json_equal(NULL, NULL));
    assert_false(json_equal(NULL, parse(a, "null")));
}

TEST(large_objects_compare_without_regard_to_order)
{
    ARENA_AUTO a = arena_new();
    const int n = 100000;
    struct json left = json_object(), right = json_object();
    for (int i = 0; i < n; i++) {
        (void) json_append_member(a, &left, arena_printf(a, "k%d", i), json_int(i));
        (void) json_append_member(a, &right, arena_printf(a, "k%d", n - 1 - i),
                                  json_int(n - 1 - i));
    }
    assert_true(json_equal(&left, &right));
    right.members[17].value = json_int(-1);
    assert_false(json_equal(&left, &right));
}

TEST(an_index_finds_every_member)
{
    ARENA_AUTO a = arena_new();
    struct json v = json_object();
    for (int i = 0; i < 1000; i++)
        (void) json_append_member(a, &v, arena_printf(a, "k%d", i), json_int(i));
    struct json_index ix;
    json_index_init(&ix, &v);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(json_index_get(&ix, arena_printf(a, "k%d", i))->i, i);
    assert_null(json_index_get(&ix, STR("k1000")));
    json_index_done(&ix);
    struct json empty = json_object();
    json_index_init(&ix, &empty);
    assert_null(json_index_get(&ix, STR("a")));
    json_index_done(&ix);
}

TEST(a_tree_that_fits_can_be_read_again)
{
    ARENA_AUTO a = arena_new();
    struct json *v = json_new(a, json_int(1));
    assert_true(json_fits(v, 1));
    assert_false(json_fits(v, 0));
    for (int i = 0; i < JSON_MAX_DEPTH; i++) {
        assert_true(json_fits(v, 1000));
        struct json outer = json_array();
        (void) json_push(a, &outer, *v);
        v = json_new(a, outer);
    }
    assert_true(json_fits(v, JSON_MAX_DEPTH + 1));
    assert_false(json_fits(v, JSON_MAX_DEPTH));
    assert_non_null(json_parse_quick(a, json_text(a, v)));
    struct json outer = json_object();
    (void) json_set(a, &outer, STR("a"), *v);
    assert_false(json_fits(&outer, 1000));
    assert_null(json_parse_quick(a, json_text(a, &outer)));
}

TEST(shared_subtrees_count_each_time)
{
    ARENA_AUTO a = arena_new();
    struct json v = json_array();
    for (int i = 0; i < 100; i++) {
        struct json twice = json_array();
        (void) json_push(a, &twice, v);
        (void) json_push(a, &twice, v);
        v = twice;
    }
    assert_false(json_fits(&v, 1000000));
}

TEST(iteration_copes_with_other_types)
{
    ARENA_AUTO a = arena_new();
    const struct json *none = NULL, *object = parse(a, "{\"a\":1}"), *empty = parse(a, "[]");
    int n = 0;
    JSON_FOR_EACH_MEMBER (none, m) {
        n++;
    }
    JSON_FOR_EACH_ITEM (object, item) {
        n++;
    }
    JSON_FOR_EACH_ITEM (empty, item) {
        n++;
    }
    assert_int_equal(n, 0);
}

TEST(identical_values_have_the_same_text)
{
    static const char *const texts[] = {
        "null",
        "true",
        "false",
        "1",
        "1.5",
        "0",
        "-0.0",
        "\"a\"",
        "\"\"",
        "[]",
        "{}",
        "[1,2]",
        "[2,1]",
        "{\"a\":1}",
        "{\"a\":1.0}",
        "{\"a\":1,\"b\":2}",
        "{\"b\":2,\"a\":1}",
        "{\"a\":{\"b\":[0]}}",
        "{\"a\":{\"b\":[1]}}",
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
        for (size_t k = 0; k < N_ELEMENTS(texts); k++)
            assert_int_equal(json_identical(parse(a, texts[i]), parse(a, texts[k])), i == k);
    }
}

TEST(an_unshared_container_leaves_the_other_alone)
{
    ARENA_AUTO a = arena_new();
    const struct json *old = parse(a, "{\"a\":1,\"b\":{\"c\":2}}");
    struct json copy = *old;
    json_unshare(a, &copy, 1);
    (void) json_set(a, &copy, STR("a"), json_int(7));
    (void) json_set(a, &copy, STR("d"), json_int(8));
    assert_str(json_text(a, old), "{\"a\":1,\"b\":{\"c\":2}}");
    assert_str(json_text(a, &copy), "{\"a\":7,\"b\":{\"c\":2},\"d\":8}");
    assert_true(json_is_shared(json_get(&copy, STR("b")), json_get(old, STR("b"))));
    struct json nothing = json_array();
    json_unshare(a, &nothing, 0);
    assert_str(json_text(a, json_push(a, &nothing, json_int(1))), "1");
}

TEST(what_is_identical_becomes_shared_and_nothing_else)
{
    static const struct {
        const char *value, *old;
        bool is_same;
        const char *shared; /* a member that is shared now, or NULL */
        const char *apart;  /* one that is not */
    } cases[] = {
        {"{\"a\":{\"x\":1},\"b\":[1]}", "{\"a\":{\"x\":1},\"b\":[1]}", true, "a", NULL},
        {"{\"a\":{\"x\":1},\"b\":[2]}", "{\"a\":{\"x\":1},\"b\":[1]}", false, "a", "b"},
        {"{\"b\":[1],\"a\":{\"x\":1}}", "{\"a\":{\"x\":1},\"b\":[1]}", false, "b", NULL},
        {"{\"a\":{\"x\":1.0}}", "{\"a\":{\"x\":1}}", false, NULL, "a"},
        {"{\"n\":0,\"a\":{\"x\":1}}", "{\"a\":{\"x\":1}}", false, "a", NULL},
        {"{\"a\":[{\"x\":1}]}", "{\"a\":[{\"x\":1},{\"y\":1}]}", false, NULL, "a"},
        {"{\"a\":{}}", "{\"a\":{}}", true, NULL, NULL},
        {"{\"a\":[]}", "{\"a\":{}}", false, NULL, "a"},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct json *value = parse(a, cases[i].value), *old = parse(a, cases[i].old);
        struct str before = json_text(a, value);
        assert_int_equal(json_share(value, old), cases[i].is_same);
        assert_true(str_eq(json_text(a, value), before));
        assert_str(json_text(a, old), cases[i].old);
        if (cases[i].shared)
            assert_true(json_is_shared(json_at(value, cases[i].shared, NULL),
                                       json_at(old, cases[i].shared, NULL)));
        if (cases[i].apart)
            assert_false(json_is_shared(json_at(value, cases[i].apart, NULL),
                                        json_at(old, cases[i].apart, NULL)));
    }
}

TEST(a_shared_container_does_not_grow_into_the_other)
{
    ARENA_AUTO a = arena_new();
    struct json old = json_array();
    (void) json_push(a, &old, json_int(1)); /* has room for more */
    struct json value = json_array();
    (void) json_push(a, &value, json_int(1));
    assert_true(json_share(&value, &old));
    (void) json_push(a, &value, json_int(2));
    (void) json_push(a, &old, json_int(3));
    assert_str(json_text(a, &value), "[1,2]");
    assert_str(json_text(a, &old), "[1,3]");
}
