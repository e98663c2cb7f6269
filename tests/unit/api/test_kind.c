/* SPDX-License-Identifier: Apache-2.0 */
#include "api/hooks.h"
#include "api/version.h"
#include "kinds_fixture.h"
#include "test.h"

#define REGISTRY CLEANUP(registry_unrefp) struct registry *

#define DEVICES \
    "{'spec':{'group':'example.org','scope':'Namespaced'," \
    "'names':{'plural':'devices','singular':'device','kind':'Device','shortNames':['dev'],'" \
    "categories':['eve']}," \
    "'versions':[" \
    "{'name':'v1beta1','served':true,'storage':false,'deprecated':true,'schema':{'" \
    "openAPIV3Schema':{'type':'object'}}}," \
    "{'name':'v1','served':true,'storage':true,'schema':{'openAPIV3Schema':{'type':'object'}}," \
    "'subresources':{'status':{},'scale':{'specReplicasPath':'.spec.n','statusReplicasPath':'." \
    "status.n'}}," \
    "'selectableFields':[{'jsonPath':'.spec.mode'}]," \
    "'additionalPrinterColumns':[{'name':'Serial','type':'string','jsonPath':'.spec.serial'}," \
    "{'name':'CPUs','type':'integer','format':'int32','description':'How many.','priority':1," \
    "'jsonPath':'.spec.cpus'}]}," \
    "{'name':'v0','served':false,'storage':false,'schema':{'openAPIV3Schema':{'type':'object'}}}]" \
    "}}"

TEST(built_in_kinds_compile_and_are_found)
{
    static const char *const paths[] = {
        "core/v1/namespaces",
        "core/v1/configmaps",
        "core/v1/secrets",
        "core/v1/events",
        "core/v1/serviceaccounts",
        "core/v1/persistentvolumeclaims",
        "core/v1/persistentvolumes",
        "core/v1/resourcequotas",
        "core/v1/limitranges",
        "events.k8s.io/v1/events",
        "coordination.k8s.io/v1/leases",
        "storage.k8s.io/v1/storageclasses",
        "apiextensions.k8s.io/v1/customresourcedefinitions",
        "apps/v1/controllerrevisions",
        "rbac.authorization.k8s.io/v1/roles",
        "rbac.authorization.k8s.io/v1/rolebindings",
        "rbac.authorization.k8s.io/v1/clusterroles",
        "rbac.authorization.k8s.io/v1/clusterrolebindings",
    };
    REGISTRY r = fixture_registry();
    for (size_t i = 0; i < N_ELEMENTS(paths); i++) {
        const struct kind *k = fixture_kind(r, paths[i]);
        assert_true(k->is_native && k->is_served && k->is_storage);
        assert_non_null(k->schema);
        assert_non_null(k->hooks);
        assert_ptr_equal(registry_find_kind(r, k->api_version, k->kind), k);
    }
}

TEST(groups_and_kinds_stand_in_the_order_of_discovery)
{
    REGISTRY r = fixture_registry_with(DEVICES);
    static const char *const groups[] = {"",
                                         "apps",
                                         "events.k8s.io",
                                         "authentication.k8s.io",
                                         "authorization.k8s.io",
                                         "certificates.k8s.io",
                                         "rbac.authorization.k8s.io",
                                         "storage.k8s.io",
                                         "admissionregistration.k8s.io",
                                         "apiextensions.k8s.io",
                                         "coordination.k8s.io",
                                         "eve.lfedge.org",
                                         "example.org"};
    assert_int_equal(r->n_groups, N_ELEMENTS(groups));
    for (size_t i = 0; i < N_ELEMENTS(groups); i++)
        assert_str(r->groups[i].name, groups[i]);
    const struct registry_version *core = &r->groups[0].versions[0];
    assert_str(core->kinds[0]->plural, "configmaps");
    assert_str(core->kinds[core->n_kinds - 1]->plural, "serviceaccounts");
}

TEST(a_native_kind_has_what_its_manifest_says)
{
    REGISTRY r = fixture_registry();
    const struct kind *k = fixture_kind(r, "core/v1/namespaces");
    assert_false(k->is_namespaced);
    assert_str(k->api_version, "v1");
    assert_str(k->collection, "namespaces");
    assert_str(k->definition, "io.k8s.api.core.v1.Namespace");
    assert_str(k->list_kind, "NamespaceList");
    assert_int_equal(k->verbs & VERB_BIT(VERB_DELETE_COLLECTION), 0);
    assert_true(k->has_status);
    assert_false(k->has_generation);
    const struct kind_subresource *finalize;
    assert_true(kind_has_subresource(k, STR("finalize"), &finalize));
    assert_int_equal(finalize->verbs, VERB_BIT(VERB_UPDATE));
    assert_str(finalize->kind, "Namespace");
    assert_false(kind_has_subresource(k, STR("scale"), NULL));
    assert_true(
        fixture_kind(r, "apiextensions.k8s.io/v1/customresourcedefinitions")->has_generation);
}

