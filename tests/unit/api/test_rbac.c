/* SPDX-License-Identifier: Apache-2.0 */
#include "../../test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "api/registry.h"
#include "base/buf.h"
#include "kinds_fixture.h"
#include "rbac_world.h"

#define ROLE_REF(kind, name) "'roleRef':{'kind':'" kind "','name':'" name "'}"
#define USER(name) "{'kind':'User','name':'" name "'}"
#define GROUP(name) "{'kind':'Group','name':'" name "'}"

static struct access_question ask(const struct user *u, const char *verb, const char *resource,
                                  const char *namespace, const char *name)
{
    return (struct access_question){.user = u,
                                    .verb = str_of(verb),
                                    .is_resource = true,
                                    .group = STR(""),
                                    .resource = str_of(resource),
                                    .subresource = STR(""),
                                    .namespace = str_of(namespace),
                                    .name = str_of(name)};
}

static bool allows(struct world *w, const struct access_question *q)
{
    return rbac_allows(w->rbac, q, w->arena, NULL);
}

static bool may(struct world *w, const char *user, const char *verb, const char *resource,
                const char *namespace)
{
    struct user u = {.name = str_of(user)};
    struct access_question q = ask(&u, verb, resource, namespace, "");
    assert_int_equal(allows(w, &q), reference_allows(w, &q));
    return allows(w, &q);
}

/* ---- following ----------------------------------------------------------------------------- */

TEST(a_binding_counts_when_its_write_is_answered)
{
    struct world w;
    world_open(&w);
    assert_false(may(&w, "jane", "get", "pods", "a"));
    world_put(&w, "rolebindings", "a", "b", ROLE_REF("Role", "r") ",'subjects':[" USER("jane") "]");
    assert_false(may(&w, "jane", "get", "pods", "a"));
    world_put(&w, "roles", "a", "r",
              "'rules':[{'apiGroups':[''],'resources':['pods'],'verbs':['get']}]");
    assert_true(may(&w, "jane", "get", "pods", "a"));
    assert_false(may(&w, "jane", "get", "pods", "b"));
    assert_false(may(&w, "jane", "get", "pods", ""));
    assert_false(may(&w, "john", "get", "pods", "a"));
    world_put(&w, "roles", "a", "r",
              "'rules':[{'apiGroups':[''],'resources':['pods'],'verbs':['list']}]");
    assert_false(may(&w, "jane", "get", "pods", "a"));
    assert_true(may(&w, "jane", "list", "pods", "a"));
    world_restart(&w);
    assert_true(may(&w, "jane", "list", "pods", "a"));
    assert_true(world_remove(&w, "roles", "a", "r"));
    assert_false(may(&w, "jane", "list", "pods", "a"));
    world_put(&w, "roles", "a", "r",
              "'rules':[{'apiGroups':[''],'resources':['pods'],'verbs':['list']}]");
    world_put(&w, "rolebindings", "a", "b", ROLE_REF("Role", "r") ",'subjects':[" USER("john") "]");
    assert_false(may(&w, "jane", "list", "pods", "a"));
    assert_true(may(&w, "john", "list", "pods", "a"));
    assert_true(world_remove(&w, "rolebindings", "a", "b"));
    assert_false(may(&w, "john", "list", "pods", "a"));
    world_close(&w);
}

TEST(the_same_subject_twice_in_a_binding_is_let_go_of_once_both_are_gone)
{
    struct world w;
    world_open(&w);
    world_put(&w, "clusterroles", "", "r",
              "'rules':[{'apiGroups':['*'],'resources':['*'],'verbs':['*']}]");
    world_put(&w, "clusterrolebindings", "", "b",
              ROLE_REF("ClusterRole", "r") ",'subjects':[" USER("jane") "," USER("jane") "]");
    assert_true(may(&w, "jane", "get", "pods", "a"));
    world_put(&w, "clusterrolebindings", "", "b",
              ROLE_REF("ClusterRole", "r") ",'subjects':[" USER("jane") "]");
    assert_true(may(&w, "jane", "get", "pods", "a"));
    assert_true(world_remove(&w, "clusterrolebindings", "", "b"));
    assert_false(may(&w, "jane", "get", "pods", "a"));
    world_close(&w);
}

