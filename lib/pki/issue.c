/* SPDX-License-Identifier: Apache-2.0 */
/* Making certificates. */
#include <arpa/inet.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "base/random.h"
#include "pki/pki_internal.h"

#define SERIAL_BYTES 16
/* Clocks of client and server may differ by a little. */
#define BACKDATE_S 60

DEFINE_OPENSSL_CLEANUP(GENERAL_NAMES, GENERAL_NAMES_free)
#define GENERAL_NAMES_AUTO CLEANUP(GENERAL_NAMES_free_auto) GENERAL_NAMES

bool pki_issue_serial(X509 *x)
{
    unsigned char bytes[SERIAL_BYTES];
    random_bytes(bytes, sizeof(bytes));
    BIGNUM *number = BN_bin2bn(bytes, sizeof(bytes), NULL);
    bool ok = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x));
    BN_free(number);
    return ok;
}

static bool set_validity(X509 *x, const struct pki_cert_options *o)
{
    int64_t backdate_s = o->backdate_s ? o->backdate_s : BACKDATE_S;
    return X509_gmtime_adj(X509_getm_notBefore(x), (long) -backdate_s) &&
           X509_time_adj_ex(X509_getm_notAfter(x), (int) o->valid_days, (long) o->valid_s, NULL);
}

static bool add_entry(X509_NAME *name, int nid, struct str text)
{
    return X509_NAME_add_entry_by_NID(name, nid, MBSTRING_UTF8, (const unsigned char *) text.p,
                                      (int) text.n, -1, 0) == 1;
}

/* Organizations first, as kubeadm and Go write them. */
static bool set_subject(X509 *x, const struct pki_cert_options *o)
{
    X509_NAME *name = X509_get_subject_name(x);
    for (size_t i = 0; i < o->n_organizations; i++)
        if (!add_entry(name, NID_organizationName, o->organizations[i]))
            return false;
    return o->common_name.n == 0 || add_entry(name, NID_commonName, o->common_name);
}

static GENERAL_NAME *general_name(struct str text)
{
    ARENA_AUTO a = arena_new();
    const char *z = arena_strz(a, text);
    unsigned char address[16];
    size_t n_address = inet_pton(AF_INET, z, address) == 1    ? 4
                       : inet_pton(AF_INET6, z, address) == 1 ? 16
                                                              : 0;
    GENERAL_NAME *g = GENERAL_NAME_new();
    ASN1_STRING *value = n_address ? ASN1_OCTET_STRING_new() : ASN1_IA5STRING_new();
    const void *bytes = n_address ? (const void *) address : z;
    if (!g || !value || !ASN1_STRING_set(value, bytes, (int) (n_address ? n_address : text.n))) {
        GENERAL_NAME_free(g);
        ASN1_STRING_free(value);
        return NULL;
    }
    GENERAL_NAME_set0_value(g, n_address ? GEN_IPADD : GEN_DNS, value);
    return g;
}

static bool add_names(X509 *x, const struct pki_cert_options *o)
{
    if (o->n_names == 0)
        return true;
    GENERAL_NAMES_AUTO *names = GENERAL_NAMES_new();
    for (size_t i = 0; names && i < o->n_names; i++) {
        GENERAL_NAME *g = general_name(o->names[i]);
        if (!g || !sk_GENERAL_NAME_push(names, g)) {
            GENERAL_NAME_free(g);
            return false;
        }
    }
    /* RFC 5280 4.2.1.6: critical when the subject is empty. */
    int critical = X509_NAME_entry_count(X509_get_subject_name(x)) == 0;
    return names && X509_add1_ext_i2d(x, NID_subject_alt_name, names, critical, 0) == 1;
}

bool pki_issue_extension(X509 *x, const X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, (X509 *) issuer, x, NULL, NULL, 0);
    X509V3_set_ctx_nodb(&ctx);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    bool ok = e && X509_add_ext(x, e, -1) == 1;
    X509_EXTENSION_free(e);
    return ok;
}

static bool add_extensions(X509 *x, const X509 *issuer, const struct pki_cert_options *o)
{
    const char *extended = o->for_server && o->for_client ? "serverAuth,clientAuth"
                           : o->for_server                ? "serverAuth"
                           : o->for_client                ? "clientAuth"
                                                          : NULL;
    return pki_issue_extension(x, issuer, NID_basic_constraints,
                               o->is_ca ? "critical,CA:TRUE" : "critical,CA:FALSE") &&
           pki_issue_extension(x, issuer, NID_key_usage,
                               o->is_ca ? "critical,digitalSignature,keyCertSign,cRLSign"
                                        : "critical,digitalSignature") &&
           (!extended || pki_issue_extension(x, issuer, NID_ext_key_usage, extended)) &&
           pki_issue_extension(x, issuer, NID_subject_key_identifier, "hash") &&
           (X509_get_ext_by_NID(issuer, NID_subject_key_identifier, -1) < 0 ||
            pki_issue_extension(x, issuer, NID_authority_key_identifier, "keyid:always")) &&
           add_names(x, o);
}

static bool fill(X509 *x, const struct pki_cert_options *o, EVP_PKEY *key, const X509 *issuer)
{
    return X509_set_version(x, X509_VERSION_3) && pki_issue_serial(x) && set_validity(x, o) &&
           set_subject(x, o) && X509_set_issuer_name(x, X509_get_subject_name(issuer)) &&
           X509_set_pubkey(x, key) && add_extensions(x, issuer, o);
}

static struct pki_cert *issue(const struct pki_cert_options *o, EVP_PKEY *key,
                              const struct pki_cert *issuer, EVP_PKEY *signer)
{
    X509_AUTO *x = X509_new();
    if (!x || !fill(x, o, key, issuer ? issuer->x509 : x) || !X509_sign(x, signer, EVP_sha256())) {
        (void) pki_openssl_error(NULL);
        return NULL;
    }
    return pki_cert_of_x509(x);
}

struct pki_cert *pki_cert_new(const struct pki_cert_options *o, const struct pki_key *key,
                              const struct pki_cert *issuer, const struct pki_key *issuer_key)
{
    return issue(o, key->pkey, issuer, issuer ? issuer_key->pkey : key->pkey);
}

struct pki_cert *pki_cert_new_for(const struct pki_cert_options *o, struct str public_der,
                                  const struct pki_cert *issuer, const struct pki_key *issuer_key)
{
    const unsigned char *p = (const unsigned char *) public_der.p;
    EVP_PKEY_AUTO *key = d2i_PUBKEY(NULL, &p, (long) public_der.n);
    if (!key || p != (const unsigned char *) public_der.p + public_der.n) {
        (void) pki_openssl_error(NULL);
        return NULL;
    }
    return issue(o, key, issuer, issuer_key->pkey);
}
