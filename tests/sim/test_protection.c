/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "controllers/protection.h"
#include "world.h"

static const struct controller *const just_protection[] = {&protection_controller, NULL};

#define WORLD \
    CLEANUP(world_done) struct world w; \
    world_init(&w, 1, just_protection)

#define VOLUMES "v1/persistentvolumes"
#define CLAIMS "v1/persistentvolumeclaims"

static void make_volume(struct world *w)
{
    assert_int_equal(world_create(w, VOLUMES, NULL, "{'metadata':{'name':'v'},'spec':{}}"), 0);
    assert_int_equal(
        json_count(world_at(w, "persistentvolumes", NULL, "v", "metadata", "finalizers", NULL)), 1);
}

TEST(a_claim_nobody_uses_goes)
{
    WORLD;
    assert_int_equal(world_create(&w, CLAIMS, "n", "{'metadata':{'name':'c'},'spec':{}}"), 0);
    world_pass(&w, 0);
    assert_int_equal(world_delete(&w, CLAIMS, "n", "c", NULL), 0);
    assert_true(world_has(&w, "persistentvolumeclaims", "n", "c"));
    world_pass(&w, 2000);
    assert_false(world_has(&w, "persistentvolumeclaims", "n", "c"));
}

#define APPLICATIONS "eve.lfedge.org/v1beta1/applications"

static void make_user(struct world *w, const char *name)
{
    ARENA_AUTO a = arena_new();
    const struct str text =
        arena_printf(a,
                     "{'metadata':{'name':'%s','finalizers':['x.org/y']},'spec':{'volumes':[{"
                     "'name':'v','persistentVolumeClaim':{'claimName':'c'}}]}}",
                     name);
    assert_int_equal(world_create(w, APPLICATIONS, "n", text.p), 0);
}

TEST(a_claim_goes_with_the_last_that_uses_it)
{
    WORLD;
    assert_int_equal(world_create(&w, CLAIMS, "n", "{'metadata':{'name':'c'},'spec':{}}"), 0);
    make_user(&w, "a");
    make_user(&w, "b");
    assert_int_equal(world_delete(&w, CLAIMS, "n", "c", NULL), 0);
    world_pass(&w, 3600000);
    assert_true(world_has(&w, "persistentvolumeclaims", "n", "c"));
    assert_int_equal(world_delete(&w, APPLICATIONS, "n", "a", NULL), 0);
    world_pass(&w, 3600000);
    assert_true(world_has(&w, "persistentvolumeclaims", "n", "c"));
    /* It waits for its finalizers and does not count any more. */
    assert_int_equal(world_delete(&w, APPLICATIONS, "n", "b", NULL), 0);
    assert_true(world_has(&w, "applications.eve.lfedge.org", "n", "b"));
    world_pass(&w, 2000);
    assert_false(world_has(&w, "persistentvolumeclaims", "n", "c"));
}

TEST(a_claim_that_is_let_go_by_an_edit_goes)
{
    WORLD;
    assert_int_equal(world_create(&w, CLAIMS, "n", "{'metadata':{'name':'c'},'spec':{}}"), 0);
    make_user(&w, "a");
    assert_int_equal(world_delete(&w, CLAIMS, "n", "c", NULL), 0);
    world_pass(&w, 2000);
    assert_int_equal(world_patch(&w, APPLICATIONS, "n", "a", "{'spec':{'volumes':null}}"), 0);
    world_pass(&w, 60000);
    assert_false(world_has(&w, "persistentvolumeclaims", "n", "c"));
}

TEST(a_claim_of_an_application_of_its_own_stays_while_it_does)
{
    WORLD;
    ARENA_AUTO a = arena_new();
    assert_int_equal(
        world_create(&w, APPLICATIONS, "n",
                     "{'metadata':{'name':'a'},'spec':{'volumes':[{'name':'v','ephemeral':{}}]}}"),
        0);
    const struct str claim = arena_printf(
        a,
        "{'metadata':{'name':'a-v','ownerReferences':[{'apiVersion':'eve.lfedge.org/v1beta1',"
        "'kind':'Application','name':'a','uid':'%.*s','controller':true}]},'spec':{}}",
        STR_ARG(world_uid(&w, "applications.eve.lfedge.org", "n", "a")));
    assert_int_equal(world_create(&w, CLAIMS, "n", claim.p), 0);
    assert_int_equal(world_delete(&w, CLAIMS, "n", "a-v", NULL), 0);
    world_pass(&w, 3600000);
    assert_true(world_has(&w, "persistentvolumeclaims", "n", "a-v"));
    assert_int_equal(world_delete(&w, APPLICATIONS, "n", "a", NULL), 0);
    world_pass(&w, 2000);
    assert_false(world_has(&w, "persistentvolumeclaims", "n", "a-v"));
}

