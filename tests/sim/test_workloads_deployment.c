/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "test.h"

#include "workload_scene.h"

#define PLURAL "applicationdeployments"
#define OWNERS "applicationdeployments.eve.lfedge.org"
#define LONG_MS (120 * SECOND_MS)

static void assert_settled(struct scene *s, int64_t n, const char *image)
{
    assert_int_equal(scene_live(s, NULL), n);
    assert_int_equal(scene_live(s, image), n);
    assert_int_equal(scene_ready(s, image), n);
    assert_int_equal(scene_status(s, PLURAL, "replicas"), n);
    assert_int_equal(scene_status(s, PLURAL, "updatedReplicas"), n);
    assert_int_equal(scene_status(s, PLURAL, "readyReplicas"), n);
    assert_int_equal(scene_status(s, PLURAL, "availableReplicas"), n);
    assert_int_equal(scene_status(s, PLURAL, "unavailableReplicas"), 0);
    assert_str(scene_condition(s, PLURAL, "Available", "status"), "True");
    assert_str(scene_condition(s, PLURAL, "Progressing", "reason"), "NewRevisionAvailable");
}

TEST(a_deployment_makes_what_it_wants)
{
    SCENE(world_seed());
    scene_create(&s, PLURAL, "'replicas':3", "one");
    world_pass(&s.w, LONG_MS);
    assert_settled(&s, 3, "one");
    struct scene_app *apps = NULL;
    assert_int_equal(scene_apps(&s, &apps), 3);
    for (size_t i = 0; i < 3; i++) {
        const struct json *owner = json_at(apps[i].object, "metadata", "ownerReferences", NULL);
        assert_true(str_starts_with(apps[i].name, STR("web-")));
        assert_int_equal(json_count(owner), 1);
        assert_true(json_get_bool(&owner->items[0], STR("controller"), false));
        assert_true(json_get_bool(&owner->items[0], STR("blockOwnerDeletion"), false));
        assert_true(apps[i].revision.n > 0);
    }
    assert_int_equal(scene_revisions(&s), 1);
    assert_str(world_text(&s.w, OWNERS, "n", "web", "status", "selector"), "app=web");
}

/* ---- rolling ------------------------------------------------------------------------------- */

/* Never more than there may be, never fewer than there must be. */
static void check_limits(struct scene *s)
{
    const int64_t n_live = scene_live(s, NULL), n_ready = scene_ready(s, NULL);
    if (n_live > s->max_live || n_ready < s->min_available)
        fail_msg("%d live, %d ready; allowed are %d and %d", (int) n_live, (int) n_ready,
                 (int) s->max_live, (int) s->min_available);
}

static void watch_limits(struct scene *s, int64_t max_live, int64_t min_available)
{
    s->check = check_limits;
    s->max_live = max_live;
    s->min_available = min_available;
    s->is_watching = true;
}

static const struct limits {
    const char *rolling;
    int64_t max_live, min_available; /* of ten */
} limits[] = {
    {"'maxSurge':0,'maxUnavailable':1", 10, 9},
    {"'maxSurge':1,'maxUnavailable':0", 11, 10},
    {"'maxSurge':'25%','maxUnavailable':'25%'", 13, 8},
    {"'maxSurge':'100%','maxUnavailable':0", 20, 10},
    {"'maxSurge':0,'maxUnavailable':'100%'", 10, 0},
    {"'maxSurge':0,'maxUnavailable':0", 10, 9},
};

static struct str rolling_spec(struct scene *s, const struct limits *l)
{
    return arena_printf(s->arena, "'replicas':10,'strategy':{'rollingUpdate':{%s}}", l->rolling);
}

TEST(a_rolling_update_keeps_its_limits)
{
    for (size_t i = 0; i < N_ELEMENTS(limits); i++) {
        SCENE(world_seed());
        scene_create(&s, PLURAL, rolling_spec(&s, &limits[i]).p, "one");
        world_pass(&s.w, LONG_MS);
        watch_limits(&s, limits[i].max_live, limits[i].min_available);
        scene_set_image(&s, PLURAL, "two");
        world_pass(&s.w, LONG_MS);
        assert_settled(&s, 10, "two");
    }
}

