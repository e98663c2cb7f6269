/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "test.h"

#include "controllers/conditions.h"
#include "scheduling/scheduler.h"
#include "world.h"

static const struct controller *const just_scheduler[] = {&scheduler_controller, NULL};

#define WORLD \
    CLEANUP(world_done) struct world w; \
    world_init(&w, 1, just_scheduler)

#define DEVICES "eve.lfedge.org/v1beta1/devices"
#define NETWORKS "eve.lfedge.org/v1beta1/devicenetworks"
#define VOLUMES "eve.lfedge.org/v1beta1/volumes"
#define APPLICATIONS "eve.lfedge.org/v1beta1/applications"
#define APPLICATION_COLLECTION "applications.eve.lfedge.org"
#define LONG_MS 3600000

/* ---- making ---------------------------------------------------------------------------------- */

static void make_device(struct world *w, const char *name, const char *labels)
{
    ARENA_AUTO a = arena_new();
    const struct str text =
        arena_printf(a, "{'metadata':{'name':'%s','labels':{%s}},'spec':{}}", name, labels);
    assert_int_equal(world_create(w, DEVICES, "n", text.p), 0);
}

static void set_room(struct world *w, const char *name, const char *memory, int cpu)
{
    ARENA_AUTO a = arena_new();
    const struct str text =
        arena_printf(a, "{'status':{'allocatable':{'memory':'%s','cpu':'%d'}}}", memory, cpu);
    assert_int_equal(world_patch(w, DEVICES, "n", name, text.p), 0);
}

static void make_device_with(struct world *w, const char *name, const char *memory, int cpu)
{
    make_device(w, name, "");
    set_room(w, name, memory, cpu);
}

struct app {
    const char *name, *memory, *spec, *networks;
};

static void make_app(struct world *w, const struct app *app)
{
    ARENA_AUTO a = arena_new();
    const struct str text = arena_printf(
        a,
        "{'metadata':{'name':'%s','annotations':{'k8s.v1.cni.cncf.io/networks':'%s'}},"
        "'spec':{'containers':[{'name':'c','image':'i','resources':{'limits':{'memory':'%s',"
        "'cpu':'1'}}}]%s}}",
        app->name, app->networks ? app->networks : "", app->memory ? app->memory : "1Gi",
        app->spec ? app->spec : "");
    assert_int_equal(world_create(w, APPLICATIONS, "n", text.p), 0);
}

#define APP(...) make_app(&w, &(struct app){__VA_ARGS__})

/* ---- looking --------------------------------------------------------------------------------- */

static struct str device_of(struct world *w, const char *name)
{
    return world_text(w, APPLICATION_COLLECTION, "n", name, "status", "device");
}

static struct str said(struct world *w, const char *name, const char *type, const char *what)
{
    struct json *conditions = (struct json *) world_at(w, APPLICATION_COLLECTION, "n", name,
                                                       "status", "conditions", NULL);
    return json_get_str(conditions_find(conditions, type), str_of(what));
}

struct event_count {
    const char *reason;
    int64_t n, n_objects;
};

static void count_event(void *ctx, struct str collection, const struct json *o)
{
    struct event_count *c = ctx;
    if (!str_is(collection, "events") || !str_is(json_get_str(o, STR("reason")), c->reason))
        return;
    c->n += json_get_int(o, STR("count"), 0);
    c->n_objects++;
}

static int64_t events_of(struct world *w, const char *reason)
{
    struct event_count c = {.reason = reason};
    fake_each(&w->api, count_event, &c);
    return c.n;
}

/* ---- where to -------------------------------------------------------------------------------- */

TEST(a_choice_is_written_once_with_all_that_is_said_of_it)
{
    WORLD;
    make_device_with(&w, "d", "4Gi", 4);
    world_pass(&w, 0);
    const size_t n_before = w.api.n_writes;
    APP("a");
    world_pass(&w, LONG_MS);
    assert_str(device_of(&w, "a"), "d");
    assert_str(said(&w, "a", "Accepted", "status"), "True");
    assert_str(said(&w, "a", "Scheduled", "status"), "True");
    assert_str(said(&w, "a", "Scheduled", "message"), "assigned to device 'd'");
    assert_int_equal(
        world_at(&w, APPLICATION_COLLECTION, "n", "a", "status", "observedGeneration", NULL)->i, 1);
    assert_int_equal(events_of(&w, "Scheduled"), 1);
    assert_int_equal(w.api.n_writes - n_before, 3); /* made, scheduled, told */
}

