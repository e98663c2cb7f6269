/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>

#include "values.h"

#define CM(data) "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a'}" data "}"
#define DEVICE(spec) \
    "{'apiVersion':'example.org/v1','kind':'Device','metadata':{'name':'d'},'spec':" spec "}"

static struct server config_map_server(struct arena *a)
{
    return (struct server){
        .arena = a,
        .options = {.api_version = STR("v1"), .schema = schema_of(a, CONFIG_MAP_SCHEMA)}};
}

static struct server device_server(struct arena *a)
{
    return (struct server){.arena = a,
                           .options = {.api_version = STR("example.org/v1"),
                                       .schema = compile_text(a, device_schema)}};
}

static void must_apply(struct server *s, const char *manager, const char *config)
{
    if (apply(s, manager, /* force= */ false, config) < 0)
        fail_msg("%s: %.*s", config, STR_ARG(s->conflicts ? s->conflicts->field : s->error));
}

static void assert_conflicts(struct server *s, const char *message)
{
    BUF_AUTO b = {0};
    managed_conflicts_text(s->arena, s->conflicts, &b);
    assert_text(s->arena, buf_str(&b), message);
}

/* ---- recorded from kube-apiserver 1.36 ------------------------------------------------------ */

TEST(creates_and_updates)
{
    ARENA_AUTO a = arena_new();
    struct server s = config_map_server(a);
    const char *config = "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a','labels':{'"
                         "x':'y'}},'data':{'k':'1','l':'2'}}";
    must_apply(&s, "one", config);
    assert_managed(
        &s, "one Apply :01 {'f:data':{'f:k':{},'f:l':{}},'f:metadata':{'f:labels':{'f:x':{}}}}");
    must_apply(&s, "one", config);
    assert_managed(
        &s, "one Apply :01 {'f:data':{'f:k':{},'f:l':{}},'f:metadata':{'f:labels':{'f:x':{}}}}");
    must_apply(&s, "one", CM(",'data':{'k':'9'}"));
    assert_managed(&s, "one Apply :03 {'f:data':{'f:k':{}}}");
    assert_object(&s, CM(",'data':{'k':'9'}"));
    must_apply(&s, "one", CM(""));
    assert_managed(&s, "");
    assert_object(&s, CM(""));
}

TEST(conflicts_shares_and_forces)
{
    ARENA_AUTO a = arena_new();
    struct server s = config_map_server(a);
    must_apply(&s, "one", CM(",'data':{'k':'1','l':'2'}"));
    assert_int_equal(apply(&s, "two", false, CM(",'data':{'k':'other','l':'other'}")), -EEXIST);
    assert_conflicts(&s,
                     "Apply failed with 2 conflicts: conflicts with 'one':\n- .data.k\n- .data.l");
    /* The same value is shared; an object that did not change gives no time. */
    must_apply(&s, "two", CM(",'data':{'k':'1'}"));
    assert_managed(&s,
                   "two Apply {'f:data':{'f:k':{}}}\none Apply :01 {'f:data':{'f:k':{},'f:l':{}}}");
    assert_int_equal(apply(&s, "two", true, CM(",'data':{'k':'forced'}")), 0);
    assert_managed(&s, "one Apply :01 {'f:data':{'f:l':{}}}\ntwo Apply :04 {'f:data':{'f:k':{}}}");
    must_apply(&s, "one", CM(",'data':{'l':'2'}"));
    assert_managed(&s, "one Apply :01 {'f:data':{'f:l':{}}}\ntwo Apply :04 {'f:data':{'f:k':{}}}");
    must_apply(&s, "two", CM(",'data':{}"));
    assert_managed(&s, "one Apply :01 {'f:data':{'f:l':{}}}\ntwo Apply :06 {'f:data':{}}");
    assert_object(&s, CM(",'data':{'l':'2'}"));
    put(&s, "three", CM(",'data':{'l':'changed'}"));
    assert_managed(&s, "two Apply :06 {'f:data':{}}\nthree Update :07 {'f:data':{'f:l':{}}}");
    assert_int_equal(apply(&s, "one", false, CM(",'data':{'l':'2'}")), -EEXIST);
    assert_conflicts(&s, "Apply failed with 1 conflict: conflict with 'three' using v1: .data.l");
}

