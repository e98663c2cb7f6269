/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "test.h"

#include "controllers/gc.h"
#include "world.h"

#define HOLD "example.org/hold"
#define MAPS "configmaps"
#define V1_MAPS "v1/configmaps"
#define LONG_MS ((int64_t) 20 * 60 * 1000)

static const struct controller *const just_gc[] = {&gc_controller, NULL};

#define WORLD \
    CLEANUP(world_done) struct world w; \
    world_init(&w, 1, just_gc)

/* ---- making ------------------------------------------------------------------------------- */

static void make(struct world *w, const char *name)
{
    ARENA_AUTO a = arena_new();
    assert_int_equal(
        world_create(w, V1_MAPS, "n", arena_printf(a, "{'metadata':{'name':'%s'}}", name).p), 0);
}

static struct str reference(struct world *w, struct arena *a, const char *owner, const char *extra)
{
    return arena_printf(a, "{'apiVersion':'v1','kind':'ConfigMap','name':'%s','uid':'%.*s'%s}",
                        owner, STR_ARG(world_uid(w, MAPS, "n", owner)), extra);
}

static void make_owned(struct world *w, const char *name, const char *owner, const char *extra)
{
    ARENA_AUTO a = arena_new();
    struct str text = arena_printf(a, "{'metadata':{'name':'%s','ownerReferences':[%.*s]}}", name,
                                   STR_ARG(reference(w, a, owner, extra)));
    assert_int_equal(world_create(w, V1_MAPS, "n", text.p), 0);
}

static bool has(struct world *w, const char *name)
{
    return world_has(w, MAPS, "n", name);
}

static bool is_deleting(struct world *w, const char *name)
{
    return world_text(w, MAPS, "n", name, "metadata", "deletionTimestamp").n > 0;
}

static size_t n_owners(struct world *w, const char *name)
{
    return json_count(world_at(w, MAPS, "n", name, "metadata", "ownerReferences", NULL));
}

/* ---- in the background -------------------------------------------------------------------- */

TEST(dependents_go_after_their_owner)
{
    WORLD;
    make(&w, "a");
    make_owned(&w, "child", "a", "");
    make_owned(&w, "grand", "child", "");
    world_pass(&w, 0);
    assert_true(has(&w, "grand"));
    assert_int_equal(world_delete(&w, V1_MAPS, "n", "a", "Background"), 0);
    world_pass(&w, 0);
    assert_false(has(&w, "child"));
    assert_false(has(&w, "grand"));
}

TEST(an_owner_that_never_existed_is_gone)
{
    WORLD;
    assert_int_equal(
        world_create(&w, V1_MAPS, "n",
                     "{'metadata':{'name':'c','ownerReferences':[{'apiVersion':'v1','kind':"
                     "'ConfigMap','name':'x','uid':'none'}]}}"),
        0);
    world_pass(&w, 0);
    assert_false(has(&w, "c"));
}

TEST(a_namesake_with_another_uid_is_no_owner)
{
    WORLD;
    make(&w, "a");
    assert_int_equal(
        world_create(&w, V1_MAPS, "n",
                     "{'metadata':{'name':'c','ownerReferences':[{'apiVersion':'v1','kind':"
                     "'ConfigMap','name':'a','uid':'other'}]}}"),
        0);
    world_pass(&w, 0);
    assert_false(has(&w, "c"));
    assert_true(has(&w, "a"));
}

TEST(a_dependent_with_another_owner_only_forgets_the_dead_one)
{
    WORLD;
    ARENA_AUTO a = arena_new();
    make(&w, "a");
    make(&w, "b");
    struct str text =
        arena_printf(a, "{'metadata':{'name':'c','ownerReferences':[%.*s,%.*s]}}",
                     STR_ARG(reference(&w, a, "a", "")), STR_ARG(reference(&w, a, "b", "")));
    assert_int_equal(world_create(&w, V1_MAPS, "n", text.p), 0);
    assert_int_equal(world_delete(&w, V1_MAPS, "n", "a", NULL), 0);
    world_pass(&w, 0);
    assert_true(has(&w, "c"));
    assert_int_equal(n_owners(&w, "c"), 1);
    assert_int_equal(world_delete(&w, V1_MAPS, "n", "b", NULL), 0);
    world_pass(&w, 0);
    assert_false(has(&w, "c"));
}

