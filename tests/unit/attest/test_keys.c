/* SPDX-License-Identifier: Apache-2.0 */
#include "attest/keys.h"

#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>

#include "attest/certificates.h"
#include "attest/messages.h"
#include "attest/vault.h"
#include "base/base64.h"
#include "device.h"
#include "eve/cipher.h"
#include "eve/envelope.h"
#include "protobuf/message.h"
#include "test.h"

#define CONTROLLER_ECDH 3

/* A node with its certificates in software, and a controller that is known by its topics. */
struct bench {
    struct device device;
    struct certificates *certificates;
    struct node_keys *keys;
    struct subscription *certs;
    struct publication *controller, *contexts;
};

static bool has_two(void *arg)
{
    struct bench *b = arg;
    return subscription_count(b->certs).n_keys >= 2;
}

static void start(struct bench *b)
{
    static const struct subscription_handlers none = {0};
    const struct pubsub_name certs = {
        .agent = STR("tpmmgr"), .topic = STR("EdgeNodeCert"), .is_persistent = true};
    const struct pubsub_name controller = {.agent = STR("zedagent"),
                                           .topic = STR("ControllerCert")};
    const struct pubsub_name contexts = {.agent = STR("zedagent"), .topic = STR("CipherContext")};
    device_start(&b->device, /* is_simulated= */ true);
    struct pubsub *ps = b->device.node->pubsub;
    assert_int_equal(certificates_new(b->device.node, NULL, &b->certificates), 0);
    assert_int_equal(node_keys_new(b->device.node, NULL, &b->keys), 0);
    assert_int_equal(subscription_new(ps, &certs, &none, NULL, &b->certs), 0);
    assert_int_equal(publication_new(ps, &controller, &b->controller), 0);
    assert_int_equal(publication_new(ps, &contexts, &b->contexts), 0);
    device_run_until(&b->device, has_two, b);
}

static void stop(struct bench *b)
{
    publication_free(b->controller);
    publication_free(b->contexts);
    subscription_free(b->certs);
    certificates_free(b->certificates);
    node_keys_free(b->keys);
    device_stop(&b->device);
}

