/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>

#include "device/onboarding_index.h"
#include "test.h"
#include "world.h"

static struct str name_of(struct world *w, const struct identity *i)
{
    return arena_printf(w->arena, "eve-%.*s", STR_ARG(pki_hex(w->arena, i->hash, 4)));
}

static struct json *device_of(struct world *w, const char *namespace, const struct identity *i)
{
    return world_get(w, "devices", namespace, name_of(w, i).p);
}

static struct str text_at(const struct json *object, const char *in, const char *key)
{
    return json_str(json_at(object, in, key, NULL));
}

static struct str annotation(const struct json *object, const char *key)
{
    return json_get_str(json_at(object, "metadata", "annotations", NULL), str_of(key));
}

struct fixture {
    struct world w;
    struct identity device, onboard;
};

static void open_fixture(struct fixture *f)
{
    world_open(&f->w);
    identity_init(&f->w, &f->device, "EVE", NULL, 3650);
    identity_init(&f->w, &f->onboard, "onboarding", NULL, 3650);
}

static void close_fixture(struct fixture *f)
{
    identity_done(&f->device);
    identity_done(&f->onboard);
    world_close(&f->w);
}
#define FIXTURE(f) \
    CLEANUP(close_fixture) struct fixture f; \
    open_fixture(&f)

static int come(struct fixture *f, const char *serial)
{
    return world_register(&f->w, &(struct registering){&f->device, &f->onboard, serial, ""});
}

/* ---- the seven cases ------------------------------------------------------------------------- */

TEST(case_1_the_certificate_of_a_device)
{
    FIXTURE(f);
    world_create(&f.w, "devices", "site", "known", "'spec':{'certificate':'%s'}", f.device.pem.p);
    assert_int_equal(come(&f, "S1"), 200);
    assert_non_null(world_event(&f.w, "site", "known", "RegisteredAgain"));
    assert_int_equal(world_count(&f.w, "devices", NULL), 1);
}

TEST(case_2_onboarding_certificate_and_serial_of_a_device)
{
    FIXTURE(f);
    world_create(&f.w, "devices", "site", "planned", "'spec':{'onboard':'%s','serial':'S1'}",
                 f.onboard.pem.p);
    assert_int_equal(come(&f, "S2"), 403);
    assert_int_equal(come(&f, "S1"), 201);
    const struct json *d = world_get(&f.w, "devices", "site", "planned");
    assert_str(text_at(d, "spec", "certificate"), f.device.pem.p);
    assert_non_null(world_event(&f.w, "site", "planned", "Registered"));
    CLEANUP(device_unrefp) struct device *known = world_device(&f.w, &f.device);
    assert_non_null(known);
    assert_str(known->name, "planned");
    assert_int_equal(come(&f, "S1"), 200);
}

TEST(case_2_either_may_be_absent)
{
    FIXTURE(f);
    IDENTITY_AUTO second;
    identity_init(&f.w, &second, "EVE", NULL, 1);
    world_create(&f.w, "devices", "site", "by-onboard", "'spec':{'onboard':'%s'}", f.onboard.pem.p);
    world_create(&f.w, "devices", "site", "by-serial", "'spec':{'serial':'S2'}");
    /* The serial number of the installation does as well. */
    IDENTITY_AUTO other;
    identity_init(&f.w, &other, "other", NULL, 1);
    assert_int_equal(world_register(&f.w, &(struct registering){&second, &other, "X", "S2"}), 201);
    assert_str(text_at(world_get(&f.w, "devices", "site", "by-serial"), "spec", "certificate"),
               second.pem.p);
    assert_int_equal(come(&f, "whatever"), 201);
    assert_str(text_at(world_get(&f.w, "devices", "site", "by-onboard"), "spec", "certificate"),
               f.device.pem.p);
}

