/* SPDX-License-Identifier: Apache-2.0 */
#include "api/object_meta.h"

#include "causes_text.h"
#include "kinds_fixture.h"
#include "test.h"

#define REGISTRY CLEANUP(registry_unrefp) struct registry *

#define SUBDOMAIN \
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or " \
    "'.', and must start " \
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is " \
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
#define LABEL \
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and " \
    "must start and end " \
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is " \
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
#define QUALIFIED \
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end " \
    "with an alphanumeric " \
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is " \
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"

static struct hook_context context_of(struct arena *a, const struct kind *kind,
                                      enum write_operation operation)
{
    return (struct hook_context){
        .arena = a, .kind = kind, .operation = operation, .subresource = STR("")};
}

TEST(new_metadata_is_judged)
{
    static const struct {
        const char *kind, *meta, *causes;
    } cases[] = {
        {"core/v1/configmaps",
         "{'name':'ok','namespace':'n','labels':{'a.b/c':'x','e':''},"
         "'annotations':{'Upper/Key':'anything at all'},'finalizers':['a.b/c']}",
         ""},
        {"core/v1/configmaps", "{'namespace':'n'}",
         "metadata.name: Required value: name or generateName is required"},
        {"core/v1/configmaps", "{'name':'UPPER','namespace':'n'}",
         "metadata.name: Invalid value: \"UPPER\": " SUBDOMAIN},
        {"core/v1/configmaps", "{'name':'Bad_x','generateName':'Bad_','namespace':'n'}",
         "metadata.generateName: Invalid value: \"Bad_\": " SUBDOMAIN
         " | metadata.name: Invalid value: \"Bad_x\": " SUBDOMAIN},
        {"core/v1/configmaps", "{'name':'gen-x','generateName':'gen-','namespace':'n'}", ""},
        {"core/v1/configmaps", "{'name':'a'}", "metadata.namespace: Required value"},
        {"core/v1/namespaces", "{'name':'a.b'}", "metadata.name: Invalid value: \"a.b\": " LABEL},
        {"core/v1/namespaces", "{'name':'a','namespace':'n'}",
         "metadata.namespace: Forbidden: not allowed on this type"},
        {"rbac.authorization.k8s.io/v1/roles", "{'name':'system:any thing','namespace':'n'}", ""},
        {"rbac.authorization.k8s.io/v1/roles", "{'name':'a/b','namespace':'n'}",
         "metadata.name: Invalid value: \"a/b\": may not contain '/'"},
        {"core/v1/events", "{'name':'UPPER_case','namespace':'n'}", ""},
        {"core/v1/configmaps", "{'name':'a','namespace':'n','labels':{'a b':'x'}}",
         "metadata.labels: Invalid value: \"a b\": " QUALIFIED},
        {"core/v1/configmaps", "{'name':'a','namespace':'n','labels':{'/x':''}}",
         "metadata.labels: Invalid value: \"/x\": prefix part must be non-empty"},
        {"core/v1/configmaps", "{'name':'a','namespace':'n','annotations':{'_x':'1'}}",
         "metadata.annotations: Invalid value: \"_x\": " QUALIFIED},
        {"core/v1/configmaps",
         "{'name':'a','namespace':'n','finalizers':['orphan','foregroundDeletion']}",
         "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer "
         "orphan and "
         "foregroundDeletion cannot be both set"},
        {"core/v1/configmaps",
         "{'name':'a','namespace':'n','ownerReferences':[{'apiVersion':'a/b/"
         "c','kind':'','name':'','uid':''}]}",
         "metadata.ownerReferences.apiVersion: Invalid value: \"a/b/c\": version must not be empty "
         "| "
         "metadata.ownerReferences.kind: Invalid value: \"\": must not be empty | "
         "metadata.ownerReferences.name: Invalid value: \"\": must not be empty | "
         "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty"},
        {"core/v1/configmaps",
         "{'name':'a','namespace':'n','ownerReferences':["
         "{'apiVersion':'v1','kind':'A','name':'x','uid':'1','controller':true},"
         "{'apiVersion':'v1','kind':'B','name':'y','uid':'2','controller':true}]}",
         "metadata.ownerReferences: Invalid value: "
         "[{\"apiVersion\":\"v1\",\"controller\":true,\"kind\":\"A\",\"name\":"
         "\"x\",\"uid\":\"1\"},{\"apiVersion\":\"v1\",\"controller\":true,\"kind\":\"B\",\"name\":"
         "\"y\",\"uid\":\"2\"}]: "
         "Only one reference can have Controller set to true. Found \"true\" in references for A/x "
         "and B/y"},
        {"core/v1/configmaps",
         "{'name':'a','namespace':'n','managedFields':[{'operation':'Nope','fieldsType':'X'}]}",
         "metadata.managedFields[0].operation: Invalid value: \"Nope\": must be `Apply` or "
         "`Update` | "
         "metadata.managedFields[0].fieldsType: Invalid value: \"X\": must be `FieldsV1`"},
    };
    ARENA_AUTO a = arena_new();
    REGISTRY r = fixture_registry();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct hook_context h = context_of(a, fixture_kind(r, cases[i].kind), WRITE_CREATE);
        struct json object = json_object();
        (void) json_set(a, &object, STR("metadata"), *fixture_json(a, cases[i].meta));
        struct causes causes;
        causes_init(&causes, a);
        object_meta_validate(&h, &object, &causes);
        assert_str(causes_text(a, &causes), cases[i].causes);
    }
}

