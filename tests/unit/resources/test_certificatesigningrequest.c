/* SPDX-License-Identifier: Apache-2.0 */
#include "../api/kinds_fixture.h"
#include "hook_fixture.h"
#include "test.h"

#define REGISTRY CLEANUP(registry_unrefp) struct registry *
#define KIND "certificates.k8s.io/v1/certificatesigningrequests"
/* O = dev, CN = jane, P-256. */
#define REQUEST \
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIWE1IOENBUUF3SFRFTU1Bb0dBMVVFQ2d3RFpHVjJN" \
    "UTB3Q3dZRFZRUUREQVJxWVc1bE1Ga3dFd1lIS29aSQp6ajBDQVFZSUtvWkl6ajBEQVFjRFFnQUVJSjVkdlNrcGd0S0RC" \
    "QXMxNkt1Q1k3RC9vSTd3RG0zbFRselB5K2hiClZBTXFDUUNTZXhsM3JaNnp5cWxHQTFGOXJKNVR4c29PVVZQUXFSL2pt" \
    "cm1tMEtBQU1Bb0dDQ3FHU000OUJBTUMKQTBnQU1FVUNJUURnSllMUnBRTWdhdk1nRnlZWC9KNUhyTjcwRHZVUU1XM0N4" \
    "YW4wVGNqc2J3SWdPRVBSbk5XawpmMXFGM1NGOFdZQlVyQTJxWjVDVUN6ME5wbmlEQnhIRll2VT0KLS0tLS1FTkQgQ0VS" \
    "VElGSUNBVEUgUkVRVUVTVC0tLS0tCg=="
#define SPEC(signer, usages) \
    "{'spec':{'request':'" REQUEST "','signerName':'" signer "','usages':[" usages "]}}"
#define LABEL \
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and " \
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex " \
    "used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
#define SUBDOMAIN \
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or " \
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used " \
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"

TEST(new_requests_are_judged)
{
    static const struct {
        const char *object, *causes;
    } cases[] = {
        {SPEC("example.org/x", "'client auth','s/mime'"), ""},
        {SPEC("a.b.c/x.y", "'any'"), ""},
        {SPEC("a/b/c", "'any'"),
         "spec.signerName: Invalid value: \"a/b/c\": must be a fully qualified domain and path of "
         "the form 'example.com/signer-name'"},
        {SPEC("local/x", "'any'"),
         "spec.signerName: Invalid value: \"local\": should be a domain with at least two "
         "segments separated by dots"},
        {SPEC("A.b/x", "'any'"),
         "spec.signerName: Invalid value: \"A.b\": validating label \"A\": " LABEL},
        {SPEC("a.b/", "'any'"),
         "spec.signerName: Invalid value: \"\": validating label \"\": " SUBDOMAIN},
        {SPEC("a.b/x.", "'any'"),
         "spec.signerName: Invalid value: \"x.\": validating label \"\": " SUBDOMAIN},
        {"{}", "spec.request: Invalid value: \"\": PEM block type must be CERTIFICATE REQUEST | "
               "spec.usages: Required value | spec.signerName: Required value"},
    };
    REGISTRY r = fixture_registry();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        struct hook_run run = {.kind = KIND, .object = fixture_json(a, cases[i].object)};
        assert_string_equal(hook_run(a, r, &run).p, cases[i].causes);
    }
}

TEST(more_usages_than_there_are_cost_little)
{
    REGISTRY r = fixture_registry();
    ARENA_AUTO a = arena_new();
    struct hook_run run = {.kind = KIND, .object = fixture_json(a, SPEC("a.b/x", "'any'"))};
    struct json *usages = json_at(run.object, "spec", "usages", NULL);
    for (int i = 0; i < 10000; i++)
        (void) json_push(a, usages, json_string(STR("nope")));
    assert_string_equal(hook_run(a, r, &run).p,
                        "spec.usages: Too many: 10001: must have at most 64 items");
}

TEST(the_server_says_who_asks)
{
    REGISTRY r = fixture_registry();
    ARENA_AUTO a = arena_new();
    struct hook_run run = {
        .kind = KIND,
        .object = fixture_json(
            a, "{'spec':{'request':'" REQUEST "','signerName':'a.b/x','usages':['any'],"
               "'username':'root','uid':'0','groups':['system:masters'],'extra':{'a':['b']}},"
               "'status':{'conditions':[{'type':'Approved','status':'True'}]}}")};
    assert_string_equal(hook_run(a, r, &run).p, "");
    const struct json *spec = json_get(run.object, STR("spec"));
    assert_string_equal(json_text(a, json_get(spec, STR("groups"))).p, "[\"dev\",\"ops\"]");
    assert_true(str_is(json_get_str(spec, STR("username")), "jane"));
    assert_null(json_get(spec, STR("uid")));
    assert_null(json_get(spec, STR("extra")));
    assert_int_equal(json_count(json_get(run.object, STR("status"))), 0);
}

/* ---- decisions ---------------------------------------------------------------------------- */

#define APPROVED "{'type':'Approved','status':'True'}"
#define DENIED "{'type':'Denied','status':'True'}"
#define FAILED "{'type':'Failed','status':'True'}"
#define WITH(conditions) "{'status':{'conditions':[" conditions "]}}"
#define REMOVED(type) \
    "status.conditions: Forbidden: updates may not remove a condition of type \"" type "\""
#define ADDED(type) \
    "status.conditions: Forbidden: updates may not add a condition of type \"" type "\""

