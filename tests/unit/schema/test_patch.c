/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "schema/patch.h"

#include "values.h"

#define REJECTED "the server rejected our request due to an error in our request"

struct patch_case {
    const char *old, *patch, *result; /* result NULL: refused with message */
    const char *message;
};

typedef int patch_fn(struct arena *a, const struct json *old, const struct json *patch,
                     struct json **ret_new, struct patch_error *ret_error);

static void run_cases(patch_fn *patch, const struct patch_case *cases, size_t n)
{
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < n; i++) {
        struct json *result = NULL, *old = value_of(a, cases[i].old),
                    *change = value_of(a, cases[i].patch);
        struct patch_error error = {0};
        int r = patch(a, old, change, &result, &error);
        if (cases[i].result && r < 0)
            fail_msg("%s on %s: %.*s", cases[i].patch, cases[i].old, STR_ARG(error.message));
        if (cases[i].result)
            assert_value(a, result, cases[i].result);
        else if (r == 0)
            fail_msg("%s on %s gave %.*s", cases[i].patch, cases[i].old,
                     STR_ARG(json_text(a, result)));
        else
            assert_text(a, error.message, cases[i].message ? cases[i].message : REJECTED);
        assert_value(a, old, cases[i].old);
        assert_value(a, change, cases[i].patch);
    }
}

TEST(applies_json_patches)
{
    static const struct patch_case cases[] = {
        /* Recorded from kube-apiserver 1.36. */
        {"{'data':{'k':'v','x':'y'}}",
         "[{'op':'add','path':'/data/n','value':'1'},{'op':'replace','path':'/data/k','value':'w'},"
         "{'op':'remove','path':'/data/x'},{'op':'copy','from':'/data/k','path':'/data/c'},"
         "{'op':'move','from':'/data/n','path':'/data/m'},{'op':'test','path':'/data/"
         "k','value':'w'}]",
         "{'data':{'c':'w','k':'w','m':'1'}}", NULL},
        {"{'data':{'k':'w'}}", "[{'op':'test','path':'/data/k','value':'nope'}]", NULL, NULL},
        {"{'data':{'k':'w'}}", "[{'op':'remove','path':'/data/absent'}]", NULL, NULL},
        {"{'data':{'k':'w'}}", "[{'op':'replace','path':'/data/absent','value':'x'}]",
         "{'data':{'k':'w','absent':'x'}}", NULL},
        {"{'data':{'k':'w'}}", "[{'op':'nope','path':'/data/k'}]", NULL, NULL},
        {"{}", "{'op':'add'}", NULL,
         "error decoding patch: json: cannot unmarshal object into Go value of type "
         "[]handlers.jsonPatchOp"},
        {"{'a':1}", "[]", "{'a':1}", NULL},
        {"{'metadata':{}}", "[{'op':'add','path':'/metadata/labels/a~1b','value':'x'}]", NULL,
         NULL},
        {"{'metadata':{}}",
         "[{'op':'add','path':'/metadata/labels','value':{'a/b':'x'}},"
         "{'op':'replace','path':'/metadata/labels/a~1b','value':'z'}]",
         "{'metadata':{'labels':{'a/b':'z'}}}", NULL},
        /* RFC 6902, appendix A, where the library follows it. */
        {"{'foo':['bar','baz']}", "[{'op':'add','path':'/foo/1','value':'qux'}]",
         "{'foo':['bar','qux','baz']}", NULL},
        {"{'foo':['bar','qux','baz']}", "[{'op':'remove','path':'/foo/1'}]",
         "{'foo':['bar','baz']}", NULL},
        {"{'foo':['all','grass','cows','eat']}", "[{'op':'move','from':'/foo/1','path':'/foo/3'}]",
         "{'foo':['all','cows','eat','grass']}", NULL},
        {"{'foo':['bar']}", "[{'op':'add','path':'/foo/-','value':['abc','def']}]",
         "{'foo':['bar',['abc','def']]}", NULL},
        {"{'/':9,'~1':10}",
         "[{'op':'test','path':'/~01','value':10},{'op':'test','path':'/~1','value':9}]",
         "{'/':9,'~1':10}", NULL},
        {"{'foo':'bar'}", "[{'op':'add','path':'/baz/bat','value':'qux'}]", NULL, NULL},
        {"{'a':{'b':{'c':1}}}", "[{'op':'move','from':'/a','path':'/a/b'}]", NULL, NULL},
        /* Indexes. */
        {"{'l':[1,2,3]}", "[{'op':'add','path':'/l/3','value':4}]", "{'l':[1,2,3,4]}", NULL},
        {"{'l':[1,2,3]}", "[{'op':'add','path':'/l/4','value':4}]", NULL, NULL},
        {"{'l':[1,2,3]}", "[{'op':'remove','path':'/l/-1'}]", "{'l':[1,2]}", NULL},
        {"{'l':[1,2,3]}", "[{'op':'replace','path':'/l/3','value':4}]", NULL, NULL},
        {"{'l':[1,2,3]}", "[{'op':'replace','path':'/l/-','value':4}]", NULL, NULL},
        {"{'l':[1,2,3]}", "[{'op':'remove','path':'/l/x'}]", NULL, NULL},
        {"{'l':[1,2,3]}", "[{'op':'remove','path':'/l/99999999999999999999'}]", NULL, NULL},
        {"{'l':[]}",
         "[{'op':'add','path':'/l/0','value':{'a':[]}},{'op':'add','path':'/l/0/a/-','value':1}]",
         "{'l':[{'a':[1]}]}", NULL},
        /* Missing parts. */
        {"{'a':1}", "[{'op':'add','path':'/b'}]", "{'a':1,'b':null}", NULL},
        {"{'a':1}", "[{'op':'add','value':1}]", NULL, NULL},
        {"{'a':1}", "[{'op':'move','path':'/b'}]", NULL, NULL},
        {"{'a':1}", "[{'op':'copy','from':'/x','path':'/b'}]", NULL, NULL},
        {"{'a':1}", "[{'op':'test','path':'/x','value':null}]", "{'a':1}", NULL},
        {"{'a':1}", "[{'op':'test','path':'/x/y','value':null}]", NULL, NULL},
        {"{'a':'s'}", "[{'op':'add','path':'/a/b','value':1}]", NULL, NULL},
        {"{'a':null}", "[{'op':'add','path':'/a/b','value':1}]", NULL, NULL},
        {"{'a':1}", "[null]", NULL, NULL},
        {"{'a':1}", "[{}]", NULL, NULL},
        /* The whole document. */
        {"{'a':1}", "[{'op':'replace','path':'','value':{'b':2}}]", "{'b':2}", NULL},
        {"{'a':1}", "[{'op':'replace','path':'','value':2}]", NULL, NULL},
        {"{'a':1}", "[{'op':'test','path':'','value':{'a':1}}]", "{'a':1}", NULL},
        {"{'a':1}", "[{'op':'remove','path':''}]", NULL, NULL},
        {"{'a':1}", "[{'op':'copy','from':'','path':'/b'}]", "{'a':1,'b':{'a':1}}", NULL},
        {"{'':1}", "[{'op':'replace','path':'/','value':2}]", "{'':2}", NULL},
        /* Not a patch. */
        {"{}", "5", NULL,
         "error decoding patch: json: cannot unmarshal number into Go value of type "
         "[]handlers.jsonPatchOp"},
        {"{}", "['x']", NULL,
         "error decoding patch: json: cannot unmarshal string into Go value of type "
         "handlers.jsonPatchOp"},
        {"{}", "[{'op':1}]", NULL,
         "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op "
         "of type string"},
    };
    run_cases(patch_json, cases, N_ELEMENTS(cases));
}