/* ---- reasons ------------------------------------------------------------------------------- */

static void assert_reason(struct world *w, const struct access_question *q, const char *expected)
{
    struct str reason = STR_NONE;
    assert_true(rbac_allows(w->rbac, q, w->arena, &reason));
    assert_str(reason, expected);
}

TEST(the_reason_names_binding_and_role)
{
    struct world w;
    world_open(&w);
    const char *rules = "'rules':[{'apiGroups':[''],'resources':['pods'],'verbs':['get']},"
                        "{'nonResourceURLs':['/x/*'],'verbs':['get']}]";
    world_put(&w, "clusterroles", "", "cr", rules);
    world_put(&w, "roles", "a", "r", rules);
    world_put(&w, "clusterrolebindings", "", "wide",
              ROLE_REF("ClusterRole", "cr") ",'subjects':[" GROUP("g") "]");
    world_put(&w, "rolebindings", "a", "rb",
              ROLE_REF("Role", "r") ",'subjects':[{'kind':'ServiceAccount','name':'robot'}]");
    const struct str groups[] = {STR("g")};
    struct user jane = {.name = STR("jane"), .groups = groups, .n_groups = 1};
    struct access_question q = ask(&jane, "get", "pods", "a", "x");
    assert_reason(&w, &q,
                  "RBAC: allowed by ClusterRoleBinding \"wide\" of ClusterRole \"cr\" to Group "
                  "\"g\"");
    q = (struct access_question){.user = &jane, .verb = STR("get"), .path = STR("/x/y")};
    assert_reason(&w, &q,
                  "RBAC: allowed by ClusterRoleBinding \"wide\" of ClusterRole \"cr\" to Group "
                  "\"g\"");
    struct user robot = {.name = STR("system:serviceaccount:a:robot")};
    q = ask(&robot, "get", "pods", "a", "x");
    assert_reason(&w, &q,
                  "RBAC: allowed by RoleBinding \"rb/a\" of Role \"r\" to ServiceAccount "
                  "\"robot/a\"");
    struct str reason = STR_NONE;
    q = ask(&robot, "list", "pods", "a", "");
    assert_false(rbac_allows(w.rbac, &q, w.arena, &reason));
    assert_str(reason, "");
    const struct str masters[] = {STR("system:masters")};
    struct user root = {.name = STR("root"), .groups = masters, .n_groups = 1};
    q = ask(&root, "zap", "anything", "", "");
    assert_reason(&w, &q, "");
    world_close(&w);
}

/* ---- rules --------------------------------------------------------------------------------- */

TEST(rights_are_covered_as_wholes)
{
    struct world w;
    world_open(&w);
    world_put(&w, "clusterroles", "", "r",
              "'rules':[{'apiGroups':[''],'resources':['pods','*/scale'],'verbs':['get']},"
              "{'apiGroups':[''],'resources':['secrets'],'resourceNames':['a',''],'verbs':['get']},"
              "{'nonResourceURLs':['/x/*'],'verbs':['get']}]");
    world_put(&w, "rolebindings", "n", "b",
              ROLE_REF("ClusterRole", "r") ",'subjects':[" USER("jane") "]");
    static const struct {
        struct rbac_right right;
        bool is_covered;
    } cases[] = {
        {{.verb = STR("get"), .group = STR(""), .resource = STR("pods")}, true},
        {{.verb = STR("get"), .group = STR(""), .resource = STR("pods"), .name = STR("x")}, true},
        {{.verb = STR("list"), .group = STR(""), .resource = STR("pods")}, false},
        {{.verb = STR("*"), .group = STR(""), .resource = STR("pods")}, false},
        {{.verb = STR("get"), .group = STR("*"), .resource = STR("pods")}, false},
        {{.verb = STR("get"), .group = STR(""), .resource = STR("*")}, false},
        {{.verb = STR("get"), .group = STR(""), .resource = STR("jobs/scale")}, true},
        {{.verb = STR("get"), .group = STR(""), .resource = STR("*/scale")}, true},
        {{.verb = STR("get"), .group = STR(""), .resource = STR("pods/log")}, false},
        {{.verb = STR("get"), .group = STR(""), .resource = STR("secrets"), .name = STR("a")},
         true},
        {{.verb = STR("get"), .group = STR(""), .resource = STR("secrets"), .name = STR("b")},
         false},
        {{.verb = STR("get"), .group = STR(""), .resource = STR("secrets")}, false},
        {{.verb = STR("get"), .url = STR("/x/y")}, true},
        {{.verb = STR("get"), .url = STR("/x/*")}, true},
        {{.verb = STR("get"), .url = STR("/*")}, false},
        {{.verb = STR("get"), .url = STR("*")}, false},
    };
    struct user jane = {.name = STR("jane")};
    const struct rbac_rule *rules = NULL;
    size_t n_rules = rbac_parse_rules(w.arena, json_get(w.objects[0].object, STR("rules")), &rules);
    assert_int_equal(n_rules, 3);
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        assert_int_equal(rbac_covers(w.rbac, &jane, STR("n"), &cases[i].right),
                         cases[i].is_covered);
        assert_int_equal(rbac_rules_cover(rules, n_rules, &cases[i].right), cases[i].is_covered);
        assert_false(rbac_covers(w.rbac, &jane, STR(""), &cases[i].right));
    }
    world_close(&w);
}