TEST(the_one_with_most_room_is_chosen)
{
    WORLD;
    make_device_with(&w, "a", "4Gi", 8);
    make_device_with(&w, "b", "8Gi", 8);
    make_device_with(&w, "c", "16Gi", 1); /* one more fits, there: its CPU is the scarce thing */
    APP("1");
    world_pass(&w, 0);
    APP("2");
    APP("3");
    APP("4");
    world_pass(&w, 0);
    assert_str(device_of(&w, "1"), "b");
    assert_str(device_of(&w, "2"), "b");
    assert_str(device_of(&w, "3"), "b");
    assert_str(device_of(&w, "4"), "b"); /* 5 and 5: more CPU is left on a, more memory on b */
    APP("5");
    world_pass(&w, 0);
    assert_str(device_of(&w, "5"), "a");
}

TEST(devices_that_have_reported_come_first)
{
    WORLD;
    make_device(&w, "a", "");
    make_device(&w, "b", "");
    make_device_with(&w, "z", "1Gi", 1);
    const char *const names[] = {"1", "2", "3", "4"}, *const expected[] = {"z", "a", "b", "a"};
    for (size_t i = 0; i < N_ELEMENTS(names); i++) {
        APP(names[i]);
        world_pass(&w, 0);
        assert_str(device_of(&w, names[i]), expected[i]);
    }
}

#define PREFER_SSD \
    ",'affinity':{'nodeAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':5," \
    "'preference':{'matchExpressions':[{'key':'disk','operator':'In','values':['ssd']}]}}]}}"

TEST(selectors_and_preferences_decide_before_room)
{
    WORLD;
    make_device(&w, "a", "'disk':'ssd','site':'north'");
    make_device(&w, "b", "'disk':'disk','site':'north'");
    make_device(&w, "c", "'disk':'ssd','site':'south'");
    set_room(&w, "a", "2Gi", 2);
    set_room(&w, "b", "8Gi", 8);
    set_room(&w, "c", "4Gi", 4);
    APP("any");
    APP("by-name", .spec = ",'nodeSelector':{'name':'a'}");
    APP("by-label", .spec = ",'nodeSelector':{'site':'south'}");
    world_pass(&w, 0);
    APP("preferred", .spec = PREFER_SSD ",'nodeSelector':{'site':'north'}");
    APP("elsewhere",
        .spec = ",'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"
                "'nodeSelectorTerms':[{'matchExpressions':[{'key':'site','operator':'NotIn',"
                "'values':['north']}]}]}}}");
    world_pass(&w, 0);
    assert_str(device_of(&w, "any"), "b");
    assert_str(device_of(&w, "by-name"), "a");
    assert_str(device_of(&w, "by-label"), "c");
    assert_str(device_of(&w, "preferred"), "a");
    assert_str(device_of(&w, "elsewhere"), "c");
}

TEST(what_is_preferred_may_be_full_or_missing)
{
    WORLD;
    make_device(&w, "a", "'disk':'ssd'");
    make_device(&w, "b", "'disk':'disk'");
    make_device(&w, "c", "");
    set_room(&w, "a", "1Gi", 8);
    set_room(&w, "b", "4Gi", 8);
    set_room(&w, "c", "2Gi", 8);
    const char *const names[] = {"1", "2", "3", "4"}, *const expected[] = {"a", "b", "b", "c"};
    for (size_t i = 0; i < N_ELEMENTS(names); i++) {
        APP(names[i], .spec = PREFER_SSD);
        world_pass(&w, 0);
        assert_str(device_of(&w, names[i]), expected[i]);
    }
}

TEST(nothing_crosses_a_namespace)
{
    WORLD;
    assert_int_equal(world_create(&w, "v1/namespaces", NULL, "{'metadata':{'name':'m'}}"), 0);
    assert_int_equal(world_create(&w, DEVICES, "m", "{'metadata':{'name':'d'}}"), 0);
    APP("a");
    world_pass(&w, 0);
    assert_str(said(&w, "a", "Scheduled", "reason"), "NoMatchingDevice");
    assert_str(said(&w, "a", "Scheduled", "message"), "0/0 devices are available.");
}

/* ---- waiting --------------------------------------------------------------------------------- */

