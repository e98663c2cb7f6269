/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "schema/patch.h"

#include "values.h"

/* A pod template's containers, as native kinds describe them. */
static const char workload_schema[] =
    "{'type':'object','properties':{'spec':{'type':'object','properties':{"
    "'strategy':{'type':'object','x-kubernetes-patch-strategy':'retainKeys','properties':{'type'"
    ":" STRING ",'rollingUpdate':{'type':'object','properties':{'maxSurge':" STRING "}}}},"
    "'tolerations':{'type':'array','items':{'type':'object','properties':{'key':" STRING "}}},"
    "'containers':{'type':'array','x-kubernetes-patch-strategy':'merge','x-kubernetes-patch-merge-"
    "key':'name',"
    "'items':{'type':'object','properties':{'name':" STRING ",'image':" STRING ","
    "'env':{'type':'array','x-kubernetes-patch-strategy':'merge','x-kubernetes-patch-merge-key':'"
    "name',"
    "'items':{'type':'object','properties':{'name':" STRING ",'value':" STRING "}}},"
    "'ports':{'type':'array','x-kubernetes-patch-strategy':'merge','x-kubernetes-patch-merge-key':'"
    "containerPort',"
    "'items':{'type':'object','properties':{'containerPort':{'type':'integer'},'protocol':" STRING
    "}}}}}}"
    "}},'data':{'type':'object','additionalProperties':" STRING "}}}";

struct strategic_case {
    const char *old, *patch, *result; /* result NULL: refused */
    const char *message;
    int kind;
};

static void run_cases(const struct strategic_case *cases, size_t n)
{
    ARENA_AUTO a = arena_new();
    const struct schema *schema = schema_of(a, workload_schema);
    for (size_t i = 0; i < n; i++) {
        struct json *result = NULL, *old = value_of(a, cases[i].old),
                    *patch = value_of(a, cases[i].patch);
        struct patch_error error = {0};
        int r = patch_strategic(a, old, patch, schema, &result, &error);
        if (cases[i].result && r < 0)
            fail_msg("%s: %.*s", cases[i].patch, STR_ARG(error.message));
        if (cases[i].result) {
            assert_value(a, result, cases[i].result);
        } else {
            assert_true(r < 0);
            assert_str(error.message, cases[i].message);
            assert_int_equal(error.kind, cases[i].kind);
        }
        assert_value(a, old, cases[i].old);
        assert_value(a, patch, cases[i].patch);
    }
}

#define C1 "{'name':'c1','image':'i1','env':[{'name':'A','value':'1'},{'name':'B','value':'2'}]}"
#define C2 "{'name':'c2','image':'i2'}"
#define BOTH "{'spec':{'containers':[" C1 "," C2 "]}}"

/* Recorded from kube-apiserver 1.36. */
TEST(merges_lists_by_key)
{
    static const struct strategic_case cases[] = {
        {BOTH,
         "{'spec':{'containers':[{'name':'c1','image':'new','env':[{'name':'C','value':'3'},{'name'"
         ":'A','value':'9'}]}]}}",
         "{'spec':{'containers':[{'name':'c1','image':'new','env':[{'name':'C','value':'3'},{'name'"
         ":'A','value':'9'},"
         "{'name':'B','value':'2'}]}," C2 "]}}",
         NULL, 0},
        {BOTH, "{'spec':{'containers':[{'name':'c2','$patch':'delete'}]}}",
         "{'spec':{'containers':[" C1 "]}}", NULL, 0},
        {BOTH,
         "{'spec':{'containers':[{'name':'c1','env':[{'$patch':'replace'},{'name':'Z','value':'0'}]"
         "}]}}",
         "{'spec':{'containers':[{'name':'c1','image':'i1','env':[{'name':'Z','value':'0'}]}," C2
         "]}}",
         NULL, 0},
        {"{'spec':{'containers':[" C2 "]}}",
         "{'spec':{'$setElementOrder/"
         "containers':[{'name':'c9'},{'name':'c2'}],'containers':[{'name':'c9','image':'nine'}]}}",
         "{'spec':{'containers':[{'name':'c9','image':'nine'}," C2 "]}}", NULL, 0},
        {BOTH, "{'spec':{'containers':[{'image':'noname'}]}}", NULL,
         "map: map[image:noname] does not contain declared merge key: name", PATCH_FAILED},
        {BOTH, "{'spec':{'containers':[{'name':'c1','$patch':'nope'}]}}", NULL,
         "unknown patch type: nope in map: map[$patch:nope name:c1]", PATCH_FAILED},
        {BOTH, "{'spec':{'containers':[{'name':'c1','$patch':'merge'}]}}", NULL,
         "merging lists cannot yet be specified in the patch", PATCH_FAILED},
        {BOTH, "{'spec':{'containers':[{'$patch':'delete'}]}}", NULL,
         "map: map[$patch:delete] does not contain declared merge key: name", PATCH_FAILED},
        {BOTH, "[]", NULL,
         "json: cannot unmarshal array into Go value of type map[string]interface {}",
         PATCH_BAD_REQUEST},
    };
    run_cases(cases, N_ELEMENTS(cases));
}

