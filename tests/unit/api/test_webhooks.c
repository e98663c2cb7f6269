/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>

#include "api/admission/webhooks_internal.h"
#include "kinds_fixture.h"

#define UID "7cb6a5a1-0d6b-4f3c-9b86-6b6b1a0a7a11"

/* A configuration of one webhook with these members besides, or instead of, the usual. */
static struct webhook_configuration *compile(const char *members)
{
    ARENA_AUTO a = arena_new();
    struct json *source = fixture_json(
        a, "{'metadata':{'name':'w'},'webhooks':[{'name':'a.example.org','clientConfig':{'url':"
           "'https://h/x'},'sideEffects':'None','admissionReviewVersions':['v1']}]}");
    struct str text = arena_printf(a, "{%s}", members[0] == ',' ? members + 1 : members);
    const struct json *given = fixture_json(a, text.p);
    JSON_FOR_EACH_MEMBER (given, m)
        (void) json_set(a, json_get(source, STR("webhooks"))->items, json_str(&m->key), m->value);
    return webhook_compile(json_text(a, source));
}

/* ---- rules -------------------------------------------------------------------------------- */

#define RULE(operations, groups, versions, resources, scope) \
    ",'rules':[{'operations':[" operations "],'apiGroups':[" groups "],'apiVersions':[" versions \
    "],'resources':[" resources "],'scope':'" scope "'}]"

TEST(rules_match_as_kubernetes_does)
{
    static const struct webhook_target map = {.operations = ADMISSION_CREATE,
                                              .group = STR(""),
                                              .version = STR("v1"),
                                              .resource = STR("configmaps"),
                                              .subresource = STR(""),
                                              .namespace = STR("n")};
    static const struct webhook_target status = {.operations = ADMISSION_UPDATE,
                                                 .group = STR("g"),
                                                 .version = STR("v2"),
                                                 .resource = STR("things"),
                                                 .subresource = STR("status"),
                                                 .namespace = STR("")};
    static const struct webhook_target space = {.operations = ADMISSION_DELETE,
                                                .group = STR(""),
                                                .version = STR("v1"),
                                                .resource = STR("namespaces"),
                                                .subresource = STR(""),
                                                .namespace = STR("n")};
    static const struct {
        const char *rule;
        bool of_map, of_status, of_space;
    } cases[] = {
        {"", false, false, false},
        {",'rules':[]", false, false, false},
        {RULE("'*'", "'*'", "'*'", "'*/*'", "*"), true, true, true},
        {RULE("'*'", "'*'", "'*'", "'*'", "*"), true, false, true},
        {RULE("'*'", "'*'", "'*'", "'*/status'", "*"), false, true, false},
        {RULE("'*'", "'*'", "'*'", "'things/*'", "*"), false, true, false},
        {RULE("'*'", "'*'", "'*'", "'things'", "*"), false, false, false},
        {RULE("'*'", "'*'", "'*'", "'configmaps/*'", "*"), true, false, false},
        {RULE("'*'", "'*'", "'*'", "'*/*'", "Namespaced"), true, false, false},
        {RULE("'*'", "'*'", "'*'", "'*/*'", "Cluster"), false, true, true},
        {RULE("'CREATE'", "'*'", "'*'", "'*/*'", "*"), true, false, false},
        {RULE("'UPDATE','DELETE'", "'*'", "'*'", "'*/*'", "*"), false, true, true},
        {RULE("'CONNECT'", "'*'", "'*'", "'*/*'", "*"), false, false, false},
        {RULE("'*'", "''", "'v1'", "'*/*'", "*"), true, false, true},
        {RULE("'*'", "'g','h'", "'v1','v2'", "'*/*'", "*"), false, true, false},
        {RULE("'*'", "'g'", "'v1'", "'*/*'", "*"), false, false, false},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct webhook_configuration *c = compile(cases[i].rule);
        assert_int_equal(c->n_hooks, 1);
        if (webhook_rules_match(&c->hooks[0], &map) != cases[i].of_map ||
            webhook_rules_match(&c->hooks[0], &status) != cases[i].of_status ||
            webhook_rules_match(&c->hooks[0], &space) != cases[i].of_space)
            fail_msg("%s", cases[i].rule);
        webhook_configuration_unref(c);
    }
}

TEST(without_webhooks_nothing_matches)
{
    assert_false(webhooks_may_match(NULL, NULL, STR(""), ADMISSION_CREATE));
}

