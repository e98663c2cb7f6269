/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "test.h"

#include "fleet/composing.h"
#include "fleet/fleet.h"
#include "world.h"

#define EVE "eve.lfedge.org/v1beta1/"
#define CONFIGS "deviceconfigs.eve.lfedge.org"
#define DEVICES "devices.eve.lfedge.org"
#define SECOND_MS 1000

static const struct controller *const table[] = {&composing_controller, NULL};

static void begin(struct world *w)
{
    w->ctx.fleet =
        fleet_new(&(struct fleet_options){.client = &w->api.client, .clock = &w->clock.clock});
}

static void end(struct world *w)
{
    fleet_free(w->ctx.fleet);
}

/* ---- a small company ------------------------------------------------------------------------- */

static void make(struct world *w, const char *kind, const char *text)
{
    assert_int_equal(world_create(w, kind, "n", text), 0);
}

static void make_parts(struct world *w)
{
    assert_int_equal(
        world_create(w, "storage.k8s.io/v1/storageclasses", "",
                     "{'kind':'StorageClass','apiVersion':'storage.k8s.io/v1','metadata':"
                     "{'name':'docker'},'provisioner':'eve','parameters':{'type':"
                     "'container','URL':'docker://docker.io'}}"),
        0);
    make(w, EVE "images",
         "{'kind':'Image','metadata':{'name':'nginx'},'spec':{'ref':'nginx:1',"
         "'storageClass':'docker'}}");
    make(w, EVE "networkconfigs",
         "{'kind':'NetworkConfig','metadata':{'name':'dhcp'},'spec':{'ip':'dhcp'}}");
    make(w, EVE "devicenetworks",
         "{'kind':'DeviceNetwork','metadata':{'name':'a'},'spec':{'networkConfig':'dhcp',"
         "'management':true,'type':'local','nodeSelector':{'site':'a'}}}");
}

static void make_device(struct world *w, const char *name, const char *site)
{
    ARENA_AUTO a = arena_new();
    make(w, EVE "devices",
         arena_printf(a,
                      "{'kind':'Device','metadata':{'name':'%s','labels':{'site':'%s'}},'spec':{}}",
                      name, site)
             .p);
}

static void set_status(struct world *w, const char *plural, const char *name, const char *text)
{
    ARENA_AUTO a = arena_new();
    char *copy = arena_strz(a, str_of(text));
    for (char *p = copy; *p; p++)
        if (*p == '\'')
            *p = '"';
    const struct kube_request r = {.verb = VERB_PATCH,
                                   .group = STR("eve.lfedge.org"),
                                   .version = STR("v1beta1"),
                                   .resource = str_of(plural),
                                   .namespace = STR("n"),
                                   .name = str_of(name),
                                   .subresource = STR("status"),
                                   .content_type = STR("application/merge-patch+json"),
                                   .body = json_parse_quick(a, str_of(copy))};
    assert_int_equal(fake_request(&w->api, a, &r, NULL), 0);
}

static void make_application(struct world *w)
{
    make(w, EVE "applications",
         "{'kind':'Application','metadata':{'name':'web'},'spec':{'activate':true,'containers':[{"
         "'name':'c','image':'nginx','resources':{'limits':{'memory':'256Mi'}}}]}}");
    set_status(w, "applications", "web", "{'status':{'device':'d'}}");
}

#define WORLD \
    CLEANUP(world_done) struct world w; \
    world_init_shared(&w, world_seed(), table, begin, end); \
    make_parts(&w)

static const struct json *app_of(struct world *w, const char *device)
{
    const struct json *apps = world_at(w, CONFIGS, "n", device, "spec", "config", "apps", NULL);
    return json_count(apps) ? &apps->items[0] : NULL;
}

static int64_t counter(struct world *w, const char *name)
{
    const struct json *app = app_of(w, "d");
    assert_non_null(app);
    return json_get_int(json_get(app, str_of(name)), STR("counter"), 0);
}

static int64_t memory_of(struct world *w)
{
    return json_get_int(json_get(app_of(w, "d"), STR("fixedresources")), STR("memory"), 0);
}

