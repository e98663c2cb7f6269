/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "test.h"

#include "controllers/aggregation.h"
#include "world.h"

static const struct controller *const just_aggregation[] = {&aggregation_controller, NULL};

#define WORLD \
    CLEANUP(world_done) struct world w; \
    world_init(&w, 1, just_aggregation)

#define ROLES "rbac.authorization.k8s.io/v1/clusterroles"
#define COLLECTION "clusterroles.rbac.authorization.k8s.io"

static void make(struct world *w, const char *text)
{
    assert_int_equal(world_create(w, ROLES, NULL, text), 0);
}

/* The verbs of the rules, one letter each: rules differ in nothing else here. */
static struct str verbs_of(struct world *w, struct arena *a, const char *name)
{
    struct str all = STR("");
    JSON_FOR_EACH_ITEM (world_at(w, COLLECTION, NULL, name, "rules", NULL), rule)
        all = arena_printf(a, "%.*s%.*s", STR_ARG(all),
                           STR_ARG(json_str(&json_get(rule, STR("verbs"))->items[0])));
    return all;
}

#define RULES(verb) "'rules':[{'verbs':['" verb "']}]"

TEST(rules_are_those_of_all_selected_in_order_of_names_without_repeats)
{
    WORLD;
    ARENA_AUTO a = arena_new();
    make(&w, "{'metadata':{'name':'all'},'aggregationRule':{'clusterRoleSelectors':["
             "{'matchLabels':{'x':'1'}},{'matchLabels':{'y':'1'}}]}}");
    make(&w, "{'metadata':{'name':'c','labels':{'x':'1'}}," RULES("c") "}");
    make(&w, "{'metadata':{'name':'b','labels':{'x':'1','y':'1'}}," RULES("b") "}");
    make(&w, "{'metadata':{'name':'d','labels':{'y':'1'}}," RULES("d") "}");
    make(&w, "{'metadata':{'name':'e','labels':{'y':'2'}}," RULES("e") "}");
    make(&w, "{'metadata':{'name':'f','labels':{'y':'1'}}," RULES("c") "}");
    world_pass(&w, 0);
    assert_str(verbs_of(&w, a, "all"), "bcd");
}

TEST(changes_of_the_parts_are_followed)
{
    WORLD;
    ARENA_AUTO a = arena_new();
    make(&w, "{'metadata':{'name':'all'},'aggregationRule':{'clusterRoleSelectors':["
             "{'matchLabels':{'x':'1'}}]}}");
    make(&w, "{'metadata':{'name':'p','labels':{'x':'1'}}," RULES("p") "}");
    world_pass(&w, 0);
    assert_str(verbs_of(&w, a, "all"), "p");
    assert_int_equal(world_patch(&w, ROLES, NULL, "p", "{" RULES("q") "}"), 0);
    world_pass(&w, 0);
    assert_str(verbs_of(&w, a, "all"), "q");
    assert_int_equal(world_patch(&w, ROLES, NULL, "all", "{" RULES("z") "}"), 0);
    world_pass(&w, 0);
    assert_str(verbs_of(&w, a, "all"), "q");
    assert_int_equal(world_delete(&w, ROLES, NULL, "p", NULL), 0);
    world_pass(&w, 0);
    assert_str(verbs_of(&w, a, "all"), "");
}

TEST(selectors_know_expressions)
{
    static const struct {
        const char *selector, *expected;
    } table[] = {
        {"{'matchExpressions':[{'key':'x','operator':'In','values':['1','2']}]}", "ab"},
        {"{'matchExpressions':[{'key':'x','operator':'NotIn','values':['1']}]}", "bcd"},
        {"{'matchExpressions':[{'key':'x','operator':'Exists'}]}", "abc"},
        {"{'matchExpressions':[{'key':'x','operator':'DoesNotExist'}]}", "d"},
        {"{'matchLabels':{'x':'1'},'matchExpressions':[{'key':'x','operator':'Exists'}]}", "a"},
        {"{'matchLabels':{'x':''}}", ""},
        {"{}", "abcd"},
    };
    WORLD;
    ARENA_AUTO a = arena_new();
    make(&w, "{'metadata':{'name':'a','labels':{'x':'1'}}," RULES("a") "}");
    make(&w, "{'metadata':{'name':'b','labels':{'x':'2'}}," RULES("b") "}");
    make(&w, "{'metadata':{'name':'c','labels':{'x':'3'}}," RULES("c") "}");
    make(&w, "{'metadata':{'name':'d'}," RULES("d") "}");
    make(&w, "{'metadata':{'name':'all'},'aggregationRule':{'clusterRoleSelectors':[]}}");
    for (size_t i = 0; i < N_ELEMENTS(table); i++) {
        struct str text =
            arena_printf(a, "{'aggregationRule':{'clusterRoleSelectors':[%s]}}", table[i].selector);
        assert_int_equal(world_patch(&w, ROLES, NULL, "all", text.p), 0);
        world_pass(&w, 0);
        assert_str(verbs_of(&w, a, "all"), table[i].expected);
    }
}

TEST(one_that_aggregates_can_be_a_part_itself)
{
    WORLD;
    ARENA_AUTO a = arena_new();
    make(&w, "{'metadata':{'name':'top'},'aggregationRule':{'clusterRoleSelectors':["
             "{'matchLabels':{'level':'2'}}]}}");
    make(&w, "{'metadata':{'name':'middle','labels':{'level':'2'}},'aggregationRule':"
             "{'clusterRoleSelectors':[{'matchLabels':{'level':'1'}}]}}");
    make(&w, "{'metadata':{'name':'part','labels':{'level':'1'}}," RULES("p") "}");
    world_pass(&w, 0);
    assert_str(verbs_of(&w, a, "top"), "p");
}

TEST(it_settles_whatever_fails_or_was_missed)
{
    uint64_t seed = world_seed();
    for (uint64_t i = 0; i < 20; i++) {
        ARENA_AUTO a = arena_new();
        CLEANUP(world_done) struct world w;
        world_init(&w, seed + i, just_aggregation);
        make(&w, "{'metadata':{'name':'all'},'aggregationRule':{'clusterRoleSelectors':[{}]}}");
        w.api.fail_percent = w.api.lose_percent = 20;
        w.drop_percent = 30;
        w.repeat_percent = 30;
        for (char part = 'a'; part < 'h'; part++) {
            char text[128];
            (void) snprintf(text, sizeof(text),
                            "{'metadata':{'name':'%c'},'rules':[{'verbs':['%c']}]}", part, part);
            make(&w, text);
            world_pass(&w, 100);
        }
        w.drop_percent = 0;
        world_restart(&w);
        world_pass(&w, 3600000);
        assert_str(verbs_of(&w, a, "all"), "abcdefg");
    }
}
