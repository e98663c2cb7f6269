/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "test.h"

#include "controllers/accounts.h"
#include "controllers/namespace.h"
#include "world.h"

#define LONG_MS ((int64_t) 20 * 60 * 1000)
#define NAMESPACES "namespaces"
#define V1_MAPS "v1/configmaps"

static const struct controller *const just_namespaces[] = {&namespace_controller, NULL};
/* The one makes what the other deletes. */
static const struct controller *const both[] = {&namespace_controller, &accounts_controller, NULL};

#define WORLD(table) \
    CLEANUP(world_done) struct world w; \
    world_init(&w, 1, table)

static void make(struct world *w, const char *name, const char *finalizer)
{
    ARENA_AUTO a = arena_new();
    struct str text = finalizer ? arena_printf(a, "{'metadata':{'name':'%s','finalizers':['%s']}}",
                                               name, finalizer)
                                : arena_printf(a, "{'metadata':{'name':'%s'}}", name);
    assert_int_equal(world_create(w, V1_MAPS, "n", text.p), 0);
}

static const struct json *condition(struct world *w, const char *type)
{
    JSON_FOR_EACH_ITEM (world_at(w, NAMESPACES, NULL, "n", "status", "conditions", NULL), c)
        if (str_is(json_get_str(c, STR("type")), type))
            return c;
    return NULL;
}

static void assert_condition(struct world *w, const char *type, const char *status,
                             const char *reason, const char *message)
{
    const struct json *c = condition(w, type);
    assert_str(json_get_str(c, STR("status")), status);
    assert_str(json_get_str(c, STR("reason")), reason);
    assert_str(json_get_str(c, STR("message")), message);
}

TEST(a_namespace_goes_after_all_that_is_in_it)
{
    WORLD(just_namespaces);
    make(&w, "a", NULL);
    make(&w, "b", NULL);
    assert_int_equal(world_create(&w, "v1/secrets", "n", "{'metadata':{'name':'s'}}"), 0);
    assert_int_equal(
        world_create(&w, "coordination.k8s.io/v1/leases", "n", "{'metadata':{'name':'l'}}"), 0);
    world_pass(&w, 0);
    assert_true(world_has(&w, "configmaps", "n", "a"));
    assert_int_equal(world_delete(&w, "v1/namespaces", NULL, "n", NULL), 0);
    assert_str(world_text(&w, NAMESPACES, NULL, "n", "status", "phase"), "Terminating");
    world_pass(&w, 0);
    assert_int_equal(w.api.n_objects, 0);
}

TEST(what_remains_is_told)
{
    WORLD(just_namespaces);
    make(&w, "a", "example.org/hold");
    make(&w, "b", "example.org/hold");
    make(&w, "c", "example.org/another");
    assert_int_equal(world_create(&w, "coordination.k8s.io/v1/leases", "n",
                                  "{'metadata':{'name':'l','finalizers':['example.org/hold']}}"),
                     0);
    assert_int_equal(world_delete(&w, "v1/namespaces", NULL, "n", NULL), 0);
    world_pass(&w, 0);
    assert_condition(&w, "NamespaceDeletionDiscoveryFailure", "False", "ResourcesDiscovered",
                     "All resources successfully discovered");
    assert_condition(&w, "NamespaceDeletionGroupVersionParsingFailure", "False",
                     "ParsedGroupVersions", "All legacy kube types successfully parsed");
    assert_condition(&w, "NamespaceDeletionContentFailure", "False", "ContentDeleted",
                     "All content successfully deleted, may be waiting on finalization");
    assert_condition(&w, "NamespaceContentRemaining", "True", "SomeResourcesRemain",
                     "Some resources are remaining: configmaps. has 3 resource instances, "
                     "leases.coordination.k8s.io has 1 resource instances");
    assert_condition(&w, "NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain",
                     "Some content in the namespace has finalizers remaining: example.org/another "
                     "in 1 resource instances, example.org/hold in 3 resource instances");
}

TEST(the_conditions_follow_what_happens)
{
    WORLD(just_namespaces);
    make(&w, "a", "example.org/hold");
    make(&w, "b", "example.org/hold");
    assert_int_equal(world_delete(&w, "v1/namespaces", NULL, "n", NULL), 0);
    world_pass(&w, 0);
    struct str since =
        json_get_str(condition(&w, "NamespaceContentRemaining"), STR("lastTransitionTime"));
    world_pass(&w, 60000);
    assert_int_equal(world_patch(&w, V1_MAPS, "n", "a", "{'metadata':{'finalizers':null}}"), 0);
    world_pass(&w, 0);
    assert_condition(&w, "NamespaceContentRemaining", "True", "SomeResourcesRemain",
                     "Some resources are remaining: configmaps. has 1 resource instances");
    assert_true(str_eq(since, json_get_str(condition(&w, "NamespaceContentRemaining"),
                                           STR("lastTransitionTime"))));
    assert_int_equal(world_patch(&w, V1_MAPS, "n", "b", "{'metadata':{'finalizers':null}}"), 0);
    world_pass(&w, 0);
    assert_false(world_has(&w, NAMESPACES, NULL, "n"));
}