TEST(merges_maps)
{
    static const struct strategic_case cases[] = {
        {"{'data':{'a':'1'}}", "{'data':{'b':'2','a':null}}", "{'data':{'b':'2'}}", NULL, 0},
        {"{'data':{'a':'1'}}", "{'data':{'$patch':'replace','only':'x'}}", "{'data':{'only':'x'}}",
         NULL, 0},
        {"{'data':{'a':'1'}}", "{'$patch':'delete'}", "{}", NULL, 0},
        {"{'data':{'a':'1'}}", "{'data':{'$patch':'replace','b':null}}", "{'data':{'b':null}}",
         NULL, 0},
        {"{}", "{'data':{'$patch':'replace','b':'1'}}", "{}", NULL, 0},
        {"{'data':{'a':'1'}}", "{'data':{'$patch':'delete'}}", "{'data':{}}", NULL, 0},
        {"{'data':{'a':'1'}}", "{'data':{'$patch':'bad'}}", NULL,
         "unknown patch type: bad in map: map[$patch:bad]", PATCH_FAILED},
        {"{'data':{'a':'1'}}", "{'data':null,'spec':null}", "{}", NULL, 0},
        {"{'data':{'a':'1'}}", "{}", "{'data':{'a':'1'}}", NULL, 0},
        {"{'data':{'a':'1','b':'2'}}", "{'data':{'a':null,'c':null}}", "{'data':{'b':'2'}}", NULL,
         0},
        {"{'data':{'a':null,'b':'2'}}", "{'data':{'b':'3'}}", "{'data':{'a':null,'b':'3'}}", NULL,
         0},
        {"{}",
         "{'spec':{'strategy':{'type':null,'$retainKeys':['x']},'containers':[{'$patch':'delete','"
         "name':'a'}]}}",
         "{'spec':{'strategy':{'$retainKeys':['x']},'containers':[]}}", NULL, 0},
        {"{'data':{}}", "{'data':'x'}", NULL, "cannot restore map from string", PATCH_WRONG_TYPE},
        {"{}", "{'spec':5}", NULL, "cannot restore struct from: int64", PATCH_WRONG_TYPE},
        {"{'spec':{}}", "{'spec':{'containers':{}}}", NULL, "cannot restore slice from map",
         PATCH_WRONG_TYPE},
    };
    run_cases(cases, N_ELEMENTS(cases));
}

TEST(names_the_patch_of_a_wrong_type)
{
    ARENA_AUTO a = arena_new();
    struct json *result = NULL;
    struct patch_error error = {0};
    assert_true(patch_strategic(a, value_of(a, "{'data':{'a':'1'}}"), value_of(a, "{'data':'x'}"),
                                schema_of(a, workload_schema), &result, &error) < 0);
    assert_str(error.value, "map[data:x]");
}

TEST(keeps_only_retained_keys)
{
    static const struct strategic_case cases[] = {
        {"{'spec':{'strategy':{'type':'RollingUpdate','rollingUpdate':{'maxSurge':'1'}}}}",
         "{'spec':{'strategy':{'$retainKeys':['type'],'type':'Recreate'}}}",
         "{'spec':{'strategy':{'type':'Recreate'}}}", NULL, 0},
        {"{'spec':{'strategy':{'type':'a'}}}",
         "{'spec':{'strategy':{'$retainKeys':['type'],'rollingUpdate':{}}}}", NULL,
         "invalid patch format of $retainKeys", PATCH_BAD_REQUEST},
        {"{'spec':{'strategy':{'type':'a'}}}", "{'spec':{'strategy':{'$retainKeys':'type'}}}", NULL,
         "invalid patch format of $retainKeys", PATCH_BAD_REQUEST},
    };
    run_cases(cases, N_ELEMENTS(cases));
}