TEST(what_fits_nowhere_is_told_why)
{
    WORLD;
    make_device(&w, "far", "'site':'south'");
    make_device(&w, "full", "'site':'north'");
    make_device(&w, "weak", "'site':'north'");
    make_device(&w, "off", "'site':'north'");
    set_room(&w, "full", "512Mi", 8);
    set_room(&w, "weak", "8Gi", 0);
    assert_int_equal(
        world_patch(&w, DEVICES, "n", "off",
                    "{'metadata':{'annotations':{'eve.lfedge.org/activate':'false'}}}"),
        0);
    APP("a", .spec = ",'nodeSelector':{'site':'north'}");
    APP("b", .spec = ",'nodeSelector':{'name':'off'}");
    APP("c", .spec = ",'nodeSelector':{'name':'none'}");
    APP("d", .memory = "much", .spec = ",'nodeSelector':{'site':'south'}");
    world_pass(&w, 0);
    assert_str(said(&w, "a", "Scheduled", "status"), "False");
    assert_str(said(&w, "a", "Scheduled", "reason"), "InsufficientResources");
    assert_str(said(&w, "a", "Scheduled", "message"),
               "0/4 devices are available: 1 didn't match its nodeSelector or nodeAffinity, 1 not "
               "active, 1 with insufficient memory, 1 with insufficient cpu. It asks for 1024Mi of "
               "memory and 1 cpu.");
    assert_str(said(&w, "a", "Accepted", "status"), "True");
    assert_null(device_of(&w, "a").p);
    assert_str(said(&w, "b", "Scheduled", "reason"), "NoActiveDevice");
    assert_str(said(&w, "c", "Scheduled", "reason"), "NoMatchingDevice");
    assert_str(said(&w, "c", "Scheduled", "message"),
               "0/4 devices are available: 4 didn't match its nodeSelector or nodeAffinity.");
    assert_str(said(&w, "d", "Accepted", "status"), "False");
    assert_str(said(&w, "d", "Scheduled", "reason"), "NotAccepted");
}

TEST(what_waits_is_served_when_there_is_room)
{
    WORLD;
    make_device_with(&w, "d", "1Gi", 4);
    APP("a");
    world_pass(&w, 0);
    APP("b");
    APP("c");
    world_pass(&w, 0);
    assert_str(said(&w, "b", "Scheduled", "reason"), "InsufficientResources");
    /* More of it: one of the two. */
    set_room(&w, "d", "2Gi", 4);
    world_pass(&w, 0);
    assert_int_equal((device_of(&w, "b").n > 0) + (device_of(&w, "c").n > 0), 1);
    /* Another that goes. */
    assert_int_equal(world_delete(&w, APPLICATIONS, "n", "a", NULL), 0);
    world_pass(&w, 0);
    assert_str(device_of(&w, "b"), "d");
    assert_str(device_of(&w, "c"), "d");
    /* Another device. */
    APP("e", .spec = ",'nodeSelector':{'site':'new'}");
    world_pass(&w, 0);
    make_device(&w, "f", "'site':'new'");
    world_pass(&w, 0);
    assert_str(device_of(&w, "e"), "f");
}

TEST(an_activated_device_serves)
{
    WORLD;
    assert_int_equal(world_create(&w, DEVICES, "n",
                                  "{'metadata':{'name':'d','annotations':{"
                                  "'eve.lfedge.org/activate':'false'}}}"),
                     0);
    APP("a");
    world_pass(&w, 0);
    assert_null(device_of(&w, "a").p);
    assert_int_equal(world_patch(&w, DEVICES, "n", "d",
                                 "{'metadata':{'annotations':{'eve.lfedge.org/activate':'true'}}}"),
                     0);
    world_pass(&w, 0);
    assert_str(device_of(&w, "a"), "d");
}

TEST(failure_is_told_when_it_changes)
{
    WORLD;
    make_device_with(&w, "d", "512Mi", 4);
    APP("a");
    world_pass(&w, LONG_MS);
    assert_int_equal(events_of(&w, "FailedScheduling"), 1);
    set_room(&w, "d", "513Mi", 4);
    world_pass(&w, LONG_MS);
    assert_int_equal(events_of(&w, "FailedScheduling"), 1);
    make_device_with(&w, "e", "512Mi", 4);
    world_pass(&w, LONG_MS);
    assert_int_equal(events_of(&w, "FailedScheduling"), 2);
    assert_true(str_starts_with(said(&w, "a", "Scheduled", "message"),
                                STR("0/2 devices are available: 2 with insufficient memory.")));
    set_room(&w, "e", "1Gi", 4);
    world_pass(&w, LONG_MS);
    assert_str(device_of(&w, "a"), "e");
    assert_int_equal(events_of(&w, "Scheduled"), 1);
}

