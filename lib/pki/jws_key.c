/* SPDX-License-Identifier: Apache-2.0 */
/* Public keys of signed tokens: where they come from, and how a JWK describes them. */
#include <assert.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/decoder.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/param_build.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "pki/jws_internal.h"

#define RSA_MIN_BITS 2048
#define RSA_MAX_BITS 8192
#define RSA_MAX_EXPONENT_BYTES 8 /* work grows with it; nobody uses more than four */

DEFINE_OPENSSL_CLEANUP(BIGNUM, BN_free)
DEFINE_OPENSSL_CLEANUP(OSSL_PARAM_BLD, OSSL_PARAM_BLD_free)
DEFINE_OPENSSL_CLEANUP(OSSL_PARAM, OSSL_PARAM_free)
DEFINE_OPENSSL_CLEANUP(EVP_PKEY_CTX, EVP_PKEY_CTX_free)
DEFINE_OPENSSL_CLEANUP(OSSL_DECODER_CTX, OSSL_DECODER_CTX_free)
#define BIGNUM_AUTO CLEANUP(BN_free_auto) BIGNUM

static bool is_sound_rsa(EVP_PKEY *pkey)
{
    BIGNUM *n = NULL, *e = NULL;
    bool ok = EVP_PKEY_get_bn_param(pkey, OSSL_PKEY_PARAM_RSA_N, &n) == 1 &&
              EVP_PKEY_get_bn_param(pkey, OSSL_PKEY_PARAM_RSA_E, &e) == 1 &&
              BN_num_bits(n) >= RSA_MIN_BITS && BN_num_bits(n) <= RSA_MAX_BITS && BN_is_odd(n) &&
              BN_is_odd(e) && !BN_is_one(e) && BN_num_bytes(e) <= RSA_MAX_EXPONENT_BYTES;
    BN_free(n);
    BN_free(e);
    return ok;
}

/* The point is on the curve: OpenSSL refuses to load any other. */
static bool is_p256(EVP_PKEY *pkey)
{
    char group[32];
    size_t n = 0;
    return EVP_PKEY_get_group_name(pkey, group, sizeof(group), &n) == 1 &&
           str_is(str_range(group, n), "prime256v1");
}

/* False: a key that signs no token of ours. */
static bool algorithm_of(EVP_PKEY *pkey, enum jws_algorithm *ret_algorithm)
{
    if (EVP_PKEY_is_a(pkey, "RSA") && is_sound_rsa(pkey))
        *ret_algorithm = JWS_RS256;
    else if (EVP_PKEY_is_a(pkey, "EC") && is_p256(pkey))
        *ret_algorithm = JWS_ES256;
    else
        return false;
    return true;
}

/* Takes a reference of its own. */
static struct jws_key *key_of(EVP_PKEY *pkey)
{
    enum jws_algorithm algorithm;
    const bool ok = pkey && algorithm_of(pkey, &algorithm) && EVP_PKEY_up_ref(pkey);
    ERR_clear_error();
    if (!ok)
        return NULL;
    struct jws_key *k = NEW(struct jws_key);
    k->pkey = pkey;
    k->algorithm = algorithm;
    return k;
}

static EVP_PKEY *pkey_of_parameters(const char *type, OSSL_PARAM_BLD *builder)
{
    EVP_PKEY *pkey = NULL;
    CLEANUP(OSSL_PARAM_free_auto) OSSL_PARAM *parameters = OSSL_PARAM_BLD_to_param(builder);
    CLEANUP(EVP_PKEY_CTX_free_auto)
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    if (!parameters || !ctx || EVP_PKEY_fromdata_init(ctx) != 1 ||
        EVP_PKEY_fromdata(ctx, &pkey, EVP_PKEY_PUBLIC_KEY, parameters) != 1)
        return NULL;
    return pkey;
}

static BIGNUM *number_of(struct arena *a, struct str text)
{
    struct str bytes;
    if (text.n > JWS_MAX_BYTES || jws_decode_part(a, text, &bytes) < 0 || bytes.n == 0 ||
        bytes.n > RSA_MAX_BITS / 8)
        return NULL;
    return BN_bin2bn((const unsigned char *) bytes.p, (int) bytes.n, NULL);
}

struct jws_key *jws_key_rsa(struct str n, struct str e)
{
    ARENA_AUTO a = arena_new();
    BIGNUM_AUTO *modulus = number_of(a, n);
    BIGNUM_AUTO *exponent = number_of(a, e);
    if (!modulus || !exponent)
        return NULL;
    CLEANUP(OSSL_PARAM_BLD_free_auto) OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    EVP_PKEY_AUTO *pkey = NULL;
    if (builder && OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, modulus) &&
        OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, exponent))
        pkey = pkey_of_parameters("RSA", builder);
    return key_of(pkey);
}

