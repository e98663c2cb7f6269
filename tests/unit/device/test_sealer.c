/* SPDX-License-Identifier: Apache-2.0 */
#include "device/sealer.h"

#include <errno.h>

#include "eve/attest.pb-c.h"
#include "eve/cipher.h"
#include "test.h"
#include "world.h"

struct fixture {
    struct world w;
    struct identity identity, ecdh; /* the second signed by the first */
    struct device *device;
};

static void open_fixture(struct fixture *f)
{
    world_open(&f->w);
    identity_init(&f->w, &f->identity, "EVE", NULL, 3650);
    identity_init(&f->w, &f->ecdh, "ecdh", &f->identity, 3650);
    world_create(&f->w, "devices", "site", "d1", "'spec':{'certificate':'%s'}", f->identity.pem.p);
    f->device = world_device(&f->w, &f->identity);
    assert_non_null(f->device);
}

static void close_fixture(struct fixture *f)
{
    device_unref(f->device);
    identity_done(&f->identity);
    identity_done(&f->ecdh);
    world_close(&f->w);
}
#define FIXTURE(f) \
    CLEANUP(close_fixture) struct fixture f; \
    open_fixture(&f)

static struct str hash_of(struct fixture *f, const struct identity *i)
{
    unsigned char *hash = arena_alloc(f->w.arena, SHA256_BYTES);
    pki_sha256(i->pem, hash);
    return str_range((const char *) hash, 16);
}

static void send_cert(struct fixture *f, const struct identity *i)
{
    Eve__Certs__ZCertAttr attributes = EVE__CERTS__ZCERT_ATTR__INIT;
    Eve__Certs__ZCert cert = EVE__CERTS__ZCERT__INIT, *certs[] = {&cert};
    Eve__Attest__ZAttestReq req = EVE__ATTEST__ZATTEST_REQ__INIT;
    attributes.is_mutable = true;
    cert.attributes = &attributes;
    cert.type = EVE__CERTS__ZCERT_TYPE__CERT_TYPE_DEVICE_ECDH_EXCHANGE;
    cert.hashalgo = EVE__COMMON__HASH_ALGORITHM__HASH_ALGORITHM_SHA256_16BYTES;
    cert.certhash = pb_data(hash_of(f, i));
    cert.cert = pb_data(i->pem);
    req.reqtype = EVE__ATTEST__ZATTEST_REQ_TYPE__ATTEST_REQ_CERT;
    req.certs = certs;
    req.n_certs = 1;
    struct device_call c = {.api = &f->w.api,
                            .arena = f->w.arena,
                            .device = f->device,
                            .payload = pb_pack(f->w.arena, &req.base),
                            .is_v1 = true};
    (void) device_attest(&c);
    assert_int_equal(c.status, 201);
}

/* As a composition of its own would. */
static int seal(struct fixture *f, const char *identity, const char *plaintext,
                struct compose_sealed *ret)
{
    struct status st;
    compose_seal *fn = NULL;
    void *ctx = NULL;
    status_init(&st, f->w.arena);
    const struct json *device = world_get(&f->w, "devices", "site", "d1");
    assert_int_equal(sealer_open(&f->w.api, f->w.arena, device, &fn, &ctx, &st), 0);
    return fn(ctx, f->w.arena, str_of(identity), str_of(plaintext), ret);
}

static struct str sealed(struct fixture *f, const char *identity, const char *plaintext)
{
    struct compose_sealed s = {0};
    assert_int_equal(seal(f, identity, plaintext, &s), 0);
    const struct str parts[] = {pb_pack(f->w.arena, &s.block->base),
                                pb_pack(f->w.arena, &s.context->base)};
    return arena_join(f->w.arena, parts, 2);
}

static struct str iv_of(struct fixture *f, const char *identity, const char *plaintext)
{
    struct compose_sealed s = {0};
    assert_int_equal(seal(f, identity, plaintext, &s), 0);
    return pb_bytes(s.block->initialvalue);
}

