/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>

#include "api/codec.h"
#include "api/continue.h"
#include "api/request.h"
#include "api/selector.h"

static struct object *object_of(const char *text)
{
    struct object_head head = {0};
    assert_int_equal(codec_parse_head(str_of(text), &head), 0);
    return object_new(str_of(text), &head);
}

#define OBJECT \
    "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\",\"namespace\":" \
    "\"n\",\"uid\":\"u\"," \
    "\"resourceVersion\":\"\",\"labels\":{\"app\":\"web\",\"n\":\"7\",\"empty\":\"\"}},\"data\":{" \
    "\"mode\":\"off\"}}"

TEST(label_selectors_match_as_kubernetes_does)
{
    static const struct {
        const char *text;
        bool matches;
    } cases[] = {
        {"", true},
        {"app", true},
        {"app=web", true},
        {"app==web", true},
        {"app!=web", false},
        {"other!=x", true},
        {"!other", true},
        {"!app", false},
        {"app in (web,x)", true},
        {"app notin (web)", false},
        {"other notin (x)", true},
        {"n>6", true},
        {"n>7", false},
        {"n<8", true},
        {"app>1", false},
        {"empty=", true},
        {"empty=,app", true},
        {"app=", false},
        {" app = web , n in ( 7 ) ", true},
        {"app in ()", false},
        {"in", false},
        {"app=web,app=db", false},
    };
    ARENA_AUTO a = arena_new();
    CLEANUP(object_unrefp) struct object *o = object_of(OBJECT);
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct selector s = {0};
        struct str error = STR_NONE;
        int r = selector_parse_labels(a, str_of(cases[i].text), &s, &error);
        if (r < 0)
            fail_msg("'%s': %.*s", cases[i].text, STR_ARG(error));
        if (selector_matches(&s, o) != cases[i].matches)
            fail_msg("'%s' should %smatch", cases[i].text, cases[i].matches ? "" : "not ");
    }
}

TEST(bad_label_selectors_are_refused_in_known_words)
{
    static const char *const cases[][2] = {
        {"=", "found '=', expected: !, identifier, or 'end of string'"},
        {"a=b=c", "found '=', expected: ',' or 'end of string'"},
        {"a in", "unable to parse requirement: found '' expected: '('"},
        {"a in (b", "unable to parse requirement: found '', expected: ',' or ')'"},
        {"a,,b", "found ',', expected: identifier after ','"},
        {"a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"},
        {"!", "unable to parse requirement: found '', expected: identifier"},
        {"n>x", "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' "
                "operators, the value must be "
                "an integer"},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct selector s = {0};
        struct str error = STR_NONE;
        assert_int_equal(selector_parse_labels(a, str_of(cases[i][0]), &s, &error), -EINVAL);
        assert_str(error, cases[i][1]);
    }
}

TEST(field_selectors_know_the_fields_of_their_kind)
{
    ARENA_AUTO a = arena_new();
    CLEANUP(object_unrefp) struct object *o = object_of(OBJECT);
    struct jsonpath *path = NULL;
    struct str error = STR_NONE;
    assert_int_equal(jsonpath_compile(a, STR(".data.mode"), &path, &error), 0);
    struct kind_selectable selectable[] = {{STR("data.mode"), path}};
    struct kind kind = {.selectable = selectable, .n_selectable = 1};
    static const struct {
        const char *text;
        int result; /* 1 matches, 0 does not, < 0 refused */
    } cases[] = {
        {"metadata.name=a", 1},     {"metadata.name!=a", 0}, {"metadata.namespace==n", 1},
        {"data.mode=off", 1},       {"data.mode!=off", 0},   {"data.mode=on,metadata.name=a", 0},
        {"metadata.name", -EINVAL}, {"nope=1", -EINVAL},     {"metadata.name=a\\,b", 0},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct selector s = {0};
        int r = selector_parse_fields(a, str_of(cases[i].text), &kind, &s, &error);
        assert_int_equal(r < 0 ? r : (int) selector_matches(&s, o), cases[i].result);
    }
}

TEST(head_of_a_text_is_found_and_moves_with_its_revision)
{
    CLEANUP(object_unrefp) struct object *o = object_of(OBJECT);
    object_set_revision(o, 1234567);
    assert_str(object_span(o, o->head.name), "a");
    assert_str(object_span(o, o->head.labels[0].value), "web");
    assert_non_null(strstr(object_text(o).p, "\"resourceVersion\":\"1234567\""));
    CLEANUP(object_unrefp) struct object *last = codec_farewell(o);
    object_set_revision(last, 9);
    assert_non_null(memmem(last->text, last->n, "\"resourceVersion\":\"9\"", 21));
    assert_str(object_span(last, last->head.labels[1].key), "n");
}

