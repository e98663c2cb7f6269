/* SPDX-License-Identifier: Apache-2.0 */
/* What object encryption is made of. EVE hashes both coordinates of the shared point, of which
 * OpenSSL's own key agreement gives one: so the point is multiplied here. */
#include <assert.h>
#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <pthread.h>

#include "pki/pki_internal.h"

#define COORDINATE_BYTES 32
#define POINT_BYTES (1 + 2 * COORDINATE_BYTES) /* uncompressed: 4, X, Y */
/* What one call of OpenSSL may be given, whose lengths are int. */
#define CFB_CHUNK_BYTES ((size_t) 1 << 30)

DEFINE_OPENSSL_CLEANUP(BIGNUM, BN_clear_free)
DEFINE_OPENSSL_CLEANUP(EC_GROUP, EC_GROUP_free)
DEFINE_OPENSSL_CLEANUP(EC_POINT, EC_POINT_clear_free)
DEFINE_OPENSSL_CLEANUP(EVP_CIPHER_CTX, EVP_CIPHER_CTX_free)
#define BIGNUM_AUTO CLEANUP(BN_clear_free_auto) BIGNUM
#define EC_GROUP_AUTO CLEANUP(EC_GROUP_free_auto) EC_GROUP
#define EC_POINT_AUTO CLEANUP(EC_POINT_clear_free_auto) EC_POINT
#define CIPHER_CTX_AUTO CLEANUP(EVP_CIPHER_CTX_free_auto) EVP_CIPHER_CTX

static bool multiply(const BIGNUM *scalar, const unsigned char *point, size_t n_point,
                     unsigned char ret_point[POINT_BYTES])
{
    EC_GROUP_AUTO *group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1);
    EC_POINT_AUTO *from = group ? EC_POINT_new(group) : NULL;
    EC_POINT_AUTO *product = group ? EC_POINT_new(group) : NULL;
    /* A point read from bytes is checked to be on the curve, whose cofactor is 1: no small
     * subgroup can be asked for. A product at infinity has one byte and is refused. */
    return from && product && EC_POINT_oct2point(group, from, point, n_point, NULL) == 1 &&
           EC_POINT_mul(group, product, NULL, from, scalar, NULL) == 1 &&
           EC_POINT_point2oct(group, product, POINT_CONVERSION_UNCOMPRESSED, ret_point, POINT_BYTES,
                              NULL) == POINT_BYTES;
}

int pki_ecdh_point(const struct pki_key *k, const struct pki_public *p, unsigned char out[64])
{
    if (!p || p->curve_bytes != COORDINATE_BYTES || pki_curve_bytes(k->pkey) != COORDINATE_BYTES)
        return -EINVAL;
    BIGNUM_AUTO *scalar = BN_secure_new();
    unsigned char public[POINT_BYTES], product[POINT_BYTES];
    size_t n = 0;
    bool ok = scalar &&
              EVP_PKEY_get_octet_string_param(p->pkey, OSSL_PKEY_PARAM_PUB_KEY, public,
                                              sizeof(public), &n) == 1 &&
              EVP_PKEY_get_bn_param(k->pkey, OSSL_PKEY_PARAM_PRIV_KEY, &scalar) == 1;
    if (ok) {
        BN_set_flags(scalar, BN_FLG_CONSTTIME);
        ok = multiply(scalar, public, n, product);
    }
    if (!ok) {
        (void) pki_openssl_error(NULL);
        return -EINVAL;
    }
    memcpy(out, product + 1, POINT_BYTES - 1);
    OPENSSL_cleanse(product, sizeof(product));
    return 0;
}

/* Fetched once: each fetch by name takes locks all threads share. */
static struct {
    pthread_once_t once;
    EVP_CIPHER *cfb;
} ciphers = {.once = PTHREAD_ONCE_INIT};

static void fetch_cipher(void)
{
    ciphers.cfb = EVP_CIPHER_fetch(NULL, "AES-256-CFB", NULL);
    assert(ciphers.cfb);
}

void pki_aes256_cfb(bool encrypt, const unsigned char key[32], const unsigned char iv[16],
                    const void *in, size_t n, void *out)
{
    (void) pthread_once(&ciphers.once, fetch_cipher);
    CIPHER_CTX_AUTO *ctx = EVP_CIPHER_CTX_new();
    /* With a fetched cipher and bytes in memory only want of memory is left to fail. */
    bool ok = ctx && EVP_CipherInit_ex2(ctx, ciphers.cfb, key, iv, encrypt, NULL) == 1;
    for (size_t at = 0; ok && at < n;) {
        int n_chunk = (int) MIN(n - at, CFB_CHUNK_BYTES), n_out = 0;
        ok = EVP_CipherUpdate(ctx, (unsigned char *) out + at, &n_out,
                              (const unsigned char *) in + at, n_chunk) == 1 &&
             n_out == n_chunk;
        at += (size_t) n_chunk;
    }
    assert(ok);
    (void) ok;
}