TEST(those_that_wait_cost_nothing)
{
    WORLD;
    make_device_with(&w, "d", "512Mi", 4);
    APP("a");
    APP("b", .spec = ",'nodeSelector':{'name':'x'}");
    world_pass(&w, LONG_MS);
    const size_t n_before = w.api.n_writes;
    w.api.fail_percent = 100; /* a request would be tried again */
    /* Heartbeats, and what cannot help. */
    assert_int_equal(world_patch(&w, DEVICES, "n", "d", "{'status':{'eve-os-version':'1'}}"), 0);
    set_room(&w, "d", "514Mi", 4);
    world_pass(&w, 10000);
    assert_true(controller_queue_due_us(w.queues[0]) == INT64_MAX);
    assert_int_equal(w.api.n_writes - n_before, 2);
}

/* ---- sticking and moving --------------------------------------------------------------------- */

TEST(a_choice_sticks)
{
    WORLD;
    make_device(&w, "d", "'site':'north'");
    set_room(&w, "d", "2Gi", 2);
    APP("a", .spec = ",'nodeSelector':{'site':'north'}");
    world_pass(&w, 0);
    make_device(&w, "larger", "'site':'north'");
    set_room(&w, "larger", "64Gi", 64);
    set_room(&w, "d", "512Mi", 1);
    assert_int_equal(
        world_patch(&w, DEVICES, "n", "d",
                    "{'metadata':{'annotations':{'eve.lfedge.org/activate':'false'}}}"),
        0);
    assert_int_equal(world_patch(&w, DEVICES, "n", "d",
                                 "{'status':{'conditions':[{'type':'Ready','status':'Unknown'}]}}"),
                     0);
    assert_int_equal(world_patch(&w, DEVICES, "n", "d", "{'metadata':{'labels':{'more':'x'}}}"), 0);
    assert_int_equal(world_patch(&w, APPLICATIONS, "n", "a", "{'spec':{'activate':false}}"), 0);
    world_pass(&w, LONG_MS);
    assert_str(device_of(&w, "a"), "d");
    world_restart(&w);
    world_pass(&w, LONG_MS);
    assert_str(device_of(&w, "a"), "d");
}

static struct kube_request request_for(enum verb verb, const char *name)
{
    return (struct kube_request){.verb = verb,
                                 .group = STR("eve.lfedge.org"),
                                 .version = STR("v1beta1"),
                                 .resource = STR("applications"),
                                 .namespace = STR("n"),
                                 .name = str_of(name)};
}

/* As a device would have it. */
static void report_running(struct world *w, const char *name)
{
    ARENA_AUTO a = arena_new();
    struct json *object = NULL, address = json_array(), state = json_object(),
                states = json_array();
    struct kube_request get = request_for(VERB_GET, name), put = request_for(VERB_UPDATE, name);
    const struct condition ready = {"Ready", "True", STR("Running"), STR("")};
    assert_int_equal(fake_request(&w->api, a, &get, &object), 0);
    (void) conditions_set(a, conditions_of(a, object), &ready, WORLD_START_US);
    struct json *status = json_get(object, STR("status"));
    (void) json_set(a, &state, STR("state"), json_string(STR("RUNNING")));
    (void) json_push(a, &states, state);
    (void) json_push(a, &address, json_object());
    (void) json_set(a, status, STR("state"), json_string(STR("RUNNING")));
    (void) json_set(a, status, STR("statuses"), states);
    (void) json_set(a, status, STR("addresses"), address);
    put.subresource = STR("status");
    put.body = object;
    assert_int_equal(fake_request(&w->api, a, &put, NULL), 0);
}

