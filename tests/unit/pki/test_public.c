/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/param_build.h>
#include <openssl/rsa.h>
#include <pthread.h>

#include "base/alloc.h"
#include "pki/pki_internal.h"
#include "test.h"

#define PUBLIC_AUTO CLEANUP(pki_public_freep) struct pki_public *
#define KEY_AUTO CLEANUP(pki_key_freep) struct pki_key *
#define CERT_AUTO CLEANUP(pki_cert_freep) struct pki_cert *

/* ---- keys of standards ---------------------------------------------------------------------- */

static struct str from_hex(struct arena *a, const char *hex)
{
    long n = 0;
    unsigned char *bytes = OPENSSL_hexstr2buf(hex, &n);
    assert_non_null(bytes);
    struct str s = arena_str(a, str_range((char *) bytes, (size_t) n));
    OPENSSL_free(bytes);
    return s;
}

/* A key of its scalar; the public half is computed. */
static struct pki_key *key_of(const char *curve, int nid, const char *scalar_hex)
{
    BIGNUM *scalar = NULL;
    assert_true(BN_hex2bn(&scalar, scalar_hex) > 0);
    EC_GROUP *group = EC_GROUP_new_by_curve_name(nid);
    EC_POINT *point = EC_POINT_new(group);
    assert_int_equal(EC_POINT_mul(group, point, scalar, NULL, NULL, NULL), 1);
    unsigned char public[133];
    size_t n = EC_POINT_point2oct(group, point, POINT_CONVERSION_UNCOMPRESSED, public,
                                  sizeof(public), NULL);
    OSSL_PARAM_BLD *b = OSSL_PARAM_BLD_new();
    OSSL_PARAM_BLD_push_utf8_string(b, OSSL_PKEY_PARAM_GROUP_NAME, curve, 0);
    OSSL_PARAM_BLD_push_BN(b, OSSL_PKEY_PARAM_PRIV_KEY, scalar);
    OSSL_PARAM_BLD_push_octet_string(b, OSSL_PKEY_PARAM_PUB_KEY, public, n);
    OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(b);
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    struct pki_key *k = NEW(struct pki_key);
    assert_int_equal(EVP_PKEY_fromdata_init(ctx), 1);
    assert_int_equal(EVP_PKEY_fromdata(ctx, &k->pkey, EVP_PKEY_KEYPAIR, params), 1);
    EVP_PKEY_CTX_free(ctx);
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(b);
    EC_POINT_free(point);
    EC_GROUP_free(group);
    BN_free(scalar);
    return k;
}

static struct pki_key *adopted(EVP_PKEY *pkey)
{
    assert_non_null(pkey);
    struct pki_key *k = NEW(struct pki_key);
    k->pkey = pkey;
    return k;
}

static void assert_no_errors_queued(void)
{
    assert_int_equal(ERR_peek_error(), 0);
}

/* ---- verifying ------------------------------------------------------------------------------ */

/* RFC 6979 A.2.5 and A.2.6: SHA-256 of "sample". */
#define P256_X "C9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721"
#define P256_SIGNATURE \
    "EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716" \
    "F7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8"
#define P384_X \
    "6B9D3DAD2E1B8C1C05B19875B6659F4DE23C3B667BF297BA9AA47740787137D896D5724E4C70A825F872C9EA60D2" \
    "EDF5"
#define P384_SIGNATURE \
    "21B13D1E013C7FA1392D03C5F99AF8B30C570C6F98D4EA8E354B63A21D3DAA33BDE1E888E63355D92FA2B3C36D8F" \
    "B2CDF3AA443FB107745BF4BD77CB3891674632068A10CA67E3D45DB2266FA7D1FEEBEFDC63ECCD1AC42EC0CB8668" \
    "A4FA0AB0"

