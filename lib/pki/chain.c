/* SPDX-License-Identifier: Apache-2.0 */
#include "pki/chain.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "base/alloc.h"
#include "pki/pki_internal.h"

DEFINE_OPENSSL_CLEANUP(X509_STORE, X509_STORE_free)
DEFINE_OPENSSL_CLEANUP(X509_STORE_CTX, X509_STORE_CTX_free)
DEFINE_OPENSSL_CLEANUP(STACK_OF(X509), sk_X509_free)
DEFINE_OPENSSL_CLEANUP(GENERAL_NAMES, GENERAL_NAMES_free)
#define X509_STORE_AUTO CLEANUP(X509_STORE_free_auto) X509_STORE
#define X509_STORE_CTX_AUTO CLEANUP(X509_STORE_CTX_free_auto) X509_STORE_CTX
#define GENERAL_NAMES_AUTO CLEANUP(GENERAL_NAMES_free_auto) GENERAL_NAMES

void pki_chain_done(struct pki_chain *c)
{
    for (size_t i = 0; i < c->n; i++)
        pki_cert_free(c->certs[i]);
    c->n = 0;
}

int pki_chain_parse(struct str pem, struct pki_chain *chain)
{
    if (pem.n > PKI_FILE_MAX_BYTES)
        return -EFBIG;
    BIO_AUTO *bio = BIO_new_mem_buf(pem.p ? pem.p : "", (int) pem.n);
    size_t before = chain->n;
    while (bio) {
        X509_AUTO *x = PEM_read_bio_X509(bio, NULL, pki_no_passphrase, NULL);
        if (!x)
            break;
        if (chain->n == PKI_CHAIN_MAX)
            return -E2BIG;
        (void) X509_check_purpose(x, -1, 0); /* reads its extensions now, not in every thread */
        chain->certs[chain->n++] = pki_cert_of_x509(x);
    }
    /* The end of the text shows as "no start line"; anything else is a damaged certificate. */
    unsigned long last = ERR_peek_last_error();
    bool is_end = ERR_GET_LIB(last) == ERR_LIB_PEM && ERR_GET_REASON(last) == PEM_R_NO_START_LINE;
    ERR_clear_error();
    return is_end && chain->n > before ? 0 : -EINVAL;
}

/* ---- verifying ------------------------------------------------------------------------------ */

/* Without the extension every use is allowed: OpenSSL then sets all bits. */
static bool may_serve(X509 *x)
{
    return (X509_get_extended_key_usage(x) & (XKU_SSL_SERVER | XKU_ANYEKU)) != 0;
}

static int reject(const char *reason, const char **ret_reason)
{
    ERR_clear_error();
    *ret_reason = reason;
    return -EKEYREJECTED;
}

/* Roots need not be self-signed: whatever a device is given to trust, it trusts. */
static bool prepare(X509_STORE *store, X509_STORE_CTX *ctx, STACK_OF(X509) * others,
                    const struct pki_chain *chain, const struct pki_chain *roots, int64_t at_s)
{
    for (size_t i = 0; i < roots->n; i++)
        if (!X509_STORE_add_cert(store, roots->certs[i]->x509))
            return false;
    for (size_t i = 1; i < chain->n; i++)
        if (!sk_X509_push(others, chain->certs[i]->x509))
            return false;
    if (!X509_STORE_CTX_init(ctx, store, chain->certs[0]->x509, others))
        return false;
    X509_VERIFY_PARAM *p = X509_STORE_CTX_get0_param(ctx);
    X509_VERIFY_PARAM_set_time(p, (time_t) at_s);
    return X509_VERIFY_PARAM_set_flags(p, X509_V_FLAG_PARTIAL_CHAIN) == 1;
}

