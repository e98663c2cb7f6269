/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/names.h"

#include "pki/pki.h"

/* Without vowels, 0, 1 and 3, so that no words come out: Kubernetes's alphabet for such names. */
static const char alphabet[] = "bcdfghjklmnpqrstvwxz2456789";

void names_hash(struct str data, char out[NAMES_HASH_BYTES])
{
    unsigned char digest[SHA256_BYTES];
    pki_sha256(data, digest);
    for (size_t i = 0; i < NAMES_HASH_BYTES - 1; i++) {
        /* Two bytes each: one would favour the first letters. */
        const unsigned two = (unsigned) digest[2 * i] << 8 | digest[2 * i + 1];
        out[i] = alphabet[two % (sizeof(alphabet) - 1)];
    }
    out[NAMES_HASH_BYTES - 1] = '\0';
}

struct str names_fit(struct arena *a, struct str name)
{
    char hash[NAMES_HASH_BYTES];
    if (name.n <= NAMES_MAX_BYTES)
        return arena_str(a, name);
    names_hash(name, hash);
    struct str kept = str_sub(name, 0, NAMES_MAX_BYTES - NAMES_HASH_BYTES);
    while (kept.n && (kept.p[kept.n - 1] == '-' || kept.p[kept.n - 1] == '.'))
        kept.n--;
    return arena_printf(a, "%.*s-%s", STR_ARG(kept), hash);
}
