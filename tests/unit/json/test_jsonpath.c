/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>

#include "json/jsonpath.h"

static const char document[] =
    "{\"kind\":\"List\",\"n\":null,"
    "\"metadata\":{\"name\":\"x\",\"annotations\":{\"a.b/c\":\"dotted\",\"plain\":\"p\"}},"
    "\"spec\":{\"replicas\":3,\"empty\":[],\"matrix\":[[1,2],[3,4]],"
    "\"ports\":[{\"name\":\"http\",\"port\":80,\"tls\":false},"
    "{\"name\":\"https\",\"port\":443,\"tls\":true},{\"port\":8080.5,\"extra\":{\"name\":\"e\"}}]},"
    "\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"},"
    "{\"type\":\"Other\",\"status\":\"False\"},{\"type\":\"it's\",\"status\":\"Quoted\"},"
    "{\"type\":\"a)b\",\"status\":\"Bracket\"}]}}";

static bool append_match(void *ctx, const struct json *value)
{
    struct buf *b = ctx;
    if (b->n)
        buf_append_char(b, ' ');
    json_write(b, value);
    return true;
}

static struct jsonpath *compile(struct arena *a, const char *text)
{
    struct jsonpath *path = NULL;
    struct str error = STR_NONE;
    if (jsonpath_compile(a, str_of(text), &path, &error) < 0)
        fail_msg("%s: %.*s", text, STR_ARG(error));
    return path;
}

static struct str find(struct arena *a, const struct json *v, const char *text)
{
    BUF_AUTO b = {0};
    jsonpath_eval(compile(a, text), v, append_match, &b);
    return arena_str(a, buf_str(&b));
}

struct query {
    const char *path, *matches;
};

static void check_all(const struct query *cases, size_t n)
{
    ARENA_AUTO a = arena_new();
    const struct json *v = json_parse_quick(a, str_of(document));
    for (size_t i = 0; i < n; i++) {
        struct str found = find(a, v, cases[i].path);
        if (!str_is(found, cases[i].matches))
            fail_msg("%s: got %.*s, expected %s", cases[i].path, STR_ARG(found), cases[i].matches);
    }
}

TEST(members_are_found_by_name)
{
    static const struct query cases[] = {
        {".metadata.name", "\"x\""},
        {".spec.replicas", "3"},
        {"$.spec.replicas", "3"},
        {"@.spec.replicas", "3"},
        {".n", "null"},
        {".absent", ""},
        {".absent.more[0]", ""},
        {".metadata.name.deeper", ""},
        {".n.deeper", ""},
        {".metadata.annotations.a\\.b/c", "\"dotted\""},
        {".metadata.annotations['plain']", "\"p\""},
        {".metadata.annotations['a\\.b/c']", "\"dotted\""},
        {"['metadata']['name']", "\"x\""},
        {"['metadata.name']", "\"x\""},
        {".metadata.annotations.*", "\"dotted\" \"p\""},
        {".kind ", "\"List\""},
    };
    check_all(cases, N_ELEMENTS(cases));
}

TEST(elements_are_found_by_position)
{
    static const struct query cases[] = {
        {".spec.ports[0].name", "\"http\""},
        {".spec.ports[-1].port", "8080.5"},
        {".spec.ports[-3].port", "80"},
        {".spec.ports[*].port", "80 443 8080.5"},
        {".spec.ports[*].name", "\"http\" \"https\""},
        {".spec.ports.*.port", "80 443 8080.5"},
        {".spec.ports[0:2].port", "80 443"},
        {".spec.ports[1:].port", "443 8080.5"},
        {".spec.ports[:1].port", "80"},
        {".spec.ports[:-1].port", "80 443"},
        {".spec.ports[-2:].port", "443 8080.5"},
        {".spec.ports[::2].port", "80 8080.5"},
        {".spec.ports[0:3:9223372036854775807].port", "80"},
        {".spec.ports[1:1].port", ""},
        {".spec.empty[*]", ""},
        {".spec.matrix[*][0]", "1 3"},
        {".spec.matrix[1][1]", "4"},
        {".spec.ports[0,2].port", "80 8080.5"},
        {".spec.ports[0, -1].port", "80 8080.5"},
        {".spec.ports[*]['port','name']", "80 443 8080.5 \"http\" \"https\""},
        {".spec.ports[]", "{\"name\":\"http\",\"port\":80,\"tls\":false}"},
    };
    check_all(cases, N_ELEMENTS(cases));
}

