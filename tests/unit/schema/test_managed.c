/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>

#include "values.h"

#define CM(meta, rest) \
    "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a'" meta "}" rest "}"

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

/* What a client gets back and sends again with its own data. */
static void change(struct server *s, const char *manager, const char *data)
{
    tick(s, manager);
    struct json *object = json_new(s->arena, json_clone(s->arena, s->object));
    (void) json_set(s->arena, object, STR("data"), *value_of(s->arena, data));
    managed_update(s->arena, s->object, object, &s->options);
    s->object = object;
}

/* ---- recorded from kube-apiserver 1.36 ------------------------------------------------------ */

TEST(a_create_owns_what_it_sets)
{
    ARENA_AUTO a = arena_new();
    struct server s = config_map_server(a);
    put(&s, "mgr",
        CM(",'namespace':'n','uid':'u','resourceVersion':'1','creationTimestamp':'t','generation':"
           "1,'labels':{'x':'y'},"
           "'generateName':'g-','finalizers':['example.org/"
           "f'],'ownerReferences':[{'kind':'Owner','uid':'u-1'}]",
           ",'data':{'a':'1'}"));
    assert_managed(
        &s, "mgr Update :01 {'f:data':{'.':{},'f:a':{}},'f:metadata':{'f:finalizers':{'.':{},"
            "'v:\\'example.org/f\\'':{}},'f:generateName':{},'f:labels':{'.':{},'f:x':{}},"
            "'f:ownerReferences':{'.':{},'k:{\\'uid\\':\\'u-1\\'}':{}}}}");
}

TEST(an_entry_is_written_as_kubernetes_writes_it)
{
    ARENA_AUTO a = arena_new();
    struct server s = config_map_server(a);
    s.options.subresource = STR("status");
    put(&s, "m", CM("", ",'data':{'a':'1'}"));
    const struct json *managed = json_at(s.object, "metadata", "managedFields", NULL);
    assert_text(
        a, json_text(a, managed),
        "[{'manager':'m','operation':'Update','apiVersion':'v1','time':'2026-01-01T00:00:01Z',"
        "'fieldsType':'FieldsV1','fieldsV1':{'f:data':{'.':{},'f:a':{}}},'subresource':'status'}]");
}

TEST(an_update_moves_ownership)
{
    ARENA_AUTO a = arena_new();
    struct server s = config_map_server(a);
    put(&s, "mgr", CM(",'labels':{'x':'y'},'finalizers':['f']", ",'data':{'a':'1'}"));
    put(&s, "other", CM(",'finalizers':['f']", ",'data':{'a':'1','b':'2'}"));
    assert_managed(
        &s, "mgr Update :01 "
            "{'f:data':{'.':{},'f:a':{}},'f:metadata':{'f:finalizers':{'.':{},'v:\\'f\\'':{}}}}\n"
            "other Update :02 {'f:data':{'f:b':{}}}");
    /* Who only removes owns nothing and ages nobody. */
    put(&s, "third", CM(",'finalizers':['f']", ",'data':{'b':'2'}"));
    assert_managed(
        &s, "mgr Update :01 {'f:data':{},'f:metadata':{'f:finalizers':{'.':{},'v:\\'f\\'':{}}}}\n"
            "other Update :02 {'f:data':{'f:b':{}}}");
    put(&s, "third", CM(",'finalizers':['f']", ",'data':{'b':'3'}"));
    assert_managed(
        &s, "mgr Update :01 {'f:data':{},'f:metadata':{'f:finalizers':{'.':{},'v:\\'f\\'':{}}}}\n"
            "third Update :04 {'f:data':{'f:b':{}}}");
}