TEST(an_event_that_was_missed_delays_the_end_but_a_little)
{
    WORLD(just_namespaces);
    make(&w, "a", "example.org/hold");
    assert_int_equal(world_delete(&w, "v1/namespaces", NULL, "n", NULL), 0);
    world_pass(&w, 0);
    w.drop_percent = 100;
    assert_int_equal(world_patch(&w, V1_MAPS, "n", "a", "{'metadata':{'finalizers':null}}"), 0);
    world_pass(&w, 10000);
    assert_false(world_has(&w, NAMESPACES, NULL, "n"));
}

TEST(a_finalizer_of_its_own_keeps_an_empty_namespace)
{
    WORLD(just_namespaces);
    assert_int_equal(
        world_patch(&w, "v1/namespaces", NULL, "n", "{'metadata':{'finalizers':['x.org/y']}}"), 0);
    assert_int_equal(world_delete(&w, "v1/namespaces", NULL, "n", NULL), 0);
    world_pass(&w, LONG_MS);
    assert_true(world_has(&w, NAMESPACES, NULL, "n"));
    assert_int_equal(json_count(world_at(&w, NAMESPACES, NULL, "n", "spec", "finalizers", NULL)),
                     0);
    assert_int_equal(
        world_patch(&w, "v1/namespaces", NULL, "n", "{'metadata':{'finalizers':null}}"), 0);
    assert_false(world_has(&w, NAMESPACES, NULL, "n"));
}

TEST(what_was_written_while_its_namespace_went_goes_as_well)
{
    WORLD(just_namespaces);
    world_pass(&w, 0);
    make(&w, "late", NULL);
    /* The namespace's own end came first, as the store has it; nobody emptied it. */
    assert_int_equal(world_delete(&w, "v1/namespaces", NULL, "n", NULL), 0);
    w.api.n_events = 0;
    ARENA_AUTO a = arena_new();
    struct kube_request r = {.verb = VERB_PATCH,
                             .group = STR(""),
                             .version = STR("v1"),
                             .resource = STR(NAMESPACES),
                             .name = STR("n"),
                             .subresource = STR("finalize"),
                             .body = json_parse_quick(a, STR("{\"spec\":{\"finalizers\":[]}}"))};
    assert_int_equal(fake_request(&w.api, a, &r, NULL), 0);
    world_restart(&w);
    world_pass(&w, 0);
    assert_int_equal(w.api.n_objects, 0);
}

TEST(a_new_namespace_of_the_same_name_keeps_its_content)
{
    WORLD(both);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(world_delete(&w, "v1/namespaces", NULL, "n", NULL), 0);
        world_pass(&w, 0);
        assert_int_equal(w.api.n_objects, 0);
        assert_int_equal(world_create(&w, "v1/namespaces", NULL, "{'metadata':{'name':'n'}}"), 0);
        make(&w, "mine", NULL);
        world_pass(&w, 10000);
        assert_true(world_has(&w, "configmaps", "n", "mine"));
    }
}

/* ---- by chance ---------------------------------------------------------------------------- */

static void run_chance(uint64_t seed, bool with_restart)
{
    CLEANUP(world_done) struct world w;
    world_init(&w, seed, both);
    w.api.fail_percent = w.api.lose_percent = 10;
    w.repeat_percent = 20;
    w.drop_percent = with_restart ? 30 : 0;
    for (int i = 0; i < 20; i++) {
        char text[64], name[16];
        (void) snprintf(name, sizeof(name), "m%d", i % 4);
        (void) snprintf(text, sizeof(text), "{'metadata':{'name':'%s'}}", name);
        (void) world_create(&w, "v1/namespaces", NULL, text);
        (void) world_create(&w, V1_MAPS, name,
                            "{'metadata':{'name':'x','finalizers':['x.org/y']}}");
        (void) world_create(&w, "v1/secrets", name, "{'metadata':{'name':'x'}}");
        world_pass(&w, (int64_t) fake_random(&w.api, 1000));
        (void) world_delete(&w, "v1/namespaces", NULL, name, NULL);
        world_pass(&w, (int64_t) fake_random(&w.api, 1000));
        (void) world_patch(&w, V1_MAPS, name, "x", "{'metadata':{'finalizers':null}}");
        if (with_restart && fake_random(&w.api, 4) == 0)
            world_restart(&w);
    }
    /* One look asks for every kind there is: a tenth of failures is too much for all to go well. */
    w.api.fail_percent = w.api.lose_percent = 1;
    w.drop_percent = 0;
    if (with_restart)
        world_restart(&w);
    world_pass(&w, LONG_MS);
    /* The namespace n with its account and certificate. */
    if (w.api.n_objects != 3 || !world_has(&w, "serviceaccounts", "n", "default"))
        fail_msg("seed %" PRIu64 ": %zu objects are left", seed, w.api.n_objects);
}

TEST(it_settles_whatever_fails_or_repeats)
{
    uint64_t seed = world_seed();
    for (uint64_t i = 0; i < 15; i++)
        run_chance(seed + i, false);
}

TEST(it_settles_after_a_restart_whatever_was_missed)
{
    uint64_t seed = world_seed();
    for (uint64_t i = 0; i < 15; i++)
        run_chance(seed + i, true);
}
