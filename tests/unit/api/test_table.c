/* SPDX-License-Identifier: Apache-2.0 */
#include "api/table.h"
#include "base/clock.h"
#include "kinds_fixture.h"
#include "test.h"

#define REGISTRY CLEANUP(registry_unrefp) struct registry *
#define NOW "2026-11-15T12:00:00Z"
#define HOUR_AGO "2026-11-15T11:00:00Z"

#define DEVICES \
    "{'spec':{'group':'example.org','scope':'Namespaced','names':{'plural':'devices','kind':'" \
    "Device'},'versions':[" \
    "{'name':'v1','served':true,'storage':true,'schema':{'openAPIV3Schema':{'type':'object'}}," \
    "'additionalPrinterColumns':[{'name':'Serial','type':'string','jsonPath':'.spec.serial'}," \
    "{'name':'CPUs','type':'integer','format':'int32','jsonPath':'.spec.cpus'}," \
    "{'name':'Ratio','type':'number','priority':1,'jsonPath':'.spec.ratio'}," \
    "{'name':'On','type':'boolean','jsonPath':'.spec.enabled'}," \
    "{'name':'Seen','type':'date','jsonPath':'.status.seen'}," \
    "{'name':'Tags','type':'string','jsonPath':'.spec.tags'}]}]}}"

static struct table_options options_with(enum table_include include)
{
    struct table_options options = {.include = include, .meta_version = STR("v1")};
    assert_true(clock_parse(STR(NOW), &options.now_us) >= 0);
    return options;
}

