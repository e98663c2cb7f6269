/* SPDX-License-Identifier: Apache-2.0 */
#include "roster/roster.h"

#include "base/alloc.h"
#include "test.h"
#include "json/json.h"

#define UUID_A "0cc9a33f-9ec5-4b6c-9b4c-2d7b2a2fd0ab"
#define UUID_B "11111111-2222-4333-8444-555555555555"

struct fixture {
    struct arena *arena;
    struct roster *roster;
    size_t n_changes, n_gone;
};

static void on_change(void *ctx, struct device *d)
{
    struct fixture *f = ctx;
    f->n_changes++;
    f->n_gone += atomic_load(&d->is_gone);
}

static void open_fixture(struct fixture *f)
{
    *f = (struct fixture){.arena = arena_new()};
    f->roster = roster_new(
        &(struct roster_options){.clock = &clock_system, .on_change = on_change, .ctx = f});
}

static void close_fixture(struct fixture *f)
{
    roster_free(f->roster);
    arena_free(f->arena);
}

/* A self-signed certificate as PEM, and the hash its device would send. */
static struct str new_certificate(struct fixture *f, unsigned char hash[SHA256_BYTES])
{
    CLEANUP(pki_key_freep) struct pki_key *key = pki_key_new();
    CLEANUP(pki_cert_freep)
    struct pki_cert *cert = pki_cert_new(
        &(struct pki_cert_options){.common_name = STR("EVE"), .is_ca = true, .valid_days = 1}, key,
        NULL, NULL);
    pki_cert_fingerprint(cert, hash);
    return pki_cert_pem(f->arena, cert);
}

static struct str device_text(struct fixture *f, const char *name, const char *uuid,
                              struct str certificate, const char *annotations)
{
    BUF_AUTO b = {0};
    buf_printf(&b,
               "{\"metadata\":{\"namespace\":\"site\",\"name\":\"%s\",\"uid\":\"uid-%s\","
               "\"annotations\":%s},\"spec\":{",
               name, name, annotations);
    if (certificate.n) {
        buf_append_str(&b, STR("\"certificate\":"));
        json_write_str(&b, certificate);
    }
    buf_printf(&b, "},\"status\":{\"uuid\":\"%s\"}}", uuid);
    return arena_str(f->arena, buf_str(&b));
}

static void send(struct fixture *f, enum kube_event_type type, const char *collection,
                 const char *namespace, const char *name, struct str text)
{
    roster_on_event(f->roster, &(struct kube_event){.type = type,
                                                    .collection = str_of(collection),
                                                    .namespace = str_of(namespace),
                                                    .name = str_of(name),
                                                    .uid = arena_printf(f->arena, "uid-%s", name),
                                                    .text = text});
}

static void send_device(struct fixture *f, enum kube_event_type type, const char *name,
                        const char *uuid, struct str certificate, const char *annotations)
{
    send(f, type, "devices.eve.lfedge.org", "site", name,
         device_text(f, name, uuid, certificate, annotations));
}

static struct device *by_hash(struct fixture *f, const unsigned char *hash, size_t n)
{
    return roster_by_certificate(f->roster, str_range((const char *) hash, n));
}

TEST(a_device_is_found_by_all_its_names)
{
    struct fixture f;
    unsigned char hash[SHA256_BYTES];
    struct uuid uuid;
    open_fixture(&f);
    send_device(&f, KUBE_ADDED, "one", UUID_A, new_certificate(&f, hash), "{}");
    assert_int_equal(roster_count(f.roster), 1);
    assert_int_equal(uuid_parse(STR(UUID_A), &uuid), 0);
    CLEANUP(device_unrefp) struct device *whole = by_hash(&f, hash, 32);
    CLEANUP(device_unrefp) struct device *half = by_hash(&f, hash, 16);
    CLEANUP(device_unrefp) struct device *uuids = roster_by_uuid(f.roster, &uuid);
    CLEANUP(device_unrefp) struct device *named = roster_by_name(f.roster, STR("site"), STR("one"));
    assert_non_null(whole);
    assert_ptr_equal(whole, half);
    assert_ptr_equal(whole, uuids);
    assert_ptr_equal(whole, named);
    assert_true(atomic_load(&whole->is_active));
    assert_null(by_hash(&f, hash, 31));
    hash[20] ^= 1; /* the half that the map goes by is the same */
    assert_null(by_hash(&f, hash, 32));
    close_fixture(&f);
}