TEST(case_3_an_authority_of_devices)
{
    FIXTURE(f);
    IDENTITY_AUTO ca;
    IDENTITY_AUTO signed_device;
    identity_init(&f.w, &ca, "maker", NULL, 3650);
    identity_init(&f.w, &signed_device, "EVE", &ca, 3650);
    world_create(&f.w, "devicecertificateauthorities", "factory", "maker",
                 "'spec':{'certificate':'%s'}", ca.pem.p);
    assert_int_equal(come(&f, "S1"), 403);
    assert_int_equal(
        world_register(&f.w, &(struct registering){&signed_device, &f.onboard, "S2", ""}), 201);
    const struct json *d = device_of(&f.w, "factory", &signed_device);
    assert_non_null(d);
    assert_str(annotation(d, "eve.lfedge.org/onboarded-by"), "DeviceCertificateAuthority/maker");
    assert_non_null(world_event(&f.w, "factory", "maker", "DeviceRegistered"));
}

TEST(case_4_an_onboarding_certificate)
{
    FIXTURE(f);
    world_create(&f.w, "onboardcertificates", "factory", "batch",
                 "'spec':{'certificate':'%s','serials':['S1','S3']}", f.onboard.pem.p);
    assert_int_equal(come(&f, "S2"), 403);
    assert_int_equal(come(&f, "S1"), 201);
    const struct json *d = device_of(&f.w, "factory", &f.device);
    assert_non_null(d);
    assert_str(annotation(d, "eve.lfedge.org/activate"), "true");
    assert_str(annotation(d, "eve.lfedge.org/onboarded-by"), "OnboardCertificate/batch");
    assert_str(text_at(d, "spec", "serial"), "S1");
    assert_str(text_at(d, "spec", "onboard"), f.onboard.pem.p);
    const struct json *e = world_event(&f.w, "factory", "batch", "DeviceRegistered");
    assert_non_null(e);
    assert_true(str_find_str(json_get_str(e, STR("message")), name_of(&f.w, &f.device)) >= 0);
    CLEANUP(device_unrefp) struct device *known = world_device(&f.w, &f.device);
    assert_non_null(known);
    assert_true(atomic_load(&known->is_active));
    assert_int_equal(come(&f, "S1"), 200);
    /* The request it left when it was refused has gone. */
    assert_int_equal(world_count(&f.w, "enrollmentrequests", NULL), 0);
}

TEST(case_4_any_serial_and_the_soft_one)
{
    static const struct {
        const char *serials, *serial, *soft, *kept;
        int status;
    } cases[] = {
        {"'*'", "S1", "soft", "S1", 201},      {"", "S1", "soft", "S1", 201},
        {"", "", "soft", "soft", 201},         {"", "", "", NULL, 201},
        {"'soft'", "S1", "soft", "soft", 201}, {"'S2'", "S1", "soft", NULL, 403},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        FIXTURE(f);
        BUF_AUTO rest = {0};
        buf_printf(&rest, "'spec':{'certificate':'%%s','serials':[%s]}", cases[i].serials);
        world_create(&f.w, "onboardcertificates", "factory", "batch", rest.p, f.onboard.pem.p);
        const struct registering r = {&f.device, &f.onboard, cases[i].serial, cases[i].soft};
        assert_int_equal(world_register(&f.w, &r), cases[i].status);
        if (cases[i].status != 201)
            continue;
        const struct str serial = text_at(device_of(&f.w, "factory", &f.device), "spec", "serial");
        if (cases[i].kept)
            assert_str(serial, cases[i].kept);
        else
            assert_null(serial.p);
        assert_int_equal(world_register(&f.w, &r), 200);
    }
}

TEST(case_5_an_authority_of_onboarding_certificates)
{
    FIXTURE(f);
    IDENTITY_AUTO ca;
    IDENTITY_AUTO expired_ca;
    IDENTITY_AUTO onboard;
    IDENTITY_AUTO late;
    identity_init(&f.w, &ca, "integrator", NULL, 3650);
    identity_init(&f.w, &expired_ca, "old integrator", NULL, -1);
    identity_init(&f.w, &onboard, "batch 7", &ca, 3650);
    identity_init(&f.w, &late, "batch 8", &expired_ca, 3650);
    world_create(&f.w, "onboardcertificateauthorities", "factory", "integrator",
                 "'spec':{'certificate':'%s'}", ca.pem.p);
    world_create(&f.w, "onboardcertificateauthorities", "factory", "old",
                 "'spec':{'certificate':'%s'}", expired_ca.pem.p);
    assert_int_equal(world_register(&f.w, &(struct registering){&f.device, &late, "S1", ""}), 403);
    assert_int_equal(world_register(&f.w, &(struct registering){&f.device, &onboard, "S1", ""}),
                     201);
    assert_str(annotation(device_of(&f.w, "factory", &f.device), "eve.lfedge.org/onboarded-by"),
               "OnboardCertificateAuthority/integrator");
    assert_non_null(world_event(&f.w, "factory", "integrator", "DeviceRegistered"));
}

