/* SPDX-License-Identifier: Apache-2.0 */
#include "../api/kinds_fixture.h"
#include "hook_fixture.h"
#include "pki/pki.h"
#include "test.h"

#define REGISTRY CLEANUP(registry_unrefp) struct registry *
#define DEVICES "eve.lfedge.org/v1beta1/devices"
#define ENROLLMENTS "eve.lfedge.org/v1beta1/enrollmentrequests"
#define NOT_A_CERTIFICATE \
    "spec.certificate: Invalid value: \"bm90aGluZw==\": must be a certificate: base64 of " \
    "something that is no certificate"

static struct str certificate(struct arena *a, const char *name)
{
    CLEANUP(pki_key_freep) struct pki_key *key = pki_key_new();
    CLEANUP(pki_cert_freep)
    struct pki_cert *c = pki_cert_new(
        &(struct pki_cert_options){.common_name = str_of(name), .valid_days = 1}, key, NULL, NULL);
    return pki_cert_pem(a, c);
}

static struct json *with_certificate(struct arena *a, const char *text, struct str pem)
{
    struct json *object = fixture_json(a, text);
    (void) json_set(a, json_ensure_object(a, object, STR("spec")), STR("certificate"),
                    json_string(pem));
    return object;
}

TEST(new_objects_are_judged)
{
    static const struct {
        const char *kind, *object, *causes;
    } cases[] = {
        {DEVICES, "{}", ""},
        {DEVICES, "{'spec':{'serial':'1','eve-os-version':'14.5.0'}}", ""},
        {DEVICES, "{'spec':{'certificate':'bm90aGluZw=='}}", NOT_A_CERTIFICATE},
        {DEVICES, "{'spec':{'onboard':'?'}}",
         "spec.onboard: Invalid value: \"?\": must be a certificate: neither PEM nor base64"},
        {DEVICES, "{'metadata':{'annotations':{'eve.lfedge.org/activate':'true'}}}", ""},
        {DEVICES, "{'metadata':{'annotations':{'eve.lfedge.org/activate':''}}}",
         "metadata.annotations[eve.lfedge.org/activate]: Unsupported value: \"\": supported "
         "values: \"true\", \"false\""},
        {DEVICES, "{'metadata':{'annotations':{'eve.lfedge.org/config.app.allow.vnc':'si'}}}",
         "metadata.annotations[eve.lfedge.org/config.app.allow.vnc]: Invalid value: \"si\": must "
         "be true or false"},
        {DEVICES, "{'metadata':{'annotations':{'example.org/config.app.allow.vnc':'si'}}}", ""},
        {DEVICES, "{'metadata':{'annotations':{'eve.lfedge.org/location':'texas/usa'}}}", ""},
        {"eve.lfedge.org/v1beta1/onboardcertificates", "{'spec':{'certificate':'bm90aGluZw=='}}",
         NOT_A_CERTIFICATE},
        {"eve.lfedge.org/v1beta1/onboardcertificateauthorities",
         "{'spec':{'certificate':'bm90aGluZw=='}}", NOT_A_CERTIFICATE},
        {"eve.lfedge.org/v1beta1/devicecertificateauthorities",
         "{'spec':{'certificate':'bm90aGluZw=='}}", NOT_A_CERTIFICATE},
        {ENROLLMENTS, "{'spec':{'certificate':'bm90aGluZw=='}}", NOT_A_CERTIFICATE},
    };
    REGISTRY kinds = fixture_registry();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        struct hook_run run = {
            .kind = cases[i].kind, .subresource = "", .object = fixture_json(a, cases[i].object)};
        assert_str(hook_run(a, kinds, &run), cases[i].causes);
    }
}

/* What was stored before a rule came is not held against those who change something else. */
TEST(only_what_changes_is_judged)
{
    REGISTRY kinds = fixture_registry();
    ARENA_AUTO a = arena_new();
    const char *const old = "{'metadata':{'annotations':{'eve.lfedge.org/activate':'maybe'}},"
                            "'spec':{'certificate':'bm90aGluZw=='}}";
    struct hook_run run = {.kind = DEVICES,
                           .subresource = "",
                           .old = fixture_json(a, old),
                           .object = fixture_json(a, old)};
    (void) json_set(a, json_get(run.object, STR("spec")), STR("serial"), json_string(STR("2")));
    assert_str(hook_run(a, kinds, &run), "");
}

TEST(a_device_has_its_uuid_from_the_start_and_for_good)
{
    REGISTRY kinds = fixture_registry();
    ARENA_AUTO a = arena_new();
    struct hook_run made = {
        .kind = DEVICES, .subresource = "", .object = fixture_json(a, "{'spec':{}}")};
    assert_str(hook_run(a, kinds, &made), "");
    const struct str uuid = json_str(json_at(made.object, "status", "uuid", NULL));
    assert_int_equal(uuid.n, 36);
    const struct json *ready = json_at(made.object, "status", "conditions", NULL);
    assert_int_equal(json_count(ready), 1);
    assert_str(json_get_str(&ready->items[0], STR("status")), "Unknown");

    struct hook_run again = {
        .kind = DEVICES, .subresource = "", .object = fixture_json(a, "{'spec':{}}")};
    assert_str(hook_run(a, kinds, &again), "");
    assert_false(str_eq(uuid, json_str(json_at(again.object, "status", "uuid", NULL))));

    struct hook_run dropped = {
        .kind = DEVICES,
        .subresource = "status",
        .old = made.object,
        .object = fixture_json(a, "{'spec':{},'status':{'apps':{'running':2,'wanted':3}}}")};
    assert_str(hook_run(a, kinds, &dropped), "");
    assert_true(str_eq(uuid, json_str(json_at(dropped.object, "status", "uuid", NULL))));
    assert_str(json_str(json_at(dropped.object, "status", "apps", "summary", NULL)), "2/3");

    struct hook_run changed = {
        .kind = DEVICES,
        .subresource = "status",
        .old = made.object,
        .object = fixture_json(a, "{'status':{'uuid':'ec232b65-602a-f2a9-287b-5d95721116e6'}}")};
    assert_str(hook_run(a, kinds, &changed),
               "status.uuid: Invalid value: \"ec232b65-602a-f2a9-287b-5d95721116e6\": field is "
               "immutable");
}