static void edit_memory(struct world *w, const char *amount)
{
    ARENA_AUTO a = arena_new();
    const struct str text = arena_printf(a,
                                         "{'spec':{'containers':[{'name':'c','image':'nginx','"
                                         "resources':{'limits':{'memory':'%s'}}}]"
                                         "}}",
                                         amount);
    assert_int_equal(world_patch(w, EVE "applications", "n", "web", text.p), 0);
}

/* ---- one step -------------------------------------------------------------------------------- */

TEST(a_device_is_told_what_applies_to_it)
{
    WORLD;
    make_device(&w, "d", "a");
    make_device(&w, "e", "b");
    make_application(&w);
    world_pass(&w, SECOND_MS);
    assert_int_equal(memory_of(&w), 256 * 1024);
    assert_null(app_of(&w, "e"));
    assert_int_equal(
        json_count(world_at(&w, CONFIGS, "n", "d", "spec", "config", "networkInstances", NULL)), 1);
    assert_int_equal(
        json_count(world_at(&w, CONFIGS, "n", "e", "spec", "config", "networkInstances", NULL)), 0);
    /* It never loses its controller. */
    assert_int_equal(
        json_count(world_at(&w, CONFIGS, "n", "e", "spec", "config", "systemAdapterList", NULL)),
        1);
}

TEST(nothing_is_written_that_is_so_already)
{
    WORLD;
    make_device(&w, "d", "a");
    make_application(&w);
    world_pass(&w, SECOND_MS);
    const size_t n_writes = w.api.n_writes;
    world_restart(&w);
    world_pass(&w, SECOND_MS);
    assert_int_equal(w.api.n_writes, n_writes);
    set_status(&w, "applications", "web", "{'status':{'state':'RUNNING'}}");
    world_pass(&w, SECOND_MS);
    assert_int_equal(w.api.n_writes, n_writes + 1); /* the patch itself */
}

TEST(only_those_concerned_are_composed_anew)
{
    WORLD;
    make_device(&w, "d", "a");
    make_device(&w, "e", "b");
    world_pass(&w, SECOND_MS);
    const struct str before = world_text(&w, CONFIGS, "n", "e", "metadata", "resourceVersion");
    assert_int_equal(world_patch(&w, EVE "networkconfigs", "n", "dhcp", "{'spec':{'mtu':1400}}"),
                     0);
    world_pass(&w, SECOND_MS);
    const struct json *networks =
        world_at(&w, CONFIGS, "n", "d", "spec", "config", "networks", NULL);
    assert_int_equal(json_get_int(&networks->items[0], STR("mtu"), 0), 1400);
    assert_true(str_eq(before, world_text(&w, CONFIGS, "n", "e", "metadata", "resourceVersion")));
}

TEST(an_application_that_moves_leaves_the_old_device)
{
    WORLD;
    make_device(&w, "d", "a");
    make_device(&w, "e", "a");
    make_application(&w);
    world_pass(&w, SECOND_MS);
    assert_non_null(app_of(&w, "d"));
    set_status(&w, "applications", "web", "{'status':{'device':'e'}}");
    world_pass(&w, SECOND_MS);
    assert_null(app_of(&w, "d"));
    assert_non_null(app_of(&w, "e"));
}

TEST(labels_decide_again_when_they_change)
{
    WORLD;
    make_device(&w, "d", "b");
    world_pass(&w, SECOND_MS);
    assert_int_equal(
        json_count(world_at(&w, CONFIGS, "n", "d", "spec", "config", "networkInstances", NULL)), 0);
    assert_int_equal(
        world_patch(&w, EVE "devices", "n", "d", "{'metadata':{'labels':{'site':'a'}}}"), 0);
    world_pass(&w, SECOND_MS);
    assert_int_equal(
        json_count(world_at(&w, CONFIGS, "n", "d", "spec", "config", "networkInstances", NULL)), 1);
    /* And when those of the network do. */
    assert_int_equal(
        world_patch(&w, EVE "devicenetworks", "n", "a", "{'spec':{'nodeSelector':{'site':'c'}}}"),
        0);
    world_pass(&w, SECOND_MS);
    assert_int_equal(
        json_count(world_at(&w, CONFIGS, "n", "d", "spec", "config", "networkInstances", NULL)), 0);
}