TEST(a_device_without_certificate_has_a_name_only)
{
    struct fixture f;
    open_fixture(&f);
    send_device(&f, KUBE_ADDED, "one", UUID_A, STR(""), "{}");
    CLEANUP(device_unrefp) struct device *d = roster_by_name(f.roster, STR("site"), STR("one"));
    assert_non_null(d);
    assert_null(d->key);
    close_fixture(&f);
}

TEST(deleting_revokes_at_once)
{
    struct fixture f;
    unsigned char hash[SHA256_BYTES];
    open_fixture(&f);
    struct str certificate = new_certificate(&f, hash);
    send_device(&f, KUBE_ADDED, "one", UUID_A, certificate, "{}");
    CLEANUP(device_unrefp) struct device *held = by_hash(&f, hash, 32);
    send_device(&f, KUBE_DELETED, "one", UUID_A, certificate, "{}");
    assert_null(by_hash(&f, hash, 32));
    assert_int_equal(roster_count(f.roster), 0);
    assert_true(atomic_load(&held->is_gone)); /* whoever still talks finds out */
    assert_true(atomic_load(&held->is_deleted));
    assert_int_equal(f.n_gone, 1);
    close_fixture(&f);
}

TEST(another_certificate_makes_another_entry)
{
    struct fixture f;
    unsigned char old_hash[SHA256_BYTES], new_hash[SHA256_BYTES];
    open_fixture(&f);
    send_device(&f, KUBE_ADDED, "one", UUID_A, new_certificate(&f, old_hash), "{}");
    CLEANUP(device_unrefp) struct device *before = by_hash(&f, old_hash, 32);
    send_device(&f, KUBE_MODIFIED, "one", UUID_A, new_certificate(&f, new_hash), "{}");
    assert_true(atomic_load(&before->is_gone));
    assert_false(atomic_load(&before->is_deleted)); /* what it sent is still its own */
    assert_null(by_hash(&f, old_hash, 32));
    CLEANUP(device_unrefp) struct device *after = by_hash(&f, new_hash, 32);
    assert_non_null(after);
    close_fixture(&f);
}

TEST(a_certificate_stays_with_who_had_it_first)
{
    struct fixture f;
    unsigned char hash[SHA256_BYTES];
    open_fixture(&f);
    struct str certificate = new_certificate(&f, hash);
    send_device(&f, KUBE_ADDED, "one", UUID_A, certificate, "{}");
    send_device(&f, KUBE_ADDED, "two", UUID_B, certificate, "{}");
    CLEANUP(device_unrefp) struct device *d = by_hash(&f, hash, 32);
    assert_str(d->name, "one");
    send_device(&f, KUBE_DELETED, "two", UUID_B, certificate, "{}");
    CLEANUP(device_unrefp) struct device *still = by_hash(&f, hash, 32);
    assert_ptr_equal(d, still);
    close_fixture(&f);
}

TEST(activate_false_is_heard)
{
    struct fixture f;
    unsigned char hash[SHA256_BYTES];
    open_fixture(&f);
    struct str certificate = new_certificate(&f, hash);
    send_device(&f, KUBE_ADDED, "one", UUID_A, certificate, "{}");
    CLEANUP(device_unrefp) struct device *d = by_hash(&f, hash, 32);
    send_device(&f, KUBE_MODIFIED, "one", UUID_A, certificate,
                "{\"eve.lfedge.org/activate\":\"false\"}");
    assert_false(atomic_load(&d->is_active));
    send_device(&f, KUBE_MODIFIED, "one", UUID_A, certificate,
                "{\"eve.lfedge.org/activate\":\"true\"}");
    assert_true(atomic_load(&d->is_active));
    assert_false(atomic_load(&d->is_gone)); /* the same entry all along */
    close_fixture(&f);
}