TEST(it_moves_when_its_device_matches_no_more)
{
    WORLD;
    make_device(&w, "d", "'site':'north'");
    APP("a", .spec = ",'nodeSelector':{'site':'north'}");
    world_pass(&w, 0);
    assert_str(device_of(&w, "a"), "d");
    report_running(&w, "a");
    assert_int_equal(world_patch(&w, DEVICES, "n", "d", "{'metadata':{'labels':{'site':'x'}}}"), 0);
    world_pass(&w, 0);
    assert_null(device_of(&w, "a").p);
    assert_str(said(&w, "a", "Scheduled", "reason"), "NoMatchingDevice");
    make_device(&w, "e", "'site':'north'");
    world_pass(&w, 0);
    assert_str(device_of(&w, "a"), "e");
    /* The selector of the Application. */
    assert_int_equal(
        world_patch(&w, APPLICATIONS, "n", "a", "{'spec':{'nodeSelector':{'site':'x'}}}"), 0);
    world_pass(&w, 0);
    assert_str(device_of(&w, "a"), "d");
}

TEST(what_the_old_device_said_is_forgotten)
{
    WORLD;
    make_device(&w, "d", "");
    APP("a");
    world_pass(&w, 0);
    report_running(&w, "a");
    make_device(&w, "e", "");
    world_pass(&w, 0);
    assert_int_equal(world_delete(&w, DEVICES, "n", "d", NULL), 0);
    world_pass(&w, 0);
    assert_str(device_of(&w, "a"), "e");
    assert_null(world_text(&w, APPLICATION_COLLECTION, "n", "a", "status", "state").p);
    assert_null(world_at(&w, APPLICATION_COLLECTION, "n", "a", "status", "addresses", NULL));
    assert_int_equal(
        json_count(world_at(&w, APPLICATION_COLLECTION, "n", "a", "status", "statuses", NULL)), 1);
    assert_str(said(&w, "a", "Ready", "status"), "Unknown");
}

/* ---- networks and volumes -------------------------------------------------------------------- */

static void make_network(struct world *w, const char *name, const char *selector)
{
    ARENA_AUTO a = arena_new();
    const struct str text = arena_printf(
        a, "{'metadata':{'name':'%s'},'spec':{'networkConfig':'c','nodeSelector':{%s}}}", name,
        selector);
    assert_int_equal(world_create(w, NETWORKS, "n", text.p), 0);
}

TEST(its_networks_are_on_its_device)
{
    WORLD;
    make_device(&w, "a", "");
    make_device(&w, "b", "'lan':'yes'");
    make_device(&w, "c", "'lan':'yes','wan':'yes'");
    make_network(&w, "lan", "'lan':'yes'");
    make_network(&w, "wan", "'wan':'yes'");
    APP("one", .networks = "lan");
    APP("two", .networks = "lan@eth0, n/wan");
    APP("list", .networks = "[{\\'name\\':\\'wan\\'}]");
    APP("none", .networks = "nowhere");
    world_pass(&w, 0);
    assert_str(device_of(&w, "one"), "b");
    assert_str(device_of(&w, "two"), "c");
    assert_str(device_of(&w, "list"), "c");
    assert_str(said(&w, "none", "Scheduled", "reason"), "MissingNetwork");
    assert_str(said(&w, "none", "Scheduled", "message"),
               "0/3 devices are available: 3 without its networks.");
    make_network(&w, "nowhere", "'name':'a'");
    world_pass(&w, 0);
    assert_str(device_of(&w, "none"), "a");
    /* A network that leaves takes its Applications along. */
    assert_int_equal(
        world_patch(&w, NETWORKS, "n", "nowhere", "{'spec':{'nodeSelector':{'name':'b'}}}"), 0);
    world_pass(&w, 0);
    assert_str(device_of(&w, "none"), "b");
}

static void make_volume(struct world *w, const char *name, const char *claim, const char *device)
{
    ARENA_AUTO a = arena_new();
    const struct str text = arena_printf(
        a, "{'metadata':{'name':'%s'},'spec':{'claim':'%s','device':'%s'}}", name, claim, device);
    assert_int_equal(world_create(w, VOLUMES, "n", text.p), 0);
}

#define CLAIM(name) ",'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'" name "'}}]"