TEST(nothing_is_sealed_before_the_device_has_sent_its_certificate)
{
    FIXTURE(f);
    struct compose_sealed s = {0};
    assert_int_equal(seal(&f, "datastore/1", "secret", &s), -EAGAIN);
    assert_null(s.block);
    send_cert(&f, &f.ecdh);
    assert_int_equal(seal(&f, "datastore/1", "secret", &s), 0);
}

TEST(the_same_is_sealed_to_the_same_bytes)
{
    FIXTURE(f);
    send_cert(&f, &f.ecdh);
    assert_true(str_eq(sealed(&f, "datastore/1", "secret"), sealed(&f, "datastore/1", "secret")));
}

TEST(another_content_place_or_certificate_gives_another_iv)
{
    FIXTURE(f);
    IDENTITY_AUTO other;
    identity_init(&f.w, &other, "another", &f.identity, 3650);
    send_cert(&f, &f.ecdh);
    const struct str first = iv_of(&f, "datastore/1", "secret");
    assert_int_equal(first.n, CIPHER_IV_BYTES);
    assert_false(str_eq(first, iv_of(&f, "datastore/1", "Secret")));
    assert_false(str_eq(first, iv_of(&f, "datastore/2", "secret")));
    /* No byte moves from one to the other. */
    assert_false(str_eq(iv_of(&f, "ab", "c"), iv_of(&f, "a", "bc")));
    send_cert(&f, &other);
    assert_false(str_eq(first, iv_of(&f, "datastore/1", "secret")));
}

TEST(another_certificate_of_the_controller_gives_another_iv)
{
    FIXTURE(f);
    char *error = NULL;
    bool is_changed = false;
    send_cert(&f, &f.ecdh);
    const struct str first = iv_of(&f, "datastore/1", "secret");
    assert_int_equal(controller_certs_rotate(f.w.directory, CONTROLLER_ECDH, 86400, &error), 0);
    assert_int_equal(controller_certs_reload(f.w.api.certs, &is_changed, &error), 0);
    assert_true(is_changed);
    assert_false(str_eq(first, iv_of(&f, "datastore/1", "secret")));
}

TEST(the_device_opens_what_was_sealed)
{
    FIXTURE(f);
    struct compose_sealed s = {0};
    struct str plaintext = STR_NONE;
    send_cert(&f, &f.ecdh);
    assert_int_equal(seal(&f, "datastore/1", "secret", &s), 0);
    struct controller_set *set = controller_certs_get(f.w.api.certs);
    CLEANUP(pki_public_freep)
    struct pki_public *controller = pki_public_of_key(set->ecdh_key);
    struct cipher_pair pair;
    /* With the device's own key and the controller's public one. */
    assert_int_equal(cipher_pair(f.w.arena, f.ecdh.key, set->ecdh_cert_hash, controller,
                                 hash_of(&f, &f.ecdh), &pair),
                     0);
    assert_int_equal(cipher_open(f.w.arena, &pair, s.block, &plaintext), 0);
    assert_true(str_is(plaintext, "secret"));
    assert_true(str_eq(pb_text(s.block->ciphercontextid), pb_text(s.context->contextid)));
    assert_true(str_eq(pb_bytes(s.context->devicecerthash), hash_of(&f, &f.ecdh)));
    assert_true(str_eq(pb_bytes(s.context->controllercerthash), set->ecdh_cert_hash));
    bytes_unref(&set->bytes);
}

TEST(a_namesake_of_the_device_has_no_part_in_its_certificate)
{
    FIXTURE(f);
    struct compose_sealed s = {0};
    send_cert(&f, &f.ecdh);
    world_delete(&f.w, "devices", "site", "d1");
    world_create(&f.w, "devices", "site", "d1", "'spec':{}");
    assert_int_equal(seal(&f, "datastore/1", "secret", &s), -EAGAIN);
}
