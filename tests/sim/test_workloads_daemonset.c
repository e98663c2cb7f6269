/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "test.h"

#include "workload_scene.h"

#define PLURAL "applicationdaemonsets"
#define LONG_MS (120 * SECOND_MS)
#define DEVICES 6

static void make_devices(struct scene *s)
{
    for (int i = 0; i < DEVICES; i++)
        scene_device(s, arena_printf(s->arena, "d%d", i).p, "{'tier':'edge'}");
}

static void assert_settled(struct scene *s, int64_t n, const char *image)
{
    assert_int_equal(scene_live(s, NULL), n);
    assert_int_equal(scene_ready(s, image), n);
    assert_int_equal(scene_status(s, PLURAL, "desiredNumberScheduled"), n);
    assert_int_equal(scene_status(s, PLURAL, "currentNumberScheduled"), n);
    assert_int_equal(scene_status(s, PLURAL, "updatedNumberScheduled"), n);
    assert_int_equal(scene_status(s, PLURAL, "numberReady"), n);
    assert_int_equal(scene_status(s, PLURAL, "numberAvailable"), n);
    assert_int_equal(scene_status(s, PLURAL, "numberUnavailable"), 0);
    assert_int_equal(scene_status(s, PLURAL, "numberMisscheduled"), 0);
    assert_str(scene_condition(s, PLURAL, "Available", "status"), "True");
}

/* One on each device, and enough of them ready. */
static void check_limits(struct scene *s)
{
    struct scene_app *apps = NULL;
    const size_t n = scene_apps(s, &apps);
    for (size_t i = 0; i < n; i++) {
        const struct str pin =
            json_str(json_at(apps[i].object, "spec", "nodeSelector", "name", NULL));
        for (size_t k = 0; k < i; k++)
            if (str_eq(pin,
                       json_str(json_at(apps[k].object, "spec", "nodeSelector", "name", NULL))))
                fail_msg("two on %.*s", STR_ARG(pin));
    }
    if (scene_ready(s, NULL) < s->min_available)
        fail_msg("%d ready, %d must be", (int) scene_ready(s, NULL), (int) s->min_available);
}

static void watch_limits(struct scene *s, int64_t min_available)
{
    s->check = check_limits;
    s->min_available = min_available;
    s->is_watching = true;
}

TEST(there_is_one_on_every_device_that_fits)
{
    SCENE(world_seed());
    make_devices(&s);
    scene_device(&s, "other", "{'tier':'core'}");
    scene_create(&s, PLURAL, "", "one");
    world_pass(&s.w, LONG_MS);
    assert_settled(&s, DEVICES + 1, "one");
    assert_true(world_has(&s.w, APPS, "n", "web-other"));
    assert_str(world_text(&s.w, APPS, "n", "web-other", "status", "device"), "other");
    /* A template for some of them only. */
    scene_patch(&s, PLURAL, "{'spec':{'template':{'spec':{'nodeSelector':{'tier':'edge'}}}}}");
    world_pass(&s.w, LONG_MS);
    assert_settled(&s, DEVICES, "one");
    assert_false(world_has(&s.w, APPS, "n", "web-other"));
    const struct json *selector = world_at(&s.w, APPS, "n", "web-d0", "spec", "nodeSelector", NULL);
    assert_str(json_get_str(selector, STR("name")), "d0");
    assert_str(json_get_str(selector, STR("tier")), "edge");
    /* Devices come, change and go. */
    assert_int_equal(world_patch(&s.w, VERSION "devices", "n", "other",
                                 "{'metadata':{'labels':{'tier':'edge'}}}"),
                     0);
    world_pass(&s.w, LONG_MS);
    assert_settled(&s, DEVICES + 1, "one");
    assert_int_equal(world_delete(&s.w, VERSION "devices", "n", "d0", NULL), 0);
    world_pass(&s.w, LONG_MS);
    assert_settled(&s, DEVICES, "one");
}

TEST(a_device_that_is_not_active_keeps_what_it_has)
{
    SCENE(world_seed());
    make_devices(&s);
    assert_int_equal(
        world_patch(&s.w, VERSION "devices", "n", "d1",
                    "{'metadata':{'annotations':{'eve.lfedge.org/activate':'false'}}}"),
        0);
    scene_create(&s, PLURAL, "", "one");
    world_pass(&s.w, LONG_MS);
    assert_settled(&s, DEVICES - 1, "one");
    assert_int_equal(
        world_patch(&s.w, VERSION "devices", "n", "d2",
                    "{'metadata':{'annotations':{'eve.lfedge.org/activate':'false'}}}"),
        0);
    world_pass(&s.w, LONG_MS);
    assert_int_equal(scene_live(&s, NULL), DEVICES - 1);
    assert_int_equal(scene_status(&s, PLURAL, "desiredNumberScheduled"), DEVICES - 2);
    assert_int_equal(scene_status(&s, PLURAL, "numberMisscheduled"), 1);
}