/* What was stored before there were uuids has one with its next write, and nobody chooses it. */
TEST(what_had_no_uuid_is_given_one)
{
    static const char *const plurals[] = {"applications", "devicenetworks", "devices",
                                          "images",       "networkconfigs", "volumes"};
    static const char *const subresources[] = {"", "status"};
    const char *const given = "{'status':{'uuid':'ec232b65-602a-f2a9-287b-5d95721116e6'}}";
    REGISTRY kinds = fixture_registry();
    for (size_t i = 0; i < N_ELEMENTS(plurals) * 2; i++) {
        ARENA_AUTO a = arena_new();
        struct hook_run run = {
            .kind = arena_printf(a, "eve.lfedge.org/v1beta1/%s", plurals[i / 2]).p,
            .subresource = subresources[i % 2],
            .old = fixture_json(a, "{'metadata':{'name':'x'},'spec':{}}"),
            .object = fixture_json(a, i % 2 ? given : "{'metadata':{'name':'x'},'spec':{}}")};
        (void) hook_run(a, kinds, &run);
        const struct str uuid = json_str(json_at(run.object, "status", "uuid", NULL));
        assert_int_equal(uuid.n, 36);
        assert_true(str_find_str(STR("ec232b65-602a-f2a9-287b-5d95721116e6"), uuid) < 0);
        assert_null(json_at(run.object, "status", "conditions", NULL));
    }
}

TEST(what_was_asked_and_approved_stays)
{
    REGISTRY kinds = fixture_registry();
    ARENA_AUTO a = arena_new();
    const struct str pem = certificate(a, "device");
    const char *const approved = "{'status':{'namespace':'n','conditions':[{'type':'Approved',"
                                 "'status':'True'}]}}";
    struct hook_run made = {
        .kind = ENROLLMENTS, .subresource = "", .object = with_certificate(a, "{}", pem)};
    assert_str(hook_run(a, kinds, &made), "");
    assert_int_equal(json_str(json_at(made.object, "status", "fingerprint", NULL)).n, 64);

    static const struct {
        const char *old, *object, *causes;
    } cases[] = {
        {"{}", "{'status':{'namespace':'Not A Name'}}",
         "status.namespace: Invalid value: \"Not A Name\": a lowercase RFC 1123 label must consist "
         "of lower case alphanumeric characters or '-', and must start and end with an "
         "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
         "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"},
        {"{}",
         "{'status':{'conditions':[{'type':'Approved','status':'True'},{'type':'Denied','status':"
         "'True'}]}}",
         "status.conditions: Forbidden: Approved and Denied exclude each other"},
        {"{}", NULL, ""},
        {NULL, "{}",
         "status.conditions: Forbidden: an approval cannot be taken back: delete the Device | "
         "status.namespace: Forbidden: may not change once the request is approved"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        const char *old = cases[i].old ? cases[i].old : approved;
        const char *object = cases[i].object ? cases[i].object : approved;
        struct hook_run run = {.kind = ENROLLMENTS,
                               .subresource = "status",
                               .old = with_certificate(a, old, pem),
                               .object = with_certificate(a, object, pem)};
        assert_str(hook_run(a, kinds, &run), cases[i].causes);
    }
    struct hook_run other = {.kind = ENROLLMENTS,
                             .subresource = "",
                             .old = made.object,
                             .object = with_certificate(a, "{}", certificate(a, "other"))};
    assert_true(str_starts_with(hook_run(a, kinds, &other), STR("spec: Invalid value: ")));
}

TEST(options_of_devices_are_judged_in_their_config_maps)
{
    static const struct {
        const char *namespace, *name, *data, *causes;
    } cases[] = {
        {"eve-system", "global-options", "{'attestation':'on'}",
         "data[attestation]: Invalid value: \"on\": must be off, report or enforce"},
        {"eve-system", "global-options", "{'config.timer.config.interval':'60'}", ""},
        {"n", "global-options", "{'attestation':'on'}", ""},
        {"n", "eve-options", "{'telemetry.retention':'soon'}",
         "data[telemetry.retention]: Invalid value: \"soon\": must be a duration of at least a "
         "minute, such as 12h, 30d or 1d12h"},
        {"n", "other", "{'attestation':'on'}", ""},
    };
    REGISTRY kinds = fixture_registry();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        struct json *map = fixture_json(a, "{}");
        struct json *meta = json_ensure_object(a, map, STR("metadata"));
        (void) json_set(a, meta, STR("name"), json_string(str_of(cases[i].name)));
        (void) json_set(a, meta, STR("namespace"), json_string(str_of(cases[i].namespace)));
        (void) json_set(a, map, STR("data"), *fixture_json(a, cases[i].data));
        struct hook_run run = {.kind = "core/v1/configmaps",
                               .subresource = "",
                               .namespace = cases[i].namespace,
                               .object = map};
        assert_str(hook_run(a, kinds, &run), cases[i].causes);
    }
}
