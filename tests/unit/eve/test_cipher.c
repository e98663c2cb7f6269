/* SPDX-License-Identifier: Apache-2.0 */
#include "eve/cipher.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hex.h"
#include "protobuf/message.h"
#include "test.h"

#define KEY_AUTO CLEANUP(pki_key_freep) struct pki_key *
#define PUBLIC_AUTO CLEANUP(pki_public_freep) struct pki_public *
#define CERT_AUTO CLEANUP(pki_cert_freep) struct pki_cert *

/* The key pairs of RFC 5903 8.1: the controller's as its private key, the device's as a certificate
 * that an authority signed. */
#define CONTROLLER_KEY \
    "-----BEGIN PRIVATE KEY-----\n" \
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgyI8B9RDZrD9wopLa\n" \
    "ojFt5UTpqriv6EBJxiqcV4YtFDOhRANCAATa0LZTlCIc+bBR4f7KV4fQmN/mN/yQ\n" \
    "ue+UXQw3clgRgFJxoEYc24JS1h8cRW+j5Zqx9FszrM9fWDieBXe4mQuz\n" \
    "-----END PRIVATE KEY-----\n"
#define DEVICE_CERT \
    "-----BEGIN CERTIFICATE-----\n" \
    "MIIBCTCBsAIBAjAKBggqhkjOPQQDAjARMQ8wDQYDVQQDDAZkZXZpY2UwIBcNMjYx\n" \
    "MTE2MDQwNDE0WhgPMjEyNjEwMjMwNDA0MTRaMA8xDTALBgNVBAMMBGVjZGgwWTAT\n" \
    "BgcqhkjOPQIBBggqhkjOPQMBBwNCAATRLftSicjU+BIItwJwOYw0IpaXCgvMt0xz\n" \
    "b8dVRJS/Y1b788o2bMI+gVeFTBPFjWqsI/BGraMPg1PnTzMDmHKrMAoGCCqGSM49\n" \
    "BAMCA0gAMEUCIQCXsr7jvckvj+GyU3gCR9LbBbquErZN+ZPenMIVInXHcAIgEJoC\n" \
    "sk1r62nB7y0c41cIPxBo2iaf/EoBcSZ3LDOa93s=\n" \
    "-----END CERTIFICATE-----\n"

static struct pki_key *key_of_pem(struct str pem)
{
    int fd = memfd_create("key", MFD_CLOEXEC);
    assert_int_equal(write(fd, pem.p, pem.n), pem.n);
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    struct pki_key *key = NULL;
    assert_int_equal(pki_key_load(path, &key), 0);
    close(fd);
    return key;
}

/* ---- the vector ----------------------------------------------------------------------------- */

TEST(a_block_is_sealed_as_the_vector_has_it)
{
    ARENA_AUTO a = arena_new();
    KEY_AUTO controller = key_of_pem(STR(CONTROLLER_KEY));
    CERT_AUTO cert = NULL;
    assert_int_equal(pki_cert_parse(STR(DEVICE_CERT), &cert), 0);
    PUBLIC_AUTO device = pki_cert_public(cert);
    struct cipher_pair pair;
    assert_int_equal(
        cipher_pair(a, controller, STR("controller-hash."), device, STR("device-hash....."), &pair),
        0);
    assert_memory_equal(
        pair.key, from_hex(a, "fe85d2895d95a73e2c9a2157c13c1b61dae4384f5ac17b0ffae227c057178c8e").p,
        CIPHER_KEY_BYTES);
    struct str iv = from_hex(a, "000102030405060708090a0b0c0d0e0f");
    struct str plaintext = from_hex(a, "0a04757365721214612d6c6f6e6765722d70617373776f72642d3230");
    Eve__Common__CipherBlock *b = cipher_seal(a, &pair, plaintext, (const unsigned char *) iv.p);
    assert_true(str_eq(pb_bytes(b->initialvalue), iv));
    assert_true(str_eq(pb_bytes(b->cipherdata),
                       from_hex(a, "16e3cb621bea4bb75f23e982b8c0ad6581164ebe460658638f14c1a9")));
    assert_true(
        str_eq(pb_bytes(b->cleartextsha256),
               from_hex(a, "fd9114217faedf210eb0e0f6dd773e1789d7139cb3bdb5a62f405f5554db18bb")));
    assert_str(pb_text(b->ciphercontextid), pair.context_id.p);
    struct str opened;
    assert_int_equal(cipher_open(a, &pair, b, &opened), 0);
    assert_true(str_eq(opened, plaintext));
}

/* ---- pairs and blocks ----------------------------------------------------------------------- */

struct sides {
    struct pki_key *controller, *device;
    struct pki_public *device_public;
};

static struct sides sides_new(void)
{
    struct sides s = {.controller = pki_key_new(), .device = pki_key_new()};
    s.device_public = pki_public_of_key(s.device);
    return s;
}

