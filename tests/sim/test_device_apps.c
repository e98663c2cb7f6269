/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "controllers/device_apps.h"
#include "world.h"

#define GROUP "eve.lfedge.org/v1beta1/"
#define APPLICATIONS GROUP "applications"
#define DEVICES GROUP "devices"
#define N_MANY 200

static const struct controller *const table[] = {&device_apps_controller, NULL};

#define WORLD \
    CLEANUP(world_done) struct world w; \
    world_init(&w, 1, table)

static void make(struct world *w, const char *kind, const char *name)
{
    ARENA_AUTO a = arena_new();
    assert_int_equal(
        world_create(w, kind, "n", arena_printf(a, "{'metadata':{'name':'%s'},'spec':{}}", name).p),
        0);
}

static void put(struct world *w, const char *application, const char *device, const char *state)
{
    ARENA_AUTO a = arena_new();
    assert_int_equal(
        world_patch(w, APPLICATIONS, "n", application,
                    arena_printf(a, "{'status':{'device':'%s','state':'%s'}}", device, state).p),
        0);
}

static void assert_apps(struct world *w, const char *device, int running, int wanted)
{
    const struct json *apps =
        world_at(w, "devices.eve.lfedge.org", "n", device, "status", "apps", NULL);
    assert_int_equal(json_get_int(apps, STR("running"), -1), running);
    assert_int_equal(json_get_int(apps, STR("wanted"), -1), wanted);
}

TEST(a_device_begins_with_none)
{
    WORLD;
    make(&w, DEVICES, "d");
    const size_t n_writes = w.api.n_writes;
    world_pass(&w, 1000);
    assert_apps(&w, "d", 0, 0);
    assert_str(json_str(world_at(&w, "devices.eve.lfedge.org", "n", "d", "status", "apps",
                                 "summary", NULL)),
               "0/0");
    assert_int_equal(w.api.n_writes, n_writes);
}

TEST(applications_are_counted_where_they_are)
{
    WORLD;
    make(&w, DEVICES, "d");
    make(&w, DEVICES, "e");
    make(&w, APPLICATIONS, "a");
    make(&w, APPLICATIONS, "b");
    world_pass(&w, 1000);
    put(&w, "a", "d", "INITIAL");
    put(&w, "b", "d", "RUNNING");
    world_pass(&w, 1000);
    assert_apps(&w, "d", 1, 2);
    put(&w, "a", "d", "RUNNING");
    world_pass(&w, 1000);
    assert_apps(&w, "d", 2, 2);
    put(&w, "b", "e", "INITIAL");
    world_pass(&w, 1000);
    assert_apps(&w, "d", 1, 1);
    assert_apps(&w, "e", 0, 1);
    assert_int_equal(world_delete(&w, APPLICATIONS, "n", "b", NULL), 0);
    world_pass(&w, 1000);
    assert_apps(&w, "e", 0, 0);
}

TEST(what_is_not_to_run_is_not_wanted)
{
    WORLD;
    make(&w, DEVICES, "d");
    make(&w, APPLICATIONS, "a");
    put(&w, "a", "d", "RUNNING");
    assert_int_equal(world_patch(&w, APPLICATIONS, "n", "a", "{'spec':{'activate':false}}"), 0);
    world_pass(&w, 1000);
    assert_apps(&w, "d", 1, 0);
    assert_int_equal(
        world_patch(&w, APPLICATIONS, "n", "a",
                    "{'metadata':{'finalizers':['x.org/y']},'spec':{'activate':true}}"),
        0);
    world_pass(&w, 1000);
    assert_apps(&w, "d", 1, 1);
    assert_int_equal(world_delete(&w, APPLICATIONS, "n", "a", NULL), 0);
    world_pass(&w, 1000);
    assert_apps(&w, "d", 1, 0);
}

TEST(a_device_may_come_after_its_applications)
{
    WORLD;
    make(&w, APPLICATIONS, "a");
    put(&w, "a", "d", "RUNNING");
    world_pass(&w, 1000);
    make(&w, DEVICES, "d");
    world_pass(&w, 1000);
    assert_apps(&w, "d", 1, 1);
    assert_int_equal(world_delete(&w, DEVICES, "n", "d", NULL), 0);
    make(&w, DEVICES, "d");
    world_pass(&w, 1000);
    assert_apps(&w, "d", 1, 1);
}

/* One write for each device, however many Applications it is given at once. */
TEST(many_at_once_are_counted_together)
{
    WORLD;
    ARENA_AUTO a = arena_new();
    for (int i = 0; i < N_MANY; i++)
        make(&w, DEVICES, arena_printf(a, "d%d", i).p);
    for (int i = 0; i < 2 * N_MANY; i++)
        make(&w, APPLICATIONS, arena_printf(a, "a%d", i).p);
    world_pass(&w, 1000);
    const size_t n_writes = w.api.n_writes;
    for (int i = 0; i < 2 * N_MANY; i++)
        put(&w, arena_printf(a, "a%d", i).p, arena_printf(a, "d%d", i % N_MANY).p, "RUNNING");
    world_pass(&w, 10000);
    assert_int_equal(w.api.n_writes, n_writes + 3 * N_MANY);
    for (int i = 0; i < N_MANY; i++)
        assert_apps(&w, arena_printf(a, "d%d", i).p, 2, 2);
    world_restart(&w);
    world_pass(&w, 10000);
    assert_int_equal(w.api.n_writes, n_writes + 3 * N_MANY);
}

/* ---- faults ---------------------------------------------------------------------------------- */

static bool tell_story(struct world *w, int step)
{
    switch (step) {
    case 0:
        make(w, DEVICES, "d");
        make(w, DEVICES, "e");
        make(w, APPLICATIONS, "a");
        make(w, APPLICATIONS, "b");
        return true;
    case 1:
        put(w, "a", "d", "INITIAL");
        put(w, "b", "d", "INITIAL");
        return true;
    case 2:
        put(w, "a", "d", "RUNNING");
        return true;
    case 3:
        put(w, "a", "e", "RUNNING");
        return true;
    case 4:
        assert_int_equal(world_delete(w, APPLICATIONS, "n", "b", NULL), 0);
        return true;
    default:
        return false;
    }
}

TEST(it_ends_the_same_when_it_is_killed_after_every_write)
{
    for (int64_t wait_ms = 0; wait_ms < 500; wait_ms += 100) {
        WORLD;
        for (int step = 0; tell_story(&w, step); step++)
            for (int i = 0; i < 5; i++) {
                w.api.n_writes_left = i % 2;
                world_pass(&w, wait_ms);
                w.api.n_writes_left = -1;
                world_restart(&w);
            }
        world_pass(&w, 1000);
        assert_apps(&w, "d", 0, 0);
        assert_apps(&w, "e", 1, 1);
    }
}

TEST(it_settles_whatever_fails_or_was_missed)
{
    uint64_t seed = world_seed();
    for (uint64_t i = 0; i < 30; i++) {
        CLEANUP(world_done) struct world w;
        world_init(&w, seed + i, table);
        w.api.fail_percent = w.api.lose_percent = 30;
        w.drop_percent = 30;
        w.repeat_percent = 30;
        for (int step = 0; tell_story(&w, step); step++) {
            world_pass(&w, (int64_t) fake_random(&w.api, 400));
            if (fake_random(&w.api, 3) == 0)
                world_restart(&w);
        }
        w.drop_percent = 0;
        world_restart(&w);
        world_pass(&w, 3600000);
        assert_apps(&w, "d", 0, 0);
        assert_apps(&w, "e", 1, 1);
    }
}
