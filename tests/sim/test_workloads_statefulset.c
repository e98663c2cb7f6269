/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "test.h"

#include "workload_scene.h"

#define PLURAL "applicationstatefulsets"
#define OWNERS "applicationstatefulsets.eve.lfedge.org"
#define CLAIMS "persistentvolumeclaims"
#define LONG_MS (120 * SECOND_MS)
#define CLAIM_TEMPLATES \
    "'volumeClaimTemplates':[{'metadata':{'name':'data'},'spec':{'storageClassName':'eve-blank'," \
    "'accessModes':['ReadWriteOnce'],'resources':{'requests':{'storage':'1Gi'}}}}]"

static const char *member(struct scene *s, int64_t ordinal)
{
    return arena_printf(s->arena, "web-%d", (int) ordinal).p;
}

static void assert_settled(struct scene *s, int64_t n, const char *image)
{
    assert_int_equal(scene_live(s, NULL), n);
    assert_int_equal(scene_ready(s, image), n);
    for (int64_t i = 0; i < n; i++)
        assert_true(world_has(&s->w, APPS, "n", member(s, i)));
    assert_int_equal(scene_status(s, PLURAL, "replicas"), n);
    assert_int_equal(scene_status(s, PLURAL, "readyReplicas"), n);
    assert_int_equal(scene_status(s, PLURAL, "availableReplicas"), n);
    assert_int_equal(scene_status(s, PLURAL, "currentReplicas"), n);
    assert_int_equal(scene_status(s, PLURAL, "updatedReplicas"), n);
    const struct json *status = world_at(&s->w, OWNERS, "n", "web", "status", NULL);
    assert_true(json_get_str(status, STR("currentRevision")).n > 0);
    assert_true(str_eq(json_get_str(status, STR("currentRevision")),
                       json_get_str(status, STR("updateRevision"))));
    assert_str(scene_condition(s, PLURAL, "Available", "status"), "True");
}

/* ---- order --------------------------------------------------------------------------------- */

static bool is_there(struct scene *s, int64_t ordinal, bool is_to_be_ready)
{
    struct scene_app *apps = NULL;
    const size_t n = scene_apps(s, &apps);
    for (size_t i = 0; i < n; i++)
        if (str_is(apps[i].name, member(s, ordinal)))
            return !is_to_be_ready || apps[i].is_ready;
    return false;
}

/* While it grows: a number is there only when all below it are ready. */
static void check_growth(struct scene *s)
{
    for (int64_t i = 0; i < s->max_live; i++)
        if (is_there(s, i, false) && i > 0 && !is_there(s, i - 1, true))
            fail_msg("%d is there before %d is ready", (int) i, (int) i - 1);
}

/* Afterwards: not more than one is away or not ready. */
static void check_limits(struct scene *s)
{
    if (scene_live(s, NULL) > s->max_live || scene_ready(s, NULL) < s->min_available)
        fail_msg("%d live, %d ready; allowed are %d and %d", (int) scene_live(s, NULL),
                 (int) scene_ready(s, NULL), (int) s->max_live, (int) s->min_available);
    /* From the top down: what is old is below what is new. */
    bool is_old_allowed = true;
    for (int64_t i = 0; i < s->max_live; i++) {
        const struct json *containers =
            world_at(&s->w, APPS, "n", member(s, i), "spec", "containers", NULL);
        if (!json_count(containers))
            continue;
        const bool is_new = str_is(json_get_str(&containers->items[0], STR("image")), "two");
        if (!is_new && !is_old_allowed)
            fail_msg("%d was left out", (int) i);
        is_old_allowed = !is_new;
    }
}

static void watch(struct scene *s, void (*check)(struct scene *s), int64_t max_live,
                  int64_t min_available)
{
    s->check = check;
    s->max_live = max_live;
    s->min_available = min_available;
    s->is_watching = check != NULL;
}

