/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "test.h"

#include "controllers/quota.h"
#include "world.h"

static const struct controller *const just_quotas[] = {&quota_controller, NULL};

#define WORLD \
    CLEANUP(world_done) struct world w; \
    world_init(&w, 1, just_quotas)

#define CLAIMS "v1/persistentvolumeclaims"

static struct str used(struct world *w, const char *resource)
{
    return json_str(world_at(w, "resourcequotas", "n", "q", "status", "used", resource, NULL));
}

static void make_quota(struct world *w, const char *hard)
{
    ARENA_AUTO a = arena_new();
    struct str text = arena_printf(a, "{'metadata':{'name':'q'},'spec':{'hard':{%s}}}", hard);
    assert_int_equal(world_create(w, "v1/resourcequotas", "n", text.p), 0);
}

static void make_claim(struct world *w, const char *name, const char *class, const char *size)
{
    ARENA_AUTO a = arena_new();
    struct str text = arena_printf(
        a,
        "{'metadata':{'name':'%s'},'spec':{'storageClassName':'%s','resources':{'requests':"
        "{'storage':'%s'}}}}",
        name, class, size);
    assert_int_equal(world_create(w, CLAIMS, "n", text.p), 0);
}

TEST(objects_are_counted_as_they_come_and_go)
{
    WORLD;
    make_quota(&w, "'secrets':'2','count/leases.coordination.k8s.io':'0','count/configmaps':'5'");
    world_pass(&w, 0);
    assert_str(used(&w, "secrets"), "0");
    assert_int_equal(world_create(&w, "v1/secrets", "n", "{'metadata':{'name':'a'}}"), 0);
    assert_int_equal(world_create(&w, "v1/secrets", "n", "{'metadata':{'name':'b'}}"), 0);
    assert_int_equal(world_create(&w, "v1/configmaps", "n", "{'metadata':{'name':'b'}}"), 0);
    world_pass(&w, 0);
    assert_str(used(&w, "secrets"), "2");
    assert_str(used(&w, "count/configmaps"), "1");
    assert_str(used(&w, "count/leases.coordination.k8s.io"), "0");
    assert_int_equal(world_delete(&w, "v1/secrets", "n", "a", NULL), 0);
    world_pass(&w, 0);
    assert_str(used(&w, "secrets"), "1");
}

TEST(hard_is_what_the_spec_says)
{
    WORLD;
    make_quota(&w, "'secrets':'2'");
    world_pass(&w, 0);
    assert_int_equal(world_patch(&w, "v1/resourcequotas", "n", "q",
                                 "{'spec':{'hard':{'secrets':null,'configmaps':'7'}}}"),
                     0);
    world_pass(&w, 0);
    assert_str(
        json_str(world_at(&w, "resourcequotas", "n", "q", "status", "hard", "configmaps", NULL)),
        "7");
    assert_int_equal(json_count(world_at(&w, "resourcequotas", "n", "q", "status", "used", NULL)),
                     1);
}

TEST(storage_is_added_up_by_class)
{
    WORLD;
    make_quota(&w, "'requests.storage':'9Ti','persistentvolumeclaims':'9',"
                   "'fast.storageclass.storage.k8s.io/requests.storage':'9Ti',"
                   "'fast.storageclass.storage.k8s.io/persistentvolumeclaims':'9'");
    make_claim(&w, "a", "fast", "1Gi");
    make_claim(&w, "b", "fast", "512Mi");
    make_claim(&w, "c", "slow", "10Gi");
    world_pass(&w, 0);
    assert_str(used(&w, "requests.storage"), "11776Mi");
    assert_str(used(&w, "persistentvolumeclaims"), "3");
    assert_str(used(&w, "fast.storageclass.storage.k8s.io/requests.storage"), "1536Mi");
    assert_str(used(&w, "fast.storageclass.storage.k8s.io/persistentvolumeclaims"), "2");
}

TEST(what_does_not_exist_here_is_not_used)
{
    WORLD;
    make_quota(&w, "'pods':'2','requests.cpu':'1','count/things.x.org':'1'");
    world_pass(&w, 0);
    assert_str(used(&w, "pods"), "0");
    assert_str(used(&w, "requests.cpu"), "0");
    assert_null(used(&w, "count/things.x.org").p);
}

TEST(other_namespaces_cost_nothing)
{
    WORLD;
    make_quota(&w, "'secrets':'2'");
    assert_int_equal(world_create(&w, "v1/namespaces", NULL, "{'metadata':{'name':'m'}}"), 0);
    world_pass(&w, 0);
    assert_int_equal(world_create(&w, "v1/secrets", "m", "{'metadata':{'name':'a'}}"), 0);
    w.api.fail_percent = 100; /* a request would be tried again */
    world_pass(&w, 0);
    assert_true(controller_queue_due_us(w.queues[0]) == INT64_MAX);
}

TEST(it_settles_whatever_fails_or_was_missed)
{
    uint64_t seed = world_seed();
    for (uint64_t i = 0; i < 20; i++) {
        CLEANUP(world_done) struct world w;
        world_init(&w, seed + i, just_quotas);
        make_quota(&w, "'secrets':'99'");
        w.api.fail_percent = w.api.lose_percent = 20;
        w.drop_percent = 30;
        w.repeat_percent = 30;
        for (int j = 0; j < 20; j++) {
            char text[64];
            (void) snprintf(text, sizeof(text), "{'metadata':{'name':'s%d'}}", j % 7);
            (void) world_create(&w, "v1/secrets", "n", text);
            (void) world_delete(&w, "v1/secrets", "n", j % 2 ? "s1" : "s3", NULL);
            world_pass(&w, 100);
        }
        w.drop_percent = 0;
        world_restart(&w);
        world_pass(&w, 3600000);
        char expected[16];
        (void) snprintf(expected, sizeof(expected), "%zu", fake_count(&w.api, "secrets"));
        assert_str(used(&w, "secrets"), expected);
    }
}
