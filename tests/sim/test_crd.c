/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>

#include "test.h"

#include "controllers/crd.h"
#include "world.h"

#define CRDS "apiextensions.k8s.io/v1/customresourcedefinitions"
#define COLLECTION "customresourcedefinitions.apiextensions.k8s.io"
#define DEVICES "x.org/v1/devices"

static const struct controller *const just_crds[] = {&crd_controller, NULL};

#define WORLD \
    CLEANUP(world_done) struct world w; \
    world_init(&w, 1, just_crds)

static int make(struct world *w, const char *plural, const char *kind, const char *more)
{
    ARENA_AUTO a = arena_new();
    struct str text = arena_printf(
        a,
        "{'metadata':{'name':'%s.x.org'},'spec':{'group':'x.org','scope':'Namespaced','names':"
        "{'plural':'%s','kind':'%s'%s},'versions':[{'name':'v1','served':true,'storage':true,"
        "'schema':{'openAPIV3Schema':{'type':'object','x-kubernetes-preserve-unknown-fields':true}}"
        "}]}}",
        plural, plural, kind, more);
    return world_create(w, CRDS, NULL, text.p);
}

static const struct json *condition(struct world *w, const char *name, const char *type)
{
    JSON_FOR_EACH_ITEM (world_at(w, COLLECTION, NULL, name, "status", "conditions", NULL), c)
        if (str_is(json_get_str(c, STR("type")), type))
            return c;
    return NULL;
}

static void assert_condition(struct world *w, const char *name, const char *type,
                             const char *status, const char *reason)
{
    assert_str(json_get_str(condition(w, name, type), STR("status")), status);
    assert_str(json_get_str(condition(w, name, type), STR("reason")), reason);
}

TEST(a_definition_is_established_and_served)
{
    WORLD;
    assert_int_equal(make(&w, "devices", "Device", ",'shortNames':['dev'],'categories':['eve']"),
                     0);
    assert_int_equal(world_create(&w, DEVICES, "n", "{'metadata':{'name':'d'}}"), -ENOENT);
    world_pass(&w, 0);
    assert_condition(&w, "devices.x.org", "NamesAccepted", "True", "NoConflicts");
    assert_condition(&w, "devices.x.org", "Established", "True", "InitialNamesAccepted");
    const struct json *names =
        world_at(&w, COLLECTION, NULL, "devices.x.org", "status", "acceptedNames", NULL);
    ARENA_AUTO a = arena_new();
    assert_str(json_text(a, names),
               "{\"plural\":\"devices\",\"singular\":\"device\",\"shortNames\":[\"dev\"],"
               "\"kind\":\"Device\",\"listKind\":\"DeviceList\",\"categories\":[\"eve\"]}");
    assert_int_equal(world_create(&w, DEVICES, "n", "{'metadata':{'name':'d'}}"), 0);
}

TEST(it_is_served_before_it_says_that_it_is_established)
{
    WORLD;
    assert_int_equal(make(&w, "devices", "Device", ""), 0);
    world_pass(&w, 0);
    assert_int_equal(world_delete(&w, CRDS, NULL, "devices.x.org", NULL), 0);
    world_pass(&w, 0);
    /* Again, and this time nothing can be written after the names were accepted. */
    assert_int_equal(make(&w, "devices", "Device", ""), 0);
    for (uint64_t seed = 1; !condition(&w, "devices.x.org", "Established"); seed++) {
        assert_true(seed < 1000);
        w.api.fail_percent = 60;
        world_pass(&w, 60000);
    }
    w.api.fail_percent = 0;
    if (str_is(json_get_str(condition(&w, "devices.x.org", "Established"), STR("status")), "False"))
        assert_condition(&w, "devices.x.org", "Established", "False", "Installing");
    else
        assert_int_equal(world_create(&w, DEVICES, "n", "{'metadata':{'name':'d'}}"), 0);
}