TEST(they_come_one_after_the_other)
{
    SCENE(world_seed());
    watch(&s, check_growth, 4, 0);
    scene_create(&s, PLURAL, "'replicas':4", "one");
    world_pass(&s.w, SECOND_MS);
    assert_int_equal(scene_live(&s, NULL), 1);
    world_pass(&s.w, LONG_MS);
    assert_settled(&s, 4, "one");
    const struct json *labels = world_at(&s.w, APPS, "n", "web-2", "metadata", "labels", NULL);
    assert_str(json_get_str(labels, STR("eve.lfedge.org/ordinal")), "2");
    assert_str(json_get_str(labels, STR("eve.lfedge.org/application")), "web-2");
    assert_str(json_get_str(labels, STR("app")), "web");
    assert_str(world_text(&s.w, OWNERS, "n", "web", "status", "selector"), "app=web");
}

TEST(in_parallel_all_come_at_once)
{
    SCENE(world_seed());
    scene_create(&s, PLURAL, "'replicas':4,'podManagementPolicy':'Parallel'", "one");
    world_pass(&s.w, SECOND_MS);
    assert_int_equal(scene_live(&s, NULL), 4);
    world_pass(&s.w, LONG_MS);
    scene_patch(&s, PLURAL, "{'spec':{'replicas':1}}");
    world_pass(&s.w, SECOND_MS);
    assert_settled(&s, 1, "one");
}

TEST(very_many_come_some_at_a_time)
{
    SCENE(world_seed());
    scene_create(&s, PLURAL, "'replicas':2147483647,'podManagementPolicy':'Parallel'", "one");
    world_pass(&s.w, 0);
    assert_in_range(scene_live(&s, NULL), 400, 1000);
    scene_patch(&s, PLURAL, "{'spec':{'replicas':3}}");
    world_pass(&s.w, LONG_MS);
    assert_settled(&s, 3, "one");
}

TEST(numbers_begin_where_they_are_told_to)
{
    SCENE(world_seed());
    scene_create(&s, PLURAL, "'replicas':2,'ordinals':{'start':5}", "one");
    world_pass(&s.w, LONG_MS);
    assert_true(world_has(&s.w, APPS, "n", "web-5"));
    assert_true(world_has(&s.w, APPS, "n", "web-6"));
    scene_patch(&s, PLURAL, "{'spec':{'ordinals':{'start':0}}}");
    world_pass(&s.w, LONG_MS);
    assert_settled(&s, 2, "one");
}

TEST(fewer_means_the_highest_go)
{
    SCENE(world_seed());
    scene_create(&s, PLURAL, "'replicas':4", "one");
    world_pass(&s.w, LONG_MS);
    assert_int_equal(world_patch(&s.w, VERSION "applications", "n", "web-3",
                                 "{'metadata':{'finalizers':['a/b']}}"),
                     0);
    scene_patch(&s, PLURAL, "{'spec':{'replicas':1}}");
    world_pass(&s.w, LONG_MS);
    /* The highest is not gone yet, so the next waits. */
    assert_int_equal(scene_live(&s, NULL), 3);
    assert_int_equal(
        world_patch(&s.w, VERSION "applications", "n", "web-3", "{'metadata':{'finalizers':null}}"),
        0);
    world_pass(&s.w, LONG_MS);
    assert_settled(&s, 1, "one");
}

TEST(one_that_fails_holds_up_the_rest)
{
    SCENE(world_seed());
    scene_create(&s, PLURAL, "'replicas':3", "bad");
    world_pass(&s.w, LONG_MS);
    assert_int_equal(scene_live(&s, NULL), 1);
    assert_str(scene_condition(&s, PLURAL, "Available", "status"), "False");
}

/* ---- rolling ------------------------------------------------------------------------------- */

TEST(a_rolling_update_goes_from_the_top)
{
    SCENE(world_seed());
    scene_create(&s, PLURAL, "'replicas':4", "one");
    world_pass(&s.w, LONG_MS);
    watch(&s, check_limits, 4, 3);
    scene_set_image(&s, PLURAL, "two");
    world_pass(&s.w, SECOND_MS);
    assert_int_equal(scene_status(&s, PLURAL, "currentReplicas"), 3);
    world_pass(&s.w, LONG_MS);
    assert_settled(&s, 4, "two");
}