TEST(ages_are_written_as_kubectl_does)
{
    static const struct {
        int64_t seconds;
        const char *text;
    } cases[] = {
        {-5, "<invalid>"},
        {-1, "0s"},
        {0, "0s"},
        {119, "119s"},
        {120, "2m"},
        {184, "3m4s"},
        {600, "10m"},
        {179 * 60, "179m"},
        {180 * 60, "3h"},
        {5 * 3600 + 60, "5h1m"},
        {8 * 3600 + 60, "8h"},
        {47 * 3600, "47h"},
        {48 * 3600, "2d"},
        {49 * 3600, "2d1h"},
        {8 * 86400 + 3600, "8d"},
        {729 * 86400, "729d"},
        {730 * 86400, "2y"},
        {740 * 86400, "2y10d"},
        {(int64_t) 8 * 365 * 86400 + 86400, "8y"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        char out[TABLE_AGE_BYTES];
        assert_str(table_age(cases[i].seconds * 1000000, out), cases[i].text);
    }
}

TEST(cells_show_what_kube_apiserver_shows)
{
    static const struct {
        const char *kind, *object, *cells;
    } cases[] = {
        {"core/v1/configmaps",
         "{'metadata':{'name':'c','creationTimestamp':'" HOUR_AGO "'},'data':{'a':'1'},"
         "'binaryData':{'b':'MQ=='}}",
         "['c',2,'60m']"},
        {"core/v1/secrets", "{'metadata':{'name':'s'},'type':'Opaque','data':{'a':'','b':''}}",
         "['s','Opaque',2,'<unknown>']"},
        {"core/v1/serviceaccounts", "{'metadata':{'name':'r','creationTimestamp':'" HOUR_AGO "'}}",
         "['r','60m']"},
        {"core/v1/namespaces",
         "{'metadata':{'name':'n','creationTimestamp':'" HOUR_AGO "'},'status':{'phase':'Active'}}",
         "['n','Active','60m']"},
        {"coordination.k8s.io/v1/leases",
         "{'metadata':{'name':'l','creationTimestamp':'" HOUR_AGO "'},'spec':{}}",
         "['l','','60m']"},
        {"rbac.authorization.k8s.io/v1/roles",
         "{'metadata':{'name':'r','creationTimestamp':'" HOUR_AGO "'}}", "['r','" HOUR_AGO "']"},
        {"rbac.authorization.k8s.io/v1/rolebindings",
         "{'metadata':{'name':'b','creationTimestamp':'" HOUR_AGO
         "'},'roleRef':{'kind':'Role','name':'r'},"
         "'subjects':[{'kind':'User','name':'u1'},{'kind':'Group','name':'g1'},{'kind':'User','"
         "name':'u2'},"
         "{'kind':'ServiceAccount','name':'sa','namespace':'n'},{'kind':'ServiceAccount','name':'"
         "default'}]}",
         "['b','Role/r','60m','u1, u2','g1','n/sa, /default']"},
        {"core/v1/events",
         "{'metadata':{'name':'e'},'involvedObject':{'kind':'ConfigMap','name':'c','fieldPath':'x'}"
         ",'reason':'R',"
         "'message':'m\\n','type':'Warning','source':{'component':'comp','host':'h'},'count':4,'"
         "firstTimestamp':null,"
         "'lastTimestamp':null,'eventTime':null}",
         "['<unknown>','Warning','R','configmap/c','x','comp, h','m','<unknown>',4,'e']"},
        {"core/v1/events",
         "{'metadata':{'name':'e'},'involvedObject':{'kind':'ConfigMap'},'reason':'R','message':'m'"
         ",'type':'Normal',"
         "'source':{},'eventTime':'" HOUR_AGO
         "','reportingComponent':'ctl','reportingInstance':'ctl-1',"
         "'series':{'count':7,'lastObservedTime':'" NOW "'}}",
         "['0s','Normal','R','configmap','','ctl, ctl-1','m','60m',7,'e']"},
        {"events.k8s.io/v1/events",
         "{'metadata':{'name':'e'},'regarding':{'kind':'ConfigMap','name':'c'},'reason':'R','note':"
         "'n','type':'Normal',"
         "'eventTime':'" HOUR_AGO "','reportingController':'ctl','reportingInstance':'i'}",
         "['60m','Normal','R','configmap/c','','ctl, i','n','60m',1,'e']"},
        {"core/v1/persistentvolumeclaims",
         "{'metadata':{'name':'p','creationTimestamp':'" HOUR_AGO
         "'},'spec':{'accessModes':['ReadWriteOnce'],"
         "'storageClassName':'x','volumeMode':'Filesystem'},'status':{'phase':'Pending'}}",
         "['p','Pending','','','','x','<unset>','60m','Filesystem']"},
        {"core/v1/persistentvolumeclaims",
         "{'metadata':{'name':'p','deletionTimestamp':'" NOW "','creationTimestamp':'" HOUR_AGO
         "'},"
         "'spec':{'volumeName':'pv'},'status':{'phase':'Bound','capacity':{'storage':'1Gi'},"
         "'accessModes':['ReadWriteMany','ReadWriteOnce']}}",
         "['p','Terminating','pv','1Gi','RWO,RWX','','<unset>','60m','<unset>']"},
        {"core/v1/persistentvolumes",
         "{'metadata':{'name':'v','creationTimestamp':'" HOUR_AGO
         "'},'spec':{'capacity':{'storage':'1Gi'},"
         "'accessModes':['ReadWriteOnce'],'persistentVolumeReclaimPolicy':'Retain','volumeMode':'"
         "Filesystem',"
         "'claimRef':{'namespace':'n','name':'p'}},'status':{'phase':'Bound'}}",
         "['v','1Gi','RWO','Retain','Bound','n/p','','<unset>','','60m','Filesystem']"},
        {"storage.k8s.io/v1/storageclasses",
         "{'metadata':{'name':'s','annotations':{'storageclass.kubernetes.io/"
         "is-default-class':'true'},"
         "'creationTimestamp':'" HOUR_AGO
         "'},'provisioner':'p','reclaimPolicy':'Delete','volumeBindingMode':'Immediate'}",
         "['s (default)','p','Delete','Immediate',false,'60m']"},
        {"core/v1/resourcequotas",
         "{'metadata':{'name':'q','creationTimestamp':'" HOUR_AGO
         "'},'status':{'hard':{'secrets':'2','limits.cpu':'1',"
         "'count/leases.coordination.k8s.io':'0'},'used':{'secrets':'2','count/"
         "leases.coordination.k8s.io':'0'}}}",
         "['q','count/leases.coordination.k8s.io: 0/0, secrets: 2/2','limits.cpu: 0/1','60m']"},
        {"apps/v1/controllerrevisions",
         "{'metadata':{'name':'c','creationTimestamp':'" HOUR_AGO
         "','ownerReferences':[{'apiVersion':'v1','kind':'X',"
         "'name':'no'},{'apiVersion':'apps/"
         "v1','kind':'DaemonSet','name':'d','controller':true}]},'revision':3}",
         "['c','daemonset.apps/d',3,'60m']"},
        {"example.org/v1/devices",
         "{'metadata':{'name':'bare'},'spec':{'serial':'AB-1','enabled':false}}",
         "['bare','AB-1',null,null,false,null,null]"},
        {"example.org/v1/devices",
         "{'metadata':{'name':'full'},'spec':{'serial':7,'cpus':4.7,'ratio':0.5,'enabled':true,'"
         "tags':['b','a']},"
         "'status':{'seen':'" HOUR_AGO "'}}",
         "['full','7',4,0.5,true,'60m','[\\\"b\\\",\\\"a\\\"]']"},
        {"example.org/v1/devices",
         "{'metadata':{'name':'odd'},'spec':{'cpus':'4','ratio':'x','enabled':'no'},'status':{'"
         "seen':'soon'}}",
         "['odd',null,null,null,null,'<invalid>',null]"},
    };
    ARENA_AUTO a = arena_new();
    REGISTRY r = fixture_registry_with(DEVICES);
    const struct table_options options = options_with(TABLE_INCLUDE_NONE);
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        BUF_AUTO row = {0};
        table_write_row(&row, a, fixture_kind(r, cases[i].kind), fixture_json(a, cases[i].object),
                        &options);
        const struct str wanted =
            arena_printf(a, "{\"cells\":%.*s,\"object\":null}",
                         STR_ARG(json_text(a, fixture_json(a, cases[i].cells))));
        if (!str_eq(buf_str(&row), wanted))
            fail_msg("%s gave %.*s", cases[i].kind, STR_ARG(buf_str(&row)));
    }
}