TEST(the_nearest_option_wins)
{
    struct fixture f;
    open_fixture(&f);
    send_device(&f, KUBE_ADDED, "one", UUID_A, STR(""), "{}");
    CLEANUP(device_unrefp) struct device *d = roster_by_name(f.roster, STR("site"), STR("one"));
    assert_int_equal(atomic_load(&d->attestation), ATTESTATION_REPORT);
    send(&f, KUBE_ADDED, "configmaps", "eve-system", "global-options",
         STR("{\"data\":{\"attestation\":\"enforce\",\"telemetry.retention\":\"2h\"}}"));
    assert_int_equal(atomic_load(&d->attestation), ATTESTATION_ENFORCE);
    assert_int_equal(atomic_load(&d->retention_s), 7200);
    send(&f, KUBE_ADDED, "configmaps", "site", "eve-options",
         STR("{\"data\":{\"attestation\":\"off\"}}"));
    assert_int_equal(atomic_load(&d->attestation), ATTESTATION_OFF);
    send_device(&f, KUBE_MODIFIED, "one", UUID_A, STR(""),
                "{\"eve.lfedge.org/attestation\":\"report\"}");
    assert_int_equal(atomic_load(&d->attestation), ATTESTATION_REPORT);
    send_device(&f, KUBE_MODIFIED, "one", UUID_A, STR(""), "{}");
    send(&f, KUBE_DELETED, "configmaps", "site", "eve-options", STR("{}"));
    assert_int_equal(atomic_load(&d->attestation), ATTESTATION_ENFORCE);
    close_fixture(&f);
}

static unsigned generation(struct device *d)
{
    return d->config_generation;
}

TEST(only_another_spec_makes_another_configuration)
{
    struct fixture f;
    open_fixture(&f);
    send_device(&f, KUBE_ADDED, "one", UUID_A, STR(""), "{}");
    CLEANUP(device_unrefp) struct device *d = roster_by_name(f.roster, STR("site"), STR("one"));
    unsigned before = generation(d);
    struct str first = STR("{\"metadata\":{\"generation\":1}}");
    send(&f, KUBE_ADDED, "deviceconfigs.eve.lfedge.org", "site", "one", first);
    assert_int_equal(generation(d), before + 1);
    send(&f, KUBE_MODIFIED, "deviceconfigs.eve.lfedge.org", "site", "one", first); /* its status */
    assert_int_equal(generation(d), before + 1);
    send(&f, KUBE_MODIFIED, "deviceconfigs.eve.lfedge.org", "site", "one",
         STR("{\"metadata\":{\"generation\":2}}"));
    assert_int_equal(generation(d), before + 2);
    send(&f, KUBE_DELETED, "deviceconfigs.eve.lfedge.org", "site", "one", first);
    assert_int_equal(generation(d), before + 3);
    roster_forget_configs(f.roster);
    assert_int_equal(generation(d), before + 4);
    close_fixture(&f);
}

#define SETTLED(generation, version, at) \
    STR("{\"metadata\":{\"generation\":" generation "},\"status\":{\"version\":\"" version \
        "\",\"renderedAt\":\"" at "\",\"conditions\":[]}}")

TEST(the_version_of_a_configuration_counts_and_its_other_statuses_do_not)
{
    struct fixture f;
    open_fixture(&f);
    send_device(&f, KUBE_ADDED, "one", UUID_A, STR(""), "{}");
    CLEANUP(device_unrefp) struct device *d = roster_by_name(f.roster, STR("site"), STR("one"));
    const char *configs = "deviceconfigs.eve.lfedge.org";
    struct str first = SETTLED("1", "1", "2026-01-01T00:00:00Z");
    send(&f, KUBE_ADDED, configs, "site", "one", first);
    unsigned before = generation(d);
    send(&f, KUBE_MODIFIED, configs, "site", "one", first);
    assert_int_equal(generation(d), before);
    send(&f, KUBE_MODIFIED, configs, "site", "one", SETTLED("1", "2", "2026-01-01T00:00:00Z"));
    assert_int_equal(generation(d), before + 1);
    /* What was made already, of this and of what is on its way. */
    d->config_mark = (struct config_mark){.generation = 3, .version = 4, .rendered_s = 1800000000};
    send(&f, KUBE_MODIFIED, configs, "site", "one", SETTLED("3", "3", "2026-01-01T00:00:00Z"));
    send(&f, KUBE_MODIFIED, configs, "site", "one", SETTLED("3", "4", "2027-01-15T08:00:00Z"));
    assert_int_equal(generation(d), before + 1);
    /* A new one of that name begins anew. */
    send(&f, KUBE_DELETED, configs, "site", "one", first);
    send(&f, KUBE_ADDED, configs, "site", "one", SETTLED("1", "1", "2026-01-01T00:00:00Z"));
    assert_int_equal(generation(d), before + 3);
    close_fixture(&f);
}