TEST(names_the_managers_of_conflicts_in_order)
{
    ARENA_AUTO a = arena_new();
    struct server s = config_map_server(a);
    must_apply(&s, "b", CM(",'data':{'x':'1'}"));
    must_apply(&s, "a", CM(",'data':{'x':'1','y':'1'}"));
    put(&s, "a", CM(",'data':{'x':'1','y':'1','z':'1'}"));
    assert_int_equal(apply(&s, "c", false, CM(",'data':{'x':'2','y':'2','z':'2'}")), -EEXIST);
    assert_conflicts(&s,
                     "Apply failed with 4 conflicts: conflicts with 'a':\n- .data.x\n- .data.y\n"
                     "conflicts with 'a' using v1:\n- .data.z\nconflicts with 'b':\n- .data.x");
}

TEST(an_updater_that_applies_has_two_entries)
{
    ARENA_AUTO a = arena_new();
    struct server s = config_map_server(a);
    const char *update = "golden Update :01 {'f:data':{'.':{},'f:a':{},'f:b':{}}}";
    put(&s, "golden", CM(",'data':{'a':'1','b':'2'}"));
    must_apply(&s, "golden", CM(",'data':{'a':'1'}"));
    assert_managed(&s, arena_printf(a, "golden Apply {'f:data':{'f:a':{}}}\n%s", update).p);
    must_apply(&s, "golden", CM(",'data':{}"));
    assert_managed(&s, arena_printf(a, "golden Apply {'f:data':{}}\n%s", update).p);
    must_apply(&s, "golden", CM(""));
    assert_managed(&s, update);
    must_apply(&s, "golden", CM(",'data':null"));
    assert_managed(&s, arena_printf(a, "golden Apply {'f:data':{}}\n%s", update).p);
    assert_object(&s, CM(",'data':{'a':'1','b':'2'}"));
}

TEST(merges_a_custom_resource_by_its_schema)
{
    ARENA_AUTO a = arena_new();
    struct server s = device_server(a);
    must_apply(&s, "one",
               DEVICE("{'serial':'AB-1','ports':[{'name':'a','addr':'1'}],'tags':['x'],'order':['p'"
                      "],'labels':{'k':'v'}}"));
    assert_managed(
        &s, "one Apply :01 "
            "{'f:spec':{'f:labels':{'f:k':{}},'f:order':{},'f:ports':{'k:{\\'name\\':\\'a\\'}':"
            "{'.':{},'f:addr':{},'f:name':{}}},'f:serial':{},'f:tags':{'v:\\'x\\'':{}}}}");
    schema_default(a, s.options.schema, s.object);
    must_apply(
        &s, "two",
        DEVICE(
            "{'serial':'AB-1','ports':[{'name':'b','addr':'2'}],'tags':['y'],'labels':{'l':'w'}}"));
    schema_default(a, s.options.schema, s.object);
    assert_object(
        &s,
        DEVICE(
            "{'enabled':true,'labels':{'k':'v','l':'w'},'mode':'active','order':['p'],'ports':"
            "[{'addr':'1','mtu':1500,'name':'a'},{'addr':'2','mtu':1500,'name':'b'}],'replicas':1,"
            "'serial':'AB-1','tags':['x','y']}"));
    const char *third = DEVICE("{'serial':'AB-1','ports':[{'name':'a','addr':'9'}],'order':['q']}");
    assert_int_equal(apply(&s, "two", false, third), -EEXIST);
    assert_conflicts(&s, "Apply failed with 2 conflicts: conflicts with 'one':\n- .spec.order\n- "
                         ".spec.ports[name='a'].addr");
    assert_int_equal(apply(&s, "two", true, third), 0);
    assert_managed(&s, "one Apply :01 "
                       "{'f:spec':{'f:labels':{'f:k':{}},'f:ports':{'k:{\\'name\\':\\'a\\'}':{'.':{"
                       "},'f:name':{}}},"
                       "'f:serial':{},'f:tags':{'v:\\'x\\'':{}}}}\n"
                       "two Apply :04 "
                       "{'f:spec':{'f:order':{},'f:ports':{'k:{\\'name\\':\\'a\\'}':{'.':{},'f:"
                       "addr':{},'f:name':{}}},"
                       "'f:serial':{}}}");
    /* The item that two gave up goes with the default nobody owns. */
    assert_object(
        &s,
        DEVICE("{'enabled':true,'labels':{'k':'v'},'mode':'active','order':['q'],'ports':"
               "[{'addr':'9','mtu':1500,'name':'a'}],'replicas':1,'serial':'AB-1','tags':['x']}"));
    must_apply(&s, "one", DEVICE("{'serial':'AB-1'}"));
    assert_managed(&s, "two Apply :04 "
                       "{'f:spec':{'f:order':{},'f:ports':{'k:{\\'name\\':\\'a\\'}':{'.':{},'f:"
                       "addr':{},'f:name':{}}},"
                       "'f:serial':{}}}\none Apply :05 {'f:spec':{'f:serial':{}}}");
    assert_object(&s, DEVICE("{'enabled':true,'mode':'active','order':['q'],'ports':[{'addr':'9','"
                             "mtu':1500,'name':'a'}],"
                             "'replicas':1,'serial':'AB-1'}"));
}

