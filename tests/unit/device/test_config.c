/* SPDX-License-Identifier: Apache-2.0 */
/* Polls for the configuration: what is made, how often, and what stands in the DeviceConfig. */
#include "device/config.h"

#include <errno.h>

#include "reports/reports.h"
#include "test.h"
#include "world.h"

struct fixture {
    struct world w;
    struct identity identity;
    struct device *device;
    struct kube_client *reporter;
    unsigned n_ensured;
    const char *ensured; /* the rest of the DeviceConfig that is made; NULL: nothing can be */
};

static int ensure(void *ctx, struct str namespace, struct str name, struct status *st)
{
    struct fixture *f = ctx;
    (void) namespace;
    (void) name;
    f->n_ensured++;
    if (!f->ensured)
        return status_fail(st, 500, "InternalError", "nothing to compose from");
    world_write(&f->w, "deviceconfigs", "site", "d1", f->ensured);
    return 0;
}

static void open_fixture(struct fixture *f)
{
    char *error = NULL;
    *f = (struct fixture){0};
    world_open(&f->w);
    identity_init(&f->w, &f->identity, "EVE", NULL, 3650);
    world_create(&f->w, "devices", "site", "d1", "'spec':{'certificate':'%s'}", f->identity.pem.p);
    f->device = world_device(&f->w, &f->identity);
    assert_non_null(f->device);
    f->reporter = kube_client_local(f->w.server, "seth-reports");
    const struct reports_options o = {
        .client = f->reporter, .roster = f->w.api.roster, .clock = &f->w.clock.clock};
    assert_int_equal(reports_new(&o, &f->w.api.reports, &error), 0);
}

static void close_fixture(struct fixture *f)
{
    reports_free(f->w.api.reports);
    kube_client_free(f->reporter);
    device_unref(f->device);
    identity_done(&f->identity);
    world_close(&f->w);
}
#define FIXTURE(f) \
    CLEANUP(close_fixture) struct fixture f; \
    open_fixture(&f)

/* One poll as the door does it. */
struct polled {
    int status;
    bool is_made;
    struct str hash, reason;
    const Eve__Config__EdgeDevConfig *config;
};

static struct polled poll(struct fixture *f, struct str known_hash)
{
    struct device_config *ready = NULL;
    struct polled p = {0};
    Eve__Config__ConfigRequest q = EVE__CONFIG__CONFIG_REQUEST__INIT;
    q.confighash = arena_strz(f->w.arena, known_hash);
    struct device_call c = {.api = &f->w.api,
                            .arena = f->w.arena,
                            .device = f->device,
                            .payload = pb_pack(f->w.arena, &q.base),
                            .method = STR("POST"),
                            .is_v1 = true};
    switch (device_config_poll(&c, known_hash, &ready)) {
    case CONFIG_UNCHANGED:
        p.status = 304;
        return p;
    case CONFIG_READY:
        device_config_given(&c, ready);
        bytes_unref(&ready->bytes);
        p.status = 200;
        return p;
    case CONFIG_TO_MAKE:
        break;
    }
    p.is_made = true;
    (void) device_config_answer(&c);
    p.status = c.status;
    p.reason = c.reason;
    const Eve__Config__ConfigResponse *r =
        c.status == 200 ? PB_UNPACK(f->w.arena, eve__config__config_response, c.body) : NULL;
    if (r) {
        p.hash = pb_text(r->confighash);
        p.config = r->config;
    }
    return p;
}

static struct str status_of(struct fixture *f, const char *key)
{
    const struct json *o = world_get(&f->w, "deviceconfigs", "site", "d1");
    return json_str(json_at(o, "status", key, NULL));
}

static void make_config(struct fixture *f)
{
    world_create(&f->w, "deviceconfigs", "site", "d1", "'spec':{'config':{'deviceName':'one'}}");
}

TEST(what_is_asked_for_first_has_its_version_written_first)
{
    FIXTURE(f);
    make_config(&f);
    const struct polled p = poll(&f, STR(""));
    assert_int_equal(p.status, 200);
    assert_str(pb_text(p.config->id->version), "1");
    assert_str(pb_text(p.config->device_name), "one");
    assert_int_equal(p.config->config_timestamp->seconds, WORLD_NOW_US / 1000000);
    assert_true(str_eq(status_of(&f, "hash"), p.hash));
    assert_str(status_of(&f, "version"), "1");
    /* It is exactly that of the bytes that were sent. */
    assert_int_equal(poll(&f, p.hash).status, 304);
}

TEST(the_write_of_its_version_does_not_make_it_again)
{
    FIXTURE(f);
    make_config(&f);
    const struct polled p = poll(&f, STR(""));
    world_settle(&f.w); /* the event of that write has come */
    assert_false(poll(&f, STR("")).is_made);
    assert_false(poll(&f, p.hash).is_made);
    /* Nor does anything else that is written into the status. */
    world_patch(&f.w, "deviceconfigs", "site", "d1", "status", "{'status':{'sources':[]}}");
    assert_false(poll(&f, p.hash).is_made);
    /* Another version does, and another spec. */
    world_patch(&f.w, "deviceconfigs", "site", "d1", "status", "{'status':{'version':'7'}}");
    assert_true(poll(&f, p.hash).is_made);
    world_settle(&f.w);
    assert_str(status_of(&f, "version"), "7");
    world_patch(&f.w, "deviceconfigs", "site", "d1", "",
                "{'spec':{'config':{'deviceName':'two'}}}");
    const struct polled q = poll(&f, p.hash);
    assert_true(q.is_made);
    assert_str(pb_text(q.config->id->version), "8");
}

