/* SPDX-License-Identifier: Apache-2.0 */
#include "api/audit/policy.h"

#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "test.h"

#define HEAD "apiVersion: audit.k8s.io/v1\nkind: Policy\n"

static struct audit_policy *parse(const char *text)
{
    struct audit_policy *p = NULL;
    char *error = NULL;
    if (audit_policy_parse("p.yaml", str_of(text), &p, &error) < 0)
        fail_msg("%s", error);
    return p;
}

/* ---- matching ------------------------------------------------------------------------------ */

static const char table_policy[] =
    HEAD "omitStages: [RequestReceived]\n"
         "rules:\n"
         "- level: None\n"
         "  users: [system:kube-proxy]\n"
         "  verbs: [watch]\n"
         "  resources:\n"
         "  - group: ''\n"
         "    resources: [endpoints, services/status]\n"
         "- level: None\n"
         "  userGroups: [system:authenticated]\n"
         "  nonResourceURLs: ['/api*', /version]\n"
         "- level: Request\n"
         "  resources: [{group: '', resources: [configmaps], resourceNames: [controller-leader]}]\n"
         "  namespaces: [kube-system, '']\n"
         "- level: RequestResponse\n"
         "  omitStages: [ResponseStarted]\n"
         "  resources:\n"
         "  - resources: ['pods/*']\n"
         "  - {group: apps, resources: ['*/status', deployments]}\n"
         "  - group: rbac.authorization.k8s.io\n"
         "  - {group: '', resources: [secrets, serviceaccounts/token]}\n"
         "  - {group: authentication.k8s.io, resources: ['*']}\n"
         "- level: Metadata\n"
         "  verbs: [get]\n"
         "  namespaces: [team]\n";

static const struct str in_authenticated[] = {STR("system:authenticated")};
static const struct user proxy = {.name = STR("system:kube-proxy")};
static const struct user member = {.name = STR("jane"), .groups = in_authenticated, .n_groups = 1};

static const struct {
    const struct user *user;
    const char *verb, *uri;                                        /* uri: a path */
    const char *group, *resource, *subresource, *namespace, *name; /* uri NULL */
    enum audit_level level;
} cases[] = {
    {&proxy, "watch", NULL, "", "endpoints", "", "x", "", AUDIT_NONE},
    {&proxy, "watch", NULL, "", "services", "status", "x", "", AUDIT_NONE},
    /* A resource does not stand for its subresources, nor the other way round. */
    {&proxy, "get", NULL, "", "pods", "", "x", "a", AUDIT_REQUEST_RESPONSE},
    {&member, "get", "/api?timeout=32s", 0, 0, 0, 0, 0, AUDIT_NONE},
    {&member, "get", "/version", 0, 0, 0, 0, 0, AUDIT_NONE},
    {&member, "get", "/versions", 0, 0, 0, 0, 0, AUDIT_NONE},
    {&member, "get", NULL, "", "configmaps", "", "kube-system", "controller-leader", AUDIT_REQUEST},
    {&member, "list", NULL, "", "configmaps", "", "", "controller-leader", AUDIT_REQUEST},
    {&member, "get", NULL, "", "configmaps", "", "kube-system", "other", AUDIT_NONE},
    {&member, "get", NULL, "", "configmaps", "", "x", "controller-leader", AUDIT_NONE},
    {&member, "get", NULL, "", "pods", "", "x", "a", AUDIT_REQUEST_RESPONSE},
    {&member, "get", NULL, "", "pods", "log", "x", "a", AUDIT_REQUEST_RESPONSE},
    {&member, "get", NULL, "other", "pods", "log", "x", "a", AUDIT_NONE},
    {&member, "update", NULL, "apps", "statefulsets", "status", "x", "a", AUDIT_REQUEST_RESPONSE},
    {&member, "update", NULL, "apps", "statefulsets", "", "x", "a", AUDIT_NONE},
    {&member, "update", NULL, "apps", "deployments", "", "x", "a", AUDIT_REQUEST_RESPONSE},
    {&member, "update", NULL, "apps", "deployments", "scale", "x", "a", AUDIT_NONE},
    {&member, "create", NULL, "rbac.authorization.k8s.io", "roles", "", "x", "a",
     AUDIT_REQUEST_RESPONSE},
    {&member, "get", NULL, "", "services", "", "team", "a", AUDIT_METADATA},
    {&member, "list", NULL, "", "services", "", "team", "", AUDIT_NONE},
    /* What holds secrets never goes higher. */
    {&member, "get", NULL, "", "secrets", "", "x", "a", AUDIT_METADATA},
    {&member, "create", NULL, "", "serviceaccounts", "token", "x", "a", AUDIT_METADATA},
    {&member, "create", NULL, "authentication.k8s.io", "tokenreviews", "", "", "", AUDIT_METADATA},
    {&member, "create", NULL, "authentication.k8s.io", "selfsubjectreviews", "", "", "",
     AUDIT_REQUEST_RESPONSE},
    {NULL, "get", NULL, "", "pods", "", "x", "a", AUDIT_REQUEST_RESPONSE},
    {NULL, "get", "/version", 0, 0, 0, 0, 0, AUDIT_NONE},
};

