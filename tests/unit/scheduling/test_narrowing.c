/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduling/narrowing.h"

#include "test.h"

#define REQUIRED(terms) \
    "{'affinity': {'nodeAffinity': {'requiredDuringSchedulingIgnoredDuringExecution': " \
    "{'nodeSelectorTerms': [" terms "]}}}}"
#define IN(key, values) "{'key': '" key "', 'operator': 'In', 'values': [" values "]}"

static const struct json *parse(struct arena *a, const char *text)
{
    char *copy = arena_strz(a, str_of(text));
    for (char *p = copy; *p; p++)
        if (*p == '\'')
            *p = '"';
    const struct json *v = json_parse_quick(a, str_of(copy));
    assert_non_null(v);
    return v;
}

/* "a=b|c=d;e=f": one of the first two, and the last. */
static struct str text_of(struct arena *a, const char *spec)
{
    struct narrowing *all = NULL;
    const size_t n = narrowing_of(a, parse(a, spec), &all);
    BUF_AUTO b = {0};
    for (size_t i = 0; i < n; i++) {
        buf_printf(&b, "%s", i ? ";" : "");
        for (size_t j = 0; j < all[i].n; j++)
            buf_printf(&b, "%s%.*s=%.*s", j ? "|" : "", STR_ARG(all[i].pairs[j].key),
                       STR_ARG(all[i].pairs[j].value));
        if (!all[i].n)
            buf_printf(&b, "nothing");
    }
    return arena_str(a, buf_str(&b));
}

TEST(selectors_are_narrowed)
{
    static const struct {
        const char *spec, *text;
    } cases[] = {
        {"{}", ""},
        {"{'nodeSelector': {'a': 'b', 'name': 'c'}}", "a=b;name=c"},
        {REQUIRED("{'matchExpressions': [" IN("a", "'b', 'c'") "]}"), "a=b|a=c"},
        /* Of one term the shortest list, of several all. */
        {REQUIRED("{'matchExpressions': [" IN("a", "'b', 'c'") ", " IN("d", "'e'") "]}"), "d=e"},
        {REQUIRED("{'matchExpressions': [" IN("a", "'b'") "]}, {'matchExpressions': [" IN(
             "c", "'d'") "]}"),
         "a=b|c=d"},
        {REQUIRED("{'matchFields': [" IN("metadata.name", "'b'") "]}"), "name=b"},
        /* A term that no index answers may be any device's. */
        {REQUIRED("{'matchExpressions': [{'key': 'a', 'operator': 'Exists'}]}"), ""},
        {REQUIRED("{'matchExpressions': [{'key': 'a', 'operator': 'NotIn', 'values': ['b']}]}"),
         ""},
        {REQUIRED("{'matchExpressions': [" IN("a", "'b'") "]}, {'matchExpressions': [{'key': 'c', "
                                                          "'operator': 'Exists'}]}"),
         ""},
        {REQUIRED(""), "nothing"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        assert_str(text_of(a, cases[i].spec), cases[i].text);
    }
}

#define PREFERRED(list) \
    "{'affinity': {'nodeAffinity': {'preferredDuringSchedulingIgnoredDuringExecution': [" list \
    "]}}}"

TEST(preferences_are_narrowed)
{
    ARENA_AUTO a = arena_new();
    struct narrowing by;
    assert_true(narrowing_of_preferences(
        a,
        parse(a, PREFERRED("{'preference': {'matchExpressions': [" IN(
                     "a", "'b'") "]}}, {'preference': "
                                 "{'matchFields': [" IN("metadata.name", "'c'") "]}}")),
        &by));
    assert_int_equal(by.n, 2);
    assert_str(by.pairs[0].key, "a");
    assert_str(by.pairs[1].key, "name");
    assert_str(by.pairs[1].value, "c");
    assert_false(narrowing_of_preferences(
        a,
        parse(a, PREFERRED("{'preference': {'matchExpressions': [" IN(
                     "a", "'b'") "]}}, {'preference': {'matchExpressions': [{'key': 'x', "
                                 "'operator': 'Exists'}]}}")),
        &by));
}
