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
        w.api.fail_percent = w.api.lose_percent = 30;
        w.drop_percent = 50;
        assert_int_equal(world_delete(&w, VOLUMES, NULL, "v", NULL), 0);
        world_pass(&w, 1000);
        w.drop_percent = 0;
        world_restart(&w);
        world_pass(&w, 3600000);
        assert_false(world_has(&w, "persistentvolumes", NULL, "v"));
    }
}