TEST(a_rolling_update_stops_when_the_new_ones_fail)
{
    SCENE(world_seed());
    scene_create(&s, PLURAL, "'replicas':4,'progressDeadlineSeconds':30", "one");
    world_pass(&s.w, LONG_MS);
    watch_limits(&s, 5, 3);
    scene_set_image(&s, PLURAL, "bad");
    world_pass(&s.w, 20 * SECOND_MS);
    assert_str(scene_condition(&s, PLURAL, "Progressing", "reason"), "RolloutProgressing");
    world_pass(&s.w, LONG_MS);
    assert_int_equal(scene_ready(&s, "one"), 3);
    assert_str(scene_condition(&s, PLURAL, "Progressing", "status"), "False");
    assert_str(scene_condition(&s, PLURAL, "Progressing", "reason"), "ProgressDeadlineExceeded");
    assert_str(scene_condition(&s, PLURAL, "Available", "status"), "True");
    scene_set_image(&s, PLURAL, "one");
    world_pass(&s.w, LONG_MS);
    assert_settled(&s, 4, "one");
}

TEST(an_old_template_has_its_old_revision)
{
    SCENE(world_seed());
    scene_create(&s, PLURAL, "'replicas':1", "one");
    world_pass(&s.w, LONG_MS);
    struct scene_app *first = NULL, *again = NULL;
    assert_int_equal(scene_apps(&s, &first), 1);
    scene_set_image(&s, PLURAL, "two");
    world_pass(&s.w, LONG_MS);
    scene_set_image(&s, PLURAL, "one");
    world_pass(&s.w, LONG_MS);
    assert_int_equal(scene_apps(&s, &again), 1);
    assert_true(str_eq(first[0].revision, again[0].revision));
    assert_int_equal(scene_revisions(&s), 2);
    const struct str name = arena_printf(s.arena, "web-%.*s", STR_ARG(again[0].revision));
    const struct json *r = fake_get(&s.w.api, "controllerrevisions.apps", "n", name.p);
    assert_int_equal(json_get_int(r, STR("revision"), 0), 3);
}

TEST(history_ends_where_it_is_told_to)
{
    SCENE(world_seed());
    scene_create(&s, PLURAL, "'replicas':1,'revisionHistoryLimit':2", "v0");
    for (int i = 1; i < 6; i++) {
        world_pass(&s.w, LONG_MS);
        scene_set_image(&s, PLURAL, arena_printf(s.arena, "v%d", i).p);
    }
    world_pass(&s.w, LONG_MS);
    assert_settled(&s, 1, "v5");
    assert_int_equal(scene_revisions(&s), 3);
}

TEST(the_name_of_a_revision_may_be_taken)
{
    SCENE(world_seed());
    scene_create(&s, PLURAL, "'replicas':1", "one");
    world_pass(&s.w, LONG_MS);
    struct scene_app *apps = NULL;
    assert_int_equal(scene_apps(&s, &apps), 1);
    const struct str name = arena_printf(s.arena, "web-%.*s", STR_ARG(apps[0].revision));
    assert_int_equal(world_delete(&s.w, VERSION PLURAL, "n", "web", NULL), 0);
    world_pass(&s.w, LONG_MS);
    assert_int_equal(scene_revisions(&s), 0);
    const struct str other =
        arena_printf(s.arena, "{'metadata':{'name':'%s'},'data':{'x':1},'revision':1}", name.p);
    assert_int_equal(world_create(&s.w, "apps/v1/controllerrevisions", "n", other.p), 0);
    scene_create(&s, PLURAL, "'replicas':1", "one");
    world_pass(&s.w, LONG_MS);
    assert_settled(&s, 1, "one");
    assert_int_equal(scene_revisions(&s), 2);
    assert_int_equal(scene_status(&s, PLURAL, "collisionCount"), 1);
}

