/* SPDX-License-Identifier: Apache-2.0 */
#include "api/native.h"
#include "kinds_fixture.h"
#include "test.h"

#define REGISTRY CLEANUP(registry_unrefp) struct registry *

TEST(objects_come_out_as_go_writes_them)
{
    static const struct {
        const char *kind, *in, *out;
    } cases[] = {
        /* empty values of fields that are no pointers go away; of pointers they stay */
        {"core/v1/configmaps", "{'data':{},'binaryData':null,'immutable':false}",
         "{'immutable':false}"},
        {"coordination.k8s.io/v1/leases", "{'spec':{'holderIdentity':''}}",
         "{'spec':{'holderIdentity':''}}"},
        /* structs are always there, and fields without omitempty */
        {"coordination.k8s.io/v1/leases", "{}", "{'spec':{}}"},
        {"core/v1/resourcequotas", "{}", "{'spec':{},'status':{}}"},
        {"core/v1/limitranges", "{}", "{'spec':{'limits':null}}"},
        {"rbac.authorization.k8s.io/v1/roles", "{'rules':[]}", "{'rules':[]}"},
        {"rbac.authorization.k8s.io/v1/roles", "{}", "{'rules':null}"},
        {"core/v1/events", "{'count':0}",
         "{'involvedObject':{},'source':{},'firstTimestamp':null,'lastTimestamp':null,'eventTime':"
         "null,"
         "'reportingComponent':'','reportingInstance':''}"},
        /* defaults */
        {"storage.k8s.io/v1/storageclasses", "{'provisioner':'p'}",
         "{'provisioner':'p','reclaimPolicy':'Delete','volumeBindingMode':'Immediate'}"},
        {"core/v1/persistentvolumeclaims", "{}",
         "{'spec':{'resources':{},'volumeMode':'Filesystem'},'status':{}}"},
        /* canonical quantities, times and order of fields; maps sorted */
        {"core/v1/resourcequotas", "{'spec':{'hard':{'z':1,'cpu':'0.25','memory':'1024Mi'}}}",
         "{'spec':{'hard':{'cpu':'250m','memory':'1Gi','z':'1'}},'status':{}}"},
        {"coordination.k8s.io/v1/leases",
         "{'spec':{'renewTime':'2001-02-03T04:05:06.000000+01:00','holderIdentity':'h'}}",
         "{'spec':{'holderIdentity':'h','renewTime':'2001-02-03T03:05:06.000000Z'}}"},
        /* unknown members stay, and what stands before the kind's own fields */
        {"core/v1/configmaps", "{'data':{'b':'1','a':null},'kind':'ConfigMap','x':1}",
         "{'kind':'ConfigMap','x':1,'data':{'a':'','b':'1'}}"},
        {"core/v1/serviceaccounts", "{'secrets':[null]}", "{'secrets':[{}]}"},
        {"apps/v1/controllerrevisions", "{'data':{'any':{'thing':[]}}}",
         "{'data':{'any':{'thing':[]}},'revision':0}"},
    };
    ARENA_AUTO a = arena_new();
    REGISTRY r = fixture_registry();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct json *object = fixture_json(a, cases[i].in);
        struct str error = STR("");
        if (native_decode(a, fixture_kind(r, cases[i].kind), object, &error) < 0)
            fail_msg("%s: %.*s", cases[i].in, STR_ARG(error));
        const struct str wanted = json_text(a, fixture_json(a, cases[i].out));
        if (!str_eq(json_text(a, object), wanted))
            fail_msg("%s gave %.*s", cases[i].in, STR_ARG(json_text(a, object)));
    }
}

TEST(decoding_twice_changes_nothing)
{
    ARENA_AUTO a = arena_new();
    REGISTRY r = fixture_registry();
    const struct kind *k = fixture_kind(r, "core/v1/persistentvolumes");
    struct json *object = fixture_json(
        a, "{'spec':{'capacity':{'storage':'1.5Gi'},'rbd':{'monitors':['m'],'image':'i'}}}");
    struct str error;
    assert_true(native_decode(a, k, object, &error) >= 0);
    const struct str once = json_text(a, object);
    assert_true(native_decode(a, k, object, &error) >= 0);
    assert_true(str_eq(once, json_text(a, object)));
}

TEST(values_of_a_wrong_type_are_refused_in_the_words_of_go)
{
    static const struct {
        const char *kind, *in, *error;
    } cases[] = {
        {"core/v1/configmaps", "{'data':{'x':5}}",
         "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"},
        {"core/v1/configmaps", "{'data':['x']}",
         "json: cannot unmarshal array into Go struct field ConfigMap.data of type "
         "map[string]string"},
        {"core/v1/configmaps", "{'immutable':'yes'}",
         "json: cannot unmarshal string into Go struct field ConfigMap.immutable of type bool"},
        {"core/v1/configmaps", "{'binaryData':{'x':'%%%'}}", "illegal base64 data at input byte 0"},
        {"coordination.k8s.io/v1/leases", "{'spec':{'leaseTransitions':3000000000}}",
         "json: cannot unmarshal number into Go struct field LeaseSpec.spec.leaseTransitions of "
         "type int32"},
        {"coordination.k8s.io/v1/leases", "{'spec':{'renewTime':'yesterday'}}",
         "parsing time 'yesterday' as '2006-01-02T15:04:05.000000Z07:00': cannot parse 'yesterday' "
         "as '2006'"},
        {"core/v1/resourcequotas", "{'spec':{'hard':{'cpu':'1GiB'}}}",
         "quantities must match the regular expression "
         "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"},
    };
    ARENA_AUTO a = arena_new();
    REGISTRY r = fixture_registry();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct str error = STR("");
        assert_true(native_decode(a, fixture_kind(r, cases[i].kind), fixture_json(a, cases[i].in),
                                  &error) < 0);
        char *wanted = arena_strz(a, str_of(cases[i].error));
        for (char *p = wanted; *p && strchr(cases[i].error, '^') == NULL; p++)
            if (*p == '\'')
                *p = '"';
        assert_str(error, wanted);
    }
}

TEST(an_empty_struct_shows_its_zero_values_and_no_defaults)
{
    static const struct {
        const char *kind, *out;
    } cases[] = {
        {"core/v1/configmaps", "{}"},
        {"core/v1/persistentvolumeclaims", "{'spec':{'resources':{}},'status':{}}"},
        {"storage.k8s.io/v1/storageclasses", "{'provisioner':''}"},
        {"apiextensions.k8s.io/v1/customresourcedefinitions",
         "{'spec':{'group':'','names':{'plural':'','kind':''},'scope':'','versions':null},"
         "'status':{'conditions':null,'acceptedNames':{'plural':'','kind':''},'storedVersions':"
         "null}}"},
    };
    ARENA_AUTO a = arena_new();
    REGISTRY r = fixture_registry();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        const struct json zero = native_zero(a, fixture_kind(r, cases[i].kind));
        const struct str wanted = json_text(a, fixture_json(a, cases[i].out));
        if (!str_eq(json_text(a, &zero), wanted))
            fail_msg("%s gave %.*s", cases[i].kind, STR_ARG(json_text(a, &zero)));
    }
}
