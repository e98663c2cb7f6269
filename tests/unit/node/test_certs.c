/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/base64.h"
#include "device.h"
#include "eve/certs.pb-c.h"
#include "eve/envelope.h"
#include "test.h"

#define SIGNING EVE__CERTS__ZCERT_TYPE__CERT_TYPE_CONTROLLER_SIGNING
#define BETWEEN EVE__CERTS__ZCERT_TYPE__CERT_TYPE_CONTROLLER_INTERMEDIATE
#define EXCHANGE EVE__CERTS__ZCERT_TYPE__CERT_TYPE_CONTROLLER_ECDH_EXCHANGE
#define ONBOARDING EVE__CERTS__ZCERT_TYPE__CERT_TYPE_DEVICE_ONBOARDING

static int take(struct device *d, struct str message)
{
    const char *reason = NULL;
    const int r = node_take_controller_certs(d->node, message, /* needs_ecdh= */ true, &reason);
    if (r < 0)
        assert_non_null(reason);
    return r;
}

static enum uplink_status open_with(struct device *d, struct str body, int expected)
{
    BUF_AUTO payload = {0};
    enum uplink_status status = UPLINK_DEBUG;
    assert_int_equal(node_open_envelope(d->node, body, &payload, &status), expected);
    assert_str(buf_str(&payload), expected == 0 ? "payload" : "");
    return status;
}

TEST(a_good_set_is_taken_and_saved_and_is_there_after_a_restart)
{
    CLEANUP(device_done) struct device d;
    size_t n;
    device_init(&d);
    device_start(&d, /* is_simulated= */ false);
    assert_false(node_has_controller_certs(d.node));
    assert_int_equal(node_load_controller_certs(d.node), -ENOENT);
    assert_int_equal(take(&d, device_good_certs(&d)), 0);
    const struct node_controller_cert *certs = node_controller_certs(d.node, &n);
    assert_int_equal(n, 3);
    assert_int_equal(certs[0].type, SIGNING);
    assert_true(
        str_eq(device_read(&d, "persist/checkpoint/controllercerts"), device_good_certs(&d)));
    device_stop(&d);
    device_start(&d, /* is_simulated= */ false);
    assert_true(node_has_controller_certs(d.node));
}

TEST(a_set_is_refused_for_what_is_wrong_with_it)
{
    CLEANUP(device_done) struct device d;
    device_init(&d);
    CLEANUP(authority_done) struct authority other = authority_new("other", true, NULL);
    CLEANUP(authority_done) struct authority stranger = authority_new("stranger", false, &other);
    const struct {
        struct device_cert certs[4];
        size_t n;
        int result;
    } cases[] = {
        {{{SIGNING, &d.signing}, {EXCHANGE, &d.exchange}, {BETWEEN, &d.between}}, 3, 0},
        {{{SIGNING, &d.signing}, {EXCHANGE, &d.exchange}}, 2, -EKEYREJECTED},
        {{{SIGNING, &d.signing}, {BETWEEN, &d.between}}, 2, -EKEYREJECTED},
        {{{EXCHANGE, &d.exchange}, {BETWEEN, &d.between}}, 2, -EKEYREJECTED},
        {{{SIGNING, &d.signing},
          {SIGNING, &d.signing},
          {EXCHANGE, &d.exchange},
          {BETWEEN, &d.between}},
         4,
         -EKEYREJECTED},
        {{{SIGNING, &d.signing},
          {EXCHANGE, &d.exchange},
          {BETWEEN, &d.between},
          {ONBOARDING, &d.exchange}},
         4,
         -EKEYREJECTED},
        {{{SIGNING, &stranger}, {EXCHANGE, &d.exchange}, {BETWEEN, &d.between}, {BETWEEN, &other}},
         4,
         -EKEYREJECTED},
        {{{SIGNING, &d.signing}, {EXCHANGE, &stranger}, {BETWEEN, &d.between}}, 3, -EKEYREJECTED},
        {{{SIGNING, &d.signing}}, 0, -EKEYREJECTED},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        device_start(&d, /* is_simulated= */ true);
        assert_int_equal(node_file_remove(d.node, NODE_PERSIST, STR("checkpoint/controllercerts")),
                         0);
        const int r = take(&d, device_certs(&d, cases[i].certs, cases[i].n));
        if (r != cases[i].result)
            fail_msg("case %zu: %d", i, r);
        device_stop(&d);
        device_start(&d, /* is_simulated= */ true);
        assert_int_equal(node_has_controller_certs(d.node), cases[i].result == 0);
        device_stop(&d);
    }
    device_start(&d, /* is_simulated= */ true);
    assert_int_equal(take(&d, STR("\xff\xff")), -EBADMSG);
}

TEST(certificates_that_have_expired_are_not_believed)
{
    CLEANUP(device_done) struct device d;
    device_init(&d);
    device_start(&d, /* is_simulated= */ true);
    d.clock.now_us += (int64_t) 101 * 86400 * 1000000;
    assert_int_equal(take(&d, device_good_certs(&d)), -EKEYREJECTED);
}