TEST(a_patch_does_not_reach_into_its_own_values)
{
    ARENA_AUTO a = arena_new();
    struct json *result = NULL;
    struct patch_error error;
    const struct json *patch = value_of(
        a, "[{'op':'add','path':'/a','value':{'x':1}},{'op':'add','path':'/b','value':{'x':1}},"
           "{'op':'copy','from':'/a','path':'/c'},{'op':'replace','path':'/a/x','value':2}]");
    assert_int_equal(patch_json(a, value_of(a, "{}"), patch, &result, &error), 0);
    assert_value(a, result, "{'a':{'x':2},'b':{'x':1},'c':{'x':1}}");
    assert_int_equal(patch->items[0].members[2].value.members[0].value.i, 1);
}

static struct json *many_operations(struct arena *a, size_t n, const char *operation)
{
    struct json *patch = json_new(a, json_array());
    const struct json *one = value_of(a, operation);
    for (size_t i = 0; i < n; i++)
        (void) json_push(a, patch, *one);
    return patch;
}

static void assert_refused(const char *old, size_t n, const char *operation, int kind)
{
    ARENA_AUTO a = arena_new();
    struct json *result = NULL;
    struct patch_error error;
    assert_true(patch_json(a, value_of(a, old), many_operations(a, n, operation), &result, &error) <
                0);
    assert_int_equal(error.kind, kind);
}

TEST(bounds_what_a_json_patch_may_cost)
{
    assert_refused("{}", JSON_PATCH_MAX_OPERATIONS + 1, "{'op':'test','path':'','value':{}}",
                   PATCH_TOO_LARGE);
    /* Doubles in size. */
    assert_refused("{'a':['some text']}", 100, "{'op':'copy','from':'/a','path':'/a/-'}",
                   PATCH_INVALID);
    /* Grows in depth. */
    assert_refused("{'a':{}}", 200, "{'op':'copy','from':'/a','path':'/a/a'}", PATCH_INVALID);
    assert_refused("{'a':{'b':{'c':{'d':{}}}}}", 40, "{'op':'copy','from':'','path':'/a/b/c/d'}",
                   PATCH_INVALID);
}