TEST(every_column_function_exists_and_fits_its_columns)
{
    ARENA_AUTO a = arena_new();
    REGISTRY r = fixture_registry();
    const struct table_options options = options_with(TABLE_INCLUDE_NONE);
    const struct json *object = fixture_json(a, "{'metadata':{'name':'x'}}");
    for (size_t i = 0; i < r->n_groups; i++)
        for (size_t j = 0; j < r->groups[i].versions[0].n_kinds; j++) {
            const struct kind *k = r->groups[i].versions[0].kinds[j];
            BUF_AUTO row = {0}, columns = {0};
            table_write_row(&row, a, k, object, &options);
            table_write_columns(&columns, k);
            const struct json *cells = json_get(json_parse_quick(a, buf_str(&row)), STR("cells"));
            const struct json *definitions = json_parse_quick(a, buf_str(&columns));
            assert_int_equal(json_count(cells), json_count(definitions));
            JSON_FOR_EACH_ITEM (cells, cell)
                if (cell->type == JSON_NULL && k->is_native)
                    fail_msg("a column of %.*s has no function", STR_ARG(k->plural));
        }
}

TEST(rows_carry_as_much_of_the_object_as_asked)
{
    static const struct {
        enum table_include include;
        const char *object;
    } cases[] = {
        {TABLE_INCLUDE_NONE, "null"},
        {TABLE_INCLUDE_METADATA,
         "{'kind':'PartialObjectMetadata','apiVersion':'meta.k8s.io/v1','metadata':{'name':'c'}}"},
        {TABLE_INCLUDE_OBJECT, "{'kind':'ConfigMap','metadata':{'name':'c'},'data':{'a':'1'}}"},
    };
    ARENA_AUTO a = arena_new();
    REGISTRY r = fixture_registry();
    const struct json *object =
        fixture_json(a, "{'kind':'ConfigMap','metadata':{'name':'c'},'data':{'a':'1'}}");
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        BUF_AUTO row = {0};
        const struct table_options options = options_with(cases[i].include);
        table_write_row(&row, a, fixture_kind(r, "core/v1/configmaps"), object, &options);
        const struct json *got = json_get(json_parse_quick(a, buf_str(&row)), STR("object"));
        assert_true(json_equal(got, fixture_json(a, cases[i].object)));
    }
}