TEST(merges_metadata_whatever_the_kind_says)
{
    static const struct strategic_case cases[] = {
        {"{'metadata':{'finalizers':['a']}}", "{'metadata':{'finalizers':['b']}}",
         "{'metadata':{'finalizers':['b','a']}}", NULL, 0},
        {"{'metadata':{'finalizers':['b','a']}}",
         "{'metadata':{'$deleteFromPrimitiveList/finalizers':['a']}}",
         "{'metadata':{'finalizers':['b']}}", NULL, 0},
        {"{'metadata':{}}", "{'metadata':{'$deleteFromPrimitiveList/finalizers':['a']}}",
         "{'metadata':{}}", NULL, 0},
        {"{'metadata':{'finalizers':['a','b','c']}}",
         "{'metadata':{'$setElementOrder/finalizers':['c','a','d'],'finalizers':['d']}}",
         "{'metadata':{'finalizers':['b','c','a','d']}}", NULL, 0},
        {"{'metadata':{'finalizers':['a','b','c']}}",
         "{'metadata':{'$setElementOrder/finalizers':['c','b','a']}}",
         "{'metadata':{'finalizers':['c','b','a']}}", NULL, 0},
        {"{'metadata':{'ownerReferences':[{'uid':'u-1','kind':'K'}]}}",
         "{'metadata':{'ownerReferences':[{'uid':'u-2','name':'y'}]}}",
         "{'metadata':{'ownerReferences':[{'uid':'u-2','name':'y'},{'uid':'u-1','kind':'K'}]}}",
         NULL, 0},
        {"{'metadata':{'ownerReferences':[{'uid':'u-2'},{'uid':'u-1'}]}}",
         "{'metadata':{'ownerReferences':[{'uid':'u-1','$patch':'delete'}]}}",
         "{'metadata':{'ownerReferences':[{'uid':'u-2'}]}}", NULL, 0},
        {"{'metadata':{'labels':{'app':'d'}}}",
         "{'metadata':{'labels':{'$patch':'replace','only':'me'}}}",
         "{'metadata':{'labels':{'only':'me'}}}", NULL, 0},
        {"{'metadata':{'finalizers':['a'],'ownerReferences':[]}}",
         "{'metadata':{'finalizers':null,'ownerReferences':null}}", "{'metadata':{}}", NULL, 0},
    };
    run_cases(cases, N_ELEMENTS(cases));
}