TEST(the_checkpoint_changes_with_the_hashes_alone)
{
    CLEANUP(device_done) struct device d;
    device_init(&d);
    device_start(&d, /* is_simulated= */ true);
    const struct str first = device_good_certs(&d);
    assert_int_equal(take(&d, first), 0);
    const struct device_cert turned[] = {
        {BETWEEN, &d.between}, {EXCHANGE, &d.exchange}, {SIGNING, &d.signing}};
    assert_int_equal(take(&d, device_certs(&d, turned, 3)), 0);
    assert_true(str_eq(device_read(&d, "persist/checkpoint/controllercerts"), first));
    assert_null(device_read(&d, "persist/checkpoint/controllercerts.bak").p);
    CLEANUP(authority_done) struct authority next = authority_new("next", false, &d.between);
    const struct device_cert rotated[] = {
        {SIGNING, &next}, {BETWEEN, &d.between}, {EXCHANGE, &d.exchange}};
    const struct str second = device_certs(&d, rotated, 3);
    assert_int_equal(take(&d, second), 0);
    assert_true(str_eq(device_read(&d, "persist/checkpoint/controllercerts"), second));
    assert_true(str_eq(device_read(&d, "persist/checkpoint/controllercerts.bak"), first));
    /* What was signed before is still the controller's, while the backup is there. */
    assert_int_equal(open_with(&d, device_seal(&d, &d.signing, STR("payload")), 0), UPLINK_NONE);
    assert_int_equal(open_with(&d, device_seal(&d, &next, STR("payload")), 0), UPLINK_NONE);
}

TEST(a_damaged_checkpoint_falls_back_to_its_backup)
{
    CLEANUP(device_done) struct device d;
    device_init(&d);
    device_start(&d, /* is_simulated= */ true);
    assert_int_equal(take(&d, device_good_certs(&d)), 0);
    device_stop(&d);
    device_write(&d, "persist/checkpoint/controllercerts.bak",
                 device_read(&d, "persist/checkpoint/controllercerts"));
    device_write(&d, "persist/checkpoint/controllercerts", STR("\x0a\xff nonsense"));
    device_start(&d, /* is_simulated= */ true);
    assert_true(node_has_controller_certs(d.node));
}

TEST(an_envelope_is_believed_by_hash_and_signature)
{
    CLEANUP(device_done) struct device d;
    device_init(&d);
    device_start(&d, /* is_simulated= */ true);
    const struct str good = device_seal(&d, &d.signing, STR("payload"));
    assert_int_equal(open_with(&d, good, -EKEYREJECTED), UPLINK_NONE);
    assert_int_equal(take(&d, device_good_certs(&d)), 0);
    assert_int_equal(open_with(&d, good, 0), UPLINK_NONE);
    assert_int_equal(open_with(&d, device_seal(&d, &d.exchange, STR("payload")), -EKEYREJECTED),
                     UPLINK_CERT_MISS);
    assert_int_equal(open_with(&d, STR("\x0a\x7f"), -EBADMSG), UPLINK_NONE);

    /* Behind 2 + 2 + 7 bytes of the payload: the algorithm, then the hash, then the signature. */
    char *p = arena_strz(d.arena, good);
    p[5] ^= 1;
    assert_int_equal(open_with(&d, str_range(p, good.n), -EKEYREJECTED), UPLINK_SIGN_VERIFY_FAIL);
    p = arena_strz(d.arena, good);
    assert_int_equal(p[12], 2);
    p[12] = 3;
    assert_int_equal(open_with(&d, str_range(p, good.n), -EKEYREJECTED), UPLINK_ALGO_FAIL);
    struct envelope e;
    assert_int_equal(envelope_parse(good, &e), 0);
    /* The hash and the signature are swapped: 64 bytes are no hash. */
    p = arena_strz(d.arena, good);
    p[13] = 0x22;
    p[13 + 2 + 32] = 0x1a;
    assert_int_equal(open_with(&d, str_range(p, good.n), -EKEYREJECTED), UPLINK_HASH_SIZE_ERROR);
}

TEST(the_device_seals_with_its_key_and_a_registration_with_the_onboarding_one)
{
    CLEANUP(device_done) struct device d;
    BUF_AUTO own = {0};
    BUF_AUTO registration = {0};
    struct envelope e;
    struct str pem;
    device_init(&d);
    device_start(&d, /* is_simulated= */ true);
    assert_int_equal(node_seal_envelope(d.node, true, STR("x"), &registration), -ENOKEY);
    device_stop(&d);
    CLEANUP(authority_done) struct authority onboarding = authority_new("onboarding", false, NULL);
    device_write(&d, "config/onboard.cert.pem", pki_cert_pem(d.arena, onboarding.cert));
    device_write(&d, "config/onboard.key.pem", pki_key_pem(d.arena, onboarding.key));
    device_start(&d, /* is_simulated= */ true);

    assert_int_equal(node_seal_envelope(d.node, false, STR("x"), &own), 0);
    assert_int_equal(envelope_parse(buf_str(&own), &e), 0);
    assert_int_equal(envelope_check_form(&e), 0);
    CLEANUP(pki_public_freep) struct pki_public *key = pki_cert_public(d.node->identity.cert);
    assert_int_equal(envelope_verify(&e, key), 0);
    assert_int_equal(e.sender_cert.n, 0);
    assert_memory_equal(e.sender_hash.p, d.node->identity.cert_hash, SHA256_BYTES);

    assert_int_equal(node_seal_envelope(d.node, true, STR("x"), &registration), 0);
    assert_int_equal(envelope_parse(buf_str(&registration), &e), 0);
    CLEANUP(pki_public_freep) struct pki_public *onboarding_key = pki_cert_public(onboarding.cert);
    assert_int_equal(envelope_verify(&e, onboarding_key), 0);
    assert_int_equal(base64_decode(d.arena, e.sender_cert, BASE64_STANDARD, &pem, NULL), 0);
    assert_true(str_eq(pem, pki_cert_pem(d.arena, onboarding.cert)));
}