TEST(raw_signatures_of_the_standard_verify)
{
    ARENA_AUTO a = arena_new();
    KEY_AUTO p256 = key_of("P-256", NID_X9_62_prime256v1, P256_X);
    KEY_AUTO p384 = key_of("P-384", NID_secp384r1, P384_X);
    PUBLIC_AUTO small = pki_public_of_key(p256);
    PUBLIC_AUTO large = pki_public_of_key(p384);
    struct str of_small = from_hex(a, P256_SIGNATURE), of_large = from_hex(a, P384_SIGNATURE);
    assert_int_equal(pki_verify_raw(small, STR("sample"), of_small), 0);
    assert_int_equal(pki_verify_raw(large, STR("sample"), of_large), 0);
    assert_int_equal(pki_verify_raw(small, STR("sample"), of_large), -EKEYREJECTED);
    assert_int_equal(pki_verify_raw(large, STR("sample"), of_small), -EKEYREJECTED);
    assert_int_equal(pki_verify_raw(small, STR("Sample"), of_small), -EKEYREJECTED);
    assert_no_errors_queued();
}

/* The longest DER, whose length needs two bytes. */
TEST(raw_signatures_on_p521_verify)
{
    KEY_AUTO k = adopted(EVP_EC_gen("P-521"));
    PUBLIC_AUTO p = pki_public_of_key(k);
    unsigned char digest[32], der[160], raw[132];
    pki_sha256(STR("long"), digest);
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(k->pkey, NULL);
    size_t n = sizeof(der);
    assert_int_equal(EVP_PKEY_sign_init(ctx), 1);
    assert_int_equal(EVP_PKEY_sign(ctx, der, &n, digest, sizeof(digest)), 1);
    EVP_PKEY_CTX_free(ctx);
    const unsigned char *at = der;
    ECDSA_SIG *sig = d2i_ECDSA_SIG(NULL, &at, (long) n);
    assert_int_equal(BN_bn2binpad(ECDSA_SIG_get0_r(sig), raw, 66), 66);
    assert_int_equal(BN_bn2binpad(ECDSA_SIG_get0_s(sig), raw + 66, 66), 66);
    ECDSA_SIG_free(sig);
    assert_int_equal(pki_verify_raw(p, STR("long"), str_range((char *) raw, sizeof(raw))), 0);
    assert_int_equal(pki_verify_der(p, STR("long"), str_range((char *) der, n)), 0);
}

TEST(one_flipped_bit_or_another_length_is_refused)
{
    KEY_AUTO k = pki_key_new();
    PUBLIC_AUTO p = pki_public_of_key(k);
    unsigned char raw[PKI_RAW_SIGNATURE_BYTES + 1] = {0};
    assert_int_equal(pki_sign_raw(k, STR("message"), raw), 0);
    struct str signature = str_range((char *) raw, PKI_RAW_SIGNATURE_BYTES);
    for (size_t i = 0; i < sizeof(raw) - 1; i++) {
        raw[i] ^= 1;
        assert_int_equal(pki_verify_raw(p, STR("message"), signature), -EKEYREJECTED);
        raw[i] ^= 1;
    }
    assert_int_equal(pki_verify_raw(p, STR("message"), signature), 0);
    for (size_t n = 0; n <= sizeof(raw); n++)
        if (n != PKI_RAW_SIGNATURE_BYTES)
            assert_int_equal(pki_verify_raw(p, STR("message"), str_range((char *) raw, n)),
                             -EKEYREJECTED);
    memset(raw, 0, sizeof(raw));
    assert_int_equal(pki_verify_raw(p, STR("message"), signature), -EKEYREJECTED);
    memset(raw, 0xff, sizeof(raw));
    assert_int_equal(pki_verify_raw(p, STR("message"), signature), -EKEYREJECTED);
    assert_int_equal(pki_verify_raw(p, STR("message"), STR_NONE), -EKEYREJECTED);
    assert_no_errors_queued();
}

/* Numbers with zeros in front, and with a first bit set, each need their own DER. */
TEST(every_signature_we_make_verifies)
{
    KEY_AUTO k = pki_key_new();
    PUBLIC_AUTO p = pki_public_of_key(k);
    size_t n_short = 0, n_high = 0;
    for (unsigned i = 0; i < 100 || !n_short || !n_high; i++) {
        unsigned char raw[PKI_RAW_SIGNATURE_BYTES];
        struct str message = str_range((char *) &i, sizeof(i));
        assert_int_equal(pki_sign_raw(k, message, raw), 0);
        assert_int_equal(pki_verify_raw(p, message, str_range((char *) raw, sizeof(raw))), 0);
        n_short += raw[0] == 0 || raw[32] == 0;
        n_high += raw[0] >= 0x80;
        assert_in_range(i, 0, 100000); /* one in 128 is short */
    }
}

