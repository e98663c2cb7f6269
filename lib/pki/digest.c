/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <pthread.h>

#include "pki/openssl.h"

#define WIFI_ROUNDS 4096
#define WIFI_PASSPHRASE_MAX 63
#define WIFI_SSID_MAX 32

/* Fetched once: each fetch by name takes locks all threads share. */
static struct {
    pthread_once_t once;
    EVP_MD *sha1, *sha256, *sha512;
} digests = {.once = PTHREAD_ONCE_INIT};

static void fetch_digests(void)
{
    digests.sha1 = EVP_MD_fetch(NULL, "SHA1", NULL);
    digests.sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    digests.sha512 = EVP_MD_fetch(NULL, "SHA512", NULL);
    assert(digests.sha1 && digests.sha256 && digests.sha512);
}

static void digest(EVP_MD *const *md, struct str data, unsigned char *out)
{
    pthread_once(&digests.once, fetch_digests);
    /* Over bytes in memory with a fetched digest this fails for want of memory alone. */
    int ok = EVP_Digest(data.p, data.n, out, NULL, *md, NULL);
    assert(ok == 1);
    (void) ok;
}

void pki_sha256(struct str data, unsigned char out[SHA256_BYTES])
{
    digest(&digests.sha256, data, out);
}

void pki_sha512(struct str data, unsigned char out[SHA512_BYTES])
{
    digest(&digests.sha512, data, out);
}

void pki_sha1(struct str data, unsigned char out[20])
{
    digest(&digests.sha1, data, out);
}

void pki_hmac_sha256(struct str key, struct str data, unsigned char out[SHA256_BYTES])
{
    pthread_once(&digests.once, fetch_digests);
    const unsigned char *ok =
        HMAC(digests.sha256, key.p, (int) key.n, (const unsigned char *) data.p, data.n, out, NULL);
    assert(ok);
    (void) ok;
}

int pki_wifi_key(struct str passphrase, struct str ssid, unsigned char out[WIFI_KEY_BYTES])
{
    pthread_once(&digests.once, fetch_digests);
    if (passphrase.n > WIFI_PASSPHRASE_MAX || ssid.n > WIFI_SSID_MAX)
        return -EINVAL;
    return PKCS5_PBKDF2_HMAC(passphrase.p, (int) passphrase.n, (const unsigned char *) ssid.p,
                             (int) ssid.n, WIFI_ROUNDS, digests.sha1, WIFI_KEY_BYTES, out) == 1
               ? 0
               : -EINVAL;
}

struct str pki_hex(struct arena *a, const unsigned char *p, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    char *out = arena_alloc(a, 2 * n + 1);
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[p[i] >> 4];
        out[2 * i + 1] = digits[p[i] & 0xf];
    }
    out[2 * n] = '\0';
    return str_range(out, 2 * n);
}