TEST(all_at_once_means_none_of_both)
{
    SCENE(world_seed());
    scene_create(&s, PLURAL, "'replicas':3,'strategy':{'type':'Recreate'}", "one");
    world_pass(&s.w, LONG_MS);
    /* One holds on for a while. */
    struct scene_app *apps = NULL;
    assert_int_equal(scene_apps(&s, &apps), 3);
    const char *held = arena_strz(s.arena, apps[1].name);
    assert_int_equal(
        world_patch(&s.w, VERSION "applications", "n", held, "{'metadata':{'finalizers':['a/b']}}"),
        0);
    watch_limits(&s, 3, 0);
    scene_set_image(&s, PLURAL, "two");
    world_pass(&s.w, LONG_MS);
    assert_int_equal(scene_live(&s, NULL), 0);
    assert_true(world_has(&s.w, APPS, "n", held));
    assert_int_equal(
        world_patch(&s.w, VERSION "applications", "n", held, "{'metadata':{'finalizers':null}}"),
        0);
    world_pass(&s.w, LONG_MS);
    assert_settled(&s, 3, "two");
}

TEST(ready_for_a_while_is_available)
{
    SCENE(world_seed());
    scene_create(&s, PLURAL, "'replicas':2,'minReadySeconds':60", "one");
    world_pass(&s.w, 30 * SECOND_MS);
    assert_int_equal(scene_status(&s, PLURAL, "readyReplicas"), 2);
    assert_int_equal(scene_status(&s, PLURAL, "availableReplicas"), 0);
    assert_str(scene_condition(&s, PLURAL, "Available", "status"), "False");
    world_pass(&s.w, 40 * SECOND_MS);
    assert_settled(&s, 2, "one");
}

/* ---- scaling ------------------------------------------------------------------------------- */

TEST(fewer_are_taken_from_those_that_do_least)
{
    SCENE(world_seed());
    scene_create(&s, PLURAL, "'replicas':3", "one");
    world_pass(&s.w, LONG_MS);
    scene_patch(&s, PLURAL, "{'spec':{'replicas':4}}");
    world_pass(&s.w, 500);
    assert_int_equal(scene_live(&s, NULL), 4);
    scene_patch(&s, PLURAL, "{'spec':{'replicas':3}}");
    world_pass(&s.w, 100);
    assert_int_equal(scene_live(&s, NULL), 3);
    assert_int_equal(scene_ready(&s, NULL), 3);
    scene_patch(&s, PLURAL, "{'spec':{'replicas':0}}");
    world_pass(&s.w, LONG_MS);
    assert_settled(&s, 0, "one");
}

TEST(a_pause_holds_the_template_but_not_the_number)
{
    SCENE(world_seed());
    scene_create(&s, PLURAL, "'replicas':2", "one");
    world_pass(&s.w, LONG_MS);
    scene_patch(&s, PLURAL, "{'spec':{'paused':true}}");
    scene_set_image(&s, PLURAL, "two");
    world_pass(&s.w, LONG_MS);
    assert_int_equal(scene_live(&s, "one"), 2);
    assert_str(scene_condition(&s, PLURAL, "Progressing", "reason"), "DeploymentPaused");
    scene_patch(&s, PLURAL, "{'spec':{'replicas':4}}");
    world_pass(&s.w, LONG_MS);
    assert_int_equal(scene_live(&s, "one"), 4);
    scene_patch(&s, PLURAL, "{'spec':{'replicas':1}}");
    world_pass(&s.w, LONG_MS);
    assert_int_equal(scene_live(&s, "one"), 1);
    assert_int_equal(scene_revisions(&s), 1);
    scene_patch(&s, PLURAL, "{'spec':{'paused':false}}");
    world_pass(&s.w, LONG_MS);
    assert_settled(&s, 1, "two");
}

TEST(a_pause_half_way_keeps_the_mixture)
{
    SCENE(world_seed());
    scene_create(&s, PLURAL, rolling_spec(&s, &limits[0]).p, "one");
    world_pass(&s.w, LONG_MS);
    scene_set_image(&s, PLURAL, "two");
    while (scene_live(&s, "two") < 5)
        world_pass(&s.w, 100);
    scene_patch(&s, PLURAL, "{'spec':{'paused':true}}");
    world_pass(&s.w, LONG_MS);
    const int64_t n_old = scene_live(&s, "one"), n_new = scene_live(&s, "two");
    assert_in_range(n_new, 5, 6);
    assert_in_range(n_old + n_new, 9, 10);
    scene_patch(&s, PLURAL, "{'spec':{'replicas':4}}");
    world_pass(&s.w, LONG_MS);
    assert_int_equal(scene_live(&s, "one"), 2);
    assert_int_equal(scene_live(&s, "two"), 2);
}