TEST(refuses_what_the_schema_does_not_take)
{
    static const struct {
        const char *config, *error;
    } cases[] = {
        {CM(",'nope':1"), "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .nope: "
                          "field not declared in schema"},
        {CM(",'data':{'k':1}"), "failed to create typed patch object (/a; /v1, Kind=ConfigMap): "
                                ".data.k: expected string, got "
                                "&value.valueUnstructured{Value:1}"},
        {CM(",'data':{'k':true}"), "failed to create typed patch object (/a; /v1, Kind=ConfigMap): "
                                   ".data.k: expected string, got "
                                   "&value.valueUnstructured{Value:true}"},
        {CM(",'data':'x'"), "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .data: "
                            "expected map, got &{x}"},
        {CM(",'immutable':'yes'"), "failed to create typed patch object (/a; /v1, Kind=ConfigMap): "
                                   ".immutable: expected boolean, got &{yes}"},
        {CM(",'data':{'k':1,'l':{}}"),
         "failed to create typed patch object (/a; /v1, Kind=ConfigMap): errors:\n  .data.k: "
         "expected string, got "
         "&value.valueUnstructured{Value:1}\n  .data.l: expected string, got "
         "&value.valueUnstructured{Value:map[string]interface {}{}}"},
        {"{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a','managedFields':[]}}",
         "metadata.managedFields must be nil"},
        {"{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a','managedFields':[{'manager':"
         "'x'}]}}",
         "metadata.managedFields must be nil"},
        {"{'apiVersion':'v1','kind':'ConfigMap','metadata':{'namespace':'n','name':'a','nope':1}}",
         "failed to create typed patch object (n/a; /v1, Kind=ConfigMap): .metadata.nope: field "
         "not declared in schema"},
    };
    ARENA_AUTO a = arena_new();
    struct server s = config_map_server(a);
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        assert_int_equal(apply(&s, "one", false, cases[i].config), -EINVAL);
        assert_text(a, s.error, cases[i].error);
    }
}