TEST(annotations_are_bounded_in_all)
{
    ARENA_AUTO a = arena_new();
    REGISTRY r = fixture_registry();
    struct hook_context h = context_of(a, fixture_kind(r, "core/v1/configmaps"), WRITE_CREATE);
    struct json *object =
        fixture_json(a, "{'metadata':{'name':'a','namespace':'n','annotations':{}}}");
    char *big = arena_alloc(a, 262144);
    memset(big, 'v', 262144);
    struct json *annotations = json_at(object, "metadata", "annotations", NULL);
    struct causes causes;

    (void) json_set(a, annotations, STR("big"), json_string(str_range(big, 262144 - 3)));
    causes_init(&causes, a);
    object_meta_validate(&h, object, &causes);
    assert_int_equal(causes.n, 0);
    (void) json_set(a, annotations, STR("big"), json_string(str_range(big, 262144 - 2)));
    object_meta_validate(&h, object, &causes);
    assert_str(causes_text(a, &causes),
               "metadata.annotations: Too long: may not be more than 262144 bytes");
}

TEST(updates_may_not_touch_what_identifies_an_object)
{
    static const struct {
        const char *old, *meta, *cause;
    } cases[] = {
        {"{'name':'a','uid':'1'}", "{'name':'a','uid':'1','labels':{'x':'y'}}", NULL},
        {"{'name':'a','uid':'1'}", "{'name':'a','uid':'2'}",
         "metadata.uid: Invalid value: \"2\": field is immutable"},
        {"{'name':'a'}", "{'name':'a','deletionTimestamp':'2001-01-01T00:00:00Z'}",
         "metadata.deletionTimestamp: Invalid value: \"2001-01-01T00:00:00Z\": field is immutable"},
        {"{'name':'a','deletionTimestamp':'2001-01-01T00:00:00Z'}", "{'name':'a'}",
         "metadata.deletionTimestamp: Invalid value: null: field is immutable"},
        {"{'name':'a','deletionTimestamp':'2001-01-01T00:00:00Z','finalizers':['a.b/c']}",
         "{'name':'a','deletionTimestamp':'2001-01-01T00:00:00Z','finalizers':['a.b/c','a.b/"
         "z','a.b/d']}",
         "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being "
         "deleted, found new "
         "finalizers []string{\"a.b/d\", \"a.b/z\"}"},
        {"{'name':'a','deletionTimestamp':'2001-01-01T00:00:00Z','finalizers':['a.b/c','a.b/d']}",
         "{'name':'a','deletionTimestamp':'2001-01-01T00:00:00Z','finalizers':['a.b/d']}", NULL},
    };
    ARENA_AUTO a = arena_new();
    REGISTRY r = fixture_registry();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct hook_context h = context_of(a, fixture_kind(r, "core/v1/configmaps"), WRITE_UPDATE);
        struct json old = json_object(), object = json_object();
        (void) json_set(a, &old, STR("metadata"), *fixture_json(a, cases[i].old));
        (void) json_set(a, &object, STR("metadata"), *fixture_json(a, cases[i].meta));
        struct causes causes;
        causes_init(&causes, a);
        object_meta_validate(&h, &object, &causes);
        object_meta_validate_update(&h, &old, &object, &causes);
        const struct str twice =
            cases[i].cause ? arena_printf(a, "%s | %s", cases[i].cause, cases[i].cause) : STR("");
        assert_str(causes_text(a, &causes), arena_strz(a, twice));
    }
}

TEST(core_events_judge_metadata_once)
{
    ARENA_AUTO a = arena_new();
    REGISTRY r = fixture_registry();
    struct hook_context h = context_of(a, fixture_kind(r, "core/v1/events"), WRITE_UPDATE);
    struct causes causes;
    causes_init(&causes, a);
    object_meta_validate_update(&h, fixture_json(a, "{'metadata':{'uid':'1'}}"),
                                fixture_json(a, "{'metadata':{'uid':'2'}}"), &causes);
    assert_int_equal(causes.n, 1);
}
