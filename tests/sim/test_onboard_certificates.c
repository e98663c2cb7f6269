/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "test.h"

#include "controllers/onboard_certificates.h"
#include "pki/pki.h"
#include "world.h"

#define DAY_MS ((int64_t) 24 * 3600 * 1000)
#define VERSION "eve.lfedge.org/v1beta1/"
#define CERTIFICATES "onboardcertificates"
#define AUTHORITIES "devicecertificateauthorities"
#define GROUP ".eve.lfedge.org"

static const struct controller *const table[] = {&onboard_certificates_controller, NULL};

/* A world on the first of ten days of a certificate. */
struct scene {
    struct world w;
    struct arena *arena;
    struct pki_key *key;
    struct pki_cert *cert;
};

static void scene_init(struct scene *s, bool is_ca)
{
    s->arena = arena_new();
    s->key = pki_key_new();
    s->cert = pki_cert_new(
        &(struct pki_cert_options){.common_name = STR("c"), .is_ca = is_ca, .valid_days = 10},
        s->key, NULL, NULL);
    world_init(&s->w, world_seed(), table);
    s->w.clock.now_us = pki_cert_not_before(s->cert) * 1000000 + DAY_MS * 500;
}

static void scene_done(struct scene *s)
{
    world_done(&s->w);
    pki_cert_free(s->cert);
    pki_key_free(s->key);
    arena_free(s->arena);
}

#define SCENE(is_ca) \
    CLEANUP(scene_done) struct scene s; \
    scene_init(&s, is_ca)

/* With the line feeds of PEM as JSON has them. */
static struct str escaped(struct scene *s)
{
    BUF_AUTO b = {0};
    json_write_str(&b, pki_cert_pem(s->arena, s->cert));
    return arena_str(s->arena, str_sub(buf_str(&b), 1, b.n - 1));
}

static void create(struct scene *s, const char *plural, const char *name)
{
    const struct str text =
        arena_printf(s->arena, "{'metadata':{'name':'%s'},'spec':{'certificate':'%.*s'}}", name,
                     STR_ARG(escaped(s)));
    const struct str kind = arena_printf(s->arena, VERSION "%s", plural);
    assert_int_equal(world_create(&s->w, kind.p, "n", text.p), 0);
}

static void create_device(struct scene *s, const char *name, const char *by)
{
    const struct str text = arena_printf(
        s->arena, "{'metadata':{'name':'%s','annotations':{'eve.lfedge.org/onboarded-by':'%s'}}}",
        name, by);
    assert_int_equal(world_create(&s->w, VERSION "devices", "n", text.p), 0);
}

static const struct json *status_of(struct scene *s, const char *plural)
{
    const struct str collection = arena_printf(s->arena, "%s" GROUP, plural);
    return world_at(&s->w, collection.p, "n", "c", "status", NULL);
}

static const struct json *condition(struct scene *s, const char *plural, const char *type)
{
    JSON_FOR_EACH_ITEM (json_get(status_of(s, plural), STR("conditions")), c)
        if (str_is(json_get_str(c, STR("type")), type))
            return c;
    return NULL;
}

static void assert_condition(struct scene *s, const char *plural, const char *type,
                             const char *status, const char *reason)
{
    const struct json *c = condition(s, plural, type);
    assert_str(json_get_str(c, STR("status")), status);
    assert_str(json_get_str(c, STR("reason")), reason);
}

TEST(a_certificate_is_described_and_ends)
{
    SCENE(false);
    unsigned char hash[SHA256_BYTES];
    char end[CLOCK_SECONDS_BYTES];
    pki_cert_fingerprint(s.cert, hash);
    clock_format_seconds(pki_cert_not_after(s.cert) * 1000000, end);
    create(&s, CERTIFICATES, "c");
    world_pass(&s.w, 1000);
    const struct json *status = status_of(&s, CERTIFICATES);
    assert_str(json_get_str(status, STR("fingerprint")),
               arena_strz(s.arena, pki_hex(s.arena, hash, sizeof(hash))));
    assert_str(json_get_str(status, STR("notAfter")), end);
    assert_int_equal(json_get_int(status, STR("registered"), -1), 0);
    assert_condition(&s, CERTIFICATES, "Valid", "True", "Accepted");
    assert_condition(&s, CERTIFICATES, "Expired", "False", "NotExpired");
    world_pass(&s.w, 11 * DAY_MS);
    assert_condition(&s, CERTIFICATES, "Valid", "False", "Expired");
    assert_condition(&s, CERTIFICATES, "Expired", "True", "Expired");
}

TEST(only_authorities_can_be_authorities)
{
    SCENE(false);
    create(&s, AUTHORITIES, "c");
    world_pass(&s.w, 1000);
    assert_condition(&s, AUTHORITIES, "Valid", "False", "NotAnAuthority");
}

TEST(an_authority_is_accepted)
{
    SCENE(true);
    create(&s, AUTHORITIES, "c");
    world_pass(&s.w, 1000);
    assert_condition(&s, AUTHORITIES, "Valid", "True", "Accepted");
}

TEST(a_certificate_of_the_future_waits)
{
    SCENE(false);
    s.w.clock.now_us -= 2 * DAY_MS * 1000;
    create(&s, CERTIFICATES, "c");
    world_pass(&s.w, 1000);
    assert_condition(&s, CERTIFICATES, "Valid", "False", "NotYetValid");
    world_pass(&s.w, 2 * DAY_MS);
    assert_condition(&s, CERTIFICATES, "Valid", "True", "Accepted");
}

static int64_t registered(struct scene *s)
{
    return json_get_int(status_of(s, CERTIFICATES), STR("registered"), -1);
}

TEST(devices_are_counted_where_they_came_from)
{
    SCENE(false);
    create(&s, CERTIFICATES, "c");
    create_device(&s, "a", "OnboardCertificate/c");
    create_device(&s, "b", "OnboardCertificate/c");
    create_device(&s, "other", "OnboardCertificate/d");
    create_device(&s, "odd", "OnboardCertificate");
    create_device(&s, "odder", "/");
    create_device(&s, "oddest", "OnboardCertificate/c/d");
    assert_int_equal(world_create(&s.w, VERSION "devices", "n", "{'metadata':{'name':'own'}}"), 0);
    world_pass(&s.w, 2000);
    assert_int_equal(registered(&s), 2);
    assert_int_equal(world_delete(&s.w, VERSION "devices", "n", "a", NULL), 0);
    world_pass(&s.w, 2000);
    assert_int_equal(registered(&s), 1);
    world_restart(&s.w);
    create_device(&s, "e", "OnboardCertificate/c");
    world_pass(&s.w, 2000);
    assert_int_equal(registered(&s), 2);
}

TEST(nothing_is_written_when_nothing_changes)
{
    SCENE(false);
    create(&s, CERTIFICATES, "c");
    world_pass(&s.w, 1000);
    const size_t n_writes = s.w.api.n_writes;
    world_restart(&s.w);
    world_pass(&s.w, DAY_MS);
    assert_int_equal(s.w.api.n_writes, n_writes);
}