static const struct limits {
    const char *rolling;
    int64_t min_available; /* of six */
} limits[] = {
    {"", 5},
    {"'maxUnavailable':2", 4},
    {"'maxUnavailable':'50%'", 3},
    {"'maxUnavailable':'20%'", 4},
};

static struct str rolling_spec(struct scene *s, const struct limits *l)
{
    return arena_printf(s->arena, "'updateStrategy':{'rollingUpdate':{%s}}", l->rolling);
}

TEST(a_rolling_update_keeps_its_limits)
{
    for (size_t i = 0; i < N_ELEMENTS(limits); i++) {
        SCENE(world_seed());
        make_devices(&s);
        scene_create(&s, PLURAL, rolling_spec(&s, &limits[i]).p, "one");
        world_pass(&s.w, LONG_MS);
        watch_limits(&s, limits[i].min_available);
        scene_set_image(&s, PLURAL, "two");
        world_pass(&s.w, LONG_MS);
        assert_settled(&s, DEVICES, "two");
    }
}

TEST(a_rolling_update_stops_when_the_new_ones_fail)
{
    SCENE(world_seed());
    make_devices(&s);
    scene_create(&s, PLURAL, "", "one");
    world_pass(&s.w, LONG_MS);
    watch_limits(&s, 5);
    scene_set_image(&s, PLURAL, "bad");
    world_pass(&s.w, LONG_MS);
    assert_int_equal(scene_live(&s, "bad"), 1);
    assert_int_equal(scene_ready(&s, "one"), 5);
    scene_set_image(&s, PLURAL, "two");
    world_pass(&s.w, LONG_MS);
    assert_settled(&s, DEVICES, "two");
}

TEST(on_delete_waits_for_the_user)
{
    SCENE(world_seed());
    make_devices(&s);
    scene_create(&s, PLURAL, "'updateStrategy':{'type':'OnDelete'}", "one");
    world_pass(&s.w, LONG_MS);
    scene_set_image(&s, PLURAL, "two");
    world_pass(&s.w, LONG_MS);
    assert_int_equal(scene_live(&s, "one"), DEVICES);
    assert_int_equal(world_delete(&s.w, VERSION "applications", "n", "web-d3", NULL), 0);
    world_pass(&s.w, LONG_MS);
    assert_int_equal(scene_live(&s, "one"), DEVICES - 1);
    assert_int_equal(scene_live(&s, "two"), 1);
    assert_int_equal(scene_status(&s, PLURAL, "updatedNumberScheduled"), 1);
}

TEST(devices_out_of_touch_stall_nothing_and_take_no_share)
{
    SCENE(world_seed());
    make_devices(&s);
    scene_create(&s, PLURAL, "", "one");
    world_pass(&s.w, LONG_MS);
    scene_touch(&s, "d0", false);
    scene_touch(&s, "d5", false);
    world_pass(&s.w, SECOND_MS);
    watch_limits(&s, 3); /* the four in touch but one, and at first the two */
    scene_set_image(&s, PLURAL, "two");
    world_pass(&s.w, LONG_MS);
    assert_int_equal(scene_live(&s, "two"), DEVICES);
    assert_int_equal(scene_ready(&s, "two"), DEVICES - 2);
    assert_int_equal(scene_status(&s, PLURAL, "numberUnavailable"), 2);
    assert_str(scene_condition(&s, PLURAL, "Available", "status"), "True");
    scene_touch(&s, "d0", true);
    scene_touch(&s, "d5", true);
    world_restart(&s.w);
    world_pass(&s.w, LONG_MS);
    assert_settled(&s, DEVICES, "two");
}

TEST(a_long_name_is_cut)
{
    SCENE(world_seed());
    char name[251];
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    scene_device(&s, name, "{}");
    name[249] = 'y';
    scene_device(&s, name, "{}");
    scene_create(&s, PLURAL, "", "one");
    world_pass(&s.w, LONG_MS);
    struct scene_app *apps = NULL;
    assert_int_equal(scene_apps(&s, &apps), 2);
    assert_in_range(apps[0].name.n, 200, 253);
    assert_settled(&s, 2, "one");
}

