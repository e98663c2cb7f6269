/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates and the vault's key with a TPM, over lives of a device. */
#include "attest/vault.h"

#include <errno.h>

#include "attest/certificates.h"
#include "attest/keys.h"
#include "attest/messages.h"
#include "base/base64.h"
#include "chip.h"
#include "device.h"
#include "eve/cipher.h"
#include "protobuf/message.h"
#include "test.h"

enum topic { KEYS, STATUSES, CERTS, QUOTES, TOPICS };

struct bench {
    struct device device;
    struct chip chip;
    struct node_keys *keys;
    struct vault *vault;
    struct certificates *certificates;
    struct subscription *topics[TOPICS];
    struct publication *given, *nonces, *controller;
};

static void start(struct bench *b)
{
    static const struct subscription_handlers none = {0};
    static const struct pubsub_name names[TOPICS] = {
        [KEYS] = {.agent = {"vaultmgr", 8}, .topic = {"EncryptedVaultKeyFromDevice", 27}},
        [STATUSES] = {.agent = {"vaultmgr", 8}, .topic = {"VaultStatus", 11}},
        [CERTS] = {.agent = {"tpmmgr", 6}, .topic = {"EdgeNodeCert", 12}, .is_persistent = true},
        [QUOTES] = {.agent = {"tpmmgr", 6}, .topic = {"AttestQuote", 11}},
    };
    const struct pubsub_name given = {.agent = STR("zedagent"),
                                      .topic = STR("EncryptedVaultKeyFromController")};
    const struct pubsub_name nonces = {.agent = STR("zedagent"), .topic = STR("AttestNonce")};
    const struct pubsub_name controller = {.agent = STR("zedagent"),
                                           .topic = STR("ControllerCert")};
    device_start(&b->device, /* is_simulated= */ true);
    struct pubsub *ps = b->device.node->pubsub;
    for (size_t i = 0; i < TOPICS; i++)
        assert_int_equal(subscription_new(ps, &names[i], &none, NULL, &b->topics[i]), 0);
    assert_int_equal(publication_new(ps, &given, &b->given), 0);
    assert_int_equal(publication_new(ps, &nonces, &b->nonces), 0);
    assert_int_equal(publication_new(ps, &controller, &b->controller), 0);
    const struct node_keys_options o = {.tcti = b->chip.tcti};
    assert_int_equal(node_keys_new(b->device.node, &o, &b->keys), 0);
    assert_int_equal(vault_new(b->device.node, node_keys_tpm(b->keys), &b->vault), 0);
    assert_int_equal(certificates_new(b->device.node, node_keys_tpm(b->keys), &b->certificates), 0);
}

static void stop(struct bench *b)
{
    vault_free(b->vault);
    certificates_free(b->certificates);
    for (size_t i = 0; i < TOPICS; i++)
        subscription_free(b->topics[i]);
    publication_free(b->given);
    publication_free(b->nonces);
    publication_free(b->controller);
    loop_settle(b->device.loop);
    node_keys_free(b->keys);
    device_stop(&b->device);
}

static void bench_init(struct bench *b)
{
    *b = (struct bench){0};
    device_init(&b->device);
    chip_init(&b->chip);
}

static void bench_done(struct bench *b)
{
    chip_done(&b->chip);
    device_done(&b->device);
}

static bool has_key(void *arg)
{
    const struct bench *b = arg;
    return subscription_count(b->topics[KEYS]).n_keys == 1;
}

static const struct json *status(struct bench *b)
{
    return subscription_get(b->device.arena, b->topics[STATUSES], VAULT_NAME);
}

static bool is_locked(void *arg)
{
    return json_get_int(status(arg), STR("Status"), 0) == 4;
}

static struct str escrow(struct bench *b)
{
    const struct json *v = subscription_get(b->device.arena, b->topics[KEYS], VAULT_NAME);
    assert_true(json_get_bool(v, STR("IsTpmEnabled"), false));
    return json_get_str(v, STR("EncryptedVaultKey"));
}