/* The published certificate of that type. */
static struct json *cert_of(struct bench *b, int type)
{
    struct str key, text;
    for (size_t at = 0; subscription_next(b->certs, &at, &key, &text);) {
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

static struct json base64(struct bench *b, struct str s)
{
    return json_string(base64_encode(b->device.arena, s, BASE64_STANDARD));
}

/* ---- certificates --------------------------------------------------------------------------- */

TEST(certificates_are_signed_by_the_device_and_made_once)
{
    struct bench b = {0};
    device_init(&b.device);
    start(&b);
    const struct str pem = bytes(&b, cert_of(&b, EDGE_NODE_CERT_ECDH), STR("Cert"));
    const struct str quote_pem = bytes(&b, cert_of(&b, EDGE_NODE_CERT_QUOTE), STR("Cert"));
    unsigned char hash[SHA256_BYTES];
    pki_sha256(pem, hash);
    const struct str id = bytes(&b, cert_of(&b, EDGE_NODE_CERT_ECDH), STR("CertID"));
    assert_int_equal(id.n, 16);
    assert_memory_equal(id.p, hash, id.n);
    assert_null(cert_of(&b, EDGE_NODE_CERT_ENDORSEMENT));
    assert_false(json_get_bool(cert_of(&b, EDGE_NODE_CERT_ECDH), STR("IsTpm"), true));
    assert_true(str_eq(device_read(&b.device, "persist/certs/ecdh.cert.pem"), pem));

    CLEANUP(pki_cert_freep) struct pki_cert *cert = NULL;
    assert_int_equal(pki_cert_parse(pem, &cert), 0);
    CLEANUP(pki_public_freep)
    struct pki_public *own = pki_cert_public(b.device.node->identity.cert);
    assert_true(pki_cert_is_signed_with(cert, own));
    assert_str(pki_cert_common_name(b.device.arena, cert), "Device ECDH certificate");
    /* As long as the device's own lives, give or take the second it took. */
    assert_true(pki_cert_not_after(b.device.node->identity.cert) - pki_cert_not_after(cert) < 100);

    struct stat st;
    assert_int_equal(stat(device_path(&b.device, "persist/certs/ecdh.key.pem"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    stop(&b);
    start(&b);
    assert_true(str_eq(bytes(&b, cert_of(&b, EDGE_NODE_CERT_ECDH), STR("Cert")), pem));
    assert_true(str_eq(bytes(&b, cert_of(&b, EDGE_NODE_CERT_QUOTE), STR("Cert")), quote_pem));
    stop(&b);
    device_done(&b.device);
}

static bool has_other(void *arg)
{
    struct bench *b = arg;
    return has_two(b) && !cert_of(b, EDGE_NODE_CERT_ENDORSEMENT) &&
           subscription_count(b->certs).n_keys == 2;
}

/* A key that is lost, or a certificate of another device: both are made again, and the old one is
 * published no more. */
TEST(a_certificate_without_its_key_is_made_again)
{
    struct bench b = {0};
    device_init(&b.device);
    start(&b);
    const struct str before = bytes(&b, cert_of(&b, EDGE_NODE_CERT_ECDH), STR("Cert"));
    stop(&b);
    device_write(&b.device, "persist/certs/ecdh.key.pem",
                 pki_key_pem(b.device.arena, b.device.signing.key));
    start(&b);
    device_run_until(&b.device, has_other, &b);
    const struct str after = bytes(&b, cert_of(&b, EDGE_NODE_CERT_ECDH), STR("Cert"));
    assert_false(str_eq(before, after));
    stop(&b);
    device_write(&b.device, "persist/certs/ecdh.cert.pem",
                 pki_cert_pem(b.device.arena, b.device.signing.cert));
    start(&b);
    device_run_until(&b.device, has_other, &b);
    assert_false(str_eq(bytes(&b, cert_of(&b, EDGE_NODE_CERT_ECDH), STR("Cert")), after));
    stop(&b);
    device_done(&b.device);
}

/* ---- quotes --------------------------------------------------------------------------------- */

static bool has_one(void *arg)
{
    return subscription_count(arg).n_keys == 1;
}

static bool has_none(void *arg)
{
    return subscription_count(arg).n_keys == 0;
}

TEST(without_a_tpm_a_nonce_is_answered_with_an_empty_quote)
{
    static const struct subscription_handlers none = {0};
    struct bench b = {0};
    struct publication *nonces = NULL;
    struct subscription *quotes = NULL;
    const struct pubsub_name nonce_name = {.agent = STR("zedagent"), .topic = STR("AttestNonce")};
    const struct pubsub_name quote_name = {.agent = STR("tpmmgr"), .topic = STR("AttestQuote")};
    device_init(&b.device);
    start(&b);
    struct arena *a = b.device.arena;
    assert_int_equal(publication_new(b.device.node->pubsub, &nonce_name, &nonces), 0);
    assert_int_equal(subscription_new(b.device.node->pubsub, &quote_name, &none, NULL, &quotes), 0);
    struct json *value = json_new(a, json_object());
    json_set(a, value, STR("Nonce"), base64(&b, STR("nonce")));
    assert_int_equal(publication_publish(nonces, STR("6e6f6e6365"), value), 0);
    device_run_until(&b.device, has_one, quotes);
    const struct json *quote = subscription_get(a, quotes, STR("6e6f6e6365"));
    assert_str(json_get_str(quote, STR("Nonce")), "bm9uY2U=");
    assert_true(json_is(json_get(quote, STR("Quote")), JSON_NULL));
    assert_int_equal(publication_unpublish(nonces, STR("6e6f6e6365")), 0);
    device_run_until(&b.device, has_none, quotes);
    publication_free(nonces);
    subscription_free(quotes);
    stop(&b);
    device_done(&b.device);
}

/* ---- opening -------------------------------------------------------------------------------- */

struct sealed {
    struct cipher_pair pair;
    struct json *block; /* CipherBlockStatus */
};

static void publish_controller(struct bench *b, const struct authority *of, struct str hash)
{
    struct arena *a = b->device.arena;
    struct json *value = json_new(a, json_object());
    json_set(a, value, STR("HashAlgo"), json_int(2));
    json_set(a, value, STR("Type"), json_int(CONTROLLER_ECDH));
    json_set(a, value, STR("Cert"), base64(b, pki_cert_pem(a, of->cert)));
    json_set(a, value, STR("CertHash"), base64(b, hash));
    assert_int_equal(publication_publish(b->controller,
                                         pki_hex(a, (const unsigned char *) hash.p, hash.n), value),
                     0);
}

static struct json *block_json(struct bench *b, const Eve__Common__CipherBlock *block)
{
    struct arena *a = b->device.arena;
    struct json *value = json_new(a, json_object());
    json_set(a, value, STR("CipherContextID"), json_string(pb_text(block->ciphercontextid)));
    json_set(a, value, STR("InitialValue"), base64(b, pb_bytes(block->initialvalue)));
    json_set(a, value, STR("pubsub-large-CipherData"), base64(b, pb_bytes(block->cipherdata)));
    json_set(a, value, STR("ClearTextHash"), base64(b, pb_bytes(block->cleartextsha256)));
    json_set(a, value, STR("IsCipher"), json_bool(true));
    return value;
}

static struct json *context_json(struct bench *b, const struct cipher_pair *p)
{
    struct arena *a = b->device.arena;
    struct json *value = json_new(a, json_object());
    json_set(a, value, STR("ContextID"), json_string(p->context_id));
    json_set(a, value, STR("ControllerCertHash"), base64(b, p->controller_cert_hash));
    json_set(a, value, STR("DeviceCertHash"), base64(b, p->device_cert_hash));
    return value;
}

/* As the controller does it for the device's published certificate. */
static struct sealed seal(struct bench *b, struct str plain)
{
    struct arena *a = b->device.arena;
    struct sealed s;
    const struct json *own = cert_of(b, EDGE_NODE_CERT_ECDH);
    CLEANUP(pki_cert_freep) struct pki_cert *cert = NULL;
    assert_int_equal(pki_cert_parse(bytes(b, own, STR("Cert")), &cert), 0);
    CLEANUP(pki_public_freep) struct pki_public *key = pki_cert_public(cert);
    assert_int_equal(cipher_pair(a, b->device.exchange.key, STR("controller's hash"), key,
                                 bytes(b, own, STR("CertID")), &s.pair),
                     0);
    s.block = block_json(b, cipher_seal(a, &s.pair, plain, NULL));
    return s;
}

struct opening {
    struct bench *bench;
    const struct json *block;
};

static bool is_known(void *arg)
{
    struct opening *o = arg;
    struct str plain;
    return node_keys_open(o->bench->keys, o->bench->device.arena, o->block, &plain) != -ENOENT;
}

TEST(a_block_is_opened_once_everything_is_known)
{
    struct bench b = {0};
    device_init(&b.device);
    start(&b);
    struct arena *a = b.device.arena;
    const struct sealed s = seal(&b, STR("the secret"));
    struct opening o = {&b, s.block};
    struct str plain = STR_NONE;
    device_run_turns(&b.device, 3);
    assert_int_equal(node_keys_open(b.keys, a, s.block, &plain), -ENOENT);
    publish_controller(&b, &b.device.exchange, STR("controller's hash"));
    device_run_turns(&b.device, 3);
    assert_int_equal(node_keys_open(b.keys, a, s.block, &plain), -ENOENT);
    assert_int_equal(publication_publish(b.contexts, s.pair.context_id, context_json(&b, &s.pair)),
                     0);
    device_run_until(&b.device, is_known, &o);
    assert_int_equal(node_keys_open(b.keys, a, s.block, &plain), 0);
    assert_str(plain, "the secret");

    json_set(a, s.block, STR("ClearTextHash"), base64(&b, STR("12345678901234567890123456789012")));
    assert_int_equal(node_keys_open(b.keys, a, s.block, &plain), -EBADMSG);
    json_remove(s.block, STR("pubsub-large-CipherData"));
    assert_int_equal(node_keys_open(b.keys, a, s.block, &plain), -EBADMSG);
    assert_int_equal(node_keys_open(b.keys, a, NULL, &plain), -EBADMSG);
    assert_int_equal(publication_unpublish(b.contexts, s.pair.context_id), 0);
    device_run_turns(&b.device, 5);
    assert_int_equal(node_keys_open(b.keys, a, s.block, &plain), -ENOENT);
    stop(&b);
    device_done(&b.device);
}

TEST(a_context_may_come_with_the_block)
{
    struct bench b = {0};
    device_init(&b.device);
    start(&b);
    const struct sealed s = seal(&b, STR("the secret"));
    struct opening o = {&b, s.block};
    struct str plain = STR_NONE;
    json_set(b.device.arena, s.block, STR("CipherContext"), *context_json(&b, &s.pair));
    publish_controller(&b, &b.device.exchange, STR("controller's hash"));
    device_run_until(&b.device, is_known, &o);
    assert_int_equal(node_keys_open(b.keys, b.device.arena, s.block, &plain), 0);
    assert_str(plain, "the secret");
    stop(&b);
    device_done(&b.device);
}

/* Another controller's key makes other bytes, which the hash tells. */
TEST(a_key_that_does_not_fit_opens_nothing)
{
    struct bench b = {0};
    device_init(&b.device);
    start(&b);
    const struct sealed s = seal(&b, STR("the secret"));
    struct opening o = {&b, s.block};
    struct str plain;
    json_set(b.device.arena, s.block, STR("CipherContext"), *context_json(&b, &s.pair));
    publish_controller(&b, &b.device.signing, STR("controller's hash"));
    device_run_until(&b.device, is_known, &o);
    assert_int_equal(node_keys_open(b.keys, b.device.arena, s.block, &plain), -EBADMSG);
    stop(&b);
    device_done(&b.device);
}

static void *open_often(void *arg)
{
    const struct opening *o = arg;
    size_t n_good = 0;
    for (int i = 0; i < 50; i++) {
        ARENA_AUTO a = arena_new();
        struct str plain = STR("");
        n_good +=
            node_keys_open(o->bench->keys, a, o->block, &plain) == 0 && str_is(plain, "the secret");
    }
    return (void *) n_good;
}

TEST(other_threads_open_while_topics_change)
{
    struct bench b = {0};
    device_init(&b.device);
    start(&b);
    const struct sealed s = seal(&b, STR("the secret"));
    struct opening o = {&b, s.block};
    json_set(b.device.arena, s.block, STR("CipherContext"), *context_json(&b, &s.pair));
    publish_controller(&b, &b.device.exchange, STR("controller's hash"));
    device_run_until(&b.device, is_known, &o);
    pthread_t threads[3];
    for (size_t i = 0; i < N_ELEMENTS(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_often, &o), 0);
    for (int i = 0; i < 20; i++) {
        publish_controller(&b, &b.device.signing, arena_printf(b.device.arena, "another %d", i));
        device_run_turns(&b.device, 2);
    }
    for (size_t i = 0; i < N_ELEMENTS(threads); i++) {
        void *n_good = NULL;
        assert_int_equal(pthread_join(threads[i], &n_good), 0);
        assert_int_equal((size_t) n_good, 50);
    }
    stop(&b);
    device_done(&b.device);
}

/* ---- for the metadata server ---------------------------------------------------------------- */

TEST(the_metadata_server_gets_what_it_asks)
{
    struct bench b = {0};
    device_init(&b.device);
    start(&b);
    struct arena *a = b.device.arena;
    Eve__Common__EncryptionBlock block = EVE__COMMON__ENCRYPTION_BLOCK__INIT;
    block.protecteduserdata = (char *) "dXNlcg==";
    block.encrypted_data = (char *) "cGF0Y2g=";
    const struct sealed s = seal(&b, pb_pack(a, &block.base));
    struct opening o = {&b, s.block};
    struct str out = STR_NONE;
    json_set(a, s.block, STR("CipherContext"), *context_json(&b, &s.pair));
    publish_controller(&b, &b.device.exchange, STR("controller's hash"));
    device_run_until(&b.device, is_known, &o);
    const struct msrv_app app = {.user_data_cipher = s.block};
    assert_int_equal(node_keys_world.decrypt_user_data(b.keys, a, &app, &out), 0);
    assert_str(out, "dXNlcg==");
    struct msrv_patch_file file = {.secret = s.block};
    assert_int_equal(node_keys_world.decrypt(b.keys, a, &file, &out), 0);
    assert_str(out, "cGF0Y2g=");
    device_write(&b.device, "block.json", json_text(a, s.block));
    struct json *blob = json_new(a, json_object());
    json_set(a, blob, STR("encURL"), json_string(str_of(device_path(&b.device, "block.json"))));
    file.secret = blob;
    assert_int_equal(node_keys_world.decrypt(b.keys, a, &file, &out), 0);
    assert_str(out, "cGF0Y2g=");

    assert_int_equal(node_keys_world.sign(b.keys, a, STR("payload"), &out), 0);
    struct envelope e;
    assert_int_equal(envelope_parse(out, &e), 0);
    CLEANUP(pki_public_freep)
    struct pki_public *own = pki_cert_public(b.device.node->identity.cert);
    assert_int_equal(envelope_verify(&e, own), 0);
    assert_str(e.payload, "payload");

    struct msrv_tpm_keys keys;
    struct msrv_tpm_proof proof;
    assert_int_equal(node_keys_world.tpm_keys(b.keys, a, &keys), -EOPNOTSUPP);
    assert_int_equal(
        node_keys_world.tpm_activate(b.keys, a, &(struct msrv_tpm_challenge){0}, &proof),
        -EOPNOTSUPP);
    stop(&b);
    device_done(&b.device);
}

/* ---- vault ---------------------------------------------------------------------------------- */

TEST(without_a_tpm_there_is_no_key_to_keep)
{
    static const struct subscription_handlers none = {0};
    struct device d;
    struct vault *v = NULL, *second = NULL;
    struct subscription *keys = NULL;
    const struct pubsub_name name = {.agent = STR("vaultmgr"),
                                     .topic = STR("EncryptedVaultKeyFromDevice")};
    device_init(&d);
    device_start(&d, /* is_simulated= */ true);
    assert_int_equal(subscription_new(d.node->pubsub, &name, &none, NULL, &keys), 0);
    assert_int_equal(vault_new(d.node, NULL, &v), 0);
    assert_int_equal(vault_new(d.node, NULL, &second), -EADDRINUSE);
    device_run_until(&d, has_one, keys);
    const struct json *value = subscription_get(d.arena, keys, VAULT_NAME);
    assert_true(json_is(json_get(value, STR("EncryptedVaultKey")), JSON_NULL));
    assert_false(json_get_bool(value, STR("IsTpmEnabled"), true));
    vault_free(v);
    subscription_free(keys);
    device_stop(&d);
    device_done(&d);
}