TEST(bounds_the_depth_that_values_bring)
{
    ARENA_AUTO a = arena_new();
    struct json deep = json_int(1);
    for (int i = 0; i < JSON_MAX_DEPTH - 2; i++) {
        struct json outer = json_array();
        (void) json_push(a, &outer, deep);
        deep = outer;
    }
    struct json *patch =
        value_of(a, "[{'op':'add','path':'/a','value':0},{'op':'add','path':'/b/c','value':0}]");
    json_get(&patch->items[0], STR("value"))[0] = deep;
    struct json *result = NULL;
    struct patch_error error;
    assert_int_equal(patch_json(a, value_of(a, "{'b':{}}"), patch, &result, &error), 0);
    json_get(&patch->items[1], STR("value"))[0] = deep;
    struct str text = json_text(a, result);
    assert_non_null(json_parse_quick(a, text));
    struct json outer = json_array();
    (void) json_push(a, &outer, deep);
    json_get(&patch->items[1], STR("value"))[0] = outer;
    assert_true(patch_json(a, value_of(a, "{'b':{}}"), patch, &result, &error) < 0);
}

TEST(applies_merge_patches)
{
    static const struct patch_case cases[] = {
        /* RFC 7386, appendix A, where the patch is an object. */
        {"{'a':'b'}", "{'a':'c'}", "{'a':'c'}", NULL},
        {"{'a':'b'}", "{'b':'c'}", "{'a':'b','b':'c'}", NULL},
        {"{'a':'b'}", "{'a':null}", "{}", NULL},
        {"{'a':'b','b':'c'}", "{'a':null}", "{'b':'c'}", NULL},
        {"{'a':['b']}", "{'a':'c'}", "{'a':'c'}", NULL},
        {"{'a':'c'}", "{'a':['b']}", "{'a':['b']}", NULL},
        {"{'a':{'b':'c'}}", "{'a':{'b':'d','c':null}}", "{'a':{'b':'d'}}", NULL},
        {"{'a':[{'b':'c'}]}", "{'a':[1]}", "{'a':[1]}", NULL},
        {"{'e':null}", "{'a':1}", "{'e':null,'a':1}", NULL},
        {"{}", "{'a':{'bb':{'ccc':null}}}", "{'a':{'bb':{}}}", NULL},
        /* Nulls inside of arrays. */
        {"{'a':[1]}", "{'a':[{'b':null,'c':1},null]}", "{'a':[{'c':1},null]}", NULL},
        {"{}", "{'a':[[{'b':null}]]}", "{'a':[[{}]]}", NULL},
        /* Recorded from kube-apiserver 1.36. */
        {"{'data':{'k':'v','x':'y'},'labels':{'a':'1','b':'2'}}",
         "{'data':{'k':null,'z':'1'},'labels':{'a':null}}",
         "{'data':{'x':'y','z':'1'},'labels':{'b':'2'}}", NULL},
        {"{'a':1}", "{}", "{'a':1}", NULL},
        {"{}", "[]", NULL,
         "error decoding patch: json: cannot unmarshal array into Go value of type "
         "map[string]interface {}"},
        {"{}", "'x'", NULL,
         "error decoding patch: json: cannot unmarshal string into Go value of type "
         "map[string]interface {}"},
        {"{}", "null", NULL, "Invalid JSON Patch"},
    };
    run_cases(patch_merge, cases, N_ELEMENTS(cases));
}

TEST(merges_large_maps)
{
    ARENA_AUTO a = arena_new();
    struct json old = json_object(), patch = json_object(), *result = NULL;
    struct patch_error error;
    for (int i = 0; i < 20000; i++) {
        struct str name = arena_printf(a, "k%d", i);
        (void) json_append_member(a, &old, name, json_int(i));
        (void) json_append_member(a, &patch, name, i % 2 ? json_null() : json_int(-i));
    }
    assert_int_equal(patch_merge(a, &old, &patch, &result, &error), 0);
    assert_int_equal(result->n, 10000);
    assert_int_equal(result->members[5000].value.i, -10000);
}

TEST(shows_values_as_go_does)
{
    ARENA_AUTO a = arena_new();
    const struct json *v = value_of(a, "{'b':[1,'x',null,true],'a':{'d':1.5},'c':{}}");
    assert_str(patch_go_text(a, v), "map[a:map[d:1.5] b:[1 x <nil> true] c:map[]]");
    assert_str(patch_go_syntax(a, v),
               "map[string]interface {}{\"a\":map[string]interface {}{\"d\":1.5}, "
               "\"b\":[]interface {}{1, \"x\", interface {}(nil), true}, "
               "\"c\":map[string]interface {}{}}");
}