TEST(the_same_manager_again_keeps_one_entry)
{
    ARENA_AUTO a = arena_new();
    struct server s = config_map_server(a);
    put(&s, "m", CM("", ",'data':{'k':'v','x':'y'}"));
    put(&s, "m", CM("", ",'data':{'c':'w','k':'w','m':'1'}"));
    assert_managed(&s, "m Update :02 {'f:data':{'.':{},'f:c':{},'f:k':{},'f:m':{}}}");
    put(&s, "m", CM("", ",'data':{'c':'w','k':'w2','m':'1'}"));
    assert_managed(&s, "m Update :03 {'f:data':{'.':{},'f:c':{},'f:k':{},'f:m':{}}}");
    put(&s, "m", CM("", ""));
    assert_managed(&s, "");
}

TEST(nothing_changed_keeps_times)
{
    ARENA_AUTO a = arena_new();
    struct server s = config_map_server(a);
    put(&s, "m", CM("", ",'data':{'k':'v'}"));
    put(&s, "n", CM(",'resourceVersion':'7','generation':3", ",'data':{'k':'v'}"));
    assert_managed(&s, "m Update :01 {'f:data':{'.':{},'f:k':{}}}");
}

TEST(an_untracked_object_stays_untracked)
{
    ARENA_AUTO a = arena_new();
    struct server s = config_map_server(a);
    put(&s, "m", CM("", ""));
    assert_managed(&s, "");
    put(&s, "m", CM("", ",'data':{'c':'1'}"));
    assert_managed(&s, "");
    assert_null(json_at(s.object, "metadata", "managedFields", NULL));
}

TEST(clients_may_reset_managed_fields)
{
    static const char *const resets[] = {"[]", "[{}]"};
    for (size_t i = 0; i < N_ELEMENTS(resets); i++) {
        ARENA_AUTO a = arena_new();
        struct server s = config_map_server(a);
        put(&s, "m", CM("", ",'data':{'k':'v'}"));
        struct str object =
            arena_printf(a, CM(",'managedFields':%s", ",'data':{'k':'v'}"), resets[i]);
        put(&s, "m", object.p);
        assert_managed(&s, "");
    }
}

TEST(bad_managed_fields_are_ignored)
{
    static const char *const bad[] = {
        "[{'manager':'x','operation':'Bad','fieldsType':'FieldsV1'}]",
        "[{'manager':'x','operation':'Update','apiVersion':'v1','fieldsType':'V2','fieldsV1':{}}]",
        "[{'manager':'x','operation':'Update','fieldsType':'FieldsV1','fieldsV1':{}}]",
        "[{'manager':'x','operation':'Update','apiVersion':'v1','fieldsType':'FieldsV1','fieldsV1':"
        "{'f:a':1}}]",
        "[{'manager':'x','operation':'Update','apiVersion':'v1','fieldsType':'FieldsV1','fieldsV1':"
        "'x'}]",
        "[{'manager':5,'operation':'Update','apiVersion':'v1','fieldsType':'FieldsV1','fieldsV1':{}"
        "}]",
        "[{'manager':'x','operation':'Update','apiVersion':'v1','time':'now','fieldsType':'"
        "FieldsV1','fieldsV1':{}}]",
        "[7]",
        "'x'",
        "{}",
        "null",
    };
    for (size_t i = 0; i < N_ELEMENTS(bad); i++) {
        ARENA_AUTO a = arena_new();
        struct server s = config_map_server(a);
        put(&s, "m", CM("", ",'data':{'k':'v'}"));
        struct str object = arena_printf(a, CM(",'managedFields':%s", ",'data':{'k':'w'}"), bad[i]);
        put(&s, "n", object.p);
        assert_managed(&s, "m Update :01 {'f:data':{}}\nn Update :02 {'f:data':{'f:k':{}}}");
    }
}

