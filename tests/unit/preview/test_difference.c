/* SPDX-License-Identifier: Apache-2.0 */
/* The difference of two configurations: nothing for equal ones, and what makes the new of the old
 * for all others. */
#include "test.h"

#include "configs.h"
#include "preview/place.h"

#define ROUNDS 4000

static uint64_t next(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static size_t below(uint64_t *seed, size_t limit)
{
    return (size_t) (next(seed) % limit);
}

/* ---- properties ------------------------------------------------------------------------------ */

/* Empty lists are none, as in protobuf. */
static void drop_empty(struct json *v)
{
    for (size_t i = json_is(v, JSON_OBJECT) ? v->n : 0; i-- > 0;) {
        struct json_member *m = &v->members[i];
        drop_empty(&m->value);
        if (m->value.type == JSON_ARRAY && !m->value.n)
            (void) json_remove(v, json_str(&m->key));
    }
    JSON_FOR_EACH_ITEM (v, item)
        drop_empty(item);
}

static void check_pair(struct configs *c, const struct json *old, const struct json *new)
{
    ARENA_AUTO a = arena_new();
    const struct difference d = difference_make(a, c->schema, old, new);
    const struct json made = difference_apply(a, c->schema, old, &d);
    if (!json_equal(&made, new))
        fail_msg("%zu changes of\n%s\nto\n%s\nmake\n%s", d.n, json_text(a, old).p,
                 json_text(a, new).p, json_text(a, &made).p);
    assert_int_equal(d.n == 0, json_equal(old, new));
    for (size_t i = 0; i < d.n; i++)
        assert_true(d.items[i].old || d.items[i].new);
}

TEST(equal_configurations_do_not_differ)
{
    CONFIGS(c);
    for (size_t i = 0; i < c.n; i++) {
        ARENA_AUTO a = arena_new();
        const struct json copy = json_clone(a, c.items[i]);
        assert_int_equal(difference_make(a, c.schema, c.items[i], &copy).n, 0);
    }
}

TEST(the_changes_make_the_new_configuration_of_the_old)
{
    CONFIGS(c);
    for (size_t i = 0; i < c.n; i++)
        for (size_t j = 0; j < c.n; j++)
            check_pair(&c, c.items[i], c.items[j]);
}

/* Something somewhere is changed, left out, doubled or moved. */
static void mutate(struct arena *a, uint64_t *seed, struct json *v, unsigned depth)
{
    const size_t at = v->n && json_is_container(v) ? below(seed, v->n) : 0;
    const bool goes_down = depth < 6 && below(seed, 4) != 0;
    if (!json_is_container(v) || !v->n) {
        *v = below(seed, 2) ? json_int((int64_t) below(seed, 9)) : json_string(STR("other"));
    } else if (goes_down) {
        mutate(a, seed, v->type == JSON_OBJECT ? &v->members[at].value : &v->items[at], depth + 1);
    } else if (v->type == JSON_OBJECT && below(seed, 2)) {
        (void) json_remove(v, json_str(&v->members[at].key));
    } else if (v->type == JSON_OBJECT) {
        (void) json_set(a, v, STR("extra"), json_string(STR("x")));
    } else if (below(seed, 3) == 0) {
        json_remove_at(v, at);
    } else if (below(seed, 2)) {
        const struct json one = json_clone(a, &v->items[at]);
        (void) json_insert(a, v, below(seed, v->n + 1), one);
    } else {
        const size_t other = below(seed, v->n);
        const struct json one = v->items[at];
        v->items[at] = v->items[other];
        v->items[other] = one;
    }
}

TEST(holds_for_configurations_that_nobody_composed)
{
    CONFIGS(c);
    uint64_t seed = 0x5e7b1u;
    for (size_t i = 0; i < ROUNDS; i++) {
        ARENA_AUTO a = arena_new();
        struct json old = json_clone(a, c.items[below(&seed, c.n)]);
        struct json new = json_clone(a, &old);
        for (size_t n = 1 + below(&seed, 4); n > 0; n--)
            mutate(a, &seed, below(&seed, 3) ? &new : &old, 0);
        drop_empty(&old);
        drop_empty(&new);
        check_pair(&c, &old, &new);
    }
}

/* ---- places ---------------------------------------------------------------------------------- */

static const char two_apps[] = "apps: [{displayname: a, fixedresources: {memory: 1}}, "
                               "{displayname: \"b.]\\\"\", activate: true}]\n"
                               "configItems: [{key: k, value: v}]\n";

TEST(items_are_known_by_their_keys)
{
    CONFIGS(c);
    const struct json *old = configs_parse(c.arena, two_apps);
    const struct json *new = configs_parse(
        c.arena, "apps: [{displayname: x}, {displayname: a, fixedresources: {memory: 2}}]\n"
                 "configItems: [{key: k, value: w}]\n");
    const struct difference d = difference_make(c.arena, c.schema, old, new);
    assert_int_equal(d.n, 4);
    assert_str(d.items[0].place, "apps[displayname=\"b.]\\\"\"]");
    assert_null(d.items[0].new);
    assert_str(d.items[1].place, "apps[displayname=\"a\"].fixedresources.memory");
    assert_int_equal(d.items[1].old->i, 1);
    assert_int_equal(d.items[1].new->i, 2);
    assert_str(d.items[2].place, "apps[displayname=\"x\"]");
    assert_null(d.items[2].old);
    assert_int_equal(d.items[2].at, 0);
    assert_true(str_starts_with(d.items[3].place, STR("configItems[key=\"k\"].")));
}

TEST(another_order_is_a_change_of_the_list)
{
    CONFIGS(c);
    const struct json *old = configs_parse(c.arena, "apps: [{displayname: a}, {displayname: b}]");
    const struct json *new = configs_parse(c.arena, "apps: [{displayname: b}, {displayname: a}]");
    const struct difference d = difference_make(c.arena, c.schema, old, new);
    assert_int_equal(d.n, 1);
    assert_true(d.items[0].is_order);
    assert_str(d.items[0].place, "apps");
}

TEST(lists_with_two_of_a_key_differ_as_a_whole)
{
    CONFIGS(c);
    const struct json *old = configs_parse(c.arena, "apps: [{displayname: a}, {displayname: a}]");
    const struct json *new = configs_parse(c.arena, "apps: [{displayname: a}]");
    const struct difference d = difference_make(c.arena, c.schema, old, new);
    assert_int_equal(d.n, 1);
    assert_str(d.items[0].place, "apps");
    assert_false(d.items[0].is_order);
}

TEST(paths_by_index_become_places)
{
    static const struct {
        const char *path, *place;
    } cases[] = {
        {"apps[0].fixedresources.memory", "apps[displayname=\"a\"].fixedresources.memory"},
        {"apps[1]", "apps[displayname=\"b.]\\\"\"]"},
        {"apps[displayname=\"a\"].activate", "apps[displayname=\"a\"].activate"},
        {"apps[7].restart", "apps[7].restart"},
        {"nothing.of.this", "nothing.of.this"},
        {"", ""},
        {".apps[0]", "apps[displayname=\"a\"]"},
        {"apps[", "apps["},
        {"apps[\"", "apps[\""},
    };
    CONFIGS(c);
    const struct json *config = configs_parse(c.arena, two_apps);
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        assert_str(place_of_path(c.arena, c.schema, config, str_of(cases[i].path)), cases[i].place);
}

TEST(what_is_at_a_place)
{
    CONFIGS(c);
    const struct json *config = configs_parse(c.arena, two_apps);
    const struct json *v =
        place_value(c.arena, c.schema, config, STR("apps[0].fixedresources.memory"));
    assert_int_equal(v->i, 1);
    assert_true(
        place_value(c.arena, c.schema, config, STR("apps[displayname=\"b.]\\\"\"].activate"))->b);
    assert_null(place_value(c.arena, c.schema, config, STR("apps[2]")));
    assert_null(place_value(c.arena, c.schema, config, STR("deviceName")));
    assert_ptr_equal(place_value(c.arena, c.schema, config, STR("")), config);
}

TEST(a_place_is_within_those_above_it)
{
    static const struct {
        const char *place, *above;
        bool is_within;
    } cases[] = {
        {"apps[k=\"a\"].x", "apps[k=\"a\"]", true},
        {"apps[k=\"a\"].x", "apps", true},
        {"apps[k=\"a\"].x", "", true},
        {"apps", "apps", true},
        {"appsX", "apps", false},
        {"apps", "apps[k=\"a\"]", false},
        {"a.bc", "a.b", false},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        assert_int_equal(place_is_within(str_of(cases[i].place), str_of(cases[i].above)),
                         cases[i].is_within);
    assert_str(place_first(STR("apps[k=\"a.b]\"].x.y")), "apps[k=\"a.b]\"]");
    assert_str(place_first(STR("baseos.version")), "baseos");
    assert_str(place_first(STR("")), "");
}