TEST(several_may_be_away_when_that_is_allowed)
{
    SCENE(world_seed());
    scene_create(&s, PLURAL,
                 "'replicas':4,'podManagementPolicy':'Parallel','updateStrategy':{'rollingUpdate':{"
                 "'maxUnavailable':'50%'}}",
                 "one");
    world_pass(&s.w, LONG_MS);
    watch(&s, check_limits, 4, 2);
    scene_set_image(&s, PLURAL, "two");
    world_pass(&s.w, SECOND_MS);
    assert_int_equal(scene_live(&s, "one"), 2);
    world_pass(&s.w, LONG_MS);
    assert_settled(&s, 4, "two");
}

TEST(those_below_the_partition_stay)
{
    SCENE(world_seed());
    scene_create(&s, PLURAL, "'replicas':4,'updateStrategy':{'rollingUpdate':{'partition':2}}",
                 "one");
    world_pass(&s.w, LONG_MS);
    watch(&s, check_limits, 4, 3);
    scene_set_image(&s, PLURAL, "two");
    world_pass(&s.w, LONG_MS);
    assert_int_equal(scene_live(&s, "one"), 2);
    assert_int_equal(scene_status(&s, PLURAL, "updatedReplicas"), 2);
    assert_int_equal(scene_status(&s, PLURAL, "currentReplicas"), 2);
    /* One below that is lost returns as it was. */
    watch(&s, NULL, 0, 0);
    assert_int_equal(world_delete(&s.w, VERSION "applications", "n", "web-0", NULL), 0);
    world_pass(&s.w, LONG_MS);
    assert_int_equal(scene_live(&s, "one"), 2);
    watch(&s, check_limits, 4, 3);
    scene_patch(&s, PLURAL, "{'spec':{'updateStrategy':{'rollingUpdate':{'partition':0}}}}");
    world_pass(&s.w, LONG_MS);
    assert_settled(&s, 4, "two");
}

TEST(on_delete_waits_for_the_user)
{
    SCENE(world_seed());
    scene_create(&s, PLURAL, "'replicas':3,'updateStrategy':{'type':'OnDelete'}", "one");
    world_pass(&s.w, LONG_MS);
    scene_set_image(&s, PLURAL, "two");
    world_pass(&s.w, LONG_MS);
    assert_int_equal(scene_live(&s, "one"), 3);
    assert_int_equal(world_delete(&s.w, VERSION "applications", "n", "web-1", NULL), 0);
    world_pass(&s.w, LONG_MS);
    assert_int_equal(scene_live(&s, "one"), 2);
    assert_int_equal(scene_live(&s, "two"), 1);
}

TEST(devices_out_of_touch_stall_nothing)
{
    SCENE(world_seed());
    for (int i = 0; i < 7; i++)
        scene_device(&s, arena_printf(s.arena, "d%d", i).p, "{}");
    scene_create(&s, PLURAL, "'replicas':4", "one");
    world_pass(&s.w, LONG_MS);
    assert_settled(&s, 4, "one");
    for (int i = 0; i < 7; i++)
        scene_touch(&s, arena_printf(s.arena, "d%d", i).p, false);
    scene_set_image(&s, PLURAL, "two");
    world_pass(&s.w, LONG_MS);
    assert_int_equal(scene_live(&s, "two"), 4);
    assert_int_equal(scene_ready(&s, "two"), 0);
    scene_patch(&s, PLURAL, "{'spec':{'replicas':6}}");
    world_pass(&s.w, LONG_MS);
    assert_int_equal(scene_live(&s, "two"), 6);
    const struct json *status = world_at(&s.w, OWNERS, "n", "web", "status", NULL);
    assert_true(str_eq(json_get_str(status, STR("currentRevision")),
                       json_get_str(status, STR("updateRevision"))));
}

/* ---- claims -------------------------------------------------------------------------------- */