struct jws_key *jws_key_p256(struct str x, struct str y)
{
    ARENA_AUTO a = arena_new();
    unsigned char point[1 + 2 * JWS_P256_BYTES] = {POINT_CONVERSION_UNCOMPRESSED};
    const struct str coordinates[] = {x, y};
    for (size_t i = 0; i < N_ELEMENTS(coordinates); i++) {
        struct str bytes;
        if (coordinates[i].n > JWS_MAX_BYTES || jws_decode_part(a, coordinates[i], &bytes) < 0 ||
            bytes.n != JWS_P256_BYTES)
            return NULL;
        memcpy(point + 1 + i * JWS_P256_BYTES, bytes.p, JWS_P256_BYTES);
    }
    CLEANUP(OSSL_PARAM_BLD_free_auto) OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    EVP_PKEY_AUTO *pkey = NULL;
    if (builder &&
        OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) &&
        OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point)))
        pkey = pkey_of_parameters("EC", builder);
    return key_of(pkey);
}

struct jws_key *jws_key_of(const struct pki_key *k)
{
    return key_of(k->pkey);
}

static EVP_PKEY *pkey_of_certificate(struct str pem)
{
    BIO_AUTO *bio = BIO_new_mem_buf(pem.p, (int) pem.n);
    X509_AUTO *x = bio ? PEM_read_bio_X509(bio, NULL, pki_no_passphrase, NULL) : NULL;
    return x ? X509_get_pubkey(x) : NULL;
}

/* Any form: SubjectPublicKeyInfo, PKCS #1, the private key itself. */
static EVP_PKEY *pkey_of_key(struct str pem)
{
    EVP_PKEY *pkey = NULL;
    BIO_AUTO *bio = BIO_new_mem_buf(pem.p, (int) pem.n);
    CLEANUP(OSSL_DECODER_CTX_free_auto)
    OSSL_DECODER_CTX *ctx =
        OSSL_DECODER_CTX_new_for_pkey(&pkey, "PEM", NULL, NULL, /* selection= */ 0, NULL, NULL);
    if (!bio || !ctx || !OSSL_DECODER_CTX_set_pem_password_cb(ctx, pki_no_passphrase, NULL) ||
        !OSSL_DECODER_from_bio(ctx, bio))
        return NULL;
    return pkey;
}

struct jws_key *jws_key_pem(struct str pem)
{
    if (pem.n == 0 || pem.n > PKI_FILE_MAX_BYTES)
        return NULL;
    const bool is_certificate = str_find_str(pem, STR("-----BEGIN CERTIFICATE-----")) >= 0;
    EVP_PKEY_AUTO *pkey = is_certificate ? pkey_of_certificate(pem) : pkey_of_key(pem);
    return key_of(pkey);
}

void jws_key_free(struct jws_key *k)
{
    if (!k)
        return;
    EVP_PKEY_free(k->pkey);
    mem_free(k);
}

enum jws_algorithm jws_key_algorithm(const struct jws_key *k)
{
    return k->algorithm;
}

struct str jws_algorithm_name(enum jws_algorithm alg)
{
    return alg == JWS_RS256 ? STR("RS256") : STR("ES256");
}

/* n_bytes 0: as many as the number has. */
static struct str member_of(struct arena *a, const struct jws_key *k, const char *parameter,
                            size_t n_bytes)
{
    BIGNUM *number = NULL;
    int ok = EVP_PKEY_get_bn_param(k->pkey, parameter, &number);
    assert(ok == 1); /* the key was checked when it was made */
    (void) ok;
    const size_t n = n_bytes ? n_bytes : (size_t) BN_num_bytes(number);
    unsigned char *bytes = arena_alloc(a, n + 1);
    ok = BN_bn2binpad(number, bytes, (int) n);
    assert(ok >= 0);
    BN_free(number);
    return base64_encode(a, str_range((char *) bytes, n), BASE64_URL);
}

struct jws_key_members jws_key_describe(struct arena *a, const struct jws_key *k)
{
    if (k->algorithm == JWS_RS256)
        return (struct jws_key_members){
            .kty = STR("RSA"),
            .n = member_of(a, k, OSSL_PKEY_PARAM_RSA_N, /* n_bytes= */ 0),
            .e = member_of(a, k, OSSL_PKEY_PARAM_RSA_E, /* n_bytes= */ 0),
        };
    return (struct jws_key_members){
        .kty = STR("EC"),
        .crv = STR("P-256"),
        .x = member_of(a, k, OSSL_PKEY_PARAM_EC_PUB_X, JWS_P256_BYTES),
        .y = member_of(a, k, OSSL_PKEY_PARAM_EC_PUB_Y, JWS_P256_BYTES),
    };
}

struct str jws_key_id(struct arena *a, const struct jws_key *k)
{
    unsigned char *der = NULL, digest[SHA256_BYTES];
    const int n = i2d_PUBKEY(k->pkey, &der);
    assert(n > 0);
    pki_sha256(str_range((char *) der, (size_t) n), digest);
    OPENSSL_free(der);
    return base64_encode(a, str_range((char *) digest, sizeof(digest)), BASE64_URL);
}