TEST(decisions_are_judged)
{
    static const struct {
        const char *subresource, *old, *object, *causes;
    } cases[] = {
        {"approval", WITH(""), WITH(APPROVED), ""},
        {"approval", WITH(""), WITH(DENIED), ""},
        {"approval", WITH(APPROVED), WITH(DENIED), REMOVED("Approved")},
        {"approval", WITH(DENIED "," FAILED), WITH(""), REMOVED("Denied") " | " REMOVED("Failed")},
        {"approval", WITH(""), WITH(APPROVED "," DENIED),
         "status.conditions: Invalid value: \"Denied\": Approved and Denied conditions are "
         "mutually exclusive"},
        {"approval", WITH(""), WITH(APPROVED "," APPROVED),
         "status.conditions[1].type: Duplicate value: \"Approved\""},
        {"approval", WITH(""), WITH("{'type':'Denied','status':'Unknown'}"),
         "status.conditions[0].status: Unsupported value: \"Unknown\": supported values: \"True\""},
        {"approval", WITH(""), WITH("{'type':'Other','status':'Maybe'}"),
         "status.conditions[0].status: Unsupported value: \"Maybe\": supported values: \"False\", "
         "\"True\", \"Unknown\""},
        {"approval", WITH(""), WITH("{}"),
         "status.conditions[0].type: Required value | status.conditions[0].status: Required value"},
        {"status", WITH(""), WITH(APPROVED), ADDED("Approved")},
        {"status", WITH(APPROVED), WITH(APPROVED "," FAILED), ""},
        {"status", WITH(APPROVED), WITH(""), REMOVED("Approved")},
        {"status", WITH(""), "{'status':{'certificate':'eA=='}}",
         "status.certificate: Invalid value: \"<certificate data>\": must contain at least one "
         "CERTIFICATE PEM block"},
        {"status", "{'status':{'certificate':'eA=='}}", "{}",
         "status.certificate: Forbidden: updates may not modify existing certificate content"},
        {"status", "{'status':{'certificate':'eA=='}}", "{'status':{'certificate':'eA=='}}", ""},
    };
    REGISTRY r = fixture_registry();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        struct hook_run run = {.kind = KIND,
                               .subresource = cases[i].subresource,
                               .old = fixture_json(a, cases[i].old),
                               .object = fixture_json(a, cases[i].object)};
        assert_string_equal(hook_run(a, r, &run).p, cases[i].causes);
    }
}

static struct json *written(struct arena *a, const struct registry *r, const char *subresource,
                            const char *old, const char *object)
{
    struct hook_run run = {.kind = KIND,
                           .subresource = subresource,
                           .old = fixture_json(a, old),
                           .object = fixture_json(a, object)};
    assert_string_equal(hook_run(a, r, &run).p, "");
    return run.object;
}

TEST(an_approval_brings_no_certificate_and_takes_none)
{
    REGISTRY r = fixture_registry();
    ARENA_AUTO a = arena_new();
    struct json *o = written(a, r, "approval", "{'spec':{'signerName':'a.b/x'}}",
                             "{'spec':{'signerName':'c.d/y'},'status':{'certificate':'eA==',"
                             "'conditions':[" APPROVED "]}}");
    assert_null(json_at(o, "status", "certificate", NULL));
    assert_true(str_is(json_str(json_at(o, "spec", "signerName", NULL)), "a.b/x"));
    o = written(a, r, "approval", "{'status':{'certificate':'eA=='}}", WITH(APPROVED));
    assert_true(str_is(json_str(json_at(o, "status", "certificate", NULL)), "eA=="));
}

TEST(status_leaves_decisions_as_they_are)
{
    REGISTRY r = fixture_registry();
    ARENA_AUTO a = arena_new();
    struct json *o =
        written(a, r, "status", WITH("{'type':'Approved','status':'True','message':'a'}"),
                WITH("{'type':'Approved','status':'True','message':'b'}"));
    const struct json *c = &json_at(o, "status", "conditions", NULL)->items[0];
    assert_true(str_is(json_get_str(c, STR("message")), "a"));
}

TEST(times_are_filled_in)
{
#define OTHER(more) WITH("{'type':'Other','status':'True'" more "}")
#define THEN "1970-01-01T00:00:00Z"
#define NOW "1970-01-01T00:00:01Z"
    static const struct {
        const char *old, *object, *updated, *changed;
    } cases[] = {
        {WITH(""), OTHER(""), NOW, NOW},
        {OTHER(",'lastTransitionTime':'" THEN "'"), OTHER(""), NOW, THEN},
        {WITH("{'type':'Other','status':'False','lastTransitionTime':'" THEN "'}"), OTHER(""), NOW,
         NOW},
        {WITH(""), OTHER(",'lastUpdateTime':'" THEN "','lastTransitionTime':'" THEN "'"), THEN,
         THEN},
    };
    REGISTRY r = fixture_registry();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        struct json *o = written(a, r, "status", cases[i].old, cases[i].object);
        const struct json *c = &json_at(o, "status", "conditions", NULL)->items[0];
        assert_string_equal(json_get_str(c, STR("lastUpdateTime")).p, cases[i].updated);
        assert_string_equal(json_get_str(c, STR("lastTransitionTime")).p, cases[i].changed);
    }
}

TEST(a_write_to_the_object_changes_no_request)
{
    REGISTRY r = fixture_registry();
    ARENA_AUTO a = arena_new();
    struct json *o = written(a, r, NULL, "{'spec':{'signerName':'a.b/x','username':'jane'}}",
                             "{'spec':{'signerName':'c.d/y','username':'evil'}}");
    assert_string_equal(json_text(a, json_get(o, STR("spec"))).p,
                        "{\"signerName\":\"a.b/x\",\"username\":\"jane\"}");
}
