/* SPDX-License-Identifier: Apache-2.0 */
/* ECDSA signatures as devices make them: raw r||s, or DER from a TPM. Every request of every device
 * passes through verify(), so what OpenSSL can prepare is prepared once for each key. */
#include <errno.h>
#include <openssl/ecdsa.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "pki/pki_internal.h"

#define MAX_CURVE_BYTES 66
/* SEQUENCE with its length in three bytes, then two INTEGERs, each with a zero that keeps it
 * positive. */
#define MAX_DER_BYTES (3 + 2 * (3 + MAX_CURVE_BYTES))

DEFINE_OPENSSL_CLEANUP(EVP_PKEY_CTX, EVP_PKEY_CTX_free)
#define PKEY_CTX_AUTO CLEANUP(EVP_PKEY_CTX_free_auto) EVP_PKEY_CTX
DEFINE_OPENSSL_CLEANUP(ECDSA_SIG, ECDSA_SIG_free)
#define ECDSA_SIG_AUTO CLEANUP(ECDSA_SIG_free_auto) ECDSA_SIG

/* A context serves one thread at a time: who finds it taken makes one for himself. A device seldom
 * has two requests on their way, so that is the exception. */
struct pki_ready {
    atomic_flag is_taken;
    EVP_PKEY_CTX *ctx;
};

static EVP_PKEY_CTX *verifier(EVP_PKEY *pkey)
{
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(pkey, NULL);
    if (ctx && EVP_PKEY_verify_init(ctx) == 1)
        return ctx;
    EVP_PKEY_CTX_free(ctx);
    return NULL;
}

size_t pki_curve_bytes(const EVP_PKEY *pkey)
{
    static const struct {
        const char *name;
        size_t n_bytes;
    } curves[] = {{"prime256v1", 32}, {"secp384r1", 48}, {"secp521r1", MAX_CURVE_BYTES}};
    char name[64];
    if (EVP_PKEY_is_a(pkey, "EC") && EVP_PKEY_get_group_name(pkey, name, sizeof(name), NULL) == 1)
        for (size_t i = 0; i < N_ELEMENTS(curves); i++)
            if (strcmp(name, curves[i].name) == 0)
                return curves[i].n_bytes;
    return 0;
}

/* Takes pkey over. */
static struct pki_public *public_new(EVP_PKEY *pkey)
{
    size_t n_bytes = pkey ? pki_curve_bytes(pkey) : 0;
    EVP_PKEY_CTX *ctx = n_bytes ? verifier(pkey) : NULL;
    if (!ctx) {
        EVP_PKEY_free(pkey);
        (void) pki_openssl_error(NULL);
        return NULL;
    }
    struct pki_public *p = NEW(struct pki_public);
    p->pkey = pkey;
    p->curve_bytes = n_bytes;
    p->ready = NEW(struct pki_ready);
    p->ready->ctx = ctx;
    atomic_flag_clear(&p->ready->is_taken);
    return p;
}

struct pki_public *pki_cert_public(const struct pki_cert *c)
{
    return public_new(X509_get_pubkey(c->x509));
}

struct pki_public *pki_public_of_key(const struct pki_key *k)
{
    EVP_PKEY_up_ref(k->pkey);
    return public_new(k->pkey);
}

void pki_public_free(struct pki_public *p)
{
    if (!p)
        return;
    EVP_PKEY_CTX_free(p->ready->ctx);
    mem_free(p->ready);
    EVP_PKEY_free(p->pkey);
    mem_free(p);
}

bool pki_public_is_p256(const struct pki_public *p)
{
    return p && p->curve_bytes == PKI_RAW_SIGNATURE_BYTES / 2;
}

/* ---- verifying ------------------------------------------------------------------------------ */