TEST(an_owner_in_another_namespace_does_not_count)
{
    WORLD;
    ARENA_AUTO a = arena_new();
    make(&w, "a");
    make_owned(&w, "kept", "a", "");
    assert_int_equal(world_create(&w, "v1/namespaces", NULL, "{'metadata':{'name':'m'}}"), 0);
    struct str text = arena_printf(a, "{'metadata':{'name':'c','ownerReferences':[%.*s]}}",
                                   STR_ARG(reference(&w, a, "a", "")));
    assert_int_equal(world_create(&w, V1_MAPS, "m", text.p), 0);
    world_pass(&w, 0);
    assert_false(world_has(&w, MAPS, "m", "c"));
    assert_true(has(&w, "kept"));
}

TEST(an_owner_without_namespace_counts)
{
    WORLD;
    ARENA_AUTO a = arena_new();
    struct str text = arena_printf(
        a,
        "{'metadata':{'name':'c','ownerReferences':[{'apiVersion':'v1','kind':'Namespace',"
        "'name':'n','uid':'%.*s'}]}}",
        STR_ARG(world_uid(&w, "namespaces", NULL, "n")));
    assert_int_equal(world_create(&w, V1_MAPS, "n", text.p), 0);
    world_pass(&w, 0);
    assert_true(has(&w, "c"));
}

TEST(a_cluster_wide_dependent_of_a_namespaced_owner_is_left_alone)
{
    WORLD;
    ARENA_AUTO a = arena_new();
    make(&w, "a");
    struct str text = arena_printf(a, "{'metadata':{'name':'m','ownerReferences':[%.*s]}}",
                                   STR_ARG(reference(&w, a, "a", "")));
    assert_int_equal(world_create(&w, "v1/namespaces", NULL, text.p), 0);
    assert_int_equal(world_delete(&w, V1_MAPS, "n", "a", NULL), 0);
    world_pass(&w, LONG_MS);
    assert_true(world_has(&w, "namespaces", NULL, "m"));
}

TEST(an_owner_of_a_kind_that_is_not_served_is_not_missed)
{
    WORLD;
    assert_int_equal(
        world_create(&w, V1_MAPS, "n",
                     "{'metadata':{'name':'c','ownerReferences':[{'apiVersion':'x.org/v1','kind':"
                     "'Thing','name':'x','uid':'none'}]}}"),
        0);
    world_pass(&w, LONG_MS);
    assert_true(has(&w, "c"));
}

/* ---- in the foreground -------------------------------------------------------------------- */

TEST(a_foreground_owner_waits_for_the_dependents_that_block_it)
{
    WORLD;
    make(&w, "a");
    make_owned(&w, "child", "a", ",'blockOwnerDeletion':true");
    assert_int_equal(
        world_patch(&w, V1_MAPS, "n", "child", "{'metadata':{'finalizers':['" HOLD "']}}"), 0);
    assert_int_equal(world_delete(&w, V1_MAPS, "n", "a", "Foreground"), 0);
    world_pass(&w, LONG_MS);
    assert_true(is_deleting(&w, "a"));
    assert_true(is_deleting(&w, "child"));
    assert_int_equal(world_patch(&w, V1_MAPS, "n", "child", "{'metadata':{'finalizers':null}}"), 0);
    world_pass(&w, 0);
    assert_false(has(&w, "child"));
    assert_false(has(&w, "a"));
}

TEST(a_foreground_owner_does_not_wait_for_others)
{
    WORLD;
    make(&w, "a");
    make_owned(&w, "child", "a", "");
    assert_int_equal(
        world_patch(&w, V1_MAPS, "n", "child", "{'metadata':{'finalizers':['" HOLD "']}}"), 0);
    assert_int_equal(world_delete(&w, V1_MAPS, "n", "a", "Foreground"), 0);
    world_pass(&w, 0);
    assert_false(has(&w, "a"));
    assert_true(is_deleting(&w, "child"));
}

TEST(the_foreground_reaches_down_all_generations)
{
    WORLD;
    make(&w, "a");
    make_owned(&w, "b", "a", ",'blockOwnerDeletion':true");
    make_owned(&w, "c", "b", ",'blockOwnerDeletion':true");
    assert_int_equal(world_patch(&w, V1_MAPS, "n", "c", "{'metadata':{'finalizers':['" HOLD "']}}"),
                     0);
    assert_int_equal(world_delete(&w, V1_MAPS, "n", "a", "Foreground"), 0);
    world_pass(&w, 0);
    assert_true(is_deleting(&w, "a") && is_deleting(&w, "b") && is_deleting(&w, "c"));
    assert_int_equal(world_patch(&w, V1_MAPS, "n", "c", "{'metadata':{'finalizers':null}}"), 0);
    world_pass(&w, 0);
    assert_int_equal(fake_count(&w.api, MAPS), 0);
}