static void give(struct bench *b, struct json key)
{
    struct json *value = json_new(b->device.arena, json_object());
    json_set(b->device.arena, value, STR("Name"), json_string(VAULT_NAME));
    json_set(b->device.arena, value, STR("EncryptedVaultKey"), key);
    assert_int_equal(publication_publish(b->given, VAULT_NAME, value), 0);
}

TEST(the_key_is_made_once_and_escrowed_as_the_same_bytes)
{
    struct bench b;
    bench_init(&b);
    start(&b);
    device_run_until(&b.device, has_key, &b);
    const struct str first = escrow(&b);
    assert_int_equal(json_get_int(status(&b), STR("UnlockMethod"), 0), 1);
    stop(&b);
    start(&b);
    device_run_until(&b.device, has_key, &b);
    assert_true(str_eq(escrow(&b), first));
    stop(&b);
    bench_done(&b);
}

TEST(what_the_controller_kept_opens_after_something_else_has_booted)
{
    struct bench b;
    bench_init(&b);
    start(&b);
    device_run_until(&b.device, has_key, &b);
    const struct str first = escrow(&b);
    assert_int_equal(vault_note_escrowed(b.device.node), 0);
    stop(&b);

    chip_extend(&b.chip, 9);
    start(&b);
    device_run_until(&b.device, is_locked, &b);
    assert_false(has_key(&b));
    give(&b, json_null()); /* a controller that has forgotten it: no new key is made */
    device_run_turns(&b.device, 50);
    assert_false(has_key(&b));
    give(&b, json_string(STR("bm9uc2Vuc2U=")));
    device_run_turns(&b.device, 50);
    assert_false(has_key(&b));
    give(&b, json_string(first));
    device_run_until(&b.device, has_key, &b);
    assert_true(str_eq(escrow(&b), first));
    assert_int_equal(json_get_int(status(&b), STR("UnlockMethod"), 0), 2);
    stop(&b);

    start(&b);
    device_run_until(&b.device, has_key, &b);
    assert_true(str_eq(escrow(&b), first));
    assert_int_equal(json_get_int(status(&b), STR("UnlockMethod"), 0), 1);
    stop(&b);
    bench_done(&b);
}

TEST(a_key_that_nobody_has_is_made_anew)
{
    struct bench b;
    bench_init(&b);
    start(&b);
    device_run_until(&b.device, has_key, &b);
    const struct str first = escrow(&b);
    stop(&b);
    chip_extend(&b.chip, 9);
    start(&b);
    give(&b, json_null()); /* before the TPM has said that it cannot */
    device_run_until(&b.device, has_key, &b);
    assert_false(str_eq(escrow(&b), first));
    stop(&b);
    bench_done(&b);
}

/* ---- certificates and quotes ---------------------------------------------------------------- */

static bool has_certs(void *arg)
{
    const struct bench *b = arg;
    return subscription_count(b->topics[CERTS]).n_keys == 3;
}

static struct json *cert_of(struct bench *b, int type)
{
    struct str key, text;
    for (size_t at = 0; subscription_next(b->topics[CERTS], &at, &key, &text);) {
        struct json *value = json_parse_quick(b->device.arena, text);
        if (json_get_int(value, STR("CertType"), 0) == type)
            return value;
    }
    return NULL;
}

static struct str bytes(struct bench *b, const struct json *object, struct str key)
{
    struct str out = STR("");
    assert_int_equal(
        base64_decode(b->device.arena, json_get_str(object, key), BASE64_STANDARD, &out, NULL), 0);
    return out;
}

static bool has_quote(void *arg)
{
    const struct bench *b = arg;
    return subscription_count(b->topics[QUOTES]).n_keys == 1;
}