static void count_verbs(void *ctx, const struct rbac_rule *rule)
{
    buf_append_str(ctx, rule->verbs.items[0]);
    buf_append_char(ctx, ' ');
}

TEST(rules_of_a_user_come_once_per_binding)
{
    struct world w;
    world_open(&w);
    world_put(&w, "clusterroles", "", "r",
              "'rules':[{'apiGroups':[''],'resources':['x'],'verbs':['one']}]");
    world_put(&w, "roles", "a", "r",
              "'rules':[{'apiGroups':[''],'resources':['x'],'verbs':['two']}]");
    world_put(&w, "clusterrolebindings", "", "b",
              ROLE_REF("ClusterRole", "r") ",'subjects':[" USER("jane") "," GROUP("g") "]");
    world_put(&w, "rolebindings", "a", "b", ROLE_REF("Role", "r") ",'subjects':[" GROUP("g") "]");
    world_put(&w, "rolebindings", "b", "b", ROLE_REF("Role", "r") ",'subjects':[" GROUP("g") "]");
    const struct str groups[] = {STR("g"), STR("none")};
    struct user jane = {.name = STR("jane"), .groups = groups, .n_groups = 2};
    BUF_AUTO b = {0};
    rbac_visit_rules(w.rbac, &jane, STR("a"), count_verbs, &b);
    assert_str(buf_str(&b), "one two ");
    world_close(&w);
}

/* Rules that are too wide for a table, and more verbs than there are bits. */
TEST(what_is_not_compiled_is_walked)
{
    struct world w;
    world_open(&w);
    BUF_AUTO b = {0};
    buf_append_str(&b, STR("'rules':[{'apiGroups':["));
    for (int i = 0; i < 80; i++)
        buf_printf(&b, "%s'g%d'", i ? "," : "", i);
    buf_append_str(&b, STR("],'resources':["));
    for (int i = 0; i < 80; i++)
        buf_printf(&b, "%s'r%d'", i ? "," : "", i);
    buf_append_str(&b, STR("],'verbs':['get']},{'apiGroups':['v'],'resources':['r'],'verbs':["));
    for (int i = 0; i < 80; i++)
        buf_printf(&b, "%s'zap%d'", i ? "," : "", i);
    buf_append_str(&b, STR("]}]"));
    world_put(&w, "clusterroles", "", "r", b.p);
    world_put(&w, "clusterrolebindings", "", "b",
              ROLE_REF("ClusterRole", "r") ",'subjects':[" USER("jane") "]");
    struct user jane = {.name = STR("jane")};
    for (int i = 0; i < 81; i++) {
        struct access_question q = ask(&jane, "get", "r79", "", "");
        q.group = arena_printf(w.arena, "g%d", i);
        assert_int_equal(allows(&w, &q), i < 80);
        q = ask(&jane, "", "r", "", "");
        q.group = STR("v");
        q.verb = arena_printf(w.arena, "zap%d", i);
        assert_int_equal(allows(&w, &q), i < 80);
    }
    world_close(&w);
}