TEST(columns_begin_with_the_name_unless_the_kind_places_it)
{
    static const struct {
        const char *kind;
        size_t at;
    } cases[] = {
        {"core/v1/configmaps", 0}, {"storage.k8s.io/v1/storageclasses", 0}, {"core/v1/events", 9}};
    ARENA_AUTO a = arena_new();
    REGISTRY r = fixture_registry();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        BUF_AUTO columns = {0};
        table_write_columns(&columns, fixture_kind(r, cases[i].kind));
        const struct json *list = json_parse_quick(a, buf_str(&columns));
        size_t n_names = 0;
        for (size_t j = 0; j < json_count(list); j++) {
            if (!str_is(json_get_str(&list->items[j], STR("format")), "name"))
                continue;
            n_names++;
            assert_int_equal(j, cases[i].at);
            assert_true(str_starts_with(json_get_str(&list->items[j], STR("description")),
                                        STR("Name must be unique")));
        }
        assert_int_equal(n_names, 1);
    }
}

TEST(kinds_without_columns_of_their_own_have_null_for_no_rows)
{
    REGISTRY r = fixture_registry();
    assert_str(table_no_rows(fixture_kind(r, "rbac.authorization.k8s.io/v1/roles")), "null");
    assert_str(table_no_rows(fixture_kind(r, "core/v1/configmaps")), "[]");
}

static int64_t seen_us(void *ctx, const struct kind *kind, struct str column,
                       const struct json *object)
{
    const int64_t *answer = ctx;
    assert_str(kind->plural, "devices");
    assert_str(json_get_str(json_get(object, STR("metadata")), STR("name")), "d");
    return str_is(column, "Last Seen") ? *answer : 0;
}

TEST(what_lives_in_memory_is_shown_instead_of_what_was_stored)
{
    CLEANUP(registry_unrefp) struct registry *r = fixture_registry();
    ARENA_AUTO a = arena_new();
    struct table_options options = options_with(TABLE_INCLUDE_NONE);
    int64_t answer_us = 0;
    const struct table_live live = {.ctx = &answer_us, .time_us = seen_us};
    options.live = &live;
    const struct json *device = fixture_json(
        a, "{'metadata':{'name':'d','creationTimestamp':null},'status':{'conditions':[{'type':"
           "'Ready','status':'True','lastHeartbeatTime':'not a time'}],'apps':{'summary':'1/2'}}}");
    const struct kind *kind = fixture_kind(r, "eve.lfedge.org/v1beta1/devices");
    BUF_AUTO stored = {0}, seen = {0}, ahead = {0};
    table_write_row(&stored, a, kind, device, &options);
    assert_str(buf_str(&stored), "{\"cells\":[\"d\",\"True\",\"<invalid>\",null,null,\"1/2\",null,"
                                 "null,null],\"object\":null}");
    answer_us = options.now_us - 95 * 1000000;
    table_write_row(&seen, a, kind, device, &options);
    assert_str(buf_str(&seen), "{\"cells\":[\"d\",\"True\",\"95s\",null,null,\"1/2\",null,null,"
                               "null],\"object\":null}");
    answer_us = options.now_us + 95 * 1000000;
    table_write_row(&ahead, a, kind, device, &options);
    assert_str(buf_str(&ahead), "{\"cells\":[\"d\",\"True\",\"0s\",null,null,\"1/2\",null,null,"
                                "null],\"object\":null}");
}
