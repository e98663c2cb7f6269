/* SPDX-License-Identifier: Apache-2.0 */
#include "eve/envelope.h"

#include <errno.h>

#include "eve/auth.pb-c.h"
#include "hex.h"
#include "protobuf/message.h"
#include "test.h"

#define HASH_32 "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

static struct str packed(struct arena *a, const Eve__Auth__AuthContainer *c)
{
    return pb_pack(a, &c->base);
}

TEST(all_fields_are_found_where_they_lie)
{
    ARENA_AUTO a = arena_new();
    Eve__Auth__AuthBody body = EVE__AUTH__AUTH_BODY__INIT;
    Eve__Auth__AuthContainer c = EVE__AUTH__AUTH_CONTAINER__INIT;
    Eve__Common__CipherContext context = EVE__COMMON__CIPHER_CONTEXT__INIT;
    body.payload = pb_data(STR("the payload"));
    c.protectedpayload = &body;
    c.algo = EVE__COMMON__HASH_ALGORITHM__HASH_ALGORITHM_SHA256_32BYTES;
    c.sendercerthash = pb_data(from_hex(a, HASH_32));
    c.signaturehash = pb_data(STR("signature"));
    c.sendercert = pb_data(STR("certificate"));
    context.contextid = (char *) (uintptr_t) "skipped";
    c.ciphercontext = &context;
    struct str bytes = packed(a, &c);
    struct envelope e;
    assert_int_equal(envelope_parse(bytes, &e), 0);
    assert_str(e.payload, "the payload");
    assert_true(str_eq(e.sender_hash, from_hex(a, HASH_32)));
    assert_str(e.signature, "signature");
    assert_str(e.sender_cert, "certificate");
    assert_int_equal(e.algorithm, 2);
    assert_true(e.payload.p > bytes.p && e.payload.p < bytes.p + bytes.n);
    assert_int_equal(envelope_check_form(&e), 0);
}

TEST(absent_fields_are_empty)
{
    struct envelope e;
    assert_int_equal(envelope_parse(STR_NONE, &e), 0);
    assert_true(e.payload.p && e.payload.n == 0 && e.signature.p && e.signature.n == 0);
    assert_true(e.sender_hash.p && e.sender_hash.n == 0 && e.sender_cert.n == 0);
    assert_int_equal(e.algorithm, 0);
    assert_int_equal(envelope_parse(STR("\x0a\x00"), &e), 0);
    assert_true(e.payload.p && e.payload.n == 0);
    assert_int_equal(envelope_parse(STR("\x0a\x02\x0a\x00"), &e), 0);
    assert_true(e.payload.p && e.payload.n == 0);
}

/* As protobuf decoders have it; most of these no encoder would write. */
TEST(odd_but_valid_bytes_are_read_as_protobuf_has_it)
{
    static const struct {
        const char *hex, *payload, *signature;
        int algorithm;
    } cases[] = {
        {"0a030a0161"
         "0a030a0162",
         "b", "", 0}, /* the last wins */
        {"0a030a0161"
         "0a00",
         "a", "", 0},                     /* and one without a payload merges */
        {"0a060a01610a0162", "b", "", 0}, /* within the body too */
        {"0a08120178"
         "0a0161"
         "1805",
         "a", "", 0}, /* unknown fields of the body */
        {"22017822017a", "", "z", 0},
        {"1001"
         "1002",
         "", "", 2},
        {"10ffffffffffffffffff01", "", "", -1}, /* ten bytes, as negative numbers have */
        {"108200", "", "", 2},                  /* longer than need be */
        {"0801"
         "1203616263"
         "2005",
         "", "", 0}, /* known numbers of another type are unknown */
        {"f8ffffff0f01"
         "fa3f00"
         "4101020304050607084d01020304"
         "1001",
         "", "", 1},
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct envelope e;
        assert_int_equal(envelope_parse(from_hex(a, cases[i].hex), &e), 0);
        assert_str(e.payload, cases[i].payload);
        assert_str(e.signature, cases[i].signature);
        assert_int_equal(e.algorithm, cases[i].algorithm);
    }
}

TEST(what_is_no_container_is_refused)
{
    static const char *const cases[] = {
        "0a",         /* ends after a tag */
        "0a05",       /* or after a length */
        "0a050a0161", /* shorter than it says */
        "0a020a01",   /* the same within the body */
        "0a02000a",   /* field 0 in the body */
        "0001",       /* field 0 */
        "0b0c",       /* groups */
        "0c",
        "0e00",
        "0f00",                     /* types that never were */
        "10ffffffffffffffffff02",   /* more than 64 bits */
        "10ffffffffffffffffffff01", /* eleven bytes */
        "80808080800000",           /* a tag of zero, at length */
        "90808080100a",             /* a tag of more than 32 bits */
        "0affffffffffffffffff01",   /* a length around all memory */
        "0affffffff0f",
        "4101020304050607", /* eight bytes, one missing */
        "4d010203",
        "10",
        "1080",
    };
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct envelope e = {.algorithm = 77};
        if (envelope_parse(from_hex(a, cases[i]), &e) != -EBADMSG)
            fail_msg("%s was taken", cases[i]);
        assert_int_equal(e.algorithm, 77);
    }
}