TEST(two_that_own_each_other_do_not_wait_for_each_other)
{
    WORLD;
    ARENA_AUTO a = arena_new();
    make(&w, "a");
    make_owned(&w, "b", "a", ",'blockOwnerDeletion':true");
    struct str text = arena_printf(a, "{'metadata':{'ownerReferences':[%.*s]}}",
                                   STR_ARG(reference(&w, a, "b", ",'blockOwnerDeletion':true")));
    assert_int_equal(world_patch(&w, V1_MAPS, "n", "a", text.p), 0);
    assert_int_equal(world_delete(&w, V1_MAPS, "n", "a", "Foreground"), 0);
    world_pass(&w, LONG_MS);
    assert_int_equal(fake_count(&w.api, MAPS), 0);
}

TEST(nor_when_both_are_deleted_at_once)
{
    WORLD;
    ARENA_AUTO a = arena_new();
    make(&w, "a");
    make_owned(&w, "b", "a", ",'blockOwnerDeletion':true");
    make_owned(&w, "c", "b", ",'blockOwnerDeletion':true");
    struct str text = arena_printf(a, "{'metadata':{'ownerReferences':[%.*s]}}",
                                   STR_ARG(reference(&w, a, "c", ",'blockOwnerDeletion':true")));
    assert_int_equal(world_patch(&w, V1_MAPS, "n", "a", text.p), 0);
    for (const char *name = "abc"; *name; name++)
        assert_int_equal(
            world_delete(&w, V1_MAPS, "n", arena_printf(a, "%c", *name).p, "Foreground"), 0);
    world_pass(&w, LONG_MS);
    assert_int_equal(fake_count(&w.api, MAPS), 0);
}

TEST(a_foreground_owner_waits_across_a_restart)
{
    WORLD;
    make(&w, "a");
    make_owned(&w, "child", "a", ",'blockOwnerDeletion':true");
    assert_int_equal(
        world_patch(&w, V1_MAPS, "n", "child", "{'metadata':{'finalizers':['" HOLD "']}}"), 0);
    assert_int_equal(world_delete(&w, V1_MAPS, "n", "a", "Foreground"), 0);
    world_pass(&w, 0);
    for (int i = 0; i < 3; i++) {
        world_restart(&w);
        world_pass(&w, 1000);
        assert_true(is_deleting(&w, "a"));
    }
    assert_int_equal(world_patch(&w, V1_MAPS, "n", "child", "{'metadata':{'finalizers':null}}"), 0);
    world_restart(&w);
    world_pass(&w, 0);
    assert_false(has(&w, "a"));
}

/* ---- orphans ------------------------------------------------------------------------------ */

TEST(orphans_forget_their_owner_before_it_goes)
{
    WORLD;
    make(&w, "a");
    make_owned(&w, "b", "a", "");
    make_owned(&w, "c", "a", ",'blockOwnerDeletion':true");
    assert_int_equal(world_delete(&w, V1_MAPS, "n", "a", "Orphan"), 0);
    world_pass(&w, LONG_MS);
    assert_false(has(&w, "a"));
    assert_true(has(&w, "b") && has(&w, "c"));
    assert_int_equal(n_owners(&w, "b") + n_owners(&w, "c"), 0);
}

TEST(an_owner_is_not_let_go_before_all_have_forgotten_it)
{
    WORLD;
    make(&w, "a");
    for (int i = 0; i < 20; i++) {
        char name[16];
        (void) snprintf(name, sizeof(name), "c%d", i);
        make_owned(&w, name, "a", "");
    }
    world_pass(&w, 0);
    w.api.fail_percent = w.api.lose_percent = 15;
    assert_int_equal(world_delete(&w, V1_MAPS, "n", "a", "Orphan"), 0);
    world_pass(&w, LONG_MS);
    assert_false(has(&w, "a"));
    assert_int_equal(fake_count(&w.api, MAPS), 20);
}

/* ---- by chance ---------------------------------------------------------------------------- */