TEST(names_in_use_are_refused_until_they_are_free)
{
    WORLD;
    assert_int_equal(make(&w, "devices", "Device", ",'shortNames':['dev']"), 0);
    world_pass(&w, 0);
    assert_int_equal(make(&w, "others", "Device", ",'shortNames':['dev']"), 0);
    world_pass(&w, 0);
    assert_condition(&w, "others.x.org", "NamesAccepted", "False", "ListKindConflict");
    assert_str(json_get_str(condition(&w, "others.x.org", "NamesAccepted"), STR("message")),
               "\"DeviceList\" is already in use");
    assert_condition(&w, "others.x.org", "Established", "False", "NotAccepted");
    ARENA_AUTO a = arena_new();
    assert_str(json_text(a, world_at(&w, COLLECTION, NULL, "others.x.org", "status",
                                     "acceptedNames", NULL)),
               "{\"plural\":\"others\",\"kind\":\"\"}");
    assert_int_equal(world_create(&w, "x.org/v1/others", "n", "{'metadata':{'name':'o'}}"),
                     -ENOENT);
    assert_int_equal(world_delete(&w, CRDS, NULL, "devices.x.org", NULL), 0);
    world_pass(&w, 0);
    assert_false(world_has(&w, COLLECTION, NULL, "devices.x.org"));
    assert_condition(&w, "others.x.org", "Established", "True", "InitialNamesAccepted");
    assert_int_equal(world_create(&w, "x.org/v1/others", "n", "{'metadata':{'name':'o'}}"), 0);
}

TEST(each_sort_of_name_has_its_reason)
{
    static const struct {
        const char *kind, *more, *reason;
    } table[] = {
        {"Other", ",'singular':'device'", "SingularConflict"},
        {"Other", ",'singular':'dev'", "SingularConflict"},
        {"Other", ",'shortNames':['o','devices']", "ShortNamesConflict"},
        {"Device", ",'singular':'o','listKind':'Os'", "KindConflict"},
        {"Other", ",'listKind':'Device'", "ListKindConflict"},
    };
    for (size_t i = 0; i < N_ELEMENTS(table); i++) {
        WORLD;
        assert_int_equal(make(&w, "devices", "Device", ",'shortNames':['dev']"), 0);
        world_pass(&w, 0);
        assert_int_equal(make(&w, "others", table[i].kind, table[i].more), 0);
        world_pass(&w, 0);
        assert_condition(&w, "others.x.org", "NamesAccepted", "False", table[i].reason);
    }
}

TEST(once_established_it_stays_so)
{
    WORLD;
    assert_int_equal(make(&w, "devices", "Device", ""), 0);
    assert_int_equal(make(&w, "others", "Other", ""), 0);
    world_pass(&w, 0);
    assert_int_equal(
        world_patch(&w, CRDS, NULL, "others.x.org", "{'spec':{'names':{'shortNames':['device']}}}"),
        0);
    world_pass(&w, 0);
    assert_condition(&w, "others.x.org", "NamesAccepted", "False", "ShortNamesConflict");
    assert_condition(&w, "others.x.org", "Established", "True", "InitialNamesAccepted");
    assert_str(json_str(world_at(&w, COLLECTION, NULL, "others.x.org", "status", "acceptedNames",
                                 "kind", NULL)),
               "Other");
}

TEST(a_new_version_is_served_at_once)
{
    WORLD;
    assert_int_equal(make(&w, "devices", "Device", ""), 0);
    world_pass(&w, 0);
    assert_int_equal(
        world_patch(&w, CRDS, NULL, "devices.x.org",
                    "{'metadata':{'generation':2},'spec':{'versions':[{'name':'v1','served':true,"
                    "'storage':true,'schema':{'openAPIV3Schema':{'type':'object'}}},{'name':'v2',"
                    "'served':true,'storage':false,'schema':{'openAPIV3Schema':{'type':'object'}}"
                    "}]}}"),
        0);
    world_pass(&w, 0);
    assert_int_equal(world_create(&w, "x.org/v2/devices", "n", "{'metadata':{'name':'d'}}"), 0);
}

TEST(objects_go_before_their_definition)
{
    WORLD;
    assert_int_equal(world_create(&w, "v1/namespaces", NULL, "{'metadata':{'name':'m'}}"), 0);
    assert_int_equal(make(&w, "devices", "Device", ""), 0);
    world_pass(&w, 0);
    assert_int_equal(world_create(&w, DEVICES, "n", "{'metadata':{'name':'a'}}"), 0);
    assert_int_equal(world_create(&w, DEVICES, "m", "{'metadata':{'name':'b'}}"), 0);
    assert_int_equal(
        world_create(&w, DEVICES, "n", "{'metadata':{'name':'c','finalizers':['x.org/hold']}}"), 0);
    assert_int_equal(world_delete(&w, CRDS, NULL, "devices.x.org", NULL), 0);
    assert_condition(&w, "devices.x.org", "Terminating", "True", "InstanceDeletionPending");
    world_pass(&w, 0);
    assert_condition(&w, "devices.x.org", "Terminating", "True", "InstanceDeletionInProgress");
    assert_int_equal(fake_count(&w.api, "devices.x.org"), 1);
    assert_int_equal(world_create(&w, DEVICES, "n", "{'metadata':{'name':'late'}}"), -EPERM);
    assert_int_equal(world_patch(&w, DEVICES, "n", "c", "{'metadata':{'finalizers':null}}"), 0);
    world_pass(&w, 0);
    assert_false(world_has(&w, COLLECTION, NULL, "devices.x.org"));
    assert_int_equal(world_create(&w, DEVICES, "n", "{'metadata':{'name':'late'}}"), -ENOENT);
}