TEST(the_first_rule_that_matches_decides)
{
    struct audit_policy *p = parse(table_policy);
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct audit_record r = {.user = cases[i].user,
                                 .verb = str_of(cases[i].verb),
                                 .uri = str_of(cases[i].uri),
                                 .is_resource = !cases[i].uri,
                                 .group = str_of(cases[i].group),
                                 .resource = str_of(cases[i].resource),
                                 .subresource = str_of(cases[i].subresource),
                                 .namespace = str_of(cases[i].namespace),
                                 .name = str_of(cases[i].name)};
        audit_policy_judge(p, &r);
        if (r.level != cases[i].level)
            fail_msg("case %zu: got level %d, expected %d", i, r.level, cases[i].level);
    }
    audit_policy_free(p);
}

static struct audit_record path_record(const char *uri)
{
    return (struct audit_record){.user = &member, .verb = STR("get"), .uri = str_of(uri)};
}

TEST(paths_are_compared_as_they_are_understood)
{
    struct audit_policy *p = parse(HEAD "rules:\n"
                                        "- {level: None, nonResourceURLs: [/healthz, '/x/*']}\n"
                                        "- {level: Metadata}\n");
    static const struct {
        const char *uri;
        enum audit_level level;
    } paths[] = {
        {"/healthz", AUDIT_NONE},
        {"/healthz?verbose", AUDIT_NONE},
        {"/%68ealthz", AUDIT_NONE},
        {"/healthz/ping", AUDIT_METADATA},
        {"/x/", AUDIT_NONE},
        {"/x/y?z=/healthz", AUDIT_NONE},
        {"/x", AUDIT_METADATA},
        {"/metrics?/healthz", AUDIT_METADATA},
        {"/%zzhealthz", AUDIT_METADATA},
        {"", AUDIT_METADATA},
    };
    for (size_t i = 0; i < N_ELEMENTS(paths); i++) {
        struct audit_record r = path_record(paths[i].uri);
        audit_policy_judge(p, &r);
        if (r.level != paths[i].level)
            fail_msg("%s: got level %d", paths[i].uri, r.level);
    }
    audit_policy_free(p);
}

TEST(stages_add_up_and_rules_override_managed_fields)
{
    struct audit_policy *p =
        parse(HEAD "omitStages: [RequestReceived]\n"
                   "omitManagedFields: true\n"
                   "rules:\n"
                   "- {level: Metadata, verbs: [a], omitStages: [Panic, ResponseStarted]}\n"
                   "- {level: Metadata, verbs: [b], omitManagedFields: false}\n");
    struct audit_record r = {.verb = STR("a")};
    audit_policy_judge(p, &r);
    assert_int_equal(r.omitted_stages, 1u << AUDIT_REQUEST_RECEIVED | 1u << AUDIT_RESPONSE_STARTED |
                                           1u << AUDIT_PANIC);
    assert_true(r.omit_managed_fields);
    r.verb = STR("b");
    audit_policy_judge(p, &r);
    assert_int_equal(r.omitted_stages, 1u << AUDIT_REQUEST_RECEIVED);
    assert_false(r.omit_managed_fields);
    audit_policy_free(p);
}

TEST(without_a_policy_all_is_recorded_when_it_is_over)
{
    struct audit_policy *p = audit_policy_default();
    struct audit_record r = path_record("/metrics");
    audit_policy_judge(p, &r);
    assert_int_equal(r.level, AUDIT_METADATA);
    assert_int_equal(r.omitted_stages, 1u << AUDIT_REQUEST_RECEIVED | 1u << AUDIT_RESPONSE_STARTED);
    audit_policy_free(p);
}