TEST(nothing_is_told_whose_version_cannot_be_written)
{
    FIXTURE(f);
    make_config(&f);
    f.w.faulty.failing = "deviceconfigs";
    assert_int_equal(poll(&f, STR("")).status, 503);
    f.w.faulty.failing = NULL;
    assert_int_equal(poll(&f, STR("")).status, 200);
    assert_str(status_of(&f, "version"), "1");
}

TEST(who_has_no_configuration_has_it_composed)
{
    FIXTURE(f);
    assert_int_equal(poll(&f, STR("")).status, 503);
    f.w.api.ensure_config = ensure;
    f.w.api.ensure_ctx = &f;
    const struct polled refused = poll(&f, STR(""));
    assert_int_equal(refused.status, 503);
    assert_true(str_find_str(refused.reason, STR("nothing to compose from")) >= 0);
    f.ensured = "'spec':{'config':{'deviceName':'made'}}";
    const struct polled p = poll(&f, STR(""));
    assert_int_equal(p.status, 200);
    assert_str(pb_text(p.config->device_name), "made");
    assert_int_equal(f.n_ensured, 2);
    world_settle(&f.w);
    (void) poll(&f, p.hash);
    assert_int_equal(f.n_ensured, 2);
}

/* As it is after a restored backup: the device has what we know nothing of. */
TEST(a_device_with_an_unknown_configuration_gets_a_newer_one_once)
{
    FIXTURE(f);
    make_config(&f);
    world_patch(&f.w, "deviceconfigs", "site", "d1", "status",
                "{'status':{'version':'5','renderedAt':'2026-01-01T00:00:00Z',"
                "'observedGeneration':1,'hash':'x'}}");
    const struct polled p = poll(&f, STR("of-another-time"));
    assert_int_equal(p.status, 200);
    assert_str(pb_text(p.config->id->version), "6");
    assert_int_equal(p.config->config_timestamp->seconds, WORLD_NOW_US / 1000000);
    world_settle(&f.w);
    assert_int_equal(poll(&f, STR("of-a-third")).status, 200);
    assert_str(status_of(&f, "version"), "6");
}

TEST(a_device_with_a_configuration_that_it_was_given_gets_no_newer_one)
{
    FIXTURE(f);
    make_config(&f);
    world_patch(&f.w, "devices", "site", "d1", "status",
                "{'status':{'config':{'hash':'given-before','version':'4'}}}");
    world_patch(&f.w, "deviceconfigs", "site", "d1", "status",
                "{'status':{'version':'5','renderedAt':'2026-01-01T00:00:00Z',"
                "'observedGeneration':1,'hash':'x'}}");
    const struct polled p = poll(&f, STR("given-before"));
    assert_str(pb_text(p.config->id->version), "5");
}

TEST(what_a_device_was_given_is_never_followed_by_less)
{
    FIXTURE(f);
    world_patch(&f.w, "devices", "site", "d1", "status",
                "{'status':{'config':{'hash':'h','version':'41','renderedAt':"
                "'2030-01-01T00:00:00Z'}}}");
    make_config(&f);
    const struct polled p = poll(&f, STR(""));
    assert_str(pb_text(p.config->id->version), "42");
    assert_str(status_of(&f, "renderedAt"), "2030-01-01T00:00:00Z");
    /* A version that nobody could have counted to is none. */
    world_patch(&f.w, "deviceconfigs", "site", "d1", "status",
                "{'status':{'version':'9223372036854775807'}}");
    world_patch(&f.w, "deviceconfigs", "site", "d1", "",
                "{'spec':{'config':{'deviceName':'two'}}}");
    assert_str(pb_text(poll(&f, STR("")).config->id->version), "43");
}

/* What waits to be written: nothing takes it away here. */
static size_t n_told_bytes(const struct fixture *f)
{
    struct reports_stats st;
    reports_stats(f->w.api.reports, &st);
    return st.n_queued_bytes;
}

TEST(what_is_given_is_told_of_once_also_when_it_is_old_by_then)
{
    FIXTURE(f);
    struct config_made made = {0};
    struct device_call c = {.api = &f.w.api, .arena = f.w.arena, .device = f.device};
    make_config(&f);
    assert_int_equal(device_config_make(&c, STR(""), &made), 0);
    device_config_given(&c, made.sealed);
    const size_t once = n_told_bytes(&f);
    assert_true(once > 0);
    device_config_given(&c, made.sealed);
    assert_int_equal(n_told_bytes(&f), once);
    /* Changed between the making and the sending. */
    world_patch(&f.w, "deviceconfigs", "site", "d1", "",
                "{'spec':{'config':{'deviceName':'two'}}}");
    world_settle(&f.w);
    device_config_given(&c, made.sealed);
    assert_int_equal(n_told_bytes(&f), 2 * once);
    slice_unref(c.shared_body);
}