static void sides_done(struct sides *s)
{
    pki_key_free(s->controller);
    pki_key_free(s->device);
    pki_public_free(s->device_public);
}

#define DEVICE_HASH "0123456789abcdef"
static struct cipher_pair pair_of(struct arena *a, const struct sides *s,
                                  const char *controller_hash)
{
    struct cipher_pair p;
    assert_int_equal(cipher_pair(a, s->controller, str_of(controller_hash), s->device_public,
                                 STR(DEVICE_HASH), &p),
                     0);
    return p;
}

TEST(a_pair_has_one_id_and_its_context_repeats_the_hashes)
{
    ARENA_AUTO a = arena_new();
    CLEANUP(sides_done) struct sides s = sides_new();
    struct cipher_pair one = pair_of(a, &s, "fedcba9876543210"), same, other;
    same = pair_of(a, &s, "fedcba9876543210");
    other = pair_of(a, &s, "fedcba9876543211");
    assert_int_equal(one.context_id.n, 36);
    assert_true(str_eq(one.context_id, same.context_id));
    assert_false(str_eq(one.context_id, other.context_id));
    const Eve__Common__CipherContext *c = cipher_context(a, &one);
    assert_str(pb_text(c->contextid), one.context_id.p);
    assert_str(pb_bytes(c->devicecerthash), DEVICE_HASH);
    assert_str(pb_bytes(c->controllercerthash), "fedcba9876543210");
    assert_int_equal(c->hashscheme, 1);
    assert_int_equal(c->keyexchangescheme, 1);
    assert_int_equal(c->encryptionscheme, 1);
}

TEST(the_device_opens_what_the_controller_sealed)
{
    ARENA_AUTO a = arena_new();
    CLEANUP(sides_done) struct sides s = sides_new();
    PUBLIC_AUTO controller_public = pki_public_of_key(s.controller);
    struct cipher_pair ours = pair_of(a, &s, "c"), theirs;
    assert_int_equal(
        cipher_pair(a, s.device, STR("c"), controller_public, STR(DEVICE_HASH), &theirs), 0);
    Eve__Common__CipherBlock *one = cipher_seal(a, &ours, STR("secret"), NULL);
    Eve__Common__CipherBlock *two = cipher_seal(a, &ours, STR("secret"), NULL);
    struct str opened;
    assert_int_equal(cipher_open(a, &theirs, one, &opened), 0);
    assert_str(opened, "secret");
    assert_false(str_eq(pb_bytes(one->initialvalue), pb_bytes(two->initialvalue)));
    assert_false(str_eq(pb_bytes(one->cipherdata), pb_bytes(two->cipherdata)));
}

TEST(a_key_of_another_kind_makes_no_pair)
{
    ARENA_AUTO a = arena_new();
    KEY_AUTO key = pki_key_new();
    struct cipher_pair p;
    assert_int_equal(cipher_pair(a, key, STR("c"), NULL, STR("d"), &p), -EINVAL);
}

TEST(damaged_blocks_do_not_open)
{
    ARENA_AUTO a = arena_new();
    CLEANUP(sides_done) struct sides s = sides_new();
    CLEANUP(sides_done) struct sides others = sides_new();
    struct cipher_pair p = pair_of(a, &s, "c"), wrong = pair_of(a, &others, "c");
    const Eve__Common__CipherBlock *good = cipher_seal(a, &p, STR("secret"), NULL);
    struct str plaintext = STR("untouched");
    assert_int_equal(cipher_open(a, &wrong, good, &plaintext), -EBADMSG);
    Eve__Common__CipherBlock bad = *good;
    bad.initialvalue.len--;
    assert_int_equal(cipher_open(a, &p, &bad, &plaintext), -EBADMSG);
    bad = *good;
    bad.cipherdata.len--;
    assert_int_equal(cipher_open(a, &p, &bad, &plaintext), -EBADMSG);
    bad.cipherdata.len = 0;
    assert_int_equal(cipher_open(a, &p, &bad, &plaintext), -EBADMSG);
    bad = *good;
    bad.cleartextsha256.len = 16;
    assert_int_equal(cipher_open(a, &p, &bad, &plaintext), -EBADMSG);
    bad.cleartextsha256 = (ProtobufCBinaryData){0, NULL};
    assert_int_equal(cipher_open(a, &p, &bad, &plaintext), -EBADMSG);
    assert_str(plaintext, "untouched");
}

/* ---- rotation ------------------------------------------------------------------------------- */

struct configuration {
    Eve__Config__EdgeDevConfig config;
    Eve__Config__AppInstanceConfig app, *apps[1];
    Eve__Config__DatastoreConfig store, *stores[1];
    Eve__Common__CipherContext *contexts[2];
};