TEST(each_has_claims_that_stay)
{
    SCENE(world_seed());
    scene_create(&s, PLURAL, "'replicas':2," CLAIM_TEMPLATES, "one");
    world_pass(&s.w, LONG_MS);
    assert_settled(&s, 2, "one");
    assert_true(world_has(&s.w, CLAIMS, "n", "data-web-0"));
    assert_true(world_has(&s.w, CLAIMS, "n", "data-web-1"));
    const struct json *volumes = world_at(&s.w, APPS, "n", "web-1", "spec", "volumes", NULL);
    assert_int_equal(json_count(volumes), 1);
    assert_str(json_get_str(&volumes->items[0], STR("name")), "data");
    assert_str(json_str(json_at(&volumes->items[0], "persistentVolumeClaim", "claimName", NULL)),
               "data-web-1");
    const struct str uid = arena_str(s.arena, world_uid(&s.w, CLAIMS, "n", "data-web-1"));
    scene_patch(&s, PLURAL, "{'spec':{'replicas':1}}");
    world_pass(&s.w, LONG_MS);
    scene_patch(&s, PLURAL, "{'spec':{'replicas':2}}");
    world_pass(&s.w, LONG_MS);
    assert_true(str_eq(uid, world_uid(&s.w, CLAIMS, "n", "data-web-1")));
    assert_int_equal(world_delete(&s.w, VERSION PLURAL, "n", "web", NULL), 0);
    world_pass(&s.w, LONG_MS);
    assert_int_equal(scene_live(&s, NULL), 0);
    assert_int_equal(fake_count(&s.w.api, CLAIMS), 2);
}

TEST(claims_go_when_the_policy_says_so)
{
    SCENE(world_seed());
    scene_create(&s, PLURAL,
                 "'replicas':3,'persistentVolumeClaimRetentionPolicy':{'whenScaled':'Delete',"
                 "'whenDeleted':'Delete'}," CLAIM_TEMPLATES,
                 "one");
    world_pass(&s.w, LONG_MS);
    assert_int_equal(fake_count(&s.w.api, CLAIMS), 3);
    const struct str uid = arena_str(s.arena, world_uid(&s.w, CLAIMS, "n", "data-web-2"));
    /* Replaced is not taken away. */
    scene_set_image(&s, PLURAL, "two");
    world_pass(&s.w, LONG_MS);
    assert_settled(&s, 3, "two");
    assert_true(str_eq(uid, world_uid(&s.w, CLAIMS, "n", "data-web-2")));
    scene_patch(&s, PLURAL, "{'spec':{'replicas':2}}");
    world_pass(&s.w, LONG_MS);
    assert_false(world_has(&s.w, CLAIMS, "n", "data-web-2"));
    assert_int_equal(fake_count(&s.w.api, CLAIMS), 2);
    scene_patch(&s, PLURAL, "{'spec':{'replicas':3}}");
    world_pass(&s.w, LONG_MS);
    assert_settled(&s, 3, "two");
    assert_false(str_eq(uid, world_uid(&s.w, CLAIMS, "n", "data-web-2")));
    assert_int_equal(world_delete(&s.w, VERSION PLURAL, "n", "web", NULL), 0);
    world_pass(&s.w, LONG_MS);
    assert_int_equal(fake_count(&s.w.api, CLAIMS), 0);
}

TEST(a_policy_that_changes_counts_for_the_claims_there_are)
{
    SCENE(world_seed());
    scene_create(&s, PLURAL, "'replicas':2," CLAIM_TEMPLATES, "one");
    world_pass(&s.w, LONG_MS);
    scene_patch(&s, PLURAL,
                "{'spec':{'persistentVolumeClaimRetentionPolicy':{'whenDeleted':'Delete'}}}");
    world_pass(&s.w, LONG_MS);
    assert_int_equal(world_delete(&s.w, VERSION PLURAL, "n", "web", NULL), 0);
    world_pass(&s.w, LONG_MS);
    assert_int_equal(fake_count(&s.w.api, CLAIMS), 0);
}