/* ---- errors -------------------------------------------------------------------------------- */

static const struct {
    const char *text, *error;
} bad[] = {
    {"", "audit policy p.yaml: must be an object"},
    {"[]", "audit policy p.yaml: must be an object"},
    {"a: [", "audit policy p.yaml: yaml: "},
    {"kind: Policy\nrules: []", "audit policy p.yaml: apiVersion: is required"},
    {"apiVersion: audit.k8s.io/v1beta1\n",
     "audit policy p.yaml: apiVersion: must be audit.k8s.io/v1"},
    {"apiVersion: audit.k8s.io/v1\nkind: Event\n", "audit policy p.yaml: kind: must be Policy"},
    {HEAD, "audit policy p.yaml: rules: is required"},
    {HEAD "rules: []", "audit policy p.yaml: rules: there is none"},
    {HEAD "rules: {}", "audit policy p.yaml: rules: must be a list"},
    {HEAD "rule: []", "audit policy p.yaml: rule: unknown field"},
    {HEAD "rules: [{}]", "audit policy p.yaml: rules[0].level: is required"},
    {HEAD "rules: [{level: metadata}]",
     "audit policy p.yaml: rules[0].level: 'metadata' is none of None, Metadata, Request, "
     "RequestResponse"},
    {HEAD "rules: [{level: 1}]", "audit policy p.yaml: rules[0].level: must be a string"},
    {HEAD "rules: [{level: None}, {level: None, user: [a]}]",
     "audit policy p.yaml: rules[1].user: unknown field"},
    {HEAD "rules: [{level: None, users: a}]",
     "audit policy p.yaml: rules[0].users: must be a list of strings"},
    {HEAD "rules: [{level: None, verbs: [a, 1]}]",
     "audit policy p.yaml: rules[0].verbs[1]: must be a string"},
    {HEAD "rules: [{level: None, nonResourceURLs: [x]}]",
     "audit policy p.yaml: rules[0].nonResourceURLs[0]: 'x' must begin with a '/'"},
    {HEAD "rules: [{level: None, nonResourceURLs: ['/a*b']}]",
     "audit policy p.yaml: rules[0].nonResourceURLs[0]: '/a*b': a '*' must be the last"},
    {HEAD "rules: [{level: None, nonResourceURLs: ['*'], namespaces: [a]}]",
     "audit policy p.yaml: rules[0].nonResourceURLs: a rule is for resources or for paths"},
    {HEAD "rules: [{level: None, resources: [{group: a/v1}]}]",
     "audit policy p.yaml: rules[0].resources[0].group: 'a/v1' must be a group without"},
    {HEAD "rules: [{level: None, resources: [{resourceNames: [a]}]}]",
     "audit policy p.yaml: rules[0].resources[0].resourceNames: needs at least one resource"},
    {HEAD "rules: [{level: None, resources: [pods]}]",
     "audit policy p.yaml: rules[0].resources[0]: must be an object"},
    {HEAD "rules: [{level: None, omitStages: [Received]}]",
     "audit policy p.yaml: rules[0].omitStages[0]: 'Received' is none of RequestReceived"},
    {HEAD "rules: [{level: None, omitManagedFields: 'yes'}]",
     "audit policy p.yaml: rules[0].omitManagedFields: must be true or false"},
    {HEAD "rules: [{level: None, level: Request}]",
     "audit policy p.yaml: rules[0].level: stands there twice"},
};

TEST(errors_name_the_file_and_the_field)
{
    for (size_t i = 0; i < N_ELEMENTS(bad); i++) {
        struct audit_policy *p = NULL;
        char *error = NULL;
        assert_int_equal(audit_policy_parse("p.yaml", str_of(bad[i].text), &p, &error), -EINVAL);
        if (!str_starts_with(str_of(error), str_of(bad[i].error)))
            fail_msg("%s\ngot      %s\nexpected %s", bad[i].text, error, bad[i].error);
        mem_free(error);
    }
}

TEST(a_file_that_is_not_there_is_named)
{
    struct audit_policy *p = NULL;
    char *error = NULL;
    assert_int_equal(audit_policy_load("/nowhere/p.yaml", &p, &error), -ENOENT);
    assert_non_null(strstr(error, "audit policy /nowhere/p.yaml: cannot read it: No such file"));
    mem_free(error);
}
