/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "fleet/overrides.h"

static struct json *parse(struct arena *a, const char *text)
{
    char *copy = arena_strz(a, str_of(text));
    for (char *p = copy; *p; p++)
        if (*p == '\'')
            *p = '"';
    struct json *v = json_parse_quick(a, str_of(copy));
    assert_non_null(v);
    return v;
}

static void check_text(struct arena *a, const struct json *v, const char *expected)
{
    assert_string_equal(arena_strz(a, json_text(a, v)),
                        arena_strz(a, json_text(a, parse(a, expected))));
}

TEST(a_field_is_yielded_by_the_path_of_its_conflict)
{
#define A "{\"n\":\"a\",\"m\":1}"
#define B "{\"n\":\"b'],=\",\"o\":{\"x\":1,\"y\":2}}"
#define CONFIG(name, apps, set) "{" name "\"apps\":[" apps "],\"s\":[" set "]}"
#define NAME "\"name\":\"d\","
    static const struct {
        const char *path, *left; /* left NULL: there is no such field */
    } rows[] = {
        {".spec.config.name", CONFIG("", A "," B, "1,2")},
        {".spec.config.apps[n=\"a\"].m", CONFIG(NAME, "{\"n\":\"a\"}," B, "1,2")},
        {".spec.config.apps[m=1,n=\"a\"].m", CONFIG(NAME, "{\"n\":\"a\"}," B, "1,2")},
        {".spec.config.apps[n=\"b'],=\"].o.y",
         CONFIG(NAME, A ",{\"n\":\"b'],=\",\"o\":{\"x\":1}}", "1,2")},
        {".spec.config.apps[n=\"a\"]", CONFIG(NAME, B, "1,2")},
        {".spec.config.s[=2]", CONFIG(NAME, A "," B, "1")},
        {".spec.config.s[0]", CONFIG(NAME, A "," B, "2")},
        {".spec.config.apps[n=\"c\"].m", NULL},
        {".spec.config.apps[n=\"a\"", NULL},
        {".spec.config.apps[n=\"a].m", NULL},
        {".spec.config.apps[]", NULL},
        {".spec.config.apps[n]", NULL},
        {".spec.config.apps[9]", NULL},
        {".spec.config.apps[-1]", NULL},
        {".spec.config.name.x", NULL},
        {".spec.config.", NULL},
        {".spec.config", NULL},
        {".metadata.labels.a", NULL},
        {"", NULL},
    };
    const char *before = CONFIG(NAME, A "," B, "1,2");
    for (size_t i = 0; i < N_ELEMENTS(rows); i++) {
        ARENA_AUTO a = arena_new();
        struct json *config = json_parse_quick(a, str_of(before));
        assert_int_equal(overrides_yield(config, str_of(rows[i].path)), rows[i].left != NULL);
        assert_string_equal(arena_strz(a, json_text(a, config)),
                            rows[i].left ? rows[i].left : before);
    }
}

TEST(what_others_own_is_told_with_their_names)
{
    ARENA_AUTO a = arena_new();
    const struct json *object = parse(
        a, "{'metadata':{'managedFields':["
           "{'manager':'seth-composer','operation':'Apply','fieldsV1':{'f:spec':{'f:config':{"
           "'f:deviceName':{},'f:id':{'f:uuid':{}}}}}},"
           "{'manager':'kubectl-edit','operation':'Update','fieldsV1':{'f:spec':{'f:config':{"
           "'f:enterprise':{},'f:deviceName':{}}}}},"
           "{'manager':'seth-reports','operation':'Update','subresource':'status','fieldsV1':{"
           "'f:spec':{'f:config':{'f:name':{}}}}}]}}");
    assert_true(overrides_are_possible(object));
    const struct override *o = overrides_of(a, object);
    assert_non_null(o);
    assert_true(str_is(o->path, "enterprise")); /* what both have is the same, and nobody's loss */
    assert_true(str_is(o->manager, "kubectl-edit"));
    assert_null(o->next);
}

TEST(nobody_else_is_nobody)
{
    ARENA_AUTO a = arena_new();
    const struct json *object =
        parse(a, "{'metadata':{'managedFields':[{'manager':'seth-composer','operation':'Apply',"
                 "'fieldsV1':{'f:spec':{'f:config':{'f:deviceName':{}}}}},"
                 "{'manager':'x','operation':'Update','fieldsV1':{'f:metadata':{}}},"
                 "{'manager':'y','operation':'Update','fieldsV1':'nonsense'}]}}");
    assert_false(overrides_are_possible(object));
    assert_null(overrides_of(a, object));
    assert_null(overrides_of(a, parse(a, "{}")));
}

TEST(what_has_no_identity_is_dropped)
{
    ARENA_AUTO a = arena_new();
    struct json *config = parse(
        a, "{'apps':[{'displayname':'a','uuidandversion':{'uuid':'u'}},{'displayname':'b',"
           "'fixedresources':{'memory':1}}],'networks':[{'mtu':1}],'volumes':[{'uuid':'v'}]}");
    assert_true(overrides_drop_remains(config));
    check_text(a, config,
               "{'apps':[{'displayname':'a','uuidandversion':{'uuid':'u'}}],'networks':[],"
               "'volumes':[{'uuid':'v'}]}");
    assert_false(overrides_drop_remains(config));
}