TEST(clients_may_send_managed_fields_of_their_own)
{
    ARENA_AUTO a = arena_new();
    struct server s = config_map_server(a);
    put(&s, "m", CM("", ",'data':{'k':'v','l':'v'}"));
    put(&s, "n",
        CM(",'managedFields':[{'manager':'x','operation':'Apply','apiVersion':'v1','fieldsType':'"
           "FieldsV1',"
           "'fieldsV1':{'f:data':{'f:l':{},'f:k':{}}}},{'manager':'x','operation':'Apply','"
           "apiVersion':'v0',"
           "'fieldsType':'FieldsV1','fieldsV1':{'f:data':{'f:l':{}}}},{'manager':'none','operation'"
           ":'Update',"
           "'apiVersion':'v1','fieldsType':'FieldsV1'}]",
           ",'data':{'k':'w','l':'v'}"));
    assert_managed(&s, "x Apply {'f:data':{'f:l':{}}}\nn Update :02 {'f:data':{'f:k':{}}}");
    /* Through a subresource they count for nothing. */
    s.options.subresource = STR("status");
    put(&s, "n", CM(",'managedFields':[]", ",'data':{'k':'w','l':'v'}"));
    assert_managed(&s, "x Apply {'f:data':{'f:l':{}}}\nn Update :02 {'f:data':{'f:k':{}}}");
}

/* ---- custom resources and subresources ------------------------------------------------------ */

TEST(status_belongs_to_its_subresource)
{
    static const char *const status[] = {"status", NULL};
    ARENA_AUTO a = arena_new();
    struct server s = device_server(a);
    s.options.reset_fields = status;
    put(&s, "golden",
        "{'metadata':{'name':'d'},'spec':{'serial':'AB-1','mode':'active'},'status':{'phase':'Up'}"
        "}");
    assert_managed(&s, "golden Update :01 {'f:spec':{'.':{},'f:mode':{},'f:serial':{}}}");
    (void) json_remove(s.object, STR("status"));

    s.options.reset_fields = NULL;
    s.options.only_status = true;
    s.options.subresource = STR("status");
    put(&s, "golden",
        "{'metadata':{'name':'d','labels':{'no':'yes'}},'spec':{'serial':'AB-1','cpus':9},"
        "'status':{'phase':'Up','replicas':2}}");
    assert_managed(&s,
                   "golden Update :01 {'f:spec':{'.':{},'f:mode':{},'f:serial':{}}}\n"
                   "golden Update/status :02 {'f:status':{'.':{},'f:phase':{},'f:replicas':{}}}");
}

TEST(nobody_owns_what_a_new_native_object_always_has)
{
    ARENA_AUTO a = arena_new();
    struct server s = device_server(a);
    s.options.zero = value_of(a, "{'spec':{'nested':{}},'status':{'conditions':null}}");
    put(&s, "m",
        "{'metadata':{'name':'d'},'spec':{'serial':'A','nested':{'a':{'b':'c'}}},'status':{'"
        "conditions':[{'type':'T'}]}}");
    assert_managed(&s,
                   "m Update :01 {'f:spec':{'f:nested':{'f:a':{'.':{},'f:b':{}}},'f:serial':{}},"
                   "'f:status':{'f:conditions':{'k:{\\'type\\':\\'T\\'}':{'.':{},'f:type':{}}}}}");
}

TEST(nor_what_comes_back_to_an_object_that_lost_it)
{
    ARENA_AUTO a = arena_new();
    struct server s = device_server(a);
    s.options.zero = value_of(a, "{'spec':{},'status':{}}");
    put(&s, "m", "{'metadata':{'name':'d','labels':{'a':'b'}},'status':{'phase':'Up'}}");
    put(&s, "n", "{'metadata':{'name':'d','labels':{'a':'b'}},'spec':{'serial':'A'}}");
    assert_managed(&s, "m Update :01 {'f:metadata':{'f:labels':{'.':{},'f:a':{}}}}\nn Update :02 "
                       "{'f:spec':{'f:serial':{}}}");
}

TEST(what_became_one_field_is_owned_as_one)
{
    ARENA_AUTO a = arena_new();
    struct server s = device_server(a);
    put(&s, "m", "{'metadata':{'name':'d'},'spec':{'serial':'A','free':{'a':1,'b':2}}}");
    s.options.schema = schema_of(
        a, "{'type':'object','properties':{'spec':{'type':'object','properties':{'serial':" STRING
           ",'free':{'type':'object','x-kubernetes-map-type':'atomic',"
           "'x-kubernetes-preserve-unknown-fields':true}}}}}");
    assert_int_equal(apply(&s, "one", false, "{'metadata':{'name':'d'},'spec':{'free':{'a':2}}}"),
                     -EEXIST);
    assert_str(s.conflicts->field, ".spec.free");
    put(&s, "n", "{'metadata':{'name':'d'},'spec':{'serial':'A','free':{'a':2}}}");
    assert_managed(
        &s,
        "m Update :01 {'f:spec':{'.':{},'f:serial':{}}}\nn Update :03 {'f:spec':{'f:free':{}}}");
}