TEST(case_6_open_registration)
{
    FIXTURE(f);
    world_create(&f.w, "configmaps", "eve-system", "global-options",
                 "'data':{'registration':'open','registration.namespace':'site'}");
    assert_int_equal(come(&f, "S1"), 201);
    assert_non_null(device_of(&f.w, "site", &f.device));
    assert_non_null(world_event(&f.w, "eve-system", "global-options", "DeviceRegistered"));
}

TEST(case_7_a_request_for_enrolment)
{
    FIXTURE(f);
    assert_int_equal(come(&f, "S1"), 403);
    const struct str name = pki_hex(f.w.arena, f.device.hash, SHA256_BYTES);
    const struct json *r = world_get(&f.w, "enrollmentrequests", "eve-system", name.p);
    assert_non_null(r);
    assert_str(text_at(r, "spec", "serial"), "S1");
    assert_str(text_at(r, "spec", "certificate"), f.device.pem.p);
    assert_str(text_at(r, "spec", "onboard"), f.onboard.pem.p);
    assert_str(text_at(r, "spec", "sourceAddress"), "192.0.2.7");
    assert_non_null(world_event(&f.w, "eve-system", name.p, "RegistrationRefused"));
    assert_int_equal(come(&f, "S1"), 403);
    assert_int_equal(world_count(&f.w, "enrollmentrequests", NULL), 1);
    assert_int_equal(world_count(&f.w, "devices", NULL), 0);
}

TEST(requests_for_enrolment_are_bounded)
{
    FIXTURE(f);
    struct onboarding_index x;
    onboarding_index_init(&x);
    assert_int_equal(come(&f, "S1"), 403);
    const struct str name = pki_hex(f.w.arena, f.device.hash, SHA256_BYTES);
    (void) onboarding_index_take(&x, INDEX_ENROLLMENT,
                                 world_get(&f.w, "enrollmentrequests", "eve-system", name.p));
    /* One is there and one on its way. */
    assert_true(onboarding_index_reserve(&x, 2));
    assert_false(onboarding_index_reserve(&x, 2));
    onboarding_index_release(&x);
    assert_true(onboarding_index_reserve(&x, 2));
    onboarding_index_forget(&x, INDEX_ENROLLMENT, STR("eve-system"), name);
    assert_true(onboarding_index_reserve(&x, 2));
    assert_false(onboarding_index_reserve(&x, 2));
    onboarding_index_done(&x);
}

TEST(an_approved_request_makes_the_device)
{
    FIXTURE(f);
    assert_int_equal(come(&f, "S1"), 403);
    const struct str name = pki_hex(f.w.arena, f.device.hash, SHA256_BYTES);
    world_patch(
        &f.w, "enrollmentrequests", "eve-system", name.p, "status",
        "{'status':{'namespace':'site','conditions':[{'type':'Approved','status':'True'}]}}");
    assert_non_null(device_of(&f.w, "site", &f.device));
    assert_str(
        text_at(world_get(&f.w, "enrollmentrequests", "eve-system", name.p), "status", "device"),
        name_of(&f.w, &f.device).p);
    assert_int_equal(come(&f, "S1"), 200);
}

static bool has_failed(struct world *w, struct str request)
{
    const struct json *r = world_get(w, "enrollmentrequests", "eve-system", request.p);
    JSON_FOR_EACH_ITEM (json_at(r, "status", "conditions", NULL), c)
        if (str_is(json_get_str(c, STR("type")), "Failed"))
            return true;
    return false;
}