/* An application's block and a datastore's, and a context that is somebody else's. */
static void configuration_init(struct arena *a, struct configuration *c,
                               const struct cipher_pair *p)
{
    eve__config__edge_dev_config__init(&c->config);
    eve__config__app_instance_config__init(&c->app);
    eve__config__datastore_config__init(&c->store);
    c->app.cipherdata = cipher_seal(a, p, STR("of the application"), NULL);
    c->store.cipherdata = cipher_seal(a, p, STR("of the datastore"), NULL);
    c->apps[0] = &c->app;
    c->config.apps = c->apps;
    c->config.n_apps = 1;
    c->stores[0] = &c->store;
    c->config.datastores = c->stores;
    c->config.n_datastores = 1;
    c->contexts[0] = cipher_context(a, p);
    c->contexts[1] = ARENA_NEW(a, Eve__Common__CipherContext);
    eve__common__cipher_context__init(c->contexts[1]);
    c->contexts[1]->contextid = arena_strz(a, STR("foreign"));
    c->config.ciphercontexts = c->contexts;
    c->config.n_ciphercontexts = 2;
}

static void assert_opens(struct arena *a, const struct cipher_pair *p,
                         const Eve__Common__CipherBlock *block, const char *plaintext)
{
    struct str opened;
    assert_str(pb_text(block->ciphercontextid), p->context_id.p);
    assert_int_equal(cipher_open(a, p, block, &opened), 0);
    assert_str(opened, plaintext);
}

TEST(after_a_rotation_every_block_opens_with_the_new_pair)
{
    ARENA_AUTO a = arena_new();
    CLEANUP(sides_done) struct sides old_sides = sides_new(), new_sides = sides_new();
    struct cipher_pair from = pair_of(a, &old_sides, "old"), to = pair_of(a, &new_sides, "new");
    struct configuration c;
    configuration_init(a, &c, &from);
    assert_int_equal(cipher_reseal(a, &c.config, &from, &to), 2);
    assert_opens(a, &to, c.app.cipherdata, "of the application");
    assert_opens(a, &to, c.store.cipherdata, "of the datastore");
    assert_int_equal(c.config.n_ciphercontexts, 2);
    assert_str(pb_text(c.config.ciphercontexts[0]->contextid), "foreign");
    assert_str(pb_text(c.config.ciphercontexts[1]->contextid), to.context_id.p);
    /* Nothing is left to do. */
    assert_int_equal(cipher_reseal(a, &c.config, &from, &to), 0);
    assert_int_equal(c.config.n_ciphercontexts, 2);
}

TEST(a_context_of_another_id_is_known_by_its_certificates)
{
    ARENA_AUTO a = arena_new();
    CLEANUP(sides_done) struct sides s = sides_new(), new_sides = sides_new();
    struct cipher_pair from = pair_of(a, &s, "old"), to = pair_of(a, &new_sides, "new");
    struct configuration c;
    configuration_init(a, &c, &from);
    c.contexts[0]->contextid = c.app.cipherdata->ciphercontextid = arena_strz(a, STR("theirs"));
    assert_int_equal(cipher_reseal(a, &c.config, &from, &to), 2);
    assert_opens(a, &to, c.app.cipherdata, "of the application");
    assert_int_equal(c.config.n_ciphercontexts, 2);
}

TEST(blocks_of_other_contexts_are_left_alone)
{
    ARENA_AUTO a = arena_new();
    CLEANUP(sides_done) struct sides s = sides_new(), new_sides = sides_new();
    struct cipher_pair from = pair_of(a, &s, "old"), to = pair_of(a, &new_sides, "new");
    struct configuration c;
    configuration_init(a, &c, &from);
    c.app.cipherdata->ciphercontextid = arena_strz(a, STR("foreign"));
    struct str before = pb_bytes(c.app.cipherdata->cipherdata);
    assert_int_equal(cipher_reseal(a, &c.config, &from, &to), 1);
    assert_str(pb_text(c.app.cipherdata->ciphercontextid), "foreign");
    assert_true(str_eq(pb_bytes(c.app.cipherdata->cipherdata), before));
    c.store.cipherdata->ciphercontextid = arena_strz(a, STR("nobody's"));
    assert_int_equal(cipher_reseal(a, &c.config, &from, &to), 0);
}

TEST(one_block_that_does_not_open_leaves_all_as_it_was)
{
    ARENA_AUTO a = arena_new();
    CLEANUP(sides_done) struct sides s = sides_new(), new_sides = sides_new();
    struct cipher_pair from = pair_of(a, &s, "old"), to = pair_of(a, &new_sides, "new");
    struct configuration c;
    configuration_init(a, &c, &from);
    c.store.cipherdata->cipherdata.data[0] ^= 1;
    struct str before = pb_pack(a, (ProtobufCMessage *) &c.config);
    assert_int_equal(cipher_reseal(a, &c.config, &from, &to), -EBADMSG);
    assert_true(str_eq(pb_pack(a, (ProtobufCMessage *) &c.config), before));
}
