/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "controllers/accounts.h"
#include "world.h"

static const struct controller *const just_accounts[] = {&accounts_controller, NULL};

#define WORLD \
    CLEANUP(world_done) struct world w; \
    world_init(&w, 1, just_accounts)

static void assert_complete(struct world *w, const char *namespace)
{
    assert_true(world_has(w, "serviceaccounts", namespace, "default"));
    assert_str(world_text(w, "configmaps", namespace, "kube-root-ca.crt", "data", "ca.crt"), "PEM");
    struct str description =
        json_str(world_at(w, "configmaps", namespace, "kube-root-ca.crt", "metadata", "annotations",
                          "kubernetes.io/description", NULL));
    assert_true(str_starts_with(description, STR("Contains a CA bundle that can be used")));
}

TEST(every_namespace_gets_its_account_and_certificate)
{
    WORLD;
    assert_int_equal(world_create(&w, "v1/namespaces", NULL, "{'metadata':{'name':'m'}}"), 0);
    world_pass(&w, 0);
    assert_complete(&w, "n");
    assert_complete(&w, "m");
}

TEST(what_is_deleted_comes_back)
{
    WORLD;
    world_pass(&w, 0);
    struct str uid = world_uid(&w, "serviceaccounts", "n", "default");
    assert_int_equal(world_delete(&w, "v1/serviceaccounts", "n", "default", NULL), 0);
    assert_int_equal(world_delete(&w, "v1/configmaps", "n", "kube-root-ca.crt", NULL), 0);
    world_pass(&w, 0);
    assert_complete(&w, "n");
    assert_false(str_eq(uid, world_uid(&w, "serviceaccounts", "n", "default")));
}

TEST(what_is_changed_is_restored)
{
    WORLD;
    static const char *const changes[] = {
        "{'data':{'ca.crt':'other'}}",
        "{'data':{'more':'x'}}",
        "{'data':null}",
        "{'metadata':{'annotations':null}}",
    };
    world_pass(&w, 0);
    for (size_t i = 0; i < N_ELEMENTS(changes); i++) {
        assert_int_equal(world_patch(&w, "v1/configmaps", "n", "kube-root-ca.crt", changes[i]), 0);
        world_pass(&w, 0);
        assert_complete(&w, "n");
        assert_int_equal(
            json_count(world_at(&w, "configmaps", "n", "kube-root-ca.crt", "data", NULL)), 1);
    }
}

TEST(what_is_right_is_not_written_again)
{
    WORLD;
    world_pass(&w, 0);
    size_t n_writes = w.api.n_writes;
    world_restart(&w);
    assert_int_equal(world_patch(&w, "v1/configmaps", "n", "kube-root-ca.crt",
                                 "{'metadata':{'labels':{'a':'b'}}}"),
                     0);
    world_pass(&w, 1000);
    assert_int_equal(w.api.n_writes, n_writes + 1);
}

TEST(a_namespace_that_is_going_gets_nothing)
{
    WORLD;
    world_pass(&w, 0);
    assert_int_equal(world_delete(&w, "v1/namespaces", NULL, "n", NULL), 0);
    assert_int_equal(world_delete(&w, "v1/serviceaccounts", "n", "default", NULL), 0);
    world_pass(&w, 60000);
    assert_false(world_has(&w, "serviceaccounts", "n", "default"));
}

TEST(it_settles_whatever_fails)
{
    uint64_t seed = world_seed();
    for (uint64_t i = 0; i < 20; i++) {
        CLEANUP(world_done) struct world w;
        world_init(&w, seed + i, just_accounts);
        w.api.fail_percent = w.api.lose_percent = 20;
        w.repeat_percent = 50;
        w.drop_percent = 50;
        for (int j = 0; j < 10; j++) {
            (void) world_delete(&w, "v1/serviceaccounts", "n", "default", NULL);
            (void) world_patch(&w, "v1/configmaps", "n", "kube-root-ca.crt", "{'data':null}");
            world_pass(&w, 500);
        }
        w.drop_percent = 0;
        world_restart(&w);
        world_pass(&w, 3600000);
        assert_complete(&w, "n");
    }
}