TEST(versions_of_one_manager_are_apart)
{
    ARENA_AUTO a = arena_new();
    struct server s = config_map_server(a);
    put(&s, "m", CM("", ",'data':{'a':'1'}"));
    s.options.api_version = STR("v2");
    change(&s, "m", "{'a':'1','b':'2'}");
    assert_managed(&s,
                   "m Update :01 {'f:data':{'.':{},'f:a':{}}}\nm Update :02 {'f:data':{'f:b':{}}}");
    change(&s, "m", "{'a':'2','b':'2'}");
    assert_managed(&s, "m Update :01 {'f:data':{}}\nm Update :03 {'f:data':{'f:a':{},'f:b':{}}}");
}

TEST(too_many_updaters_are_joined)
{
    ARENA_AUTO a = arena_new();
    struct server s = config_map_server(a);
    BUF_AUTO data = {0};
    put(&s, "m0", CM("", ",'data':{'k0':'0'}"));
    buf_append_str(&data, STR("{'k0':'0'"));
    for (int i = 1; i < 13; i++) {
        buf_printf(&data, ",'k%d':'0'", i);
        change(&s, arena_printf(a, "m%d", i).p,
               arena_printf(a, "%.*s}", STR_ARG(buf_str(&data))).p);
    }
    const struct json *managed = json_at(s.object, "metadata", "managedFields", NULL);
    assert_int_equal(managed->n, MANAGED_MAX_UPDATERS);
    assert_str(json_get_str(&managed->items[0], STR("manager")), "ancient-changes");
    assert_value(a, json_get(&managed->items[0], STR("fieldsV1")),
                 "{'f:data':{'.':{},'f:k0':{},'f:k1':{},'f:k2':{},'f:k3':{}}}");
    assert_str(json_get_str(&managed->items[0], STR("time")), "2026-01-01T00:00:04Z");
    assert_str(json_get_str(&managed->items[1], STR("manager")), "m4");
}

/* ---- sharing ------------------------------------------------------------------------------ */

TEST(old_objects_stay_as_they_are)
{
    ARENA_AUTO a = arena_new();
    struct server s = config_map_server(a);
    put(&s, "m", CM("", ",'data':{'a':'1'}"));
    struct json before = json_clone(a, s.object);
    /* A patch shares all that it leaves alone, even the array of members. */
    struct json shared = *s.object, data = *value_of(a, "{'a':'2'}");
    struct json_member members[4];
    memcpy(members, shared.members, sizeof(members));
    shared.members = members;
    members[3].value = data;
    tick(&s, "n");
    managed_update(a, s.object, &shared, &s.options);
    assert_true(json_equal(s.object, &before));
    s.object = &shared;
    assert_managed(&s, "m Update :01 {'f:data':{}}\nn Update :02 {'f:data':{'f:a':{}}}");
}

TEST(times_go_back_when_nothing_else_changed)
{
    ARENA_AUTO a = arena_new();
    struct server s = config_map_server(a);
    put(&s, "m", CM("", ",'data':{'a':'1'}"));
    const struct json *old = s.object;
    change(&s, "m", "{'a':'2'}");
    assert_managed(&s, "m Update :02 {'f:data':{'.':{},'f:a':{}}}");
    managed_keep_times(a, old, s.object);
    assert_managed(&s, "m Update :02 {'f:data':{'.':{},'f:a':{}}}");
    /* Defaulting may make it the same again. */
    (void) json_set(a, s.object, STR("data"), *json_get(old, STR("data")));
    managed_keep_times(a, old, s.object);
    assert_managed(&s, "m Update :01 {'f:data':{'.':{},'f:a':{}}}");
}