TEST(events_of_both_groups_share_a_collection)
{
    REGISTRY r = fixture_registry();
    const struct kind *core = fixture_kind(r, "core/v1/events");
    const struct kind *newer = fixture_kind(r, "events.k8s.io/v1/events");
    assert_str(newer->collection, "events");
    assert_non_null(newer->from_stored);
    assert_non_null(newer->to_stored);
    assert_null(core->from_stored);
    assert_ptr_equal(registry_collection(r, STR("events")), core);
}

TEST(a_definition_becomes_a_kind_per_version)
{
    REGISTRY r = fixture_registry_with(DEVICES);
    const struct kind *k = fixture_kind(r, "example.org/v1/devices");
    assert_str(k->api_version, "example.org/v1");
    assert_str(k->collection, "devices.example.org");
    assert_str(k->definition, "org.example.v1.Device");
    assert_str(k->list_kind, "DeviceList");
    assert_str(k->short_names[0], "dev");
    assert_str(k->categories[0], "eve");
    assert_true(k->is_namespaced && !k->is_native && k->has_generation && k->has_status);
    assert_int_equal(k->verbs, (1u << VERB_COUNT) - 1);
    assert_ptr_equal(registry_collection(r, STR("devices.example.org")), k);
    assert_null(registry_find(r, STR("example.org"), STR("v0"), STR("devices")));

    const struct registry_group *g = registry_group(r, STR("example.org"));
    assert_int_equal(g->n_versions, 2);
    assert_str(g->versions[0].version, "v1");
    assert_null(registry_group(r, STR("nobody.example.org")));
}

TEST(a_deprecated_version_says_so)
{
    REGISTRY r = fixture_registry_with(DEVICES);
    const struct kind *k = fixture_kind(r, "example.org/v1beta1/devices");
    assert_true(k->is_deprecated);
    assert_str(k->deprecation_warning,
               "example.org/v1beta1 Device is deprecated; use example.org/v1 Device");
    assert_false(fixture_kind(r, "example.org/v1/devices")->is_deprecated);
}

TEST(columns_have_defaults)
{
    REGISTRY r = fixture_registry_with(DEVICES);
    const struct kind *k = fixture_kind(r, "example.org/v1/devices");
    assert_int_equal(k->n_columns, 2);
    assert_str(k->columns[0].description,
               "Custom resource definition column (in JSONPath format): .spec.serial");
    assert_str(k->columns[1].description, "How many.");
    assert_int_equal(k->columns[1].priority, 1);
    k = fixture_kind(r, "example.org/v1beta1/devices");
    assert_int_equal(k->n_columns, 1);
    assert_str(k->columns[0].name, "Age");
    assert_str(k->columns[0].type, "date");
    assert_true(
        str_starts_with(k->columns[0].description, STR("CreationTimestamp is a timestamp")));
}

TEST(scale_and_selectable_fields_are_compiled)
{
    ARENA_AUTO a = arena_new();
    REGISTRY r = fixture_registry_with(DEVICES);
    const struct kind *k = fixture_kind(r, "example.org/v1/devices");
    const struct json *object = fixture_json(a, "{'spec':{'n':3,'mode':'off'}}");
    assert_int_equal(jsonpath_first(k->scale->spec_replicas, object)->i, 3);
    assert_null(k->scale->label_selector);
    assert_int_equal(k->n_selectable, 1);
    assert_str(k->selectable[0].path, "spec.mode");
    assert_str(kind_selectable_value(a, &k->selectable[0], object), "off");
    assert_str(
        kind_selectable_value(a, &k->selectable[0], fixture_json(a, "{'spec':{'mode':true}}")),
        "true");
    assert_str(kind_selectable_value(a, &k->selectable[0], fixture_json(a, "{}")), "");
}

TEST(an_event_source_may_be_its_controller)
{
    ARENA_AUTO a = arena_new();
    REGISTRY r = fixture_registry();
    const struct kind *k = fixture_kind(r, "core/v1/events");
    for (size_t i = 0; i < k->n_selectable; i++) {
        if (!str_is(k->selectable[i].path, "source"))
            continue;
        const struct json *old =
            fixture_json(a, "{'source':{'component':'me'},'reportingComponent':'x'}");
        const struct json *newer = fixture_json(a, "{'source':{},'reportingComponent':'x'}");
        assert_str(kind_selectable_value(a, &k->selectable[i], old), "me");
        assert_str(kind_selectable_value(a, &k->selectable[i], newer), "x");
        return;
    }
    fail_msg("events have no source to select by");
}