TEST(what_is_claimed_stays_where_it_is)
{
    WORLD;
    make_device_with(&w, "large", "64Gi", 64);
    make_device_with(&w, "small", "1Gi", 1);
    make_volume(&w, "v", "data", "small");
    APP("free", .spec = CLAIM("other"));
    APP("a", .spec = CLAIM("data"));
    world_pass(&w, 0);
    assert_str(device_of(&w, "free"), "large");
    assert_str(device_of(&w, "a"), "small");
    APP("b", .spec = CLAIM("data"));
    world_pass(&w, 0);
    assert_str(said(&w, "b", "Scheduled", "reason"), "InsufficientResources");
    assert_str(said(&w, "b", "Scheduled", "message"),
               "0/2 devices are available: 1 without the volumes it claims, 1 with insufficient "
               "memory. It asks for 1024Mi of memory and 1 cpu.");
    /* A volume that goes, and nobody left who has it made anew there. */
    assert_int_equal(world_delete(&w, VOLUMES, "n", "v", NULL), 0);
    world_pass(&w, 0);
    assert_str(device_of(&w, "a"), "small");
    assert_null(device_of(&w, "b").p);
    assert_int_equal(world_delete(&w, APPLICATIONS, "n", "a", NULL), 0);
    world_pass(&w, 0);
    assert_str(device_of(&w, "b"), "large");
}

TEST(users_of_one_claim_go_together)
{
    WORLD;
    make_device_with(&w, "a", "4Gi", 4);
    make_device_with(&w, "b", "4Gi", 4);
    APP("1", .spec = CLAIM("data"));
    APP("2", .spec = CLAIM("data"));
    APP("3", .memory = "2Gi", .spec = CLAIM("data"));
    world_pass(&w, 0);
    assert_str(device_of(&w, "1"), "a");
    assert_str(device_of(&w, "2"), "a");
    assert_str(device_of(&w, "3"), "a");
    /* Nobody holds itself. */
    APP("4", .spec = CLAIM("other"));
    world_pass(&w, 0);
    assert_str(device_of(&w, "4"), "b");
    assert_int_equal(
        world_patch(&w, APPLICATIONS, "n", "4", "{'spec':{'nodeSelector':{'name':'a'}}}"), 0);
    set_room(&w, "a", "8Gi", 8);
    world_pass(&w, 0);
    assert_str(device_of(&w, "4"), "a");
    /* Who waits for a claim is served when nobody has it any more. */
    APP("5", .spec = CLAIM("other") ",'nodeSelector':{'name':'b'}");
    world_pass(&w, 0);
    assert_str(said(&w, "5", "Scheduled", "reason"), "VolumeElsewhere");
    assert_int_equal(world_delete(&w, APPLICATIONS, "n", "4", NULL), 0);
    world_pass(&w, 0);
    assert_str(device_of(&w, "5"), "b");
}

TEST(volumes_of_a_device_that_is_gone_hold_nobody)
{
    WORLD;
    make_device(&w, "d", "");
    make_device(&w, "e", "'keep':'yes'");
    make_volume(&w, "v", "data", "d");
    APP("a", .spec = CLAIM("data"));
    world_pass(&w, 0);
    assert_str(device_of(&w, "a"), "d");
    assert_int_equal(world_delete(&w, DEVICES, "n", "d", NULL), 0);
    world_pass(&w, 0);
    assert_str(device_of(&w, "a"), "e");
}

/* ---- whatever happens ------------------------------------------------------------------------ */

/* A step of a story in which every choice has one answer, whenever it is made. */
static void tell_story(struct world *w, int step)
{
    static const char *const devices[] = {"a", "b", "c", "d"};
    char name[16], spec[64];
    if (step < 4) {
        make_device(w, devices[step], step < 2 ? "'site':'north'" : "'site':'south'");
    } else if (step < 8) {
        /* a and c are full with two, b and d have room for one. */
        set_room(w, devices[step - 4], step % 2 ? "1Gi" : "2Gi", 8);
    } else if (step < 16) {
        (void) snprintf(name, sizeof(name), "app-%d", step - 8);
        (void) snprintf(spec, sizeof(spec), ",'nodeSelector':{'name':'%s'}",
                        devices[(step - 8) % 4]);
        make_app(w, &(struct app){.name = name, .spec = spec});
    } else if (step == 16) {
        assert_int_equal(world_delete(w, APPLICATIONS, "n", "app-1", NULL), 0);
    } else if (step == 17) {
        assert_int_equal(world_delete(w, DEVICES, "n", "c", NULL), 0);
    } else if (step == 18) {
        assert_int_equal(
            world_patch(w, APPLICATIONS, "n", "app-2", "{'spec':{'nodeSelector':{'name':'e'}}}"),
            0);
    } else if (step == 19) {
        set_room(w, "d", "2Gi", 8);
    } else if (step == 20) {
        make_device(w, "c", "");
    }
}
#define STORY_STEPS 21