TEST(refuses_bad_lists)
{
    static const struct {
        const char *spec, *error;
    } cases[] = {
        {"{'ports':[{'name':'z'},{'name':'z'}]}",
         ".spec.ports: duplicate entries for key [name='z']"},
        {"{'ports':[{'addr':'z'}]}",
         ".spec.ports: element 0: associative list with keys has an element that omits all key "
         "fields "
         "['name'] (and doesn't have default values for any key fields)"},
        {"{'ports':[null]}",
         ".spec.ports: element 0: associative list with keys may not have a null element"},
        {"{'ports':['x']}",
         ".spec.ports: element 0: associative list with keys may not have non-map elements"},
        {"{'tags':['x','y','x']}", ".spec.tags: duplicate entries for key [='x']"},
        {"{'tags':[{}]}",
         ".spec.tags: element 0: associative list without keys has an element that's a map type"},
        {"{'tags':{}}", ".spec.tags: expected list, got &{map[]}"},
        {"{'cpus':'x'}", ".spec.cpus: expected numeric (int or float), got string"},
        {"{'order':['a',5]}",
         ".spec.order[1]: expected string, got &value.valueUnstructured{Value:5}"},
        {"{'port':[1]}", ".spec.port: expected any scalar, got &{[1]}"},
        {"{'ports':[{'name':'z','mtu':'x'}]}",
         ".spec.ports[name='z'].mtu: expected numeric (int or float), got string"},
    };
    ARENA_AUTO a = arena_new();
    struct server s = device_server(a);
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        assert_int_equal(apply(&s, "one", false, arena_printf(a, DEVICE("%s"), cases[i].spec).p),
                         -EINVAL);
        const char *prefix =
            "failed to create typed patch object (/d; example.org/v1, Kind=Device): ";
        struct str error = s.error;
        assert_true(str_starts_with(error, str_of(prefix)));
        /* The apostrophe in the words of one of them is no quote. */
        struct str expected = str_of(cases[i].error);
        BUF_AUTO b = {0};
        for (size_t k = 0; k < expected.n; k++) {
            bool is_word = k > 0 && (str_starts_with(str_from(expected, k), STR("'t have")) ||
                                     str_starts_with(str_from(expected, k), STR("'s a")));
            buf_append_char(&b, expected.p[k] == '\'' && !is_word ? '"' : expected.p[k]);
        }
        assert_str(str_from(error, strlen(prefix)), b.p);
    }
}

TEST(accepts_what_is_not_described)
{
    ARENA_AUTO a = arena_new();
    struct server s = device_server(a);
    must_apply(&s, "one",
               DEVICE("{'free':{'x':[{'y':1}],'z':{'w':null}},'template':{'apiVersion':'v1','kind':"
                      "'K','metadata':"
                      "{'name':'e'},'more':1},'port':'http','note':null}"));
    struct server t = {.arena = a, .options = {.api_version = STR("v1")}};
    must_apply(&t, "one", "{'metadata':{'name':'d'},'any':{'thing':['goes'],'and':1}}");
    must_apply(&t, "one", "{'metadata':{'name':'d'},'any':{'thing':['goes']}}");
    assert_object(&t, "{'metadata':{'name':'d'},'any':{'thing':['goes']}}");
}

TEST(status_applies_through_its_subresource)
{
    static const char *const status[] = {"status", NULL};
    ARENA_AUTO a = arena_new();
    struct server s = device_server(a);
    s.options.reset_fields = status;
    must_apply(&s, "one",
               "{'metadata':{'name':'d'},'spec':{'serial':'A'},'status':{'phase':'Up'}}");
    assert_managed(&s, "one Apply :01 {'f:spec':{'f:serial':{}}}");
    assert_object(&s, "{'metadata':{'name':'d'},'spec':{'serial':'A'}}");
    s.options.reset_fields = NULL;
    s.options.only_status = true;
    s.options.subresource = STR("status");
    must_apply(&s, "one",
               "{'metadata':{'name':'d','labels':{'l':'m'}},'spec':{'serial':'B'},"
               "'status':{'phase':'Up','conditions':[{'type':'Ready','status':'True'}]}}");
    assert_managed(
        &s, "one Apply :01 {'f:spec':{'f:serial':{}}}\n"
            "one Apply/status :02 "
            "{'f:status':{'f:conditions':{'k:{\\'type\\':\\'Ready\\'}':{'.':{},'f:status':{},"
            "'f:type':{}}},'f:phase':{}}}");
    assert_object(&s, "{'metadata':{'name':'d'},'spec':{'serial':'A'},'status':{'phase':'Up','"
                      "conditions':[{'type':'Ready',"
                      "'status':'True'}]}}");
    assert_int_equal(
        apply(&s, "two", false,
              "{'metadata':{'name':'d'},'status':{'conditions':[{'type':'Ready','status':'False'},"
              "{'type':'Other','status':'True'}]}}"),
        -EEXIST);
    assert_conflicts(&s,
                     "Apply failed with 1 conflict: conflict with 'one' with subresource 'status': "
                     ".status.conditions[type='Ready'].status");
}

/* ---- beyond the recordings ------------------------------------------------------------------ */

