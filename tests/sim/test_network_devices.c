/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "volumes/network_devices.h"
#include "world.h"

#define GROUP "eve.lfedge.org/v1beta1/"
#define DEVICES GROUP "devices"
#define NETWORKS GROUP "devicenetworks"
#define N_MANY 300

static const struct controller *const table[] = {&network_devices_controller, NULL};

#define WORLD \
    CLEANUP(world_done) struct world w; \
    world_init(&w, 1, table)

static void make_device(struct world *w, const char *name, const char *site)
{
    ARENA_AUTO a = arena_new();
    const struct str text = arena_printf(
        a, "{'metadata':{'name':'%s','labels':{'site':'%s','x':'y'}},'spec':{}}", name, site);
    assert_int_equal(world_create(w, DEVICES, "n", text.p), 0);
}

static void make_network(struct world *w, const char *name, const char *spec)
{
    ARENA_AUTO a = arena_new();
    const struct str text = arena_printf(a, "{'metadata':{'name':'%s'},'spec':%s}", name, spec);
    assert_int_equal(world_create(w, NETWORKS, "n", text.p), 0);
}

static void assert_devices(struct world *w, const char *network, int n)
{
    const struct json *status =
        world_at(w, "devicenetworks.eve.lfedge.org", "n", network, "status", NULL);
    assert_int_equal(json_get_int(status, STR("devices"), -1), n);
}

TEST(devices_are_counted_by_their_labels)
{
    WORLD;
    make_device(&w, "d", "a");
    assert_int_equal(world_create(&w, DEVICES, "n", "{'metadata':{'name':'bare'}}"), 0);
    make_network(&w, "all", "{}");
    make_network(&w, "site", "{'nodeSelector':{'site':'a'}}");
    make_network(&w, "named", "{'nodeSelector':{'name':'bare'}}");
    make_network(&w, "none", "{'nodeSelector':{'site':'z'}}");
    world_pass(&w, 2000);
    assert_devices(&w, "all", 2);
    assert_devices(&w, "site", 1);
    assert_devices(&w, "named", 1);
    assert_devices(&w, "none", 0);
    make_device(&w, "e", "a");
    assert_int_equal(world_patch(&w, DEVICES, "n", "d", "{'metadata':{'labels':{'site':'z'}}}"), 0);
    world_pass(&w, 2000);
    assert_devices(&w, "all", 3);
    assert_devices(&w, "site", 1);
    assert_devices(&w, "none", 1);
    assert_int_equal(world_delete(&w, DEVICES, "n", "e", NULL), 0);
    assert_int_equal(world_patch(&w, DEVICES, "n", "d", "{'metadata':{'labels':null}}"), 0);
    world_pass(&w, 2000);
    assert_devices(&w, "all", 2);
    assert_devices(&w, "site", 0);
    assert_devices(&w, "none", 0);
}

TEST(other_selectors_are_counted_anew)
{
    WORLD;
    make_device(&w, "d", "a");
    make_device(&w, "e", "b");
    make_network(&w, "net", "{'nodeSelector':{'site':'a'}}");
    world_pass(&w, 2000);
    assert_devices(&w, "net", 1);
    assert_int_equal(
        world_patch(
            &w, NETWORKS, "n", "net",
            "{'spec':{'nodeSelector':null,'affinity':{'nodeAffinity':{"
            "'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[{"
            "'matchExpressions':[{'key':'site','operator':'In','values':['a','b']}]}]}}}}}"),
        0);
    world_pass(&w, 2000);
    assert_devices(&w, "net", 2);
    assert_int_equal(world_delete(&w, NETWORKS, "n", "net", NULL), 0);
    make_network(&w, "net", "{'nodeSelector':{'site':'b'}}");
    world_pass(&w, 2000);
    assert_devices(&w, "net", 1);
}

TEST(another_namespace_does_not_count)
{
    WORLD;
    assert_int_equal(world_create(&w, "v1/namespaces", NULL, "{'metadata':{'name':'m'}}"), 0);
    assert_int_equal(world_create(&w, DEVICES, "m", "{'metadata':{'name':'d'}}"), 0);
    make_network(&w, "net", "{}");
    world_pass(&w, 2000);
    assert_devices(&w, "net", 0);
}

TEST(many_at_once_are_written_once_a_second)
{
    WORLD;
    ARENA_AUTO a = arena_new();
    make_network(&w, "net", "{}");
    world_pass(&w, 2000);
    const size_t n_writes = w.api.n_writes;
    for (int i = 0; i < N_MANY; i++) {
        make_device(&w, arena_printf(a, "d%d", i).p, "a");
        world_pass(&w, 10);
    }
    world_pass(&w, 2000);
    assert_devices(&w, "net", N_MANY);
    assert_in_range(w.api.n_writes - n_writes - N_MANY, 1, N_MANY * 10 / 1000 + 1);
}

TEST(nothing_is_written_when_nothing_changes)
{
    WORLD;
    make_device(&w, "d", "a");
    make_network(&w, "net", "{}");
    world_pass(&w, 2000);
    const size_t n_writes = w.api.n_writes;
    world_restart(&w);
    assert_int_equal(world_patch(&w, DEVICES, "n", "d", "{'status':{'x':'y'}}"), 0);
    assert_int_equal(world_patch(&w, NETWORKS, "n", "net", "{'spec':{'subnet':'10.0.0.0/24'}}"), 0);
    world_pass(&w, 3600000);
    assert_int_equal(w.api.n_writes, n_writes + 2);
}

/* ---- faults ---------------------------------------------------------------------------------- */

static bool tell_story(struct world *w, int step)
{
    switch (step) {
    case 0:
        make_device(w, "d", "a");
        make_network(w, "all", "{}");
        make_network(w, "site", "{'nodeSelector':{'site':'a'}}");
        return true;
    case 1:
        make_device(w, "e", "a");
        make_device(w, "f", "b");
        return true;
    case 2:
        assert_int_equal(world_patch(w, DEVICES, "n", "d", "{'metadata':{'labels':{'site':'b'}}}"),
                         0);
        return true;
    case 3:
        assert_int_equal(world_delete(w, DEVICES, "n", "e", NULL), 0);
        return true;
    case 4:
        assert_int_equal(
            world_patch(w, NETWORKS, "n", "site", "{'spec':{'nodeSelector':{'site':'b'}}}"), 0);
        make_device(w, "g", "b");
        return true;
    default:
        return false;
    }
}

static void assert_end_of_story(struct world *w)
{
    assert_devices(w, "all", 3);
    assert_devices(w, "site", 3);
}

TEST(it_ends_the_same_when_it_is_killed_after_every_write)
{
    for (int64_t wait_ms = 0; wait_ms < 2500; wait_ms += 500) {
        WORLD;
        for (int step = 0; tell_story(&w, step); step++)
            for (int i = 0; i < 5; i++) {
                w.api.n_writes_left = i % 2;
                world_pass(&w, wait_ms);
                w.api.n_writes_left = -1;
                world_restart(&w);
            }
        world_pass(&w, 2000);
        assert_end_of_story(&w);
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
            world_pass(&w, (int64_t) fake_random(&w.api, 2000));
            if (fake_random(&w.api, 3) == 0)
                world_restart(&w);
        }
        w.drop_percent = 0;
        world_restart(&w);
        world_pass(&w, 3600000);
        assert_end_of_story(&w);
    }
}
