/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduling/selector.h"

#include "test.h"

static const struct json *parse(struct arena *a, const char *text)
{
    char *copy = text ? arena_strz(a, str_of(text)) : NULL;
    if (!copy)
        return NULL;
    for (char *p = copy; *p; p++)
        if (*p == '\'')
            *p = '"';
    const struct json *v = json_parse_quick(a, str_of(copy));
    assert_non_null(v);
    return v;
}

#define REQUIRED(terms) \
    "{'affinity': {'nodeAffinity': {'requiredDuringSchedulingIgnoredDuringExecution': " \
    "{'nodeSelectorTerms': [" terms "]}}}}"
#define EXPRESSIONS(list) REQUIRED("{'matchExpressions': [" list "]}")
#define FIELDS(list) REQUIRED("{'matchFields': [" list "]}")
#define PREFERRED(list) \
    "{'affinity': {'nodeAffinity': {'preferredDuringSchedulingIgnoredDuringExecution': [" list \
    "]}}}"

/* The Device of every case is 'edge-1' unless it says otherwise. */
static const char labels[] = "{'site': 'north', 'rack': '7', 'spare': '', 'name': 'other'}";

TEST(required_terms_match)
{
    static const struct {
        const char *spec;
        bool holds;
    } cases[] = {
        {NULL, true},
        {"{}", true},
        {"{'nodeSelector': {}}", true},
        {"{'nodeSelector': null, 'affinity': null}", true},
        {"{'affinity': {'nodeAffinity': {}}}", true},
        {"{'affinity': {'nodeAffinity': {'requiredDuringSchedulingIgnoredDuringExecution': null}}}",
         true},
        {"{'nodeSelector': {'site': 'north'}}", true},
        {"{'nodeSelector': {'site': 'south'}}", false},
        {"{'nodeSelector': {'site': 'north', 'rack': '7'}}", true},
        {"{'nodeSelector': {'site': 'north', 'rack': '8'}}", false},
        {"{'nodeSelector': {'zone': ''}}", false},
        {"{'nodeSelector': {'spare': ''}}", true},
        {"{'nodeSelector': {'rack': 7}}", false},
        {"{'nodeSelector': 'north'}", false},
        /* name is the Device's, not its label. */
        {"{'nodeSelector': {'name': 'edge-1'}}", true},
        {"{'nodeSelector': {'name': 'other'}}", false},
        /* Both must hold. */
        {"{'nodeSelector': {'site': 'south'}, 'affinity': {'nodeAffinity': "
         "{'requiredDuringSchedulingIgnoredDuringExecution': {'nodeSelectorTerms': "
         "[{'matchExpressions': [{'key': 'rack', 'operator': 'Exists'}]}]}}}}",
         false},
        /* In, NotIn */
        {EXPRESSIONS("{'key': 'site', 'operator': 'In', 'values': ['south', 'north']}"), true},
        {EXPRESSIONS("{'key': 'site', 'operator': 'In', 'values': ['south']}"), false},
        {EXPRESSIONS("{'key': 'zone', 'operator': 'In', 'values': ['a', '']}"), false},
        {EXPRESSIONS("{'key': 'site', 'operator': 'In', 'values': []}"), false},
        {EXPRESSIONS("{'key': 'site', 'operator': 'In'}"), false},
        {EXPRESSIONS("{'key': 'site', 'operator': 'In', 'values': 'north'}"), false},
        {EXPRESSIONS("{'key': 'site', 'operator': 'NotIn', 'values': ['south']}"), true},
        {EXPRESSIONS("{'key': 'site', 'operator': 'NotIn', 'values': ['south', 'north']}"), false},
        {EXPRESSIONS("{'key': 'zone', 'operator': 'NotIn', 'values': ['a']}"), true},
        {EXPRESSIONS("{'key': 'zone', 'operator': 'NotIn', 'values': []}"), false},
        {EXPRESSIONS("{'key': 'name', 'operator': 'In', 'values': ['edge-1']}"), true},
        {EXPRESSIONS("{'key': 'name', 'operator': 'NotIn', 'values': ['edge-1']}"), false},
        /* Exists, DoesNotExist */
        {EXPRESSIONS("{'key': 'spare', 'operator': 'Exists'}"), true},
        {EXPRESSIONS("{'key': 'zone', 'operator': 'Exists'}"), false},
        {EXPRESSIONS("{'key': 'site', 'operator': 'Exists', 'values': ['north']}"), false},
        {EXPRESSIONS("{'key': 'zone', 'operator': 'DoesNotExist'}"), true},
        {EXPRESSIONS("{'key': 'spare', 'operator': 'DoesNotExist'}"), false},
        {EXPRESSIONS("{'key': 'name', 'operator': 'DoesNotExist'}"), false},
        /* Gt, Lt */
        {EXPRESSIONS("{'key': 'rack', 'operator': 'Gt', 'values': ['6']}"), true},
        {EXPRESSIONS("{'key': 'rack', 'operator': 'Gt', 'values': ['7']}"), false},
        {EXPRESSIONS("{'key': 'rack', 'operator': 'Lt', 'values': ['10']}"), true},
        {EXPRESSIONS("{'key': 'rack', 'operator': 'Lt', 'values': ['7']}"), false},
        {EXPRESSIONS("{'key': 'rack', 'operator': 'Lt', 'values': ['8', '9']}"), false},
        {EXPRESSIONS("{'key': 'rack', 'operator': 'Lt', 'values': ['x']}"), false},
        {EXPRESSIONS("{'key': 'site', 'operator': 'Gt', 'values': ['1']}"), false},
        {EXPRESSIONS("{'key': 'zone', 'operator': 'Lt', 'values': ['1']}"), false},
        /* What cannot be read */
        {EXPRESSIONS("{'key': 'site', 'operator': 'Like', 'values': ['north']}"), false},
        {EXPRESSIONS("{'operator': 'Exists'}"), false},
        {EXPRESSIONS("'site'"), false},
        {"{'affinity': {'nodeAffinity': {'requiredDuringSchedulingIgnoredDuringExecution': 1}}}",
         false},
        /* AND within a term, OR between them */
        {EXPRESSIONS(
             "{'key': 'site', 'operator': 'Exists'}, {'key': 'rack', 'operator': 'Exists'}"),
         true},
        {EXPRESSIONS(
             "{'key': 'site', 'operator': 'Exists'}, {'key': 'zone', 'operator': 'Exists'}"),
         false},
        {REQUIRED("{'matchExpressions': [{'key': 'zone', 'operator': 'Exists'}]}, "
                  "{'matchExpressions': [{'key': 'site', 'operator': 'Exists'}]}"),
         true},
        /* Nothing said in a term matches nothing. */
        {REQUIRED(""), false},
        {REQUIRED("{}"), false},
        {REQUIRED("{'matchExpressions': []}"), false},
        {REQUIRED("{}, {'matchExpressions': [{'key': 'site', 'operator': 'Exists'}]}"), true},
        /* matchFields */
        {FIELDS("{'key': 'metadata.name', 'operator': 'In', 'values': ['edge-1']}"), true},
        {FIELDS("{'key': 'metadata.name', 'operator': 'In', 'values': ['edge-2']}"), false},
        {FIELDS("{'key': 'metadata.name', 'operator': 'NotIn', 'values': ['edge-2']}"), true},
        {FIELDS("{'key': 'metadata.name', 'operator': 'NotIn', 'values': ['edge-1']}"), false},
        {FIELDS("{'key': 'metadata.name', 'operator': 'In', 'values': ['edge-1', 'edge-2']}"),
         false},
        {FIELDS("{'key': 'metadata.name', 'operator': 'Exists'}"), false},
        {FIELDS("{'key': 'spec.serial', 'operator': 'In', 'values': ['edge-1']}"), false},
        {REQUIRED("{'matchExpressions': [{'key': 'zone', 'operator': 'Exists'}], 'matchFields': "
                  "[{'key': 'metadata.name', 'operator': 'In', 'values': ['edge-1']}]}"),
         false},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        if (device_selector_matches(parse(a, cases[i].spec), STR("edge-1"), parse(a, labels)) !=
            cases[i].holds)
            fail_msg("case %zu: %s", i, cases[i].spec ? cases[i].spec : "nothing");
    }
}