TEST(a_second_on_a_device_goes)
{
    SCENE(world_seed());
    make_devices(&s);
    scene_create(&s, PLURAL, "", "one");
    world_pass(&s.w, LONG_MS);
    assert_int_equal(
        world_create(&s.w, VERSION "applications", "n",
                     "{'metadata':{'name':'late','labels':{'app':'web'}},'spec':{'nodeSelector':{"
                     "'name':'d1'},'containers':[{'name':'c','image':'one'}]}}"),
        0);
    world_pass(&s.w, LONG_MS);
    assert_false(world_has(&s.w, APPS, "n", "late"));
    assert_true(world_has(&s.w, APPS, "n", "web-d1"));
    assert_settled(&s, DEVICES, "one");
}

/* ---- many ---------------------------------------------------------------------------------- */

TEST(one_device_more_costs_one_write_more)
{
    SCENE(world_seed());
    for (int i = 0; i < 700; i++)
        scene_device(&s, arena_printf(s.arena, "m%d", i).p, "{}");
    scene_create(&s, PLURAL, "", "one");
    world_pass(&s.w, LONG_MS);
    assert_settled(&s, 700, "one");
    const size_t n_writes = s.w.api.n_writes;
    scene_device(&s, "late", "{}");
    world_pass(&s.w, LONG_MS);
    assert_settled(&s, 701, "one");
    /* The Device twice, the Application thrice, the status and Events: not seven hundred. */
    assert_in_range(s.w.api.n_writes - n_writes, 6, 14);
}

TEST(nothing_is_written_when_nothing_changes)
{
    SCENE(world_seed());
    make_devices(&s);
    scene_create(&s, PLURAL, "", "one");
    world_pass(&s.w, LONG_MS);
    const size_t n_writes = s.w.api.n_writes;
    world_restart(&s.w);
    world_pass(&s.w, 20 * LONG_MS);
    assert_int_equal(s.w.api.n_writes, n_writes);
}

/* ---- faults -------------------------------------------------------------------------------- */

TEST(a_crash_after_every_write_changes_nothing)
{
    for (size_t i = 0; i < N_ELEMENTS(limits); i++) {
        SCENE(world_seed());
        make_devices(&s);
        scene_create(&s, PLURAL, rolling_spec(&s, &limits[i]).p, "one");
        watch_limits(&s, 0);
        scene_crash_often(&s, LONG_MS / 2);
        world_pass(&s.w, LONG_MS);
        assert_settled(&s, DEVICES, "one");
        watch_limits(&s, limits[i].min_available);
        scene_set_image(&s, PLURAL, "two");
        scene_crash_often(&s, LONG_MS);
        world_pass(&s.w, LONG_MS);
        assert_settled(&s, DEVICES, "two");
        assert_int_equal(scene_revisions(&s), 2);
    }
}

static void pass_with_faults(struct scene *s, bool with_restart)
{
    for (int i = 0; i < 30; i++) {
        world_pass(&s->w, 3 * SECOND_MS);
        if (with_restart)
            world_restart(&s->w);
    }
}

static void run_with_faults(uint64_t seed, const struct limits *l, bool with_restart)
{
    SCENE(seed);
    make_devices(&s);
    scene_create(&s, PLURAL, rolling_spec(&s, l).p, "one");
    watch_limits(&s, 0);
    s.w.api.fail_percent = s.w.api.lose_percent = 15;
    s.w.repeat_percent = 20;
    s.w.drop_percent = with_restart ? 20 : 0;
    pass_with_faults(&s, with_restart);
    watch_limits(&s, scene_ready(&s, NULL) == DEVICES ? l->min_available : 0);
    scene_set_image(&s, PLURAL, "two");
    pass_with_faults(&s, with_restart);
    s.w.drop_percent = s.w.api.fail_percent = s.w.api.lose_percent = 0;
    world_restart(&s.w);
    world_pass(&s.w, LONG_MS);
    assert_settled(&s, DEVICES, "two");
    assert_int_equal(scene_revisions(&s), 2);
}

TEST(it_settles_whatever_fails_or_repeats)
{
    const uint64_t seed = world_seed();
    for (uint64_t i = 0; i < 8; i++)
        run_with_faults(seed + i, &limits[i % N_ELEMENTS(limits)], false);
}

TEST(it_settles_whatever_is_missed)
{
    const uint64_t seed = world_seed();
    for (uint64_t i = 0; i < 8; i++)
        run_with_faults(seed + i, &limits[i % N_ELEMENTS(limits)], true);
}