/* ---- a company ----------------------------------------------------------------------------- */

static const char *const teams[] = {"fleet", "apps", "net", "data", "security"};

static void put_team(struct world *w, const char *team)
{
    struct arena *a = w->arena;
    world_put(w, "roles", team, "developer",
              "'rules':[{'apiGroups':['','apps'],'resources':['configmaps','secrets',"
              "'controllerrevisions','persistentvolumeclaims','*/status'],'verbs':['*']},"
              "{'apiGroups':['coordination.k8s.io'],'resources':['leases'],"
              "'resourceNames':['deploy'],'verbs':['get','update','patch']}]");
    world_put(w, "roles", team, "robot",
              "'rules':[{'apiGroups':[''],'resources':['configmaps'],"
              "'resourceNames':['deploy','state'],'verbs':['get','patch']},"
              "{'apiGroups':['','events.k8s.io'],'resources':['events'],'verbs':['create']}]");
    world_put(
        w, "rolebindings", team, "developers",
        arena_printf(a, ROLE_REF("Role", "developer") ",'subjects':[" GROUP("%s") "]", team).p);
    world_put(
        w, "rolebindings", team, "lead",
        arena_printf(a, ROLE_REF("ClusterRole", "admin") ",'subjects':[" USER("%s-lead") "]", team)
            .p);
    world_put(w, "rolebindings", team, "robots",
              ROLE_REF("Role", "robot") ",'subjects':[{'kind':'ServiceAccount','name':'robot'},"
                                        "{'kind':'ServiceAccount','name':'ci',"
                                        "'namespace':'apps'}]");
}

static void put_company(struct world *w)
{
    world_put(w, "clusterroles", "", "admin",
              "'rules':[{'apiGroups':['*'],'resources':['*'],'verbs':['get','list','watch',"
              "'create','update','patch','delete','deletecollection']},"
              "{'apiGroups':['rbac.authorization.k8s.io'],'resources':['roles'],"
              "'verbs':['bind','escalate']}]");
    world_put(w, "clusterroles", "", "auditor",
              "'rules':[{'apiGroups':['*'],'resources':['*'],'verbs':['get','list','watch']},"
              "{'nonResourceURLs':['/metrics','/api*'],'verbs':['get']}]");
    world_put(w, "clusterroles", "", "everybody",
              "'rules':[{'apiGroups':['authorization.k8s.io'],"
              "'resources':['selfsubjectaccessreviews'],'verbs':['create']},"
              "{'nonResourceURLs':['/version','/healthz'],'verbs':['get']}]");
    world_put(w, "clusterroles", "", "storage",
              "'rules':[{'apiGroups':['storage.k8s.io'],'resources':['*'],'verbs':['*']},"
              "{'apiGroups':[''],'resources':['persistentvolumes'],'verbs':['*']}]");
    world_put(w, "clusterrolebindings", "", "auditors",
              ROLE_REF("ClusterRole", "auditor") ",'subjects':[" GROUP("security") "]");
    world_put(
        w, "clusterrolebindings", "", "everybody",
        ROLE_REF("ClusterRole", "everybody") ",'subjects':[" GROUP("system:authenticated") "]");
    world_put(w, "clusterrolebindings", "", "storage",
              ROLE_REF("ClusterRole", "storage") ",'subjects':[" GROUP("data") "]");
    for (size_t i = 0; i < N_ELEMENTS(teams); i++)
        put_team(w, teams[i]);
}

struct person {
    struct user user;
    struct str groups[2];
};