TEST(wide_objects_are_quick)
{
    ARENA_AUTO a = arena_new();
    struct server s = config_map_server(a);
    put(&s, "m", CM("", ",'data':{'a':'1'}"));
    for (int round = 0; round < 2; round++) {
        struct json data = json_object();
        for (int i = 0; i < 20000; i++)
            (void) json_append_member(a, &data, arena_printf(a, "k%d", (i * 7919) % 20000),
                                      json_string(STR("v")));
        tick(&s, "n");
        struct json *object = json_new(a, json_clone(a, s.object));
        (void) json_set(a, object, STR("data"), data);
        managed_update(a, s.object, object, &s.options);
        s.object = object;
    }
    const struct json *fields =
        json_get(&json_at(s.object, "metadata", "managedFields", NULL)->items[1], STR("fieldsV1"));
    assert_int_equal(json_get(fields, STR("f:data"))->n, 20000);
}

TEST(long_keyed_lists_are_quick)
{
    ARENA_AUTO a = arena_new();
    struct server s = device_server(a);
    for (int round = 0; round < 2; round++) {
        struct json *object = value_of(a, "{'metadata':{'name':'d'},'spec':{}}"),
                    ports = json_array();
        for (int i = 0; i < 10000; i++) {
            struct json port = json_object();
            (void) json_append_member(a, &port, STR("name"),
                                      json_string(arena_printf(a, "p%d", (i * 7919) % 10000)));
            (void) json_append_member(a, &port, STR("mtu"), json_int(round));
            (void) json_push(a, &ports, port);
        }
        (void) json_set(a, json_get(object, STR("spec")), STR("ports"), ports);
        tick(&s, round ? "n" : "m");
        managed_update(a, s.object, object, &s.options);
        s.object = object;
    }
    const struct json *managed = json_at(s.object, "metadata", "managedFields", NULL);
    assert_int_equal(managed->n, 2);
    assert_int_equal(json_at(&managed->items[1], "fieldsV1", "f:spec", "f:ports", NULL)->n, 10000);
}

/* ---- scale -------------------------------------------------------------------------------- */

TEST(a_scale_has_the_owners_of_replicas)
{
    ARENA_AUTO a = arena_new();
    struct server s = device_server(a),
                  scale = {.arena = a, .options = {.api_version = STR("autoscaling/v1")}};
    put(&s, "golden", "{'metadata':{'name':'d'},'spec':{'serial':'AB-1','replicas':3}}");
    scale.second = 10;
    for (int replicas = 5; replicas <= 7; replicas += 2) {
        const struct json *managed = json_at(s.object, "metadata", "managedFields", NULL);
        scale.object = value_of(a, "{'metadata':{'name':'d'},'spec':{'replicas':3}}");
        (void) json_set(a, json_get(scale.object, STR("metadata")), STR("managedFields"),
                        managed_to_scale(a, managed, STR("spec.replicas")));
        scale.options.subresource = STR("scale");
        put(&scale, "golden",
            arena_printf(a, "{'metadata':{'name':'d'},'spec':{'replicas':%d}}", replicas).p);
        struct json back =
            managed_from_scale(a, managed, json_at(scale.object, "metadata", "managedFields", NULL),
                               STR("spec.replicas"), STR("example.org/v1"));
        (void) json_set(a, json_get(s.object, STR("metadata")), STR("managedFields"), back);
        assert_managed(&s, "golden Update/scale {'f:spec':{'f:replicas':{}}}\n"
                           "golden Update :01 {'f:spec':{'.':{},'f:serial':{}}}");
    }
    assert_int_equal(apply(&scale, "m", false, "{'metadata':{'name':'d'},'spec':{'replicas':2}}"),
                     -EEXIST);
    assert_str(scale.conflicts->operation_text,
               "\"golden\" with subresource \"scale\" using autoscaling/v1");
}