TEST(der_and_raw_do_not_stand_for_each_other)
{
    KEY_AUTO k = pki_key_new();
    PUBLIC_AUTO p = pki_public_of_key(k);
    unsigned char raw[PKI_RAW_SIGNATURE_BYTES], digest[32], der[80];
    assert_int_equal(pki_sign_raw(k, STR("m"), raw), 0);
    pki_sha256(STR("m"), digest);
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(k->pkey, NULL);
    size_t n = sizeof(der);
    assert_int_equal(EVP_PKEY_sign_init(ctx), 1);
    assert_int_equal(EVP_PKEY_sign(ctx, der, &n, digest, sizeof(digest)), 1);
    EVP_PKEY_CTX_free(ctx);
    assert_int_equal(pki_verify_der(p, STR("m"), str_range((char *) der, n)), 0);
    assert_int_equal(pki_verify_raw(p, STR("m"), str_range((char *) der, n)), -EKEYREJECTED);
    assert_int_equal(pki_verify_der(p, STR("m"), str_range((char *) raw, sizeof(raw))),
                     -EKEYREJECTED);
    for (size_t cut = 0; cut < n; cut++)
        assert_int_equal(pki_verify_der(p, STR("m"), str_range((char *) der, cut)), -EKEYREJECTED);
    assert_no_errors_queued();
}

TEST(an_empty_message_is_signed_like_any_other)
{
    KEY_AUTO k = pki_key_new();
    PUBLIC_AUTO p = pki_public_of_key(k);
    unsigned char raw[PKI_RAW_SIGNATURE_BYTES];
    assert_int_equal(pki_sign_raw(k, STR_NONE, raw), 0);
    assert_int_equal(pki_verify_raw(p, STR(""), str_range((char *) raw, sizeof(raw))), 0);
}

struct verifying {
    const struct pki_public *key;
    struct str signature;
    int n_wrong;
};

static void *verify_often(void *arg)
{
    struct verifying *v = arg;
    for (int i = 0; i < 100; i++) {
        v->n_wrong += pki_verify_raw(v->key, STR("shared"), v->signature) != 0;
        v->n_wrong += pki_verify_raw(v->key, STR("other"), v->signature) != -EKEYREJECTED;
    }
    return NULL;
}

TEST(one_key_serves_many_threads_at_once)
{
    KEY_AUTO k = pki_key_new();
    PUBLIC_AUTO p = pki_public_of_key(k);
    unsigned char raw[PKI_RAW_SIGNATURE_BYTES];
    assert_int_equal(pki_sign_raw(k, STR("shared"), raw), 0);
    struct verifying work[4];
    pthread_t threads[N_ELEMENTS(work)];
    for (size_t i = 0; i < N_ELEMENTS(work); i++) {
        work[i] = (struct verifying){p, str_range((char *) raw, sizeof(raw)), 0};
        assert_int_equal(pthread_create(&threads[i], NULL, verify_often, &work[i]), 0);
    }
    for (size_t i = 0; i < N_ELEMENTS(work); i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(work[i].n_wrong, 0);
    }
}

static struct pki_cert *self_signed(const struct pki_key *k, const char *name)
{
    struct pki_cert_options o = {.common_name = str_of(name), .is_ca = true, .valid_days = 3};
    struct pki_cert *c = pki_cert_new(&o, k, NULL, NULL);
    assert_non_null(c);
    return c;
}

TEST(the_key_of_a_certificate_outlives_it)
{
    KEY_AUTO k = pki_key_new();
    struct pki_cert *c = self_signed(k, "device");
    PUBLIC_AUTO p = pki_cert_public(c);
    pki_cert_free(c);
    unsigned char raw[PKI_RAW_SIGNATURE_BYTES];
    assert_int_equal(pki_sign_raw(k, STR("m"), raw), 0);
    assert_int_equal(pki_verify_raw(p, STR("m"), str_range((char *) raw, sizeof(raw))), 0);
}