TEST(one_that_was_never_established_goes_at_once)
{
    WORLD;
    assert_int_equal(make(&w, "devices", "Device", ""), 0);
    world_pass(&w, 0);
    assert_int_equal(make(&w, "others", "Device", ""), 0);
    world_pass(&w, 0);
    assert_int_equal(world_delete(&w, CRDS, NULL, "others.x.org", NULL), 0);
    world_pass(&w, 0);
    assert_false(world_has(&w, COLLECTION, NULL, "others.x.org"));
    assert_true(world_has(&w, COLLECTION, NULL, "devices.x.org"));
}

TEST(finalizers_of_others_stay)
{
    WORLD;
    assert_int_equal(make(&w, "devices", "Device", ""), 0);
    assert_int_equal(
        world_patch(&w, CRDS, NULL, "devices.x.org", "{'metadata':{'finalizers':['x.org/hold']}}"),
        0);
    world_pass(&w, 0);
    assert_int_equal(world_delete(&w, CRDS, NULL, "devices.x.org", NULL), 0);
    world_pass(&w, 3600000);
    assert_condition(&w, "devices.x.org", "Terminating", "False", "InstanceDeletionCompleted");
    assert_int_equal(
        json_count(world_at(&w, COLLECTION, NULL, "devices.x.org", "metadata", "finalizers", NULL)),
        1);
}

TEST(a_deletion_that_keeps_failing_is_told_once)
{
    WORLD;
    assert_int_equal(make(&w, "devices", "Device", ""), 0);
    world_pass(&w, 0);
    assert_int_equal(world_create(&w, DEVICES, "n", "{'metadata':{'name':'a'}}"), 0);
    w.api.failing_verb = VERB_DELETE_COLLECTION;
    assert_int_equal(world_delete(&w, CRDS, NULL, "devices.x.org", NULL), 0);
    size_t n_writes = w.api.n_writes;
    world_pass(&w, 3600000);
    assert_condition(&w, "devices.x.org", "Terminating", "True", "InstanceDeletionFailed");
    assert_in_range(w.api.n_writes - n_writes, 1, 2);
    w.api.failing_verb = VERB_COUNT;
    world_pass(&w, 3600000);
    assert_false(world_has(&w, COLLECTION, NULL, "devices.x.org"));
}

static void run_chance(uint64_t seed)
{
    CLEANUP(world_done) struct world w;
    world_init(&w, seed, just_crds);
    w.api.fail_percent = w.api.lose_percent = 15;
    w.drop_percent = 20;
    w.repeat_percent = 20;
    for (int i = 0; i < 12; i++) {
        (void) make(&w, "devices", "Device", ",'shortNames':['dev']");
        (void) make(&w, "others", i % 2 ? "Device" : "Other", "");
        world_pass(&w, (int64_t) fake_random(&w.api, 2000));
        (void) world_create(&w, DEVICES, "n", "{'metadata':{'name':'d'}}");
        (void) world_delete(&w, CRDS, NULL, i % 3 ? "devices.x.org" : "others.x.org", NULL);
        world_pass(&w, (int64_t) fake_random(&w.api, 2000));
        if (fake_random(&w.api, 3) == 0)
            world_restart(&w);
    }
    (void) world_delete(&w, CRDS, NULL, "others.x.org", NULL);
    w.drop_percent = 0;
    world_restart(&w);
    world_pass(&w, 3600000);
    (void) make(&w, "devices", "Device", "");
    world_pass(&w, 3600000);
    bool is_served = world_create(&w, DEVICES, "n", "{'metadata':{'name':'last'}}") == 0;
    const struct json *c = condition(&w, "devices.x.org", "Established");
    if (!is_served || !str_is(json_get_str(c, STR("status")), "True"))
        fail_msg("seed %" PRIu64 ": not established", seed);
    if (world_has(&w, COLLECTION, NULL, "others.x.org"))
        fail_msg("seed %" PRIu64 ": what was deleted is there", seed);
}

TEST(it_settles_whatever_fails_or_was_missed)
{
    uint64_t seed = world_seed();
    for (uint64_t i = 0; i < 10; i++)
        run_chance(seed + i);
}