TEST(a_request_approved_for_a_missing_namespace_fails_and_says_so)
{
    FIXTURE(f);
    assert_int_equal(come(&f, "S1"), 403);
    const struct str name = pki_hex(f.w.arena, f.device.hash, SHA256_BYTES);
    world_patch(
        &f.w, "enrollmentrequests", "eve-system", name.p, "status",
        "{'status':{'namespace':'nowhere','conditions':[{'type':'Approved','status':'True'}]}}");
    assert_true(has_failed(&f.w, name));
    assert_int_equal(world_count(&f.w, "devices", NULL), 0);
    /* What was mended is seen when the device asks again. */
    assert_int_equal(come(&f, "S1"), 503);
    world_create(&f.w, "namespaces", NULL, "nowhere", "'spec':{}");
    assert_int_equal(come(&f, "S1"), 201);
    assert_non_null(device_of(&f.w, "nowhere", &f.device));
    assert_false(has_failed(&f.w, name));
}

TEST(an_approval_lets_in_once)
{
    FIXTURE(f);
    assert_int_equal(come(&f, "S1"), 403);
    const struct str name = pki_hex(f.w.arena, f.device.hash, SHA256_BYTES);
    world_patch(&f.w, "enrollmentrequests", "eve-system", name.p, "status",
                "{'status':{'conditions':[{'type':'Approved','status':'True'}]}}");
    assert_int_equal(come(&f, "S1"), 200);
    world_delete(&f.w, "devices", "default", name_of(&f.w, &f.device).p);
    assert_int_equal(come(&f, "S1"), 403);
    assert_int_equal(world_count(&f.w, "devices", NULL), 0);
    world_delete(&f.w, "enrollmentrequests", "eve-system", name.p);
    assert_int_equal(come(&f, "S1"), 403);
    assert_int_equal(world_count(&f.w, "enrollmentrequests", NULL), 1);
}

TEST(a_denied_request_stays_so)
{
    FIXTURE(f);
    assert_int_equal(come(&f, "S1"), 403);
    const struct str name = pki_hex(f.w.arena, f.device.hash, SHA256_BYTES);
    world_patch(&f.w, "enrollmentrequests", "eve-system", name.p, "status",
                "{'status':{'conditions':[{'type':'Denied','status':'True'}]}}");
    assert_int_equal(come(&f, "S1"), 403);
    assert_true(str_find_str(world_last_reason(), STR("denied")) >= 0);
    assert_int_equal(world_count(&f.w, "devices", NULL), 0);
}

TEST(the_first_case_that_fits_wins)
{
    FIXTURE(f);
    IDENTITY_AUTO ca;
    IDENTITY_AUTO device;
    identity_init(&f.w, &ca, "maker", NULL, 3650);
    identity_init(&f.w, &device, "EVE", &ca, 3650);
    world_create(&f.w, "configmaps", "eve-system", "global-options",
                 "'data':{'registration':'open'}");
    world_create(&f.w, "onboardcertificates", "factory", "batch", "'spec':{'certificate':'%s'}",
                 f.onboard.pem.p);
    world_create(&f.w, "devicecertificateauthorities", "site", "maker",
                 "'spec':{'certificate':'%s'}", ca.pem.p);
    assert_int_equal(world_register(&f.w, &(struct registering){&device, &f.onboard, "S1", ""}),
                     201);
    assert_non_null(device_of(&f.w, "site", &device));
    assert_int_equal(come(&f, "S2"), 201);
    assert_non_null(device_of(&f.w, "factory", &f.device));
    assert_int_equal(world_count(&f.w, "devices", NULL), 2);
}

/* ---- identity -------------------------------------------------------------------------------- */

TEST(another_certificate_for_the_same_identity_conflicts)
{
    FIXTURE(f);
    IDENTITY_AUTO other;
    identity_init(&f.w, &other, "EVE", NULL, 1);
    world_create(&f.w, "onboardcertificates", "factory", "batch", "'spec':{'certificate':'%s'}",
                 f.onboard.pem.p);
    assert_int_equal(come(&f, "S1"), 201);
    assert_int_equal(world_register(&f.w, &(struct registering){&other, &f.onboard, "S1", ""}),
                     409);
    assert_non_null(
        world_event(&f.w, "factory", name_of(&f.w, &f.device).p, "RegistrationConflict"));
    assert_int_equal(world_register(&f.w, &(struct registering){&other, &f.onboard, "S2", ""}),
                     201);
    assert_int_equal(world_count(&f.w, "devices", NULL), 2);
}