TEST(untracked_objects_conflict_with_before_first_apply)
{
    ARENA_AUTO a = arena_new();
    struct server s = config_map_server(a);
    s.object = value_of(a, CM(",'data':{'a':'1','b':'1'}"));
    assert_int_equal(apply(&s, "one", false, CM(",'data':{'a':'2'}")), -EEXIST);
    assert_conflicts(
        &s, "Apply failed with 1 conflict: conflict with 'before-first-apply' using v1: .data.a");
    must_apply(&s, "one", CM(",'data':{'a':'1'}"));
    assert_managed(&s, "one Apply {'f:data':{'f:a':{}}}\nbefore-first-apply Update :02 "
                       "{'f:data':{'.':{},'f:a':{},'f:b':{}}}");
    assert_int_equal(apply(&s, "one", true, CM(",'data':{'a':'2'}")), 0);
    assert_managed(&s, "one Apply :03 {'f:data':{'f:a':{}}}\nbefore-first-apply Update :02 "
                       "{'f:data':{'.':{},'f:b':{}}}");
}

#define ANNOTATED(data, value) \
    "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a','annotations':{'kubectl." \
    "kubernetes.io/last-applied-configuration':" value "}},'data':" data "}"

TEST(kubectl_goes_on_from_client_side_apply)
{
    ARENA_AUTO a = arena_new();
    struct server s = config_map_server(a);
    struct str object = arena_printf(
        a, ANNOTATED("{'a':'1','b':'1'}", "'%s'"),
        "{\\'apiVersion\\':\\'v1\\',\\'kind\\':\\'ConfigMap\\',\\'metadata\\':{\\'name\\':\\'a\\'},"
        "\\'data\\':{\\'a\\':\\'1\\',\\'b\\':\\'0\\'}}");
    put(&s, "kubectl-client-side-apply", object.p);
    /* Anybody else conflicts; kubectl may change what it set before and nobody touched since. */
    assert_int_equal(apply(&s, "one", false, CM(",'data':{'a':'2'}")), -EEXIST);
    assert_int_equal(apply(&s, "kubectl", false, CM(",'data':{'a':'2','b':'2'}")), -EEXIST);
    assert_conflicts(&s, "Apply failed with 1 conflict: conflict with 'kubectl-client-side-apply' "
                         "using v1: .data.b");
    must_apply(&s, "kubectl", CM(",'data':{'a':'2'}"));
    assert_str(json_str(json_get(json_at(s.object, "metadata", "annotations", NULL),
                                 STR("kubectl.kubernetes.io/last-applied-configuration"))),
               "{\"apiVersion\":\"v1\",\"data\":{\"a\":\"2\"},\"kind\":\"ConfigMap\",\"metadata\":{"
               "\"name\":\"a\"}}\n");
}