TEST(selectable_fields_are_looked_up_in_the_stored_form)
{
    ARENA_AUTO a = arena_new();
    REGISTRY r = fixture_registry();
    const struct kind *k = fixture_kind(r, "events.k8s.io/v1/events");
    const struct json *stored = fixture_json(
        a,
        "{'involvedObject':{'kind':'K','namespace':'n','name':'x','uid':'u','apiVersion':'v1',"
        "'resourceVersion':'1','fieldPath':'f'},'reason':'R','type':'T','reportingComponent':'c'}");
    assert_int_equal(k->n_selectable, 10);
    for (size_t i = 0; i < k->n_selectable; i++)
        if (kind_selectable_value(a, &k->selectable[i], stored).n == 0)
            fail_msg("%.*s is not found", STR_ARG(k->selectable[i].path));
}

TEST(accepted_names_win_over_those_asked_for)
{
    REGISTRY r =
        fixture_registry_with("{'spec':{'group':'example.org','scope':'Cluster','names':{'plural':'"
                              "things','kind':'Other'},"
                              "'versions':[{'name':'v1','served':true,'storage':true,'schema':{'"
                              "openAPIV3Schema':{'type':'object'}}}]},"
                              "'status':{'acceptedNames':{'plural':'things','kind':'Thing'}}}");
    assert_str(fixture_kind(r, "example.org/v1/things")->kind, "Thing");
}

TEST(what_does_not_compile_is_named)
{
    static const struct {
        const char *crd, *error;
    } cases[] = {
        {"{'spec':{'group':'example.org','names':{'kind':'X'},'versions':[]}}", "names"},
        {"{'spec':{'group':'example.org','names':{'plural':'xs','kind':'X'},'versions':[{'name':'"
         "v1','served':true,"
         "'storage':true,'additionalPrinterColumns':[{'name':'C','type':'string','jsonPath':'.a['}]"
         "}]}}",
         "xs.example.org"},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        const struct kind **kinds = NULL;
        size_t n_kinds = 0;
        struct str error = STR("");
        assert_true(kind_compile(a, fixture_json(a, cases[i].crd), &kinds, &n_kinds, &error) < 0);
        if (str_find_str(error, str_of(cases[i].error)) < 0)
            fail_msg("\"%.*s\" does not name %s", STR_ARG(error), cases[i].error);
    }
}

TEST(a_definition_that_does_not_compile_leaves_the_others_alone)
{
    ARENA_AUTO a = arena_new();
    const struct json *crds[] = {
        fixture_json(
            a,
            "{'spec':{'group':'example.org','names':{'plural':'xs','kind':'X'},'versions':["
            "{'name':'v1','served':true,'storage':true},{'name':'v2','served':true,'storage':false,"
            "'additionalPrinterColumns':[{'name':'C','type':'string','jsonPath':'.a['}]}]}}"),
        fixture_json(a, DEVICES),
    };
    struct str error = STR("");
    REGISTRY r = registry_build(crds, N_ELEMENTS(crds), 1, &error);
    assert_non_null(r);
    assert_null(registry_find(r, STR("example.org"), STR("v1"), STR("xs")));
    assert_str(fixture_kind(r, "example.org/v1/devices")->kind, "Device");
}

TEST(longer_names_than_any_kind_has_are_not_found)
{
    REGISTRY r = fixture_registry();
    char name[600];
    memset(name, 'x', sizeof(name));
    assert_null(registry_find(r, STR(""), STR("v1"), str_range(name, sizeof(name))));
    assert_null(registry_find_kind(r, str_range(name, sizeof(name)), STR("ConfigMap")));
}

TEST(versions_are_ranked_as_kubernetes_does)
{
    static const char *const ranked[] = {"v10",      "v2",      "v1",        "v11beta2",
                                         "v10beta3", "v3beta1", "v12alpha1", "v11alpha2",
                                         "foo1",     "foo10",   "v01",       "v1rc1"};
    for (size_t i = 0; i + 1 < N_ELEMENTS(ranked); i++)
        if (version_compare(str_of(ranked[i]), str_of(ranked[i + 1])) <= 0)
            fail_msg("%s does not rank above %s", ranked[i], ranked[i + 1]);
    assert_int_equal(version_compare(STR("v1"), STR("v1")), 0);
}

TEST(a_snapshot_lives_until_its_last_user_goes)
{
    struct registry *r = fixture_registry();
    registry_ref(r);
    registry_unref(r);
    assert_str(fixture_kind(r, "core/v1/configmaps")->kind, "ConfigMap");
    registry_unref(r);
}
