/* SPDX-License-Identifier: Apache-2.0 */
#include "pki/jws.h"

#include <assert.h>
#include <errno.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>

#include "base/base64.h"
#include "pki/jws_internal.h"

/* A DER ECDSA-Sig-Value over P-256 has at most 72 bytes. */
#define DER_MAX_BYTES 80

DEFINE_OPENSSL_CLEANUP(ECDSA_SIG, ECDSA_SIG_free)
DEFINE_OPENSSL_CLEANUP(EVP_MD_CTX, EVP_MD_CTX_free)
#define ECDSA_SIG_AUTO CLEANUP(ECDSA_SIG_free_auto) ECDSA_SIG
#define EVP_MD_CTX_AUTO CLEANUP(EVP_MD_CTX_free_auto) EVP_MD_CTX

int jws_decode_part(struct arena *a, struct str text, struct str *ret_bytes)
{
    struct str bytes;
    if (base64_decode(a, text, BASE64_URL, &bytes, NULL) < 0 ||
        !str_eq(base64_encode(a, bytes, BASE64_URL), text))
        return -EINVAL;
    *ret_bytes = bytes;
    return 0;
}

int jws_split(struct arena *a, struct str token, struct jws *ret)
{
    if (token.n > JWS_MAX_BYTES)
        return -EINVAL;
    const ptrdiff_t first = str_find(token, '.');
    const ptrdiff_t last = str_find_last(token, '.');
    if (first < 0 || first == last ||
        str_find(str_sub(token, (size_t) first + 1, (size_t) last), '.') >= 0)
        return -EINVAL;
    struct jws t = {.signed_text = str_sub(token, 0, (size_t) last)};
    if (jws_decode_part(a, str_sub(token, 0, (size_t) first), &t.header) < 0 ||
        jws_decode_part(a, str_sub(token, (size_t) first + 1, (size_t) last), &t.payload) < 0 ||
        jws_decode_part(a, str_from(token, (size_t) last + 1), &t.signature) < 0)
        return -EINVAL;
    *ret = t;
    return 0;
}

/* r||s of RFC 7518 3.4 as the DER that OpenSSL verifies; 0: it is none. */
static size_t der_of_raw(struct str raw, unsigned char der[DER_MAX_BYTES])
{
    if (raw.n != (size_t) 2 * JWS_P256_BYTES)
        return 0;
    const unsigned char *p = (const unsigned char *) raw.p;
    ECDSA_SIG_AUTO *sig = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(p, JWS_P256_BYTES, NULL);
    BIGNUM *s = BN_bin2bn(p + JWS_P256_BYTES, JWS_P256_BYTES, NULL);
    if (!sig || !r || !s || !ECDSA_SIG_set0(sig, r, s)) {
        BN_free(r);
        BN_free(s);
        return 0;
    }
    const int n = i2d_ECDSA_SIG(sig, NULL);
    if (n <= 0 || n > DER_MAX_BYTES)
        return 0;
    return i2d_ECDSA_SIG(sig, &der) == n ? (size_t) n : 0;
}

bool jws_verify(const struct jws_key *k, const struct jws *t)
{
    unsigned char der[DER_MAX_BYTES];
    const unsigned char *signature = (const unsigned char *) t->signature.p;
    size_t n = t->signature.n;
    if (k->algorithm == JWS_ES256) {
        n = der_of_raw(t->signature, der);
        signature = der;
    }
    if (n == 0)
        return false;
    EVP_MD_CTX_AUTO *ctx = EVP_MD_CTX_new();
    const bool ok = ctx &&
                    EVP_DigestVerifyInit_ex(ctx, NULL, "SHA256", NULL, NULL, k->pkey, NULL) == 1 &&
                    EVP_DigestVerify(ctx, signature, n, (const unsigned char *) t->signed_text.p,
                                     t->signed_text.n) == 1;
    /* The queue belongs to the thread: a later TLS call would take our refusal for its own. */
    ERR_clear_error();
    return ok;
}

static struct str raw_of_der(struct arena *a, const unsigned char *der, size_t n)
{
    ECDSA_SIG_AUTO *sig = d2i_ECDSA_SIG(NULL, &der, (long) n);
    unsigned char *raw = arena_alloc(a, (size_t) 2 * JWS_P256_BYTES);
    if (!sig || BN_bn2binpad(ECDSA_SIG_get0_r(sig), raw, JWS_P256_BYTES) < 0 ||
        BN_bn2binpad(ECDSA_SIG_get0_s(sig), raw + JWS_P256_BYTES, JWS_P256_BYTES) < 0)
        return STR_NONE;
    return str_range((char *) raw, (size_t) 2 * JWS_P256_BYTES);
}

static struct str signature_of(struct arena *a, const struct pki_key *k, struct str text)
{
    size_t n = (size_t) EVP_PKEY_get_size(k->pkey);
    unsigned char *out = arena_alloc(a, n);
    EVP_MD_CTX_AUTO *ctx = EVP_MD_CTX_new();
    if (!ctx || EVP_DigestSignInit_ex(ctx, NULL, "SHA256", NULL, NULL, k->pkey, NULL) != 1 ||
        EVP_DigestSign(ctx, out, &n, (const unsigned char *) text.p, text.n) != 1)
        return STR_NONE;
    return EVP_PKEY_is_a(k->pkey, "EC") ? raw_of_der(a, out, n) : str_range((char *) out, n);
}

struct str jws_sign(struct arena *a, const struct pki_key *k, struct str header, struct str payload)
{
    const struct str text_parts[] = {base64_encode(a, header, BASE64_URL), STR("."),
                                     base64_encode(a, payload, BASE64_URL)};
    const struct str text = arena_join(a, text_parts, N_ELEMENTS(text_parts));
    const struct str signature = signature_of(a, k, text);
    /* With a key that jws_key_of() accepts only want of memory or randomness fails. */
    assert(signature.p);
    const struct str parts[] = {text, STR("."), base64_encode(a, signature, BASE64_URL)};
    return arena_join(a, parts, N_ELEMENTS(parts));
}
