/* SPDX-License-Identifier: Apache-2.0 */
#include "composer/wifi_keys.h"

#include <pthread.h>

#include "base/arena.h"

/* Networks whose keys are remembered. Each has one place, by its hash: who needs it takes it. */
#define N_REMEMBERED 64

/* By a hash of both texts, so that no passphrase is kept. */
struct remembered {
    bool is_there;
    unsigned char of[SHA256_BYTES];
    unsigned char key[WIFI_KEY_BYTES];
};

static struct remembered table[N_REMEMBERED];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void hash_both(struct str passphrase, struct str ssid, unsigned char ret[SHA256_BYTES])
{
    ARENA_AUTO a = arena_new();
    const char length = (char) passphrase.n; /* where one ends and the other begins */
    const struct str parts[] = {str_range(&length, 1), passphrase, ssid};
    pki_sha256(arena_join(a, parts, N_ELEMENTS(parts)), ret);
}

static bool recall(const unsigned char *of, unsigned char *ret_key)
{
    const struct remembered *r = &table[of[0] % N_REMEMBERED];
    (void) pthread_mutex_lock(&lock);
    const bool is_found = r->is_there && memcmp(r->of, of, SHA256_BYTES) == 0;
    if (is_found)
        memcpy(ret_key, r->key, WIFI_KEY_BYTES);
    (void) pthread_mutex_unlock(&lock);
    return is_found;
}

static void remember(const unsigned char *of, const unsigned char *key)
{
    struct remembered *r = &table[of[0] % N_REMEMBERED];
    (void) pthread_mutex_lock(&lock);
    r->is_there = true;
    memcpy(r->of, of, SHA256_BYTES);
    memcpy(r->key, key, WIFI_KEY_BYTES);
    (void) pthread_mutex_unlock(&lock);
}

int wifi_keys_derive(struct str passphrase, struct str ssid,
                     unsigned char ret_key[static WIFI_KEY_BYTES])
{
    unsigned char of[SHA256_BYTES];
    hash_both(passphrase, ssid, of);
    if (recall(of, ret_key))
        return 0;
    const int r = pki_wifi_key(passphrase, ssid, ret_key);
    if (r == 0)
        remember(of, ret_key);
    return r;
}