/* Of each team a member, its lead and its robot; the builder; somebody from outside. */
static size_t make_people(struct arena *a, struct person *people)
{
    size_t n = 0;
    for (size_t i = 0; i < N_ELEMENTS(teams); i++) {
        people[n++] = (struct person){{.name = arena_printf(a, "%s-member", teams[i])},
                                      {STR("system:authenticated"), str_of(teams[i])}};
        people[n++] = (struct person){{.name = arena_printf(a, "%s-lead", teams[i])},
                                      {STR("system:authenticated"), str_of(teams[i])}};
        people[n++] =
            (struct person){{.name = arena_printf(a, "system:serviceaccount:%s:robot", teams[i])},
                            {STR("system:authenticated"), STR("system:serviceaccounts")}};
    }
    people[n++] = (struct person){{.name = STR("system:serviceaccount:apps:ci")},
                                  {STR("system:authenticated"), STR("system:serviceaccounts")}};
    people[n++] = (struct person){{.name = STR("system:anonymous")},
                                  {STR("system:unauthenticated"), STR("nobody")}};
    for (size_t i = 0; i < n; i++) {
        people[i].user.groups = people[i].groups;
        people[i].user.n_groups = 2;
    }
    return n;
}

struct tally {
    struct world *world;
    size_t n, n_allowed;
};

static void compare(struct tally *t, const struct access_question *q)
{
    bool is_allowed = allows(t->world, q), expected = reference_allows(t->world, q);
    if (is_allowed != expected)
        fail_msg("%.*s %.*s %.*s.%.*s/%.*s '%.*s' in '%.*s' path '%.*s': got %d",
                 STR_ARG(q->user->name), STR_ARG(q->verb), STR_ARG(q->resource), STR_ARG(q->group),
                 STR_ARG(q->subresource), STR_ARG(q->name), STR_ARG(q->namespace), STR_ARG(q->path),
                 is_allowed);
    t->n++;
    t->n_allowed += is_allowed;
}

static void compare_places(struct tally *t, struct access_question q)
{
    static const char *const names[] = {"", "deploy"};
    for (size_t n = 0; n < N_ELEMENTS(names); n++) {
        q.name = str_of(names[n]);
        q.namespace = STR("");
        compare(t, &q);
        for (size_t i = 0; i < N_ELEMENTS(teams); i++) {
            q.namespace = str_of(teams[i]);
            compare(t, &q);
        }
    }
}

static void compare_kind(struct tally *t, const struct user *u, const struct kind *k)
{
    static const char *const verbs[] = {"get",    "list",     "watch",  "create",
                                        "update", "patch",    "delete", "deletecollection",
                                        "bind",   "escalate", "*"};
    for (size_t v = 0; v < N_ELEMENTS(verbs); v++) {
        struct access_question q = ask(u, verbs[v], "", "", "");
        q.group = k->group;
        q.resource = k->plural;
        compare_places(t, q);
        for (size_t i = 0; i < k->n_subresources; i++) {
            q.subresource = k->subresources[i].name;
            compare_places(t, q);
        }
    }
}

static void compare_person(struct tally *t, const struct user *u, const struct registry *kinds)
{
    static const char *const paths[] = {"/",       "/metrics", "/api",
                                        "/apis/x", "/version", "/version/"};
    for (size_t g = 0; g < kinds->n_groups; g++)
        for (size_t v = 0; v < kinds->groups[g].n_versions; v++)
            for (size_t i = 0; i < kinds->groups[g].versions[v].n_kinds; i++)
                compare_kind(t, u, kinds->groups[g].versions[v].kinds[i]);
    for (size_t i = 0; i < N_ELEMENTS(paths); i++) {
        struct access_question q = {.user = u, .verb = STR("get"), .path = str_of(paths[i])};
        compare(t, &q);
        q.verb = STR("post");
        compare(t, &q);
    }
}

TEST(every_verb_on_every_kind_for_everybody_in_a_company)
{
    struct world w;
    struct person people[20];
    struct registry *kinds = fixture_registry();
    world_open(&w);
    put_company(&w);
    size_t n = make_people(w.arena, people);
    struct tally tally = {.world = &w};
    for (size_t i = 0; i < n; i++) {
        size_t before = tally.n_allowed;
        compare_person(&tally, &people[i].user, kinds);
        /* Everybody may something, all but the stranger. */
        assert_int_equal(tally.n_allowed > before, i + 1 < n);
    }
    assert_true(tally.n > 50000);
    assert_true(tally.n_allowed > tally.n / 20 && tally.n_allowed < tally.n / 2);
    registry_unref(kinds);
    world_close(&w);
}