/* ---- questions ---------------------------------------------------------------------------- */

struct fixture {
    struct arena *arena;
    struct registry *registry;
    struct call call;
    struct admission admission;
};

static void begin(struct fixture *f, const char *kind, const char *object, const char *old)
{
    *f = (struct fixture){.arena = arena_new()};
    f->registry = fixture_registry_with(
        "{'metadata':{'name':'things.example.org'},'spec':{'group':'example.org','scope':'Cluster',"
        "'names':{'plural':'things','kind':'Thing'},'versions':[{'name':'v1','served':true,"
        "'storage':true,'schema':{'openAPIV3Schema':{'type':'object','properties':{'spec':{'type':"
        "'object','properties':{'old':{'type':'string'},'n':{'type':'integer'}}}}}}},{'name':'v2',"
        "'served':true,'storage':false,'schema':{'openAPIV3Schema':{'type':'object','properties':{"
        "'spec':{'type':'object','properties':{'n':{'type':'integer','default':7}}}}}}}]}}");
    f->call = (struct call){
        .arena = f->arena, .registry = f->registry, .kind = fixture_kind(f->registry, kind)};
    f->call.last_warning = &f->call.warnings;
    status_init(&f->call.status, f->arena);
    f->admission = (struct admission){.call = &f->call,
                                      .object = object ? fixture_json(f->arena, object) : NULL,
                                      .old = old ? fixture_json(f->arena, old) : NULL};
}

static void end(struct fixture *f)
{
    registry_unref(f->registry);
    arena_free(f->arena);
}

TEST(object_selectors_look_at_both_versions)
{
    static const struct {
        const char *object, *old;
        bool matches;
    } cases[] = {
        {"{'metadata':{'labels':{'a':'b'}}}", NULL, true},
        {"{'metadata':{'labels':{'a':'c'}}}", NULL, false},
        {"{'metadata':{}}", NULL, false},
        {"{'metadata':{'labels':{'a':'c'}}}", "{'metadata':{'labels':{'a':'b'}}}", true},
        {NULL, "{'metadata':{'labels':{'a':'b'}}}", true},
        {NULL, "{'metadata':{}}", false},
    };
    struct webhook_configuration *c =
        compile(",'objectSelector':{'matchExpressions':[{'key':'a','operator':'In','values':['b',"
                "'x']}]}" RULE("'*'", "'*'", "'*'", "'*'", "*"));
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct fixture f;
        const struct kind *k = NULL;
        begin(&f, "example.org/v1/things", cases[i].object, cases[i].old);
        struct webhook_question q = webhook_question_of(&f.admission);
        assert_int_equal(webhook_matches(&q, &c->hooks[0], &k), cases[i].matches);
        assert_ptr_equal(k, cases[i].matches ? f.call.kind : NULL);
        end(&f);
    }
    webhook_configuration_unref(c);
}

TEST(other_versions_match_unless_exactness_is_asked_for)
{
    struct webhook_configuration *equivalent =
                                     compile(RULE("'*'", "'example.org'", "'v1'", "'things'", "*")),
                                 *exact = compile(",'matchPolicy':'Exact'" RULE(
                                     "'*'", "'example.org'", "'v1'", "'things'", "*"));
    struct fixture f;
    const struct kind *k = NULL;
    begin(&f, "example.org/v2/things", "{'metadata':{},'spec':{}}", NULL);
    struct webhook_question q = webhook_question_of(&f.admission);
    assert_int_equal(webhook_matches(&q, &exact->hooks[0], &k), 0);
    assert_int_equal(webhook_matches(&q, &equivalent->hooks[0], &k), 1);
    assert_ptr_equal(k, fixture_kind(f.registry, "example.org/v1/things"));
    end(&f);
    webhook_configuration_unref(equivalent);
    webhook_configuration_unref(exact);
}

TEST(events_are_the_same_in_both_groups)
{
    struct webhook_configuration *c =
        compile(RULE("'*'", "'events.k8s.io'", "'*'", "'events'", "*"));
    struct fixture f;
    const struct kind *k = NULL;
    begin(&f, "core/v1/events", "{'metadata':{}}", NULL);
    struct webhook_question q = webhook_question_of(&f.admission);
    assert_int_equal(webhook_matches(&q, &c->hooks[0], &k), 1);
    assert_string_equal(k->group.p, "events.k8s.io");
    end(&f);
    webhook_configuration_unref(c);
}