static int verify_with(EVP_PKEY_CTX *ctx, struct str message, const unsigned char *der, size_t n)
{
    unsigned char digest[SHA256_BYTES];
    pki_sha256(message, digest);
    if (ctx && EVP_PKEY_verify(ctx, der, n, digest, sizeof(digest)) == 1)
        return 0;
    (void) pki_openssl_error(NULL);
    return -EKEYREJECTED;
}

static int verify(const struct pki_public *p, struct str message, const unsigned char *der,
                  size_t n)
{
    if (atomic_flag_test_and_set_explicit(&p->ready->is_taken, memory_order_acquire)) {
        PKEY_CTX_AUTO *ctx = verifier(p->pkey);
        return verify_with(ctx, message, der, n);
    }
    int r = verify_with(p->ready->ctx, message, der, n);
    atomic_flag_clear_explicit(&p->ready->is_taken, memory_order_release);
    return r;
}

/* An INTEGER of n big-endian bytes; returns where it ends. */
static unsigned char *put_integer(unsigned char *to, const unsigned char *bytes, size_t n)
{
    while (n > 1 && !*bytes)
        bytes++, n--;
    bool would_be_negative = *bytes & 0x80;
    *to++ = 0x02;
    *to++ = (unsigned char) (n + would_be_negative);
    if (would_be_negative)
        *to++ = 0;
    memcpy(to, bytes, n);
    return to + n;
}

int pki_verify_raw(const struct pki_public *p, struct str message, struct str signature)
{
    if (!p || signature.n != 2 * p->curve_bytes)
        return -EKEYREJECTED;
    const unsigned char *raw = (const unsigned char *) signature.p;
    /* The integers go where the longest head leaves them; then the head is put before them. */
    unsigned char room[MAX_DER_BYTES], *begin = room + 3;
    unsigned char *end = put_integer(begin, raw, p->curve_bytes);
    end = put_integer(end, raw + p->curve_bytes, p->curve_bytes);
    size_t n = (size_t) (end - begin);
    *--begin = (unsigned char) n;
    if (n >= 0x80)
        *--begin = 0x81;
    *--begin = 0x30;
    return verify(p, message, begin, (size_t) (end - begin));
}

int pki_verify_der(const struct pki_public *p, struct str message, struct str signature)
{
    if (!p || signature.n == 0 || signature.n > MAX_DER_BYTES)
        return -EKEYREJECTED;
    return verify(p, message, (const unsigned char *) signature.p, signature.n);
}

/* ---- signing -------------------------------------------------------------------------------- */

static bool sign_digest(EVP_PKEY *pkey, const unsigned char digest[SHA256_BYTES],
                        unsigned char der[MAX_DER_BYTES], size_t *ret_n)
{
    PKEY_CTX_AUTO *ctx = EVP_PKEY_CTX_new(pkey, NULL);
    *ret_n = MAX_DER_BYTES;
    return ctx && EVP_PKEY_sign_init(ctx) == 1 &&
           EVP_PKEY_sign(ctx, der, ret_n, digest, SHA256_BYTES) == 1;
}

int pki_sign_raw(const struct pki_key *k, struct str message,
                 unsigned char out[PKI_RAW_SIGNATURE_BYTES])
{
    const int n_half = PKI_RAW_SIGNATURE_BYTES / 2;
    unsigned char digest[SHA256_BYTES], der[MAX_DER_BYTES];
    size_t n = 0;
    pki_sha256(message, digest);
    if (pki_curve_bytes(k->pkey) == (size_t) n_half && sign_digest(k->pkey, digest, der, &n)) {
        const unsigned char *p = der;
        ECDSA_SIG_AUTO *sig = d2i_ECDSA_SIG(NULL, &p, (long) n);
        if (sig && BN_bn2binpad(ECDSA_SIG_get0_r(sig), out, n_half) == n_half &&
            BN_bn2binpad(ECDSA_SIG_get0_s(sig), out + n_half, n_half) == n_half)
            return 0;
    }
    (void) pki_openssl_error(NULL);
    return -EIO;
}