/* ---- anything ------------------------------------------------------------------------------ */

struct dice {
    uint64_t state;
};

static uint32_t roll(struct dice *d, uint32_t sides)
{
    d->state ^= d->state << 13;
    d->state ^= d->state >> 7;
    d->state ^= d->state << 17;
    return (uint32_t) (d->state >> 33) % sides;
}

static const char *const groups[] = {"", "a", "b", "*"};
static const char *const resources[] = {"x", "y", "*", "x/s", "y/t", "*/s", "*/t", "x/s/u"};
static const char *const verbs[] = {"get", "list", "*", "create", "bind", "odd"};
static const char *const names[] = {"n", "m", ""};
static const char *const urls[] = {"/x", "/x/*", "*", "/y*", "/y/z", "/x/**"};
static const char *const namespaces[] = {"p", "q", "r"};
static const char *const people_names[] = {"ann", "bob", "eve", "system:serviceaccount:p:robot"};

static void write_some(struct dice *d, struct buf *b, const char *key, const char *const *list,
                       uint32_t n)
{
    buf_printf(b, "'%s':['%s'", key, list[roll(d, n)]);
    for (uint32_t i = roll(d, 3); i > 0; i--)
        buf_printf(b, ",'%s'", list[roll(d, n)]);
    buf_append_char(b, ']');
}
#define SOME(d, b, key, list) write_some(d, b, key, list, N_ELEMENTS(list))
#define ANY(d, list) list[roll(d, N_ELEMENTS(list))]

static void random_role(struct dice *d, struct world *w)
{
    BUF_AUTO b = {0};
    bool is_wide = roll(d, 2);
    buf_append_str(&b, STR("'rules':["));
    for (uint32_t i = 0, n = roll(d, 4); i < n; i++) {
        buf_append_str(&b, i ? STR(",{") : STR("{"));
        SOME(d, &b, "verbs", verbs);
        buf_append_char(&b, ',');
        if (roll(d, 4) == 0) {
            SOME(d, &b, "nonResourceURLs", urls);
        } else {
            SOME(d, &b, "apiGroups", groups);
            buf_append_char(&b, ',');
            SOME(d, &b, "resources", resources);
            if (roll(d, 3) == 0) {
                buf_append_char(&b, ',');
                SOME(d, &b, "resourceNames", names);
            }
        }
        buf_append_char(&b, '}');
    }
    buf_append_char(&b, ']');
    world_put(w, is_wide ? "clusterroles" : "roles", is_wide ? "" : ANY(d, namespaces),
              roll(d, 2) ? "one" : "two", b.p);
}

static void random_binding(struct dice *d, struct world *w)
{
    static const char *const subjects[] = {
        USER("ann"),
        USER("bob"),
        GROUP("g"),
        GROUP("h"),
        "{'kind':'ServiceAccount','name':'robot'}",
        "{'kind':'ServiceAccount','name':'robot','namespace':'p'}",
    };
    BUF_AUTO b = {0};
    bool is_wide = roll(d, 3) == 0;
    buf_printf(&b, "'roleRef':{'kind':'%s','name':'%s'},'subjects':[%s",
               is_wide || roll(d, 2) ? "ClusterRole" : "Role", roll(d, 2) ? "one" : "two",
               ANY(d, subjects));
    for (uint32_t i = roll(d, 3); i > 0; i--)
        buf_printf(&b, ",%s", ANY(d, subjects));
    buf_append_char(&b, ']');
    world_put(w, is_wide ? "clusterrolebindings" : "rolebindings",
              is_wide ? "" : ANY(d, namespaces), roll(d, 2) ? "one" : "two", b.p);
}

static void random_removal(struct dice *d, struct world *w)
{
    static const char *const kinds[] = {"roles", "rolebindings", "clusterroles",
                                        "clusterrolebindings"};
    uint32_t kind = roll(d, 4);
    (void) world_remove(w, kinds[kind], kind < 2 ? ANY(d, namespaces) : "",
                        roll(d, 2) ? "one" : "two");
}