TEST(what_client_go_calls_an_error_matches_nothing)
{
    static const struct query cases[] = {
        {".spec.ports[3]", ""},
        {".spec.ports[-4]", ""},
        {".spec.ports[9223372036854775807]", ""},
        {".spec.ports[-9223372036854775808]", ""},
        {".spec.ports[0:4]", ""},
        {".spec.ports[2:1]", ""},
        {".spec.ports[0:2:0]", ""},
        {".spec.empty[0]", ""},
        {".spec[0]", ""},
        {".metadata[?(@.name==\"x\")]", ""},
        {".spec.ports[?(@.port==\"80\")].port", ""},
        {".spec.ports[?(@.tls<true)].port", ""},
        {".spec.matrix[?(@[*]==1)]", ""},
    };
    check_all(cases, N_ELEMENTS(cases));
}

TEST(filters_compare)
{
    static const struct query cases[] = {
        {".status.conditions[?(@.type==\"Ready\")].status", "\"True\""},
        {".status.conditions[?(@.type=='Ready')].status", "\"True\""},
        {".status.conditions[?( @.type == 'Ready' )].status", "\"True\""},
        {".status.conditions[?('Ready'==@.type)].status", "\"True\""},
        {".status.conditions[?(@.type==\"it's\")].status", "\"Quoted\""},
        {".status.conditions[?(@.type=='it\\'s')].status", "\"Quoted\""},
        {".status.conditions[?(@.type==\"a)b\")].status", "\"Bracket\""},
        {".status.conditions[?(@.type!=\"Ready\")].status", "\"False\" \"Quoted\" \"Bracket\""},
        {".status.conditions[?(@.type==\"None\")].status", ""},
        {".status.conditions[?(@.type<\"R\")].type", "\"Other\""},
        {".spec.ports[?(@.port>80)].port", "443 8080.5"},
        {".spec.ports[?(@.port>=80)].port", "80 443 8080.5"},
        {".spec.ports[?(@.port<443)].port", "80"},
        {".spec.ports[?(@.port<=443)].port", "80 443"},
        {".spec.ports[?(@.port==80.0)].port", "80"},
        {".spec.ports[?(@.port>-1)].port", "80 443 8080.5"},
        {".spec.ports[?(@.port==8080.5)].port", "8080.5"},
        {".spec.ports[?(@.tls==true)].port", "443"},
        {".spec.ports[?(@.tls!=true)].port", "80"},
        {".spec.ports[?(@.name)].port", "80 443"},
        {".spec.ports[?(@.extra.name)].port", "8080.5"},
        {".spec.ports[?(@.port==@.port)].port", "80 443 8080.5"},
        {".spec.matrix[?(@[0]==3)][1]", "4"},
        {".spec.matrix[0][?(@>1)]", "2"},
    };
    check_all(cases, N_ELEMENTS(cases));
}

TEST(descent_finds_names_at_any_depth)
{
    static const struct query cases[] = {
        {"..name", "\"x\" \"http\" \"https\" \"e\""},
        {".spec..name", "\"http\" \"https\" \"e\""},
        {"..port", "80 443 8080.5"},
        {"..absent", ""},
        {".spec.matrix..", "[[1,2],[3,4]] [1,2] [3,4]"},
        {".spec.matrix..[0]", "[1,2] 1 3"},
        {"..extra.name", "\"e\""},
    };
    check_all(cases, N_ELEMENTS(cases));
}

TEST(bad_paths_are_refused_in_the_words_of_client_go)
{
    static const struct query cases[] = {
        {".a[", "unterminated array"},
        {".a[0", "unterminated array"},
        {".a[x]", "invalid array index x"},
        {".a[1:2:3:4]", "invalid array index 1:2:3:4"},
        {".a[\"b\"]", "invalid array index \"b\""},
        {".a[-]", "array index - is not a number"},
        {".a[99999999999999999999]", "array index 99999999999999999999 is not a number"},
        {".a[0,x]", "invalid array index x"},
        {".a[?(@.b==1)", "unclosed array expect ]"},
        {".a[?(@.b==1", "unterminated filter"},
        {".a[?(@.b=='x)]", "unterminated filter"},
        {".a[?(@.b=1)]", "unrecognized filter operator ="},
        {".a[?(@.b==1.2.3)]", "cannot parse number 1.2.3"},
        {".a[?(@.b==0x10)]", "cannot parse number 0x10"},
        {".a[?(@.b=='x'y)]", "unquote string 'x'y error invalid syntax"},
        {".a[?(b==1)]", "unrecognized identifier b"},
        {"....a", "invalid multiple recursive descent"},
        {"a.b", "unrecognized identifier a"},
        {"{.a}", "unrecognized character in action: U+007B '{'"},
        {".a}", "unrecognized character in action: U+007D '}'"},
        {".a\n", "unclosed action"},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct jsonpath *path = NULL;
        struct str error = STR_NONE;
        assert_int_equal(jsonpath_compile(a, str_of(cases[i].path), &path, &error), -EINVAL);
        assert_null(path);
        assert_str(error, cases[i].matches);
    }
}