/* It would wait for the claim of the one before it to go, and the claim for it. */
TEST(a_later_application_of_that_name_does_not_hold_the_claim)
{
    WORLD;
    assert_int_equal(
        world_create(&w, APPLICATIONS, "n",
                     "{'metadata':{'name':'a'},'spec':{'volumes':[{'name':'v','ephemeral':{}}]}}"),
        0);
    assert_int_equal(
        world_create(&w, CLAIMS, "n",
                     "{'metadata':{'name':'a-v','ownerReferences':[{'apiVersion':'eve.lfedge.org/"
                     "v1beta1','kind':'Application','name':'a','uid':'another','controller':true}]}"
                     ",'spec':{}}"),
        0);
    assert_int_equal(world_delete(&w, CLAIMS, "n", "a-v", NULL), 0);
    world_pass(&w, 2000);
    assert_false(world_has(&w, "persistentvolumeclaims", "n", "a-v"));
}

TEST(a_volume_goes_unless_it_is_bound)
{
    WORLD;
    make_volume(&w);
    assert_int_equal(world_patch(&w, VOLUMES, NULL, "v", "{'status':{'phase':'Bound'}}"), 0);
    assert_int_equal(world_delete(&w, VOLUMES, NULL, "v", NULL), 0);
    world_pass(&w, 3600000);
    assert_true(world_has(&w, "persistentvolumes", NULL, "v"));
    assert_int_equal(world_patch(&w, VOLUMES, NULL, "v", "{'status':{'phase':'Released'}}"), 0);
    world_pass(&w, 2000);
    assert_false(world_has(&w, "persistentvolumes", NULL, "v"));
}

TEST(other_finalizers_stay)
{
    WORLD;
    make_volume(&w);
    assert_int_equal(
        world_patch(&w, VOLUMES, NULL, "v",
                    "{'metadata':{'finalizers':['kubernetes.io/pv-protection','x.org/y']}}"),
        0);
    assert_int_equal(world_delete(&w, VOLUMES, NULL, "v", NULL), 0);
    world_pass(&w, 2000);
    const struct json *left =
        world_at(&w, "persistentvolumes", NULL, "v", "metadata", "finalizers", NULL);
    assert_int_equal(json_count(left), 1);
    assert_str(json_str(&left->items[0]), "x.org/y");
}

TEST(it_settles_whatever_fails_or_was_missed)
{
    uint64_t seed = world_seed();
    for (uint64_t i = 0; i < 20; i++) {
        CLEANUP(world_done) struct world w;
        world_init(&w, seed + i, just_protection);
        make_volume(&w);
        assert_int_equal(world_create(&w, CLAIMS, "n", "{'metadata':{'name':'c'},'spec':{}}"), 0);
        make_user(&w, "a");
        w.api.fail_percent = w.api.lose_percent = 30;
        w.drop_percent = 50;
        assert_int_equal(world_delete(&w, VOLUMES, NULL, "v", NULL), 0);
        assert_int_equal(world_delete(&w, CLAIMS, "n", "c", NULL), 0);
        world_pass(&w, 1000);
        assert_true(world_has(&w, "persistentvolumeclaims", "n", "c"));
        assert_int_equal(world_delete(&w, APPLICATIONS, "n", "a", NULL), 0);
        world_pass(&w, 1000);
        w.drop_percent = 0;
        world_restart(&w);
        world_pass(&w, 3600000);
        assert_false(world_has(&w, "persistentvolumes", NULL, "v"));
        assert_false(world_has(&w, "persistentvolumeclaims", "n", "c"));
    }
}