TEST(devices_without_labels_have_their_name)
{
    ARENA_AUTO a = arena_new();
    const struct json *by_name = parse(a, "{'nodeSelector': {'name': 'edge-1'}}");
    assert_true(device_selector_matches(by_name, STR("edge-1"), NULL));
    assert_false(device_selector_matches(by_name, STR("edge-10"), NULL));
    assert_false(device_selector_matches(parse(a, "{'nodeSelector': {'a': 'b'}}"), STR("b"), NULL));
}

#define SITE "{'matchExpressions': [{'key': 'site', 'operator': 'In', 'values': ['north']}]}"
#define ZONE "{'matchExpressions': [{'key': 'zone', 'operator': 'Exists'}]}"

TEST(preferences_that_hold_are_summed)
{
    static const struct {
        const char *spec;
        int64_t weight;
    } cases[] = {
        {NULL, 0},
        {"{'nodeSelector': {'site': 'north'}}", 0},
        {PREFERRED("{'weight': 10, 'preference': " SITE "}"), 10},
        {PREFERRED("{'weight': 10, 'preference': " ZONE "}"), 0},
        {PREFERRED("{'weight': 10, 'preference': " SITE "}, {'weight': 7, 'preference': " ZONE
                   "}, {'weight': 100, 'preference': " SITE "}"),
         110},
        {PREFERRED("{'weight': 5, 'preference': {'matchFields': [{'key': 'metadata.name', "
                   "'operator': 'In', 'values': ['edge-1']}]}}"),
         5},
        {PREFERRED("{'weight': 10, 'preference': {}}"), 0},
        {PREFERRED("{'weight': 101, 'preference': " SITE "}"), 0},
        {PREFERRED("{'weight': -1, 'preference': " SITE "}"), 0},
        {PREFERRED("{'weight': '10', 'preference': " SITE "}"), 0},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        if (device_selector_preference(parse(a, cases[i].spec), STR("edge-1"), parse(a, labels)) !=
            cases[i].weight)
            fail_msg("case %zu: %s", i, cases[i].spec ? cases[i].spec : "nothing");
    }
}
