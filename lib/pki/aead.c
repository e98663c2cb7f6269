/* SPDX-License-Identifier: Apache-2.0 */
#include "pki/aead.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>

#include "base/random.h"
#include "pki/openssl.h"

#define BLOCK_BYTES 16
#define GCM_NONCE_BYTES 12

DEFINE_OPENSSL_CLEANUP(EVP_CIPHER_CTX, EVP_CIPHER_CTX_free)
#define CTX_AUTO CLEANUP(EVP_CIPHER_CTX_free_auto) EVP_CIPHER_CTX

/* Fetched once: each fetch by name takes locks all threads share. */
static struct {
    pthread_once_t once;
    EVP_CIPHER *block, *gcm;
} ciphers = {.once = PTHREAD_ONCE_INIT};

static void fetch_ciphers(void)
{
    ciphers.block = EVP_CIPHER_fetch(NULL, "AES-256-ECB", NULL);
    ciphers.gcm = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
    assert(ciphers.block && ciphers.gcm);
}

/* ---- the key of one message ----------------------------------------------------------------- */

static bool encrypt_block(EVP_CIPHER_CTX *ctx, const unsigned char in[BLOCK_BYTES],
                          unsigned char out[BLOCK_BYTES])
{
    int n = 0;
    return EVP_EncryptUpdate(ctx, out, &n, in, BLOCK_BYTES) == 1 && n == BLOCK_BYTES;
}

/* CMAC's first subkey: the block doubled in GF(2^128). */
static void double_block(unsigned char block[BLOCK_BYTES])
{
    unsigned char carry = block[0] >> 7;
    for (size_t i = 0; i + 1 < BLOCK_BYTES; i++)
        block[i] = (unsigned char) (block[i] << 1 | block[i + 1] >> 7);
    block[BLOCK_BYTES - 1] = (unsigned char) (block[BLOCK_BYTES - 1] << 1) ^ (carry ? 0x87 : 0);
}

/* GCM's nonce of 96 bits may be drawn at random for 2^32 messages under one key, which a busy store
 * writes in a year; one repetition gives the plain texts away. So each message has a key of its
 * own, derived (SP 800-108 in counter mode with CMAC) from the first half of a nonce of 192 bits,
 * the other half of which is GCM's: random nonces are then good for 2^80 messages. */
static bool derive_key(const unsigned char key[AEAD_KEY_BYTES], const unsigned char *nonce,
                       unsigned char out[AEAD_KEY_BYTES])
{
    CTX_AUTO *ctx = EVP_CIPHER_CTX_new();
    unsigned char subkey[BLOCK_BYTES] = {0};
    if (!ctx || EVP_EncryptInit_ex2(ctx, ciphers.block, key, NULL, NULL) != 1 ||
        EVP_CIPHER_CTX_set_padding(ctx, 0) != 1 || !encrypt_block(ctx, subkey, subkey))
        return false;
    double_block(subkey);
    bool ok = true;
    for (unsigned char half = 0; half < 2; half++) {
        unsigned char message[BLOCK_BYTES] = {0, (unsigned char) (half + 1), 'X', 0};
        memcpy(message + 4, nonce, BLOCK_BYTES - 4);
        for (size_t i = 0; i < BLOCK_BYTES; i++)
            message[i] ^= subkey[i];
        ok = ok && encrypt_block(ctx, message, out + half * BLOCK_BYTES);
    }
    OPENSSL_cleanse(subkey, sizeof(subkey));
    return ok;
}