TEST(the_form_asks_for_a_whole_hash_and_a_signature)
{
    ARENA_AUTO a = arena_new();
    struct str hash = from_hex(a, HASH_32), cert = STR("");
    char *large = arena_zalloc(a, ENVELOPE_MAX_CERT_BYTES + 1);
    struct str too_large = str_range(large, ENVELOPE_MAX_CERT_BYTES + 1);
    const struct {
        struct envelope e;
        int result;
    } cases[] = {
        {{STR(""), hash, STR("s"), cert, 2}, 0},
        {{STR(""), str_sub(hash, 0, 16), STR("s"), cert, 1}, 0},
        {{STR(""), str_sub(hash, 0, 16), STR("s"), cert, 2}, -EINVAL},
        {{STR(""), hash, STR("s"), cert, 1}, -EINVAL},
        {{STR(""), hash, STR("s"), cert, 0}, -EINVAL},
        {{STR(""), hash, STR("s"), cert, 3}, -EINVAL},
        {{STR(""), str_sub(hash, 0, 31), STR("s"), cert, 2}, -EINVAL},
        {{STR(""), STR(""), STR("s"), cert, 2}, -EINVAL},
        {{STR(""), hash, STR(""), cert, 2}, -EINVAL},
        {{STR(""), hash, STR("s"), too_large, 2}, -EINVAL},
        {{STR(""), hash, STR("s"), str_from(too_large, 1), 2}, 0},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        assert_int_equal(envelope_check_form(&cases[i].e), cases[i].result);
}

static void seal_and_check(struct arena *a, const struct pki_key *key, size_t n_payload)
{
    struct envelope_signer signer = {.key = key};
    pki_sha256(STR("a certificate"), signer.cert_hash);
    char *payload = arena_alloc(a, n_payload + 1);
    memset(payload, 'p', n_payload + 1);
    struct str sealed = envelope_seal(a, &signer, str_range(payload, n_payload));
    assert_non_null(sealed.p);
    struct envelope e;
    assert_int_equal(envelope_parse(sealed, &e), 0);
    assert_int_equal(envelope_check_form(&e), 0);
    assert_true(str_eq(e.payload, str_range(payload, n_payload)));
    assert_int_equal(e.algorithm, 2);
    assert_int_equal(e.signature.n, PKI_RAW_SIGNATURE_BYTES);
    assert_memory_equal(e.sender_hash.p, signer.cert_hash, ENVELOPE_HASH_BYTES);
    CLEANUP(pki_public_freep) struct pki_public *public = pki_public_of_key(key);
    assert_int_equal(envelope_verify(&e, public), 0);
    /* Another decoder sees the same, and would have written the same. */
    Eve__Auth__AuthContainer *c = PB_UNPACK(a, eve__auth__auth_container, sealed);
    assert_non_null(c);
    assert_non_null(c->protectedpayload);
    assert_true(str_eq(pb_bytes(c->protectedpayload->payload), e.payload));
    assert_true(str_eq(packed(a, c), sealed));
}

TEST(what_we_seal_others_can_open)
{
    CLEANUP(pki_key_freep) struct pki_key *key = pki_key_new();
    /* Around the sizes at which a length, the body's or the payload's, takes another byte. */
    static const size_t sizes[] = {0,   1,     124,   125,   126,   127,
                                   128, 16379, 16380, 16381, 16384, 300000};
    ARENA_AUTO a = arena_new();
    for (size_t i = 0; i < N_ELEMENTS(sizes); i++)
        seal_and_check(a, key, sizes[i]);
}

TEST(another_key_or_another_payload_does_not_verify)
{
    CLEANUP(pki_key_freep) struct pki_key *key = pki_key_new();
    CLEANUP(pki_key_freep) struct pki_key *other = pki_key_new();
    CLEANUP(pki_public_freep) struct pki_public *wrong = pki_public_of_key(other);
    ARENA_AUTO a = arena_new();
    struct envelope_signer signer = {.key = key};
    struct str sealed = envelope_seal(a, &signer, STR("payload"));
    struct envelope e;
    assert_int_equal(envelope_parse(sealed, &e), 0);
    assert_int_equal(envelope_verify(&e, wrong), -EKEYREJECTED);
    assert_int_equal(envelope_verify(&e, NULL), -EKEYREJECTED);
    e.payload = STR("Payload");
    CLEANUP(pki_public_freep) struct pki_public *right = pki_public_of_key(key);
    assert_int_equal(envelope_verify(&e, right), -EKEYREJECTED);
}