TEST(simple_paths_are_recognised)
{
    static const struct {
        const char *path;
        bool is_simple;
    } cases[] = {
        {".a", true},   {".a.b_c.d-e", true},  {".a\\.b", true},   {"", false},     {".", false},
        {".a.", false}, {".a[0]", false},      {".a['b']", false}, {".a.*", false}, {"..a", false},
        {"$.a", false}, {".a[?(@.b)]", false}, {".a[*].b", false}, {".a b", false},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct jsonpath *path = NULL;
        struct str error;
        if (jsonpath_compile(a, str_of(cases[i].path), &path, &error) == 0)
            assert_int_equal(jsonpath_is_simple(path), cases[i].is_simple);
        else
            assert_false(cases[i].is_simple);
    }
}

TEST(first_gives_one_or_none)
{
    ARENA_AUTO a = arena_new();
    const struct json *v = json_parse_quick(a, str_of(document));
    assert_int_equal(jsonpath_first(compile(a, ".spec.ports[*].port"), v)->i, 80);
    assert_null(jsonpath_first(compile(a, ".spec.ports[7].port"), v));
    assert_null(jsonpath_first(compile(a, ".absent"), v));
    assert_null(jsonpath_first(compile(a, ".a[0]"), NULL));
    assert_ptr_equal(jsonpath_first(compile(a, ""), v), v);
}

TEST(evaluation_stops_when_asked)
{
    ARENA_AUTO a = arena_new();
    const struct json *v = json_parse_quick(a, STR("[1,2,3]"));
    const struct json *first = jsonpath_first(compile(a, "[*]"), v);
    assert_int_equal(first->i, 1);
}

TEST(long_paths_are_refused)
{
    ARENA_AUTO a = arena_new();
    char *text = arena_alloc(a, JSONPATH_MAX_TEXT_BYTES + 1);
    memset(text, '.', JSONPATH_MAX_TEXT_BYTES + 1);
    for (size_t i = 1; i < JSONPATH_MAX_TEXT_BYTES + 1; i += 2)
        text[i] = 'a';
    struct jsonpath *path = NULL;
    struct str error;
    assert_int_equal(
        jsonpath_compile(a, str_range(text, JSONPATH_MAX_TEXT_BYTES + 1), &path, &error), -EINVAL);
    assert_int_equal(jsonpath_compile(a, str_range(text, JSONPATH_MAX_TEXT_BYTES), &path, &error),
                     0);
}

static struct str repeat(struct arena *a, const char *start, const char *middle, int n)
{
    BUF_AUTO b = {0};
    buf_append_str(&b, str_of(start));
    for (int i = 0; i < n; i++)
        buf_append_str(&b, str_of(middle));
    return arena_str(a, buf_str(&b));
}

TEST(explosive_paths_match_nothing_and_end_soon)
{
    ARENA_AUTO a = arena_new();
    struct str deep = repeat(a, "", "{\"a\":", 120);
    struct str text =
        arena_printf(a, "%.*s[1,2]%.*s", STR_ARG(deep), 120, repeat(a, "", "}", 120).p);
    const struct json *v = json_parse_quick(a, text);
    assert_non_null(v);
    assert_null(jsonpath_first(compile(a, repeat(a, "", "..a", 1000).p), v));

    const struct json *array = json_parse_quick(a, STR("[[[[[[1]]]]]]"));
    struct str doubled = repeat(a, "", "[0,0,0,0,0,0,0,0,0,0]", 6);
    const struct jsonpath *path = compile(a, doubled.p);
    BUF_AUTO b = {0};
    jsonpath_eval(path, array, append_match, &b);
    assert_int_equal(b.n, 0);
}