#define N_NAMES 24
#define N_ACTIONS 300

/* What must come out is known of three sorts alone: roots nobody deletes, their dependents, and
 * dependents of nothing. */
struct chance {
    struct world *w;
    uint64_t seed;
    struct arena *a;
};

static struct str random_owner(struct chance *c)
{
    ARENA_AUTO a = arena_new();
    char name[16];
    (void) snprintf(name, sizeof(name), "o%" PRIu64, fake_random(&c->w->api, N_NAMES));
    const char *extra =
        fake_random(&c->w->api, 2) ? ",'blockOwnerDeletion':true" : ",'controller':false";
    return arena_str(c->a, reference(c->w, a, name, extra));
}

static void act(struct chance *c)
{
    struct world *w = c->w;
    char name[16];
    (void) snprintf(name, sizeof(name), "o%" PRIu64, fake_random(&w->api, N_NAMES));
    static const char *const policies[] = {"Background", "Foreground", "Orphan", NULL};
    struct str text, one = random_owner(c), other = random_owner(c);
    switch (fake_random(&w->api, 6)) {
    case 0:
        text = arena_printf(c->a, "{'metadata':{'name':'%s'}}", name);
        (void) world_create(w, V1_MAPS, "n", text.p);
        break;
    case 1:
    case 2:
        text = arena_printf(c->a, "{'metadata':{'name':'%s','ownerReferences':[%.*s,%.*s]}}", name,
                            STR_ARG(one), STR_ARG(other));
        (void) world_create(w, V1_MAPS, "n", text.p);
        break;
    case 3:
        (void) world_delete(w, V1_MAPS, "n", name, policies[fake_random(&w->api, 4)]);
        break;
    case 4:
        text = arena_printf(c->a, "{'metadata':{'ownerReferences':[%.*s]}}", STR_ARG(one));
        (void) world_patch(w, V1_MAPS, "n", name, text.p);
        break;
    default:
        world_pass(w, (int64_t) fake_random(&w->api, 200));
    }
}

static void check_settled(void *ctx, struct str collection, const struct json *o)
{
    struct chance *c = ctx;
    if (!str_is(collection, MAPS))
        return;
    const struct json *meta = json_get(o, STR("metadata"));
    struct str name = json_get_str(meta, STR("name"));
    if (json_get_str(meta, STR("deletionTimestamp")).n)
        fail_msg("seed %" PRIu64 ": %.*s is still being deleted", c->seed, STR_ARG(name));
    size_t n_alive = 0;
    const struct json *owners = json_get(meta, STR("ownerReferences"));
    JSON_FOR_EACH_ITEM (owners, r) {
        struct str owner = arena_str(c->a, json_get_str(r, STR("name")));
        n_alive += str_eq(world_uid(c->w, MAPS, "n", owner.p), json_get_str(r, STR("uid")));
    }
    if (n_alive != json_count(owners))
        fail_msg("seed %" PRIu64 ": %.*s names an owner that is gone", c->seed, STR_ARG(name));
}

static void run_chance(uint64_t seed, bool with_restart)
{
    ARENA_AUTO a = arena_new();
    CLEANUP(world_done) struct world w;
    world_init(&w, seed, just_gc);
    struct chance c = {&w, seed, a};
    make(&w, "root");
    make_owned(&w, "leaf", "root", ",'blockOwnerDeletion':true");
    w.api.fail_percent = w.api.lose_percent = 10;
    w.repeat_percent = 20;
    w.drop_percent = with_restart ? 20 : 0;
    for (int i = 0; i < N_ACTIONS; i++) {
        act(&c);
        if (with_restart && fake_random(&w.api, 50) == 0)
            world_restart(&w);
    }
    w.drop_percent = 0;
    if (with_restart)
        world_restart(&w);
    world_pass(&w, LONG_MS);
    fake_each(&w.api, check_settled, &c);
    if (!has(&w, "root") || !has(&w, "leaf"))
        fail_msg("seed %" PRIu64 ": what nobody deleted is gone", seed);
}

TEST(it_settles_whatever_fails_or_repeats)
{
    uint64_t seed = world_seed();
    for (uint64_t i = 0; i < 30; i++)
        run_chance(seed + i, false);
}

TEST(it_settles_after_a_restart_whatever_was_missed)
{
    uint64_t seed = world_seed();
    for (uint64_t i = 0; i < 30; i++)
        run_chance(seed + i, true);
}