#define HEAD "{\"apiVersion\":\"v1\",\"kind\":\"x\""

TEST(texts_that_are_not_ours_are_refused)
{
    static const char *const cases[] = {
        "",
        "{",
        "{}",
        "[]",
        "null",
        "{\"kind\":\"x\"}",
        (HEAD "}"),
        (HEAD ",\"metadata\":{}}"),
        (HEAD ",\"metadata\":{\"name\":\"a"),
        (HEAD ",\"metadata\":{\"resourceVersion\":\"\",\"labels\":[1]}}"),
        (HEAD ",\"metadata\":{\"resourceVersion\":\"\",\"x\":}}"),
        (HEAD ",\"metadata\":{\"resourceVersion\":\"12\"}}"),
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct object_head head = {0};
        assert_int_equal(codec_parse_head(str_of(cases[i]), &head), -EINVAL);
    }
}

TEST(paths_are_taken_apart)
{
    static const struct {
        const char *path;
        bool is_resource;
        const char *group, *version, *resource, *namespace, *name, *subresource;
    } cases[] = {
        {"/api/v1/namespaces", true, "", "v1", "namespaces", "", "", ""},
        {"/api/v1/namespaces/x", true, "", "v1", "namespaces", "", "x", ""},
        {"/api/v1/namespaces/x/status", true, "", "v1", "namespaces", "", "x", "status"},
        {"/api/v1/namespaces/x/configmaps", true, "", "v1", "configmaps", "x", "", ""},
        {"/api/v1/namespaces/x/configmaps/y", true, "", "v1", "configmaps", "x", "y", ""},
        {"/apis/a.org/v1/namespaces/x/things/y/scale", true, "a.org", "v1", "things", "x", "y",
         "scale"},
        {"/apis/a.org/v1/things/y", true, "a.org", "v1", "things", "", "y", ""},
        {"/apis/a.org/v1", false, "", "", "", "", "", ""},
        {"/api//v1", false, "", "", "", "", "", ""},
        {"/healthz", false, "", "", "", "", "", ""},
        {"/", false, "", "", "", "", "", ""},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct request_path p = {0};
        request_parse_path(str_of(cases[i].path), &p);
        assert_int_equal(p.is_resource, cases[i].is_resource);
        if (!p.is_resource)
            continue;
        assert_str(p.group, cases[i].group);
        assert_str(p.version, cases[i].version);
        assert_str(p.resource, cases[i].resource);
        assert_str(p.namespace, cases[i].namespace);
        assert_str(p.name, cases[i].name);
        assert_str(p.subresource, cases[i].subresource);
    }
}

TEST(queries_leave_out_what_is_malformed)
{
    ARENA_AUTO a = arena_new();
    struct request_query q =
        request_parse_query(a, STR("a=1&b=x%20y&c&d=%zz&e=1;f=2&a=2&watch=true&no=false&g=a+b"));
    assert_str(request_parameter(&q, "a"), "1");
    assert_str(request_parameter(&q, "b"), "x y");
    assert_str(request_parameter(&q, "g"), "a b");
    assert_non_null(request_parameter(&q, "c").p);
    assert_null(request_parameter(&q, "d").p);
    assert_null(request_parameter(&q, "e").p);
    assert_true(request_flag(&q, "watch"));
    assert_false(request_flag(&q, "no"));
    assert_false(request_flag(&q, "absent"));
}

TEST(continue_tokens_come_back_and_others_do_not)
{
    ARENA_AUTO a = arena_new();
    int64_t revision = 0;
    struct str after = STR_NONE;
    struct str token = continue_encode(a, 77, STR("ns/name"));
    assert_int_equal(continue_decode(a, token, &revision, &after), 0);
    assert_int_equal(revision, 77);
    assert_str(after, "ns/name");
    static const char *const bad[] = {
        "", "garbage", "c2V0aDEg", "c2V0aDEgMCBhL2I", "c2V0aDEgeCBhL2I", "c2V0aDEgNyBhYg"};
    for (size_t i = 0; i < N_ELEMENTS(bad); i++)
        assert_int_equal(continue_decode(a, str_of(bad[i]), &revision, &after), -EINVAL);
}