TEST(configurations_are_exempt_themselves)
{
    struct fixture f;
    begin(&f, "admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", NULL, NULL);
    assert_true(webhook_is_exempt(f.call.kind));
    assert_false(webhook_is_exempt(fixture_kind(f.registry, "core/v1/configmaps")));
    end(&f);
}

TEST(what_cannot_be_asked_says_why)
{
    static const struct {
        const char *members, *problem;
    } cases[] = {
        {"", ""},
        {",'clientConfig':{'service':{'name':'s','namespace':'n','path':'/p','port':8443}},"
         "'timeoutSeconds':3",
         "failed to call webhook: Post \"https://s.n.svc:8443/p?timeout=3s\": service \"s\" not "
         "found"},
        {",'clientConfig':{'url':'https://h','caBundle':'bm9uZQ=='}",
         "could not get REST client: unable to load root certificates: unable to parse bytes as "
         "PEM block"},
        {",'admissionReviewVersions':['v9']",
         "could not create admission objects: webhook does not accept known AdmissionReview "
         "versions (v1, v1beta1)"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct webhook_configuration *c = compile(cases[i].members);
        assert_true(
            str_is(c->hooks[0].problem.p ? c->hooks[0].problem : STR(""), cases[i].problem));
        webhook_configuration_unref(c);
    }
}

TEST(side_effects_forbid_a_dry_run)
{
    struct webhook_configuration *c = compile(",'sideEffects':'Some'");
    struct fixture f;
    struct webhook_answer answer;
    begin(&f, "core/v1/configmaps", "{'metadata':{}}", NULL);
    f.call.may_block = f.call.is_dry_run = true;
    struct webhook_question q = webhook_question_of(&f.admission);
    assert_true(webhook_ask(&q, &c->hooks[0], f.call.kind, WEBHOOK_MUTATING, &answer) < 0);
    assert_int_equal(f.call.status.code, 400);
    assert_true(str_is(f.call.status.message,
                       "admission webhook \"a.example.org\" does not support dry run"));
    end(&f);
    webhook_configuration_unref(c);
}

TEST(who_may_not_block_asks_nobody)
{
    struct webhook_configuration *c = compile("");
    struct fixture f;
    struct webhook_answer answer;
    begin(&f, "core/v1/configmaps", "{'metadata':{}}", NULL);
    struct webhook_question q = webhook_question_of(&f.admission);
    assert_int_equal(webhook_ask(&q, &c->hooks[0], f.call.kind, WEBHOOK_MUTATING, &answer),
                     -EAGAIN);
    assert_true(f.call.must_block);
    assert_int_equal(f.call.status.code, 0);
    end(&f);
    webhook_configuration_unref(c);
}

/* ---- answers ------------------------------------------------------------------------------ */

#define ANSWER(version, members) \
    "{'kind':'AdmissionReview','apiVersion':'admission.k8s.io/" version \
    "','response':{'uid':'" UID "'" members "}}"

TEST(answers_are_checked)
{
    static const struct {
        const char *text, *version;
        enum webhook_phase phase;
        const char *error; /* its beginning; NULL: none */
    } cases[] = {
        {ANSWER("v1", ",'allowed':true"), "v1", WEBHOOK_VALIDATING, NULL},
        {ANSWER("v1", ""), "v1", WEBHOOK_VALIDATING, NULL},
        {ANSWER("v1beta1", ",'allowed':true"), "v1beta1", WEBHOOK_VALIDATING, NULL},
        {ANSWER("v1", ",'allowed':null,'status':null,'warnings':null"), "v1", WEBHOOK_MUTATING,
         NULL},
        {ANSWER("v1beta1", ""), "v1", WEBHOOK_VALIDATING,
         "received invalid webhook response: expected webhook response of admission.k8s.io/v1"},
        {"{'kind':'AdmissionReview','apiVersion':'admission.k8s.io/v1','response':{}}", "v1",
         WEBHOOK_VALIDATING,
         "received invalid webhook response: expected response.uid=\"" UID "\", got \"\""},
        {"{'kind':'AdmissionReview','apiVersion':'admission.k8s.io/v1beta1','response':{}}",
         "v1beta1", WEBHOOK_VALIDATING, NULL},
        {"{}", "v1", WEBHOOK_VALIDATING, "failed to call webhook: "},
        {"[]", "v1", WEBHOOK_VALIDATING, "failed to call webhook: "},
        {ANSWER("v1", ",'allowed':1"), "v1", WEBHOOK_VALIDATING, "failed to call webhook: json"},
        {ANSWER("v1", ",'patchType':'JSONPatch'"), "v1", WEBHOOK_VALIDATING,
         "received invalid webhook response: validating webhook may not return "
         "response.patchType"},
        {ANSWER("v1", ",'patch':'W10=','patchType':''"), "v1", WEBHOOK_MUTATING,
         "received invalid webhook response: webhook returned invalid response.patchType of "
         "\"\""},
        {ANSWER("v1beta1", ",'allowed':true,'patch':'W10='"), "v1beta1", WEBHOOK_MUTATING, NULL},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        struct webhook_answer answer = {0};
        struct str error = STR_NONE, text = json_text(a, fixture_json(a, cases[i].text));
        int r = webhook_answer_parse(a, text, str_of(cases[i].version), STR(UID), cases[i].phase,
                                     &answer, &error);
        if (cases[i].error ? r == 0 || !str_starts_with(error, str_of(cases[i].error)) : r < 0)
            fail_msg("%s: %.*s", cases[i].text, STR_ARG(error));
    }
}

/* [{"op":"add","path":"/spec/n","value":8}] */
#define PATCH_N "W3sib3AiOiJhZGQiLCJwYXRoIjoiL3NwZWMvbiIsInZhbHVlIjo4fV0="

TEST(patches_go_through_the_version_the_webhook_knows)
{
    struct webhook_configuration *c = compile("");
    struct fixture f;
    bool changed = false;
    struct webhook_answer answer = {0};
    struct str error = STR_NONE;
    begin(&f, "example.org/v2/things",
          "{'apiVersion':'example.org/v2','kind':'Thing','metadata':{'name':'a'},'spec':{'n':1}}",
          NULL);
    struct str text = json_text(
        f.arena, fixture_json(f.arena, ANSWER("v1", ",'allowed':true,'patchType':'JSONPatch',"
                                                    "'patch':'" PATCH_N "'")));
    assert_int_equal(
        webhook_answer_parse(f.arena, text, STR("v1"), STR(UID), WEBHOOK_MUTATING, &answer, &error),
        0);
    struct webhook_question q = webhook_question_of(&f.admission);
    const struct kind *v1 = fixture_kind(f.registry, "example.org/v1/things");
    assert_int_equal(webhook_patch(&q, &c->hooks[0], v1, answer.patch, &changed), 0);
    assert_true(changed);
    assert_int_equal(json_at(f.admission.object, "spec", "n", NULL)->i, 8);
    assert_true(str_is(json_get_str(f.admission.object, STR("apiVersion")), "example.org/v2"));
    assert_int_equal(webhook_patch(&q, &c->hooks[0], v1, answer.patch, &changed), 0);
    assert_false(changed);
    end(&f);
    webhook_configuration_unref(c);
}

TEST(warnings_and_annotations_are_bounded)
{
    struct webhook_configuration *c = compile("");
    struct fixture f;
    begin(&f, "core/v1/configmaps", "{'metadata':{}}", NULL);
    struct json warnings = json_array(), annotations = json_object();
    for (size_t i = 0; i < 1000; i++) {
        struct str text = arena_printf(f.arena, "%zu %0300d", i, 0);
        (void) json_push(f.arena, &warnings, json_string(text));
        (void) json_set(f.arena, &annotations, arena_printf(f.arena, "k%zu", i), json_string(text));
    }
    webhook_answer_note(
        &f.call, &c->hooks[0],
        &(struct webhook_answer){.warnings = &warnings, .annotations = &annotations});
    size_t n_bytes = 0, n_annotations = 0;
    for (const struct call_warning *w = f.call.warnings; w; w = w->next)
        n_bytes += w->text.n;
    for (const struct call_annotation *n = f.call.annotations; n; n = n->next)
        n_annotations++;
    assert_true(n_bytes > 0 && n_bytes <= WEBHOOK_MAX_WARNINGS_BYTES);
    assert_int_equal(n_annotations, WEBHOOK_MAX_ANNOTATIONS);
    assert_true(str_is(f.call.annotations->key, "a.example.org/k0"));
    end(&f);
    webhook_configuration_unref(c);
}