TEST(keeps_the_order_of_lists)
{
    static const struct {
        const char *live, *config, *merged;
    } cases[] = {
        {"['a','b','c']", "['c','a']", "['b','c','a']"},
        {"['a','b','c']", "['a','c']", "['a','b','c']"},
        {"['b','a','x']", "['a','b','n']", "['a','x','b','n']"},
        {"['a','b','x']", "['b','a','n']", "['b','x','a','n']"},
        {"['a']", "['n','a']", "['n','a']"},
        {"['a','b']", "['n']", "['a','b','n']"},
        {"[]", "['n','m']", "['n','m']"},
        {"['a','b']", "[]", "['a','b']"},
        {"['b','y','b','z']", "['b','n']", "['b','y','n','z']"},
        {"['a','b','c','d']", "['d','c','b','a']", "['d','c','b','a']"},
        {"['a','1','b','2','c','3']", "['c','b','a']", "['1','2','c','3','b','a']"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        struct server s = device_server(a);
        s.object = value_of(a, arena_printf(a, DEVICE("{'tags':%s}"), cases[i].live).p);
        assert_int_equal(
            apply(&s, "one", true, arena_printf(a, DEVICE("{'tags':%s}"), cases[i].config).p), 0);
        assert_value(a, json_at(s.object, "spec", "tags", NULL), cases[i].merged);
    }
}

TEST(keys_with_defaults_may_be_left_out)
{
    ARENA_AUTO a = arena_new();
    struct server s = {
        .arena = a,
        .options = {.api_version = STR("v1"),
                    .schema = schema_of(a, "{'type':'object','properties':{'ports':{'type':'array',"
                                           "'x-kubernetes-list-type':'map',"
                                           "'x-kubernetes-list-map-keys':['port','protocol'],'"
                                           "items':{'type':'object','properties':"
                                           "{'port':{'type':'integer'},'protocol':{'type':'string',"
                                           "'default':'TCP'},'x':" STRING "}}}}}")}};
    must_apply(&s, "one", "{'metadata':{'name':'a'},'ports':[{'port':80,'x':'1'},{'port':9}]}");
    assert_managed(&s,
                   "one Apply :01 "
                   "{'f:ports':{'k:{\\'port\\':9,\\'protocol\\':\\'TCP\\'}':{'.':{},'f:port':{}},"
                   "'k:{\\'port\\':80,\\'protocol\\':\\'TCP\\'}':{'.':{},'f:port':{},'f:x':{}}}}");
    must_apply(&s, "two",
               "{'metadata':{'name':'a'},'ports':[{'port':80,'protocol':'TCP'},{'port':80,'"
               "protocol':'UDP'}]}");
    assert_object(&s, "{'metadata':{'name':'a'},'ports':[{'port':80,'x':'1','protocol':'TCP'},{'"
                      "port':9},{'port':80,'protocol':'UDP'}]}");
}

TEST(prunes_only_what_it_owned_alone)
{
    ARENA_AUTO a = arena_new();
    struct server s = device_server(a);
    must_apply(&s, "one",
               DEVICE("{'labels':{'a':'1','b':'1'},'ports':[{'name':'p','addr':'1'},{'name':'q'}],'"
                      "free':{'x':{'y':1}}}"));
    must_apply(&s, "two", DEVICE("{'labels':{'b':'1'},'ports':[{'name':'q','mtu':1}]}"));
    put(&s, "three",
        DEVICE("{'labels':{'a':'1','b':'1','c':'1'},'ports':[{'name':'p','addr':'1','mtu':3},{'"
               "name':'q','mtu':1}],"
               "'free':{'x':{'y':1,'z':1}}}"));
    must_apply(&s, "one", DEVICE("{'serial':'AB'}"));
    /* An item or free member goes with all that is in it unless somebody owns it itself. */
    assert_object(
        &s,
        DEVICE(
            "{'labels':{'b':'1','c':'1'},'ports':[{'name':'q','mtu':1}],'free':{},'serial':'AB'}"));
}

TEST(an_empty_map_is_kept_when_claimed)
{
    ARENA_AUTO a = arena_new();
    struct server s = config_map_server(a);
    must_apply(&s, "one", CM(",'data':{'k':'1'}"));
    must_apply(&s, "one", CM(",'data':{}"));
    assert_object(&s, CM(",'data':{}"));
}

TEST(applying_changes_no_input)
{
    ARENA_AUTO a = arena_new();
    struct server s = device_server(a);
    must_apply(&s, "one",
               DEVICE("{'labels':{'a':'1'},'tags':['x'],'ports':[{'name':'p','addr':'1'}]}"));
    const struct json *old = s.object;
    const struct json before = json_clone(a, old);
    const char *text =
        DEVICE("{'labels':{'b':'1'},'tags':['y'],'ports':[{'name':'p','addr':'2'}]}");
    const struct json *config = value_of(a, text);
    assert_int_equal(apply_value(&s, "two", true, config), 0);
    assert_true(json_equal(old, &before));
    assert_value(a, config, text);
}

/* ---- laws --------------------------------------------------------------------------------- */

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 16;
}