TEST(keys_that_are_not_on_a_good_curve_fit_nothing)
{
    KEY_AUTO ec = pki_key_new();
    KEY_AUTO rsa = adopted(EVP_RSA_gen(1024));
    KEY_AUTO koblitz = adopted(EVP_EC_gen("secp256k1"));
    KEY_AUTO p384 = adopted(EVP_EC_gen("P-384"));
    CERT_AUTO rsa_cert = self_signed(rsa, "rsa");
    unsigned char raw[PKI_RAW_SIGNATURE_BYTES], point[64];
    assert_null(pki_cert_public(rsa_cert));
    assert_null(pki_public_of_key(koblitz));
    assert_int_equal(pki_verify_raw(NULL, STR("m"), STR("s")), -EKEYREJECTED);
    assert_int_equal(pki_verify_der(NULL, STR("m"), STR("s")), -EKEYREJECTED);
    assert_int_equal(pki_ecdh_point(ec, NULL, point), -EINVAL);
    assert_int_equal(pki_sign_raw(rsa, STR("m"), raw), -EIO);
    assert_int_equal(pki_sign_raw(koblitz, STR("m"), raw), -EIO);
    assert_int_equal(pki_sign_raw(p384, STR("m"), raw), -EIO);
    assert_no_errors_queued();
}

/* ---- encryption's parts --------------------------------------------------------------------- */

/* RFC 5903 8.1. */
#define INITIATOR_SCALAR "C88F01F510D9AC3F70A292DAA2316DE544E9AAB8AFE84049C62A9C57862D1433"
#define RESPONDER_SCALAR "C6EF9C5D78AE012A011164ACB397CE2088685D8F06BF9BE0B283AB46476BEE53"
#define SHARED_POINT \
    "D6840F6B42F6EDAFD13116E0E12565202FEF8E9ECE7DCE03812464D04B9442DE" \
    "522BDE0AF0D8585B8DEF9C183B5AE38F50235206A8674ECB5D98EDB20EB153A2"

TEST(both_sides_of_a_key_agreement_meet_at_the_point_of_the_standard)
{
    ARENA_AUTO a = arena_new();
    KEY_AUTO i = key_of("P-256", NID_X9_62_prime256v1, INITIATOR_SCALAR);
    KEY_AUTO r = key_of("P-256", NID_X9_62_prime256v1, RESPONDER_SCALAR);
    PUBLIC_AUTO i_public = pki_public_of_key(i);
    PUBLIC_AUTO r_public = pki_public_of_key(r);
    unsigned char one[64], other[64];
    assert_int_equal(pki_ecdh_point(i, r_public, one), 0);
    assert_int_equal(pki_ecdh_point(r, i_public, other), 0);
    assert_memory_equal(one, from_hex(a, SHARED_POINT).p, sizeof(one));
    assert_memory_equal(other, one, sizeof(one));
}

TEST(key_agreement_needs_p256_on_both_sides)
{
    KEY_AUTO p256 = pki_key_new();
    KEY_AUTO p384 = adopted(EVP_EC_gen("P-384"));
    PUBLIC_AUTO of_256 = pki_public_of_key(p256);
    PUBLIC_AUTO of_384 = pki_public_of_key(p384);
    unsigned char point[64];
    assert_int_equal(pki_ecdh_point(p256, of_384, point), -EINVAL);
    assert_int_equal(pki_ecdh_point(p384, of_256, point), -EINVAL);
    assert_no_errors_queued();
}

/* SP 800-38A F.3.17. */
TEST(cipher_feedback_has_the_vector_of_the_standard)
{
    ARENA_AUTO a = arena_new();
    struct str key =
        from_hex(a, "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4");
    struct str iv = from_hex(a, "000102030405060708090a0b0c0d0e0f");
    struct str plain =
        from_hex(a, "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51");
    struct str sealed =
        from_hex(a, "dc7e84bfda79164b7ecd8486985d386039ffed143b28b1c832113c6331e5407b");
    unsigned char bytes[32];
    const unsigned char *k = (const unsigned char *) key.p, *v = (const unsigned char *) iv.p;
    for (size_t n = 0; n <= plain.n; n++) {
        pki_aes256_cfb(true, k, v, plain.p, n, bytes);
        assert_memory_equal(bytes, sealed.p, n);
        pki_aes256_cfb(false, k, v, bytes, n, bytes);
        assert_memory_equal(bytes, plain.p, n);
    }
}