/* A device without serial number must not stand in the way of all others. */
TEST(a_device_without_serial_number_is_not_all_devices)
{
    FIXTURE(f);
    IDENTITY_AUTO other;
    identity_init(&f.w, &other, "EVE", NULL, 1);
    world_create(&f.w, "onboardcertificates", "factory", "batch", "'spec':{'certificate':'%s'}",
                 f.onboard.pem.p);
    assert_int_equal(come(&f, ""), 201);
    assert_int_equal(world_register(&f.w, &(struct registering){&other, &f.onboard, "S2", ""}),
                     201);
    world_settle(&f.w);
    assert_int_equal(come(&f, ""), 200);
}

TEST(a_deleted_device_registers_anew)
{
    FIXTURE(f);
    world_create(&f.w, "onboardcertificates", "factory", "batch", "'spec':{'certificate':'%s'}",
                 f.onboard.pem.p);
    assert_int_equal(come(&f, "S1"), 201);
    const struct str name = name_of(&f.w, &f.device);
    const struct str uuid = text_at(device_of(&f.w, "factory", &f.device), "status", "uuid");
    assert_int_equal(uuid.n, 36);
    world_delete(&f.w, "devices", "factory", name.p);
    assert_null(world_device(&f.w, &f.device));
    assert_int_equal(come(&f, "S1"), 201);
    const struct str again = text_at(device_of(&f.w, "factory", &f.device), "status", "uuid");
    assert_false(str_eq(uuid, again));
    world_delete(&f.w, "devices", "factory", name.p);
    world_delete(&f.w, "onboardcertificates", "factory", "batch");
    assert_int_equal(come(&f, "S1"), 403);
}

TEST(a_device_that_is_not_active_is_refused)
{
    FIXTURE(f);
    world_create(&f.w, "onboardcertificates", "factory", "batch", "'spec':{'certificate':'%s'}",
                 f.onboard.pem.p);
    world_create(&f.w, "devices", "site", "off",
                 "'annotations':{'eve.lfedge.org/activate':'false'}},'spec':{'certificate':'%s'}",
                 f.device.pem.p);
    assert_int_equal(come(&f, "S1"), 403);
    assert_non_null(world_event(&f.w, "site", "off", "RegistrationRefused"));
}

/* Another device already has the name: eight digits are few. */
TEST(a_name_that_is_taken_grows)
{
    FIXTURE(f);
    world_create(&f.w, "onboardcertificates", "factory", "batch", "'spec':{'certificate':'%s'}",
                 f.onboard.pem.p);
    world_create(&f.w, "devices", "factory", name_of(&f.w, &f.device).p, "'spec':{}");
    assert_int_equal(come(&f, "S1"), 201);
    const struct str name =
        arena_printf(f.w.arena, "eve-%.*s", STR_ARG(pki_hex(f.w.arena, f.device.hash, 8)));
    assert_non_null(world_get(&f.w, "devices", "factory", name.p));
}

/* ---- together -------------------------------------------------------------------------------- */

#define N_THREADS 8

struct runner {
    struct world *w;
    struct registering r;
    int status;
};

static void *run(void *arg)
{
    struct runner *r = arg;
    r->status = world_register(r->w, &r->r);
    return NULL;
}

static size_t run_all(struct runner runners[N_THREADS], int status)
{
    pthread_t threads[N_THREADS];
    size_t n = 0;
    for (size_t i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run, &runners[i]), 0);
    for (size_t i = 0; i < N_THREADS; i++) {
        (void) pthread_join(threads[i], NULL);
        n += runners[i].status == status;
    }
    return n;
}

TEST(registrations_of_one_device_at_once_make_one_device)
{
    FIXTURE(f);
    struct runner runners[N_THREADS];
    world_create(&f.w, "onboardcertificates", "factory", "batch", "'spec':{'certificate':'%s'}",
                 f.onboard.pem.p);
    for (size_t i = 0; i < N_THREADS; i++)
        runners[i] = (struct runner){&f.w, {&f.device, &f.onboard, "S1", ""}, 0};
    assert_int_equal(run_all(runners, 201), 1);
    for (size_t i = 0; i < N_THREADS; i++)
        assert_true(runners[i].status == 201 || runners[i].status == 200);
    assert_int_equal(world_count(&f.w, "devices", NULL), 1);
}