static void random_question(struct dice *d, struct tally *t)
{
    static const struct str all[] = {STR("g"), STR("h")};
    uint32_t first = roll(d, 2);
    struct user u = {.name = str_of(ANY(d, people_names)),
                     .groups = all + first,
                     .n_groups = roll(d, 3 - first)};
    struct access_question q = ask(&u, ANY(d, verbs), "", "", "");
    if (roll(d, 5) == 0) {
        static const char *const paths[] = {"/x", "/x/", "/x/y", "/y", "/yy", "/y/z", "/", "*"};
        q.is_resource = false;
        q.path = str_of(ANY(d, paths));
    } else {
        static const char *const subresources[] = {"", "s", "t", "s/u"};
        q.group = str_of(ANY(d, groups));
        q.resource = str_of(ANY(d, resources));
        q.subresource = str_of(ANY(d, subresources));
        q.name = str_of(ANY(d, names));
        q.namespace = roll(d, 4) ? str_of(ANY(d, namespaces)) : STR("");
    }
    compare(t, &q);
}

TEST(random_roles_and_bindings_decide_as_the_slow_evaluator)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct dice d = {seed * UINT64_C(0x9e3779b97f4a7c15)};
        struct world w;
        world_open(&w);
        struct tally tally = {.world = &w};
        for (int i = 0; i < 120; i++) {
            uint32_t what = roll(&d, 8);
            if (what < 4)
                random_role(&d, &w);
            else if (what < 7)
                random_binding(&d, &w);
            else
                random_removal(&d, &w);
            if (i % 50 == 49)
                world_restart(&w);
            for (int k = 0; k < 60; k++)
                random_question(&d, &tally);
        }
        if (tally.n_allowed < tally.n / 50 || tally.n_allowed > tally.n * 19 / 20)
            fail_msg("seed %d: %zu of %zu allowed", (int) seed, tally.n_allowed, tally.n);
        world_close(&w);
    }
}

/* ---- threads ------------------------------------------------------------------------------- */

struct reader {
    struct world *world;
    atomic_bool is_over;
};

static void *read_decisions(void *arg)
{
    struct reader *r = arg;
    struct user jane = {.name = STR("jane")};
    ARENA_AUTO a = arena_new();
    while (!atomic_load(&r->is_over)) {
        struct str reason = STR_NONE;
        struct access_question q = ask(&jane, "get", "pods", "a", "");
        (void) rbac_allows(r->world->rbac, &q, a, &reason);
        /* What never changes never flickers. */
        q = ask(&jane, "list", "pods", "a", "");
        if (!rbac_allows(r->world->rbac, &q, a, NULL))
            return arg;
        arena_reset(a);
    }
    return NULL;
}

TEST(decisions_go_on_while_roles_change)
{
    struct world w;
    world_open(&w);
    world_put(&w, "clusterroles", "", "fixed",
              "'rules':[{'apiGroups':[''],'resources':['pods'],'verbs':['list']}]");
    world_put(&w, "clusterrolebindings", "", "fixed",
              ROLE_REF("ClusterRole", "fixed") ",'subjects':[" USER("jane") "]");
    struct reader reader = {.world = &w};
    pthread_t threads[2];
    for (size_t i = 0; i < N_ELEMENTS(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_decisions, &reader), 0);
    for (int i = 0; i < 50; i++) {
        world_put(&w, "roles", "a", "r",
                  i % 2 ? "'rules':[{'apiGroups':[''],'resources':['pods'],'verbs':['get']}]"
                        : "'rules':[]");
        world_put(&w, "rolebindings", "a", "b",
                  ROLE_REF("Role", "r") ",'subjects':[" USER("jane") "]");
        if (i % 7 == 0)
            (void) world_remove(&w, "rolebindings", "a", "b");
    }
    atomic_store(&reader.is_over, true);
    for (size_t i = 0; i < N_ELEMENTS(threads); i++) {
        void *failed = NULL;
        (void) pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    world_close(&w);
}
