/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <openssl/ec.h>

#include "base/alloc.h"
#include "pki/pki_internal.h"

struct pki_key *pki_key_new(void)
{
    EVP_PKEY *pkey = EVP_EC_gen("P-256");
    assert(pkey); /* no memory or no randomness: there is no way to go on */
    struct pki_key *k = NEW(struct pki_key);
    k->pkey = pkey;
    return k;
}

void pki_key_free(struct pki_key *k)
{
    if (!k)
        return;
    EVP_PKEY_free(k->pkey);
    mem_free(k);
}

int pki_key_load(const char *path, struct pki_key **ret_key)
{
    BUF_AUTO content = {0};
    int r = pki_file_read(path, &content);
    if (r < 0)
        return r;
    BIO_AUTO *bio = BIO_new_mem_buf(content.p, (int) content.n);
    EVP_PKEY *pkey = bio ? PEM_read_bio_PrivateKey(bio, NULL, pki_no_passphrase, NULL) : NULL;
    if (content.n)
        OPENSSL_cleanse(content.p, content.n);
    if (!pkey)
        return pki_openssl_error(NULL);
    struct pki_key *k = NEW(struct pki_key);
    k->pkey = pkey;
    *ret_key = k;
    return 0;
}

struct str pki_key_pem(struct arena *a, const struct pki_key *k)
{
    BIO_AUTO *bio = BIO_new(BIO_s_mem());
    int ok = bio && PEM_write_bio_PrivateKey(bio, k->pkey, NULL, NULL, 0, NULL, NULL);
    assert(ok);
    (void) ok;
    return pki_bio_str(a, bio);
}

int pki_key_save(const struct pki_key *k, const char *path)
{
    ARENA_AUTO a = arena_new();
    return pki_file_write(path, pki_key_pem(a, k), 0600);
}

EVP_PKEY *pki_key_openssl(const struct pki_key *k)
{
    return k->pkey;
}