/* app-3 and app-7 share d in the end; nothing is called e; app-5 took the place of app-1. */
static const struct {
    const char *name, *device;
} ending[] = {{"app-0", "a"}, {"app-2", NULL}, {"app-3", "d"}, {"app-4", "a"},
              {"app-5", "b"}, {"app-6", "c"},  {"app-7", "d"}};

static void check_ending(struct world *w)
{
    for (size_t i = 0; i < N_ELEMENTS(ending); i++)
        if (ending[i].device)
            assert_str(device_of(w, ending[i].name), ending[i].device);
        else
            assert_str(said(w, ending[i].name, "Scheduled", "reason"), "NoMatchingDevice");
}

TEST(the_end_is_the_same_with_a_restart_at_every_step)
{
    for (int restarts = 0; restarts < 2; restarts++) {
        WORLD;
        for (int step = 0; step < STORY_STEPS; step++) {
            tell_story(&w, step);
            world_pass(&w, restarts ? 0 : 1000);
            if (restarts)
                world_restart(&w);
        }
        world_pass(&w, LONG_MS);
        check_ending(&w);
        /* At rest nothing is written, whoever looks. */
        world_restart(&w);
        world_pass(&w, LONG_MS);
        const size_t n_before = w.api.n_writes;
        world_restart(&w);
        world_pass(&w, LONG_MS);
        assert_int_equal(w.api.n_writes, n_before);
    }
}

TEST(the_end_is_the_same_whatever_fails_or_was_missed)
{
    const uint64_t seed = world_seed();
    for (uint64_t i = 0; i < 30; i++) {
        CLEANUP(world_done) struct world w;
        world_init(&w, seed + i, just_scheduler);
        w.api.fail_percent = w.api.lose_percent = 20;
        w.drop_percent = 20;
        w.repeat_percent = 30;
        for (int step = 0; step < STORY_STEPS; step++) {
            tell_story(&w, step);
            world_pass(&w, 200);
        }
        w.drop_percent = 0;
        world_restart(&w);
        world_pass(&w, LONG_MS);
        check_ending(&w);
    }
}

/* What is on each device, in GiB. */
struct load {
    struct str device;
    int n;
};

static void add_load(void *ctx, struct str collection, const struct json *o)
{
    struct load *l = ctx;
    l->n += str_is(collection, APPLICATION_COLLECTION) &&
            str_eq(json_str(json_at(o, "status", "device", NULL)), l->device);
}

static int load_of(struct world *w, const char *device)
{
    struct load l = {.device = str_of(device)};
    fake_each(&w->api, add_load, &l);
    return l.n;
}

static const char *const crowd_devices[] = {"a", "b", "c"};

/* Applications come and go, three devices have room for four each. */
static void crowd_step(struct world *w)
{
    char name[16];
    (void) snprintf(name, sizeof(name), "app-%d", (int) fake_random(&w->api, 20));
    if (world_has(w, APPLICATION_COLLECTION, "n", name))
        assert_int_equal(world_delete(w, APPLICATIONS, "n", name, NULL), 0);
    else
        make_app(w, &(struct app){.name = name});
}

TEST(no_device_ever_has_more_than_fits)
{
    const uint64_t seed = world_seed();
    for (uint64_t i = 0; i < 10; i++) {
        CLEANUP(world_done) struct world w;
        world_init(&w, seed + i, just_scheduler);
        for (size_t d = 0; d < N_ELEMENTS(crowd_devices); d++)
            make_device_with(&w, crowd_devices[d], "4Gi", 8);
        w.api.fail_percent = w.api.lose_percent = 10;
        w.repeat_percent = 30;
        for (int step = 0; step < 80; step++) {
            for (uint64_t n = fake_random(&w.api, 4); n > 0; n--)
                crowd_step(&w);
            world_pass(&w, 100);
            if (fake_random(&w.api, 10) == 0)
                world_restart(&w);
            for (size_t d = 0; d < N_ELEMENTS(crowd_devices); d++)
                assert_in_range(load_of(&w, crowd_devices[d]), 0, 4);
        }
        world_pass(&w, LONG_MS);
        const int n_placed = load_of(&w, "a") + load_of(&w, "b") + load_of(&w, "c");
        assert_int_equal(n_placed, MIN(fake_count(&w.api, APPLICATION_COLLECTION), 12));
    }
}