int pki_chain_verify(const struct pki_chain *chain, const struct pki_chain *roots, int64_t at_s,
                     struct pki_chain *ret_between, const char **ret_reason)
{
    X509_STORE_AUTO *store = X509_STORE_new();
    X509_STORE_CTX_AUTO *ctx = X509_STORE_CTX_new();
    CLEANUP(sk_X509_free_auto) STACK_OF(X509) *others = sk_X509_new_null();
    if (chain->n == 0 || !store || !ctx || !others ||
        !prepare(store, ctx, others, chain, roots, at_s))
        return reject("it cannot be verified", ret_reason);
    if (X509_verify_cert(ctx) != 1)
        return reject(X509_verify_cert_error_string(X509_STORE_CTX_get_error(ctx)), ret_reason);
    STACK_OF(X509) *path = X509_STORE_CTX_get0_chain(ctx);
    int n = sk_X509_num(path);
    for (int i = 0; i < n; i++)
        if (!may_serve(sk_X509_value(path, i)))
            return reject("an extended key usage without serverAuth", ret_reason);
    struct pki_chain between = {0};
    for (int i = 1; i < n - 1 && between.n < PKI_CHAIN_MAX; i++)
        between.certs[between.n++] = pki_cert_of_x509(sk_X509_value(path, i));
    *ret_between = between;
    return 0;
}

/* ---- keys ----------------------------------------------------------------------------------- */

int pki_key_parse(struct str pem, struct pki_key **ret_key)
{
    if (pem.n > PKI_FILE_MAX_BYTES)
        return -EFBIG;
    BIO_AUTO *bio = BIO_new_mem_buf(pem.p ? pem.p : "", (int) pem.n);
    EVP_PKEY *pkey = bio ? PEM_read_bio_PrivateKey(bio, NULL, pki_no_passphrase, NULL) : NULL;
    if (!pkey)
        return pki_openssl_error(NULL);
    struct pki_key *k = NEW(struct pki_key);
    k->pkey = pkey;
    *ret_key = k;
    return 0;
}

bool pki_key_is_p256(const struct pki_key *k)
{
    char group[32] = "";
    size_t n = 0;
    return EVP_PKEY_is_a(k->pkey, "EC") &&
           EVP_PKEY_get_utf8_string_param(k->pkey, OSSL_PKEY_PARAM_GROUP_NAME, group, sizeof(group),
                                          &n) == 1 &&
           str_is(str_of(group), SN_X9_62_prime256v1);
}

bool pki_key_fits(const struct pki_key *k, const struct pki_cert *c)
{
    bool ok = X509_check_private_key(c->x509, k->pkey) == 1;
    ERR_clear_error();
    return ok;
}

/* ---- names ---------------------------------------------------------------------------------- */

static struct str name_text(struct arena *a, const GENERAL_NAME *g)
{
    char text[INET6_ADDRSTRLEN] = "";
    int type = 0;
    const ASN1_STRING *value = GENERAL_NAME_get0_value(g, &type);
    if (type != GEN_DNS && type != GEN_IPADD)
        return STR_NONE;
    const unsigned char *p = ASN1_STRING_get0_data(value);
    int n = ASN1_STRING_length(value);
    if (type == GEN_DNS)
        return arena_str(a, str_range((const char *) p, (size_t) n));
    if (n != 4 && n != 16)
        return STR_NONE;
    return inet_ntop(n == 4 ? AF_INET : AF_INET6, p, text, sizeof(text))
               ? arena_str(a, str_of(text))
               : STR_NONE;
}

size_t pki_cert_names(struct arena *a, const struct pki_cert *c, struct str **ret_names)
{
    GENERAL_NAMES_AUTO *all = X509_get_ext_d2i(c->x509, NID_subject_alt_name, NULL, NULL);
    int n_all = all ? sk_GENERAL_NAME_num(all) : 0;
    struct str *names = ARENA_ARRAY(a, struct str, n_all + 1);
    size_t n = 0;
    for (int i = 0; i < n_all; i++) {
        names[n] = name_text(a, sk_GENERAL_NAME_value(all, i));
        n += names[n].p != NULL;
    }
    ERR_clear_error();
    *ret_names = names;
    return n;
}