/* ---- out of touch -------------------------------------------------------------------------- */

static void make_devices(struct scene *s)
{
    for (int i = 0; i < 7; i++)
        scene_device(s, arena_printf(s->arena, "d%d", i).p, "{}");
}

TEST(devices_out_of_touch_stall_nothing)
{
    SCENE(world_seed());
    make_devices(&s);
    scene_create(&s, PLURAL, rolling_spec(&s, &limits[0]).p, "one");
    world_pass(&s.w, LONG_MS);
    assert_settled(&s, 10, "one");
    for (int i = 0; i < 7; i += 2)
        scene_touch(&s, arena_printf(s.arena, "d%d", i).p, false);
    scene_set_image(&s, PLURAL, "two");
    world_pass(&s.w, LONG_MS);
    assert_int_equal(scene_live(&s, "two"), 10);
    assert_int_equal(scene_live(&s, NULL), 10);
    assert_str(scene_condition(&s, PLURAL, "Available", "status"), "True");
    assert_str(scene_condition(&s, PLURAL, "Progressing", "reason"), "NewRevisionAvailable");
    assert_int_equal(scene_status(&s, PLURAL, "readyReplicas"), scene_ready(&s, NULL));
}

/* ---- whose they are ------------------------------------------------------------------------ */

TEST(those_that_fit_are_adopted_and_those_that_do_not_are_let_go)
{
    SCENE(world_seed());
    assert_int_equal(world_create(&s.w, VERSION "applications", "n",
                                  "{'metadata':{'name':'mine','labels':{'app':'web'}},'spec':{"
                                  "'containers':[{'name':'c','image':'one'}]}}"),
                     0);
    scene_create(&s, PLURAL, "'replicas':2", "one");
    world_pass(&s.w, LONG_MS);
    /* It is of no template that is known, so it was replaced. */
    assert_settled(&s, 2, "one");
    assert_false(world_has(&s.w, APPS, "n", "mine"));
    struct scene_app *apps = NULL;
    assert_int_equal(scene_apps(&s, &apps), 2);
    const char *name = arena_strz(s.arena, apps[0].name);
    assert_int_equal(world_patch(&s.w, VERSION "applications", "n", name,
                                 "{'metadata':{'labels':{'app':'other'}}}"),
                     0);
    world_pass(&s.w, LONG_MS);
    assert_int_equal(scene_status(&s, PLURAL, "replicas"), 2);
    assert_int_equal(scene_live(&s, NULL), 3);
    assert_int_equal(
        json_count(world_at(&s.w, APPS, "n", name, "metadata", "ownerReferences", NULL)), 0);
    /* And back: one too many. */
    assert_int_equal(world_patch(&s.w, VERSION "applications", "n", name,
                                 "{'metadata':{'labels':{'app':'web'}}}"),
                     0);
    world_pass(&s.w, LONG_MS);
    assert_settled(&s, 2, "one");
}

TEST(orphans_are_found_again)
{
    SCENE(world_seed());
    scene_create(&s, PLURAL, "'replicas':3", "one");
    world_pass(&s.w, LONG_MS);
    struct scene_app *before = NULL, *after = NULL;
    assert_int_equal(scene_apps(&s, &before), 3);
    assert_int_equal(world_delete(&s.w, VERSION PLURAL, "n", "web", "Orphan"), 0);
    world_pass(&s.w, LONG_MS);
    assert_false(world_has(&s.w, OWNERS, "n", "web"));
    assert_int_equal(scene_live(&s, NULL), 3);
    scene_create(&s, PLURAL, "'replicas':3", "one");
    world_pass(&s.w, LONG_MS);
    assert_settled(&s, 3, "one");
    assert_int_equal(scene_apps(&s, &after), 3);
    for (size_t i = 0; i < 3; i++)
        assert_true(str_eq(before[i].name, after[i].name));
    assert_int_equal(scene_revisions(&s), 1);
}