TEST(a_configuration_that_is_deleted_comes_back_with_its_counters)
{
    WORLD;
    make_device(&w, "d", "a");
    make_application(&w);
    world_pass(&w, SECOND_MS);
    edit_memory(&w, "512Mi");
    world_pass(&w, SECOND_MS);
    assert_int_equal(counter(&w, "restart"), 1);
    assert_int_equal(world_delete(&w, EVE "deviceconfigs", "n", "d", NULL), 0);
    world_pass(&w, SECOND_MS);
    assert_int_equal(counter(&w, "restart"), 1);
}

TEST(a_whole_configuration_is_left_alone)
{
    WORLD;
    make_device(&w, "d", "a");
    world_pass(&w, SECOND_MS);
    assert_int_equal(world_patch(&w, EVE "deviceconfigs", "n", "d",
                                 "{'metadata':{'annotations':{'eve.lfedge.org/composed':'false'}},"
                                 "'spec':{'config':{'deviceName':'mine'}}}"),
                     0);
    make_application(&w);
    world_pass(&w, SECOND_MS);
    assert_null(app_of(&w, "d"));
    assert_true(str_is(
        json_str(world_at(&w, CONFIGS, "n", "d", "spec", "config", "deviceName", NULL)), "mine"));
    assert_int_equal(world_patch(&w, EVE "deviceconfigs", "n", "d",
                                 "{'metadata':{'annotations':{'eve.lfedge.org/composed':null}}}"),
                     0);
    world_pass(&w, SECOND_MS);
    assert_non_null(app_of(&w, "d"));
    assert_true(str_is(
        json_str(world_at(&w, CONFIGS, "n", "d", "spec", "config", "deviceName", NULL)), "d"));
}

/* ---- faults --------------------------------------------------------------------------------- */

/* One edit of memory restarts once and one of the image purges once, whatever happens between. */
static void live_through(struct world *w, bool restarts)
{
    make_device(w, "d", "a");
    make_application(w);
    world_pass(w, 600 * SECOND_MS);
    if (restarts)
        world_restart(w);
    edit_memory(w, "512Mi");
    world_pass(w, restarts ? 110 : 600 * SECOND_MS);
    if (restarts)
        world_restart(w);
    world_pass(w, 600 * SECOND_MS);
    assert_int_equal(world_patch(w, EVE "images", "n", "nginx", "{'spec':{'ref':'nginx:2'}}"), 0);
    world_pass(w, restarts ? 110 : 600 * SECOND_MS);
    if (restarts)
        world_restart(w);
    world_pass(w, 600 * SECOND_MS);
}

static void check_end(struct world *w)
{
    assert_int_equal(memory_of(w), 512 * 1024);
    assert_int_equal(counter(w, "restart"), 1);
    assert_int_equal(counter(w, "purge"), 1);
    assert_int_equal(fake_count(&w->api, CONFIGS), 1);
}

TEST(restarts_at_every_step_count_nothing_twice)
{
    WORLD;
    live_through(&w, true);
    check_end(&w);
}

TEST(requests_that_fail_or_whose_answers_are_lost_count_nothing_twice)
{
    for (unsigned i = 0; i < 20; i++) {
        CLEANUP(world_done) struct world w;
        world_init_shared(&w, world_seed(), table, begin, end);
        make_parts(&w);
        w.api.fail_percent = 5;
        w.api.lose_percent = 5;
        w.repeat_percent = 20;
        live_through(&w, i % 2);
        check_end(&w);
    }
}

TEST(events_that_are_lost_are_made_up_for_at_the_next_start)
{
    WORLD;
    make_device(&w, "d", "a");
    make_application(&w);
    world_pass(&w, SECOND_MS);
    w.drop_percent = 100;
    edit_memory(&w, "512Mi");
    world_pass(&w, 10 * SECOND_MS);
    w.drop_percent = 0;
    world_restart(&w);
    world_pass(&w, 10 * SECOND_MS);
    assert_int_equal(memory_of(&w), 512 * 1024);
    assert_int_equal(counter(&w, "restart"), 1);
}