TEST(of_several_devices_with_one_identity_one_is_let_in)
{
    FIXTURE(f);
    struct runner runners[N_THREADS];
    struct identity devices[N_THREADS];
    world_create(&f.w, "onboardcertificates", "factory", "batch", "'spec':{'certificate':'%s'}",
                 f.onboard.pem.p);
    for (size_t i = 0; i < N_THREADS; i++) {
        identity_init(&f.w, &devices[i], "EVE", NULL, 1);
        runners[i] = (struct runner){&f.w, {&devices[i], &f.onboard, "S1", ""}, 0};
    }
    assert_int_equal(run_all(runners, 201), 1);
    for (size_t i = 0; i < N_THREADS; i++) {
        assert_true(runners[i].status == 201 || runners[i].status == 409);
        identity_done(&devices[i]);
    }
    assert_int_equal(world_count(&f.w, "devices", NULL), 1);
}

TEST(of_several_devices_for_one_planned_device_one_is_let_in)
{
    FIXTURE(f);
    struct runner runners[N_THREADS];
    struct identity devices[N_THREADS], onboards[N_THREADS];
    world_create(&f.w, "devices", "site", "planned", "'spec':{'serial':'S1'}");
    for (size_t i = 0; i < N_THREADS; i++) {
        identity_init(&f.w, &devices[i], "EVE", NULL, 1);
        identity_init(&f.w, &onboards[i], "onboarding", NULL, 1);
        runners[i] = (struct runner){&f.w, {&devices[i], &onboards[i], "S1", ""}, 0};
    }
    assert_int_equal(run_all(runners, 201), 1);
    for (size_t i = 0; i < N_THREADS; i++) {
        assert_true(runners[i].status == 201 || runners[i].status == 409);
        identity_done(&devices[i]);
        identity_done(&onboards[i]);
    }
    assert_int_equal(world_count(&f.w, "devices", NULL), 1);
}

TEST(a_store_that_fails_puts_off)
{
    FIXTURE(f);
    world_create(&f.w, "onboardcertificates", "factory", "batch", "'spec':{'certificate':'%s'}",
                 f.onboard.pem.p);
    f.w.faulty.failing = "devices";
    assert_int_equal(come(&f, "S1"), 503);
    assert_null(world_device(&f.w, &f.device));
    f.w.faulty.failing = NULL;
    assert_int_equal(come(&f, "S1"), 201);
}

/* Whoever has just written what lets a device in is not told that nothing does. */
TEST(what_was_written_a_moment_ago_counts)
{
    FIXTURE(f);
    for (int i = 0; i < 20; i++) {
        IDENTITY_AUTO device;
        IDENTITY_AUTO onboard;
        identity_init(&f.w, &device, "EVE", NULL, 1);
        identity_init(&f.w, &onboard, "onboarding", NULL, 1);
        const struct registering r = {&device, &onboard, "S1", ""};
        char name[16];
        (void) snprintf(name, sizeof(name), "batch-%d", i);
        world_write(&f.w, "onboardcertificates", "factory", name, "'spec':{'certificate':'%s'}",
                    onboard.pem.p);
        assert_int_equal(world_register(&f.w, &r), 201);
        world_remove(&f.w, "onboardcertificates", "factory", name);
        world_remove(&f.w, "devices", "factory", name_of(&f.w, &device).p);
        assert_int_equal(world_register(&f.w, &r), 403);
    }
}

TEST(nobody_is_judged_before_all_objects_are_known)
{
    FIXTURE(f);
    struct onboarding *o = f.w.api.onboarding;
    f.w.api.onboarding = onboarding_new(&(struct onboarding_options){.client = f.w.api.client,
                                                                     .clock = f.w.api.clock,
                                                                     .roster = f.w.api.roster,
                                                                     .workers = f.w.api.workers});
    assert_int_equal(come(&f, "S1"), 503);
    onboarding_free(f.w.api.onboarding);
    f.w.api.onboarding = o;
    assert_int_equal(world_count(&f.w, "enrollmentrequests", NULL), 0);
}