TEST(deleting_it_in_the_foreground_makes_no_new_ones)
{
    SCENE(world_seed());
    scene_create(&s, PLURAL, "'replicas':3", "one");
    world_pass(&s.w, LONG_MS);
    watch_limits(&s, 3, 0);
    assert_int_equal(world_delete(&s.w, VERSION PLURAL, "n", "web", "Foreground"), 0);
    world_pass(&s.w, LONG_MS);
    assert_int_equal(scene_live(&s, NULL), 0);
    assert_false(world_has(&s.w, OWNERS, "n", "web"));
    assert_int_equal(scene_revisions(&s), 0);
}

TEST(what_cannot_be_made_is_said)
{
    SCENE(world_seed());
    scene_create(&s, PLURAL, "'replicas':3", "one");
    world_pass(&s.w, LONG_MS);
    s.w.api.failing_verb = VERB_CREATE;
    scene_patch(&s, PLURAL, "{'spec':{'replicas':4}}");
    world_pass(&s.w, LONG_MS);
    assert_str(scene_condition(&s, PLURAL, "ReplicaFailure", "status"), "True");
    assert_str(scene_condition(&s, PLURAL, "ReplicaFailure", "reason"), "FailedCreate");
    s.w.api.failing_verb = VERB_COUNT;
    world_pass(&s.w, LONG_MS);
    assert_settled(&s, 4, "one");
    assert_int_equal(scene_condition(&s, PLURAL, "ReplicaFailure", "status").n, 0);
}

TEST(nothing_is_written_when_nothing_changes)
{
    SCENE(world_seed());
    scene_create(&s, PLURAL, "'replicas':3", "one");
    world_pass(&s.w, LONG_MS);
    const size_t n_writes = s.w.api.n_writes;
    world_restart(&s.w);
    world_pass(&s.w, 20 * LONG_MS);
    assert_int_equal(s.w.api.n_writes, n_writes);
}

/* ---- faults -------------------------------------------------------------------------------- */

TEST(a_crash_after_every_write_changes_nothing)
{
    for (size_t i = 0; i < 3; i++) {
        SCENE(world_seed());
        scene_create(&s, PLURAL, rolling_spec(&s, &limits[i]).p, "one");
        watch_limits(&s, limits[i].max_live, 0);
        scene_crash_often(&s, LONG_MS);
        world_pass(&s.w, LONG_MS);
        assert_settled(&s, 10, "one");
        watch_limits(&s, limits[i].max_live, limits[i].min_available);
        scene_set_image(&s, PLURAL, "two");
        scene_crash_often(&s, 2 * LONG_MS);
        world_pass(&s.w, LONG_MS);
        assert_settled(&s, 10, "two");
        assert_int_equal(scene_revisions(&s), 2);
    }
}

static void run_with_faults(uint64_t seed, const struct limits *l, bool with_restart)
{
    SCENE(seed);
    scene_create(&s, PLURAL, rolling_spec(&s, l).p, "one");
    watch_limits(&s, l->max_live, 0);
    s.w.api.fail_percent = s.w.api.lose_percent = 15;
    s.w.repeat_percent = 20;
    s.w.drop_percent = with_restart ? 20 : 0;
    for (int i = 0; i < 40; i++) {
        world_pass(&s.w, 3 * SECOND_MS);
        if (with_restart)
            world_restart(&s.w);
    }
    watch_limits(&s, l->max_live, scene_ready(&s, NULL) == 10 ? l->min_available : 0);
    scene_set_image(&s, PLURAL, "two");
    for (int i = 0; i < 40; i++) {
        world_pass(&s.w, 3 * SECOND_MS);
        if (with_restart)
            world_restart(&s.w);
    }
    s.w.drop_percent = s.w.api.fail_percent = s.w.api.lose_percent = 0;
    world_restart(&s.w);
    world_pass(&s.w, LONG_MS);
    assert_settled(&s, 10, "two");
    assert_int_equal(scene_revisions(&s), 2);
}

TEST(it_settles_whatever_fails_or_repeats)
{
    const uint64_t seed = world_seed();
    for (uint64_t i = 0; i < 6; i++)
        run_with_faults(seed + i, &limits[i % N_ELEMENTS(limits)], false);
}

TEST(it_settles_whatever_is_missed)
{
    const uint64_t seed = world_seed();
    for (uint64_t i = 0; i < 6; i++)
        run_with_faults(seed + i, &limits[i % N_ELEMENTS(limits)], true);
}