TEST(only_members_are_adopted)
{
    SCENE(world_seed());
    static const char *const names[] = {"web-0", "web-x", "web-01", "web", "other-1"};
    for (size_t i = 0; i < N_ELEMENTS(names); i++) {
        const struct str text = arena_printf(
            s.arena,
            "{'metadata':{'name':'%s','labels':{'app':'web'}},'spec':{'containers':[{'name':'c',"
            "'image':'one'}]}}",
            names[i]);
        assert_int_equal(world_create(&s.w, VERSION "applications", "n", text.p), 0);
    }
    scene_create(&s, PLURAL, "'replicas':2", "one");
    world_pass(&s.w, LONG_MS);
    assert_int_equal(scene_status(&s, PLURAL, "replicas"), 2);
    assert_int_equal(scene_live(&s, NULL), 6);
    for (size_t i = 1; i < N_ELEMENTS(names); i++)
        assert_int_equal(
            json_count(world_at(&s.w, APPS, "n", names[i], "metadata", "ownerReferences", NULL)),
            0);
}

TEST(nothing_is_written_when_nothing_changes)
{
    SCENE(world_seed());
    scene_create(&s, PLURAL, "'replicas':3," CLAIM_TEMPLATES, "one");
    world_pass(&s.w, LONG_MS);
    const size_t n_writes = s.w.api.n_writes;
    world_restart(&s.w);
    world_pass(&s.w, 20 * LONG_MS);
    assert_int_equal(s.w.api.n_writes, n_writes);
}

/* ---- faults -------------------------------------------------------------------------------- */

TEST(a_crash_after_every_write_changes_nothing)
{
    SCENE(world_seed());
    watch(&s, check_growth, 4, 0);
    scene_create(&s, PLURAL, "'replicas':4," CLAIM_TEMPLATES, "one");
    scene_crash_often(&s, LONG_MS);
    world_pass(&s.w, LONG_MS);
    assert_settled(&s, 4, "one");
    watch(&s, check_limits, 4, 3);
    scene_set_image(&s, PLURAL, "two");
    scene_crash_often(&s, LONG_MS);
    world_pass(&s.w, LONG_MS);
    assert_settled(&s, 4, "two");
    assert_int_equal(scene_revisions(&s), 2);
    assert_int_equal(fake_count(&s.w.api, CLAIMS), 4);
}

static void pass_with_faults(struct scene *s, bool with_restart)
{
    for (int i = 0; i < 40; i++) {
        world_pass(&s->w, 3 * SECOND_MS);
        if (with_restart)
            world_restart(&s->w);
    }
}

static void run_with_faults(uint64_t seed, bool with_restart)
{
    SCENE(seed);
    watch(&s, check_growth, 4, 0);
    scene_create(&s, PLURAL, "'replicas':4," CLAIM_TEMPLATES, "one");
    s.w.api.fail_percent = s.w.api.lose_percent = 15;
    s.w.repeat_percent = 20;
    s.w.drop_percent = with_restart ? 20 : 0;
    pass_with_faults(&s, with_restart);
    watch(&s, check_limits, 4, scene_ready(&s, NULL) == 4 ? 3 : 0);
    if (scene_live(&s, NULL) < 4)
        watch(&s, NULL, 0, 0);
    scene_set_image(&s, PLURAL, "two");
    pass_with_faults(&s, with_restart);
    s.w.drop_percent = s.w.api.fail_percent = s.w.api.lose_percent = 0;
    world_restart(&s.w);
    world_pass(&s.w, LONG_MS);
    assert_settled(&s, 4, "two");
    assert_int_equal(scene_revisions(&s), 2);
    assert_int_equal(fake_count(&s.w.api, CLAIMS), 4);
}

TEST(it_settles_whatever_fails_or_repeats)
{
    const uint64_t seed = world_seed();
    for (uint64_t i = 0; i < 8; i++)
        run_with_faults(seed + i, false);
}

TEST(it_settles_whatever_is_missed)
{
    const uint64_t seed = world_seed();
    for (uint64_t i = 0; i < 8; i++)
        run_with_faults(seed + i, true);
}