/* A context ready for the text: keyed for this nonce, told what the text is bound to. */
static EVP_CIPHER_CTX *begin(const unsigned char key[AEAD_KEY_BYTES], const unsigned char *nonce,
                             struct str bound, bool is_sealing)
{
    (void) pthread_once(&ciphers.once, fetch_ciphers);
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    unsigned char message_key[AEAD_KEY_BYTES];
    int n = 0;
    bool ok =
        ctx && derive_key(key, nonce, message_key) &&
        EVP_CipherInit_ex2(ctx, ciphers.gcm, message_key,
                           nonce + AEAD_NONCE_BYTES - GCM_NONCE_BYTES, is_sealing, NULL) == 1 &&
        (bound.n == 0 ||
         EVP_CipherUpdate(ctx, NULL, &n, (const unsigned char *) bound.p, (int) bound.n) == 1);
    OPENSSL_cleanse(message_key, sizeof(message_key));
    if (ok)
        return ctx;
    (void) pki_openssl_error(NULL);
    EVP_CIPHER_CTX_free(ctx);
    return NULL;
}

static bool transform(EVP_CIPHER_CTX *ctx, struct str in, unsigned char *out)
{
    int n = 0;
    return in.n == 0 ||
           (EVP_CipherUpdate(ctx, out, &n, (const unsigned char *) in.p, (int) in.n) == 1 &&
            n == (int) in.n);
}

/* ---- sealing and opening -------------------------------------------------------------------- */

int aead_seal_with(const unsigned char key[AEAD_KEY_BYTES],
                   const unsigned char nonce[AEAD_NONCE_BYTES], struct str bound, struct str plain,
                   struct buf *to)
{
    if (plain.n > AEAD_MAX_BYTES || bound.n > AEAD_MAX_BYTES)
        return -EFBIG;
    CTX_AUTO *ctx = begin(key, nonce, bound, /* is_sealing= */ true);
    if (!ctx)
        return -ENOMEM;
    unsigned char *out = (unsigned char *) buf_reserve(to, plain.n + AEAD_OVERHEAD_BYTES);
    unsigned char *text = out + AEAD_NONCE_BYTES, *tag = text + plain.n;
    int n = 0;
    memcpy(out, nonce, AEAD_NONCE_BYTES);
    if (!transform(ctx, plain, text) || EVP_CipherFinal_ex(ctx, tag, &n) != 1 ||
        EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, AEAD_TAG_BYTES, tag) != 1) {
        (void) pki_openssl_error(NULL);
        return -ENOMEM;
    }
    to->n += plain.n + AEAD_OVERHEAD_BYTES;
    to->p[to->n] = '\0';
    return 0;
}

int aead_seal(const unsigned char key[AEAD_KEY_BYTES], struct str bound, struct str plain,
              struct buf *to)
{
    unsigned char nonce[AEAD_NONCE_BYTES];
    random_bytes(nonce, sizeof(nonce));
    return aead_seal_with(key, nonce, bound, plain, to);
}

int aead_open(const unsigned char key[AEAD_KEY_BYTES], struct str bound, struct str sealed,
              struct buf *to)
{
    if (sealed.n < AEAD_OVERHEAD_BYTES || sealed.n > AEAD_MAX_BYTES || bound.n > AEAD_MAX_BYTES)
        return -EBADMSG;
    struct str text = str_sub(sealed, AEAD_NONCE_BYTES, sealed.n - AEAD_TAG_BYTES);
    unsigned char tag[AEAD_TAG_BYTES];
    memcpy(tag, text.p + text.n, sizeof(tag));
    CTX_AUTO *ctx = begin(key, (const unsigned char *) sealed.p, bound, /* is_sealing= */ false);
    if (!ctx)
        return -ENOMEM;
    unsigned char *out = (unsigned char *) buf_reserve(to, text.n);
    int n = 0;
    if (!transform(ctx, text, out) ||
        EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, AEAD_TAG_BYTES, tag) != 1 ||
        EVP_CipherFinal_ex(ctx, out + text.n, &n) != 1) {
        (void) pki_openssl_error(NULL);
        OPENSSL_cleanse(out, text.n); /* what fails its tag is seen by nobody */
        return -EBADMSG;
    }
    to->n += text.n;
    to->p[to->n] = '\0';
    return 0;
}