/* Fields of the device, all with names that begin with the prefix where names are free. */
static struct json *random_device(struct arena *a, uint32_t *seed, const char *prefix,
                                  const char *serial)
{
    BUF_AUTO b = {0};
    buf_printf(&b, "{'metadata':{'name':'d','labels':{'%s':'1'}},'spec':{", prefix);
    if (serial)
        buf_printf(&b, "'serial':'%s',", serial);
    buf_printf(&b, "'labels':{");
    for (uint32_t i = 0, n = 1 + next_random(seed) % 3; i < n; i++)
        buf_printf(&b, "%s'%s%u':'%u'", i ? "," : "", prefix, i, next_random(seed) % 3);
    buf_printf(&b, "},'tags':[");
    for (uint32_t i = 0, n = next_random(seed) % 4; i < n; i++)
        buf_printf(&b, "%s'%s%u'", i ? "," : "", prefix, (n - i));
    buf_printf(&b, "],'ports':[");
    for (uint32_t i = 0, n = 1 + next_random(seed) % 3; i < n; i++)
        buf_printf(&b, "%s{'name':'%s%u','mtu':%u}", i ? "," : "", prefix, i,
                   next_random(seed) % 9);
    buf_printf(&b, "],'free':{'%s':{'x':%u,'l':[%u]}}}}", prefix, next_random(seed),
               next_random(seed));
    return value_of(a, b.p);
}

TEST(applying_twice_changes_nothing)
{
    uint32_t seed = 3;
    ARENA_AUTO a = arena_new();
    for (int round = 0; round < 100; round++) {
        arena_reset(a);
        struct server s = device_server(a);
        const struct json *config = random_device(a, &seed, "a", "A");
        assert_int_equal(apply_value(&s, "one", false, config), 0);
        put(&s, "other", "{'metadata':{'name':'d'},'spec':{'mode':'off','tags':['t']}}");
        assert_int_equal(apply_value(&s, "one", true, config), 0);
        struct json first = json_clone(a, s.object);
        assert_int_equal(apply_value(&s, "one", false, config), 0);
        assert_true(json_equal(&first, s.object));
    }
}

/* Applying first one and then the other gives both, in either order, and each can be taken back. */
TEST(managers_that_do_not_overlap_add_up)
{
    uint32_t seed = 11;
    ARENA_AUTO a = arena_new();
    for (int round = 0; round < 100; round++) {
        arena_reset(a);
        struct server s = device_server(a), t = device_server(a);
        const struct json *x = random_device(a, &seed, "a", "A"),
                          *y = random_device(a, &seed, "b", NULL);
        const struct json *none = value_of(a, "{'metadata':{'name':'d'}}");
        assert_int_equal(apply_value(&s, "one", false, x), 0);
        struct json alone = json_clone(a, s.object);
        assert_int_equal(apply_value(&s, "two", false, y), 0);
        assert_int_equal(apply_value(&t, "two", false, y), 0);
        assert_int_equal(apply_value(&t, "one", false, x), 0);
        struct fieldset *of_s = fieldset_of(a, s.object, s.options.schema);
        assert_true(fieldset_equal(of_s, fieldset_of(a, t.object, s.options.schema)));
        struct fieldset *both = fieldset_union(a, fieldset_of(a, x, s.options.schema),
                                               fieldset_of(a, y, s.options.schema));
        assert_true(fieldset_is_empty(fieldset_difference(a, both, of_s)));
        assert_int_equal(apply_value(&s, "two", false, none), 0);
        assert_true(json_equal(json_at(&alone, "spec", "labels", NULL),
                               json_at(s.object, "spec", "labels", NULL)));
        assert_true(json_equal(json_at(&alone, "spec", "ports", NULL),
                               json_at(s.object, "spec", "ports", NULL)));
        assert_true(json_equal(json_at(&alone, "spec", "free", NULL),
                               json_at(s.object, "spec", "free", NULL)));
    }
}

TEST(long_lists_merge_quickly)
{
    ARENA_AUTO a = arena_new();
    struct server s = device_server(a);
    for (int round = 0; round < 3; round++) {
        struct json *config = value_of(a, DEVICE("{}")), ports = json_array();
        for (int i = 0; i < 10000; i++) {
            struct json port = json_object();
            (void) json_append_member(
                a, &port, STR("name"),
                json_string(arena_printf(a, "p%d", (i * 7919) % 10000 + round * 5000)));
            (void) json_push(a, &ports, port);
        }
        (void) json_set(a, json_get(config, STR("spec")), STR("ports"), ports);
        assert_int_equal(apply_value(&s, round ? "n" : "m", false, config), 0);
    }
    assert_int_equal(json_at(s.object, "spec", "ports", NULL)->n, 20000);
}