TEST(keys_of_the_tpm_are_certified_and_quotes_are_made)
{
    struct bench b;
    bench_init(&b);
    start(&b);
    struct arena *a = b.device.arena;
    struct json *nonce = json_new(a, json_object());
    json_set(a, nonce, STR("Nonce"), json_string(STR("MDEyMzQ1Njc4OWFi")));
    assert_int_equal(publication_publish(b.nonces, STR("nonce"), nonce), 0); /* before all keys */
    device_run_until(&b.device, has_certs, &b);
    device_run_until(&b.device, has_quote, &b);
    const struct json *endorsement = cert_of(&b, EDGE_NODE_CERT_ENDORSEMENT);
    assert_true(json_get_bool(endorsement, STR("IsTpm"), false));
    assert_int_equal(json_count(json_get(endorsement, STR("MetaDataItems"))), 1);
    assert_null(device_read(&b.device, "persist/certs/ecdh.key.pem").p);
    const struct json *quote = subscription_get(a, b.topics[QUOTES], STR("nonce"));
    assert_true(json_get_str(quote, STR("Quote")).n > 100);
    assert_int_equal(json_count(json_get(quote, STR("PCRs"))), 24);
    const struct str ecdh = json_get_str(cert_of(&b, EDGE_NODE_CERT_ECDH), STR("Cert"));
    stop(&b);
    start(&b);
    device_run_until(&b.device, has_certs, &b);
    assert_true(str_eq(json_get_str(cert_of(&b, EDGE_NODE_CERT_ECDH), STR("Cert")), ecdh));
    stop(&b);
    bench_done(&b);
}

struct opening {
    struct bench *bench;
    const struct json *block;
    struct str plain;
};

static bool is_opened(void *arg)
{
    struct opening *o = arg;
    return node_keys_open(o->bench->keys, o->bench->device.arena, o->block, &o->plain) == 0;
}

static struct json base64(struct arena *a, struct str s)
{
    return json_string(base64_encode(a, s, BASE64_STANDARD));
}

TEST(what_is_sealed_to_the_tpm_is_opened_by_it)
{
    struct bench b;
    struct cipher_pair pair;
    bench_init(&b);
    start(&b);
    struct arena *a = b.device.arena;
    device_run_until(&b.device, has_certs, &b);
    const struct json *own = cert_of(&b, EDGE_NODE_CERT_ECDH);
    CLEANUP(pki_cert_freep) struct pki_cert *cert = NULL;
    assert_int_equal(pki_cert_parse(bytes(&b, own, STR("Cert")), &cert), 0);
    CLEANUP(pki_public_freep) struct pki_public *key = pki_cert_public(cert);
    assert_int_equal(cipher_pair(a, b.device.exchange.key, STR("hash"), key,
                                 bytes(&b, own, STR("CertID")), &pair),
                     0);
    const Eve__Common__CipherBlock *sealed = cipher_seal(a, &pair, STR("the secret"), NULL);
    struct json *controller = json_new(a, json_object()), *block = json_new(a, json_object());
    json_set(a, controller, STR("Type"), json_int(3));
    json_set(a, controller, STR("Cert"), base64(a, pki_cert_pem(a, b.device.exchange.cert)));
    json_set(a, controller, STR("CertHash"), base64(a, STR("hash")));
    assert_int_equal(publication_publish(b.controller, STR("hash"), controller), 0);
    struct json *context = json_set(a, block, STR("CipherContext"), json_object());
    json_set(a, context, STR("ControllerCertHash"), base64(a, STR("hash")));
    json_set(a, context, STR("DeviceCertHash"), base64(a, pair.device_cert_hash));
    json_set(a, block, STR("InitialValue"), base64(a, pb_bytes(sealed->initialvalue)));
    json_set(a, block, STR("CipherData"), base64(a, pb_bytes(sealed->cipherdata)));
    json_set(a, block, STR("ClearTextHash"), base64(a, pb_bytes(sealed->cleartextsha256)));
    struct opening o = {&b, block, STR_NONE};
    device_run_until(&b.device, is_opened, &o);
    assert_str(o.plain, "the secret");
    stop(&b);
    bench_done(&b);
}

/* Freed at any moment of what workers do. */
TEST(it_may_end_while_the_tpm_is_at_work)
{
    struct bench b;
    bench_init(&b);
    for (int turns = 0; turns < 40; turns += 8) {
        start(&b);
        device_run_turns(&b.device, turns + 1);
        stop(&b);
    }
    bench_done(&b);
}