TEST(orders_lists)
{
    static const struct strategic_case cases[] = {
        /* What the patch does not name stays before what stood behind it. */
        {"{'spec':{'containers':[{'name':'a'},{'name':'b'},{'name':'c'},{'name':'d'}]}}",
         "{'spec':{'containers':[{'name':'d'},{'name':'b'}]}}",
         "{'spec':{'containers':[{'name':'a'},{'name':'c'},{'name':'d'},{'name':'b'}]}}", NULL, 0},
        {"{'spec':{'containers':[{'name':'a'}]}}",
         "{'spec':{'$setElementOrder/containers':[{'name':'b'}],'containers':[{'name':'x'}]}}",
         NULL,
         "The order in patch list:\n[map[name:x]]\n doesn't match $setElementOrder "
         "list:\n[map[name:b]]\n",
         PATCH_FAILED},
        {"{'spec':{'containers':[{'name':'a'}]}}", "{'spec':{'$setElementOrder/containers':{}}}",
         NULL, "invalid patch format of $setElementOrder", PATCH_BAD_REQUEST},
        {"{'spec':{}}", "{'spec':{'$setElementOrder':[]}}", NULL,
         "invalid patch format of $setElementOrder", PATCH_BAD_REQUEST},
        {"{'spec':{}}", "{'spec':{'$deleteFromPrimitiveList':[]}}", NULL,
         "invalid patch format of $deleteFromPrimitiveList", PATCH_BAD_REQUEST},
        {"{'spec':{}}", "{'spec':{'$setElementOrder/containers':[{'name':'b'}]}}", "{'spec':{}}",
         NULL, 0},
        {"{'spec':{}}",
         "{'spec':{'$setElementOrder/"
         "containers':[{'name':'b'},{'name':'a'}],'containers':[{'name':'b'},{'name':'a'}]}}",
         "{'spec':{'containers':[{'name':'b'},{'name':'a'}]}}", NULL, 0},
        /* A list without merge key is replaced by what the patch has, directives too. */
        {"{'spec':{'tolerations':[{'key':'a'}]}}",
         "{'spec':{'tolerations':[{'key':'a','$patch':'delete'},{'key':'c'}]}}",
         "{'spec':{'tolerations':[{'key':'a','$patch':'delete'},{'key':'c'}]}}", NULL, 0},
        {"{'spec':{'tolerations':[{'key':'a'},{'key':'b'}]}}",
         "{'spec':{'tolerations':[{'key':'c'}]}}", "{'spec':{'tolerations':[{'key':'c'}]}}", NULL,
         0},
        {"{'metadata':{'finalizers':['a']}}", "{'metadata':{'finalizers':[['b']]}}", NULL,
         "lists of lists are not supported", PATCH_INVALID},
        {"{'metadata':{'finalizers':['a']}}", "{'metadata':{'finalizers':[{'b':1}]}}", NULL,
         "list element types are not identical: [[a] [map[b:1]]]", PATCH_FAILED},
        {"{'spec':{'containers':[{'name':'a','ports':[{'containerPort':80}]}]}}",
         "{'spec':{'containers':[{'name':'a','ports':[{'containerPort':80,'protocol':'UDP'},{'"
         "containerPort':81}]}]}}",
         "{'spec':{'containers':[{'name':'a','ports':[{'containerPort':80,'protocol':'UDP'},{'"
         "containerPort':81}]}]}}",
         NULL, 0},
    };
    run_cases(cases, N_ELEMENTS(cases));
}

TEST(merges_long_lists)
{
    ARENA_AUTO a = arena_new();
    struct json list = json_array(), change = json_array();
    for (int i = 0; i < 10000; i++) {
        struct json item = json_object();
        (void) json_append_member(a, &item, STR("name"), json_string(arena_printf(a, "c%d", i)));
        (void) json_push(a, &list, item);
        struct json again = json_clone(a, &item);
        (void) json_append_member(a, &again, STR("image"), json_string(STR("x")));
        (void) json_insert(a, &change, i % 2 ? 0 : change.n, again);
    }
    struct json *old = value_of(a, "{'spec':{}}"), *patch = value_of(a, "{'spec':{}}"),
                *result = NULL;
    (void) json_set(a, json_get(old, STR("spec")), STR("containers"), list);
    (void) json_set(a, json_get(patch, STR("spec")), STR("containers"), change);
    struct patch_error error = {0};
    assert_int_equal(patch_strategic(a, old, patch, schema_of(a, workload_schema), &result, &error),
                     0);
    const struct json *merged = json_at(result, "spec", "containers", NULL);
    assert_true(json_equal(merged, &change));
}

TEST(merges_wide_maps)
{
    ARENA_AUTO a = arena_new();
    struct json data = json_object(), change = json_object();
    for (int i = 0; i < 20000; i++) {
        struct str name = arena_printf(a, "k%d", i);
        (void) json_append_member(a, &data, name, json_string(STR("a")));
        (void) json_append_member(a, &change, name, i % 2 ? json_null() : json_string(STR("b")));
    }
    (void) json_append_member(a, &change, STR("new"), json_string(STR("c")));
    struct json *old = value_of(a, "{}"), *patch = value_of(a, "{}"), *result = NULL;
    (void) json_set(a, old, STR("data"), data);
    (void) json_set(a, patch, STR("data"), change);
    struct patch_error error = {0};
    assert_int_equal(patch_strategic(a, old, patch, schema_of(a, workload_schema), &result, &error),
                     0);
    const struct json *merged = json_get(result, STR("data"));
    assert_int_equal(merged->n, 10001);
    assert_str(json_str(&merged->members[9999].key), "k19998");
    assert_str(json_str(&merged->members[9999].value), "b");
    assert_str(json_str(&merged->members[10000].value), "c");
}