TEST(what_a_device_was_given_is_read_from_it)
{
    struct fixture f;
    open_fixture(&f);
    send_device(&f, KUBE_ADDED, "one", UUID_A, STR(""), "{}");
    CLEANUP(device_unrefp) struct device *d = roster_by_name(f.roster, STR("site"), STR("one"));
    assert_int_equal(d->floor_version, 0);
    send(&f, KUBE_MODIFIED, "devices.eve.lfedge.org", "site", "one",
         STR("{\"metadata\":{\"namespace\":\"site\",\"name\":\"one\",\"uid\":\"uid-one\"},"
             "\"status\":{\"uuid\":\"" UUID_A "\",\"config\":{\"version\":\"7\","
             "\"renderedAt\":\"2027-01-15T08:00:00Z\"}}}"));
    assert_int_equal(d->floor_version, 7);
    assert_int_equal(d->floor_rendered_s, 1800000000);
    device_raise_floor(d, 6, 1900000000);
    assert_int_equal(d->floor_version, 7);
    assert_int_equal(d->floor_rendered_s, 1900000000);
    close_fixture(&f);
}

static struct str with_revision(struct fixture *f, struct str text, int revision)
{
    return arena_printf(f->arena, "{\"metadata\":{\"resourceVersion\":\"%d\",%.*s", revision,
                        STR_ARG(str_from(text, strlen("{\"metadata\":{"))));
}

/* What a registration wrote is known before the event of what was there before it. */
TEST(an_older_text_changes_nothing)
{
    struct fixture f;
    unsigned char hash[SHA256_BYTES];
    open_fixture(&f);
    struct str certificate = new_certificate(&f, hash);
    device_unref(roster_take(
        f.roster, with_revision(&f, device_text(&f, "one", UUID_A, certificate, "{}"), 7)));
    send(&f, KUBE_MODIFIED, "devices.eve.lfedge.org", "site", "one",
         with_revision(&f, device_text(&f, "one", UUID_A, STR(""), "{}"), 6));
    CLEANUP(device_unrefp) struct device *d = by_hash(&f, hash, 32);
    assert_non_null(d);
    send(&f, KUBE_MODIFIED, "devices.eve.lfedge.org", "site", "one",
         with_revision(&f, device_text(&f, "one", UUID_A, STR(""), "{}"), 8));
    assert_null(by_hash(&f, hash, 32));
    close_fixture(&f);
}

/* base64 of "token" */
#define STATE(owner) \
    "{\"metadata\":{\"ownerReferences\":[{\"uid\":\"" owner "\"}]}," \
    "\"type\":\"eve.lfedge.org/device-state\",\"data\":{\"integrity-token\":\"dG9rZW4=\"}}"

TEST(state_may_come_before_its_device)
{
    struct fixture f;
    open_fixture(&f);
    send(&f, KUBE_ADDED, "secrets", "site", "one.eve-device", STR(STATE("uid-one")));
    send_device(&f, KUBE_ADDED, "one", UUID_A, STR(""), "{}");
    CLEANUP(device_unrefp) struct device *d = roster_by_name(f.roster, STR("site"), STR("one"));
    assert_str(d->integrity_token, "token");
    send(&f, KUBE_DELETED, "secrets", "site", "one.eve-device", STR(STATE("uid-one")));
    assert_str(d->integrity_token, "");
    close_fixture(&f);
}

TEST(state_of_a_namesake_is_not_its_own)
{
    struct fixture f;
    open_fixture(&f);
    send(&f, KUBE_ADDED, "secrets", "site", "one.eve-device", STR(STATE("uid-of-before")));
    send_device(&f, KUBE_ADDED, "one", UUID_A, STR(""), "{}");
    CLEANUP(device_unrefp) struct device *d = roster_by_name(f.roster, STR("site"), STR("one"));
    assert_str(d->integrity_token, "");
    send(&f, KUBE_MODIFIED, "secrets", "site", "one.eve-device", STR(STATE("uid-of-before")));
    assert_str(d->integrity_token, "");
    close_fixture(&f);
}
