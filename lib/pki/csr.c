/* SPDX-License-Identifier: Apache-2.0 */
#include "pki/csr.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/objects.h>

#include "base/alloc.h"
#include "pki/pki_internal.h"

#define RSA_MIN_BITS 2048
#define RSA_MAX_BITS 8192 /* checking a signature of more takes too long */
#define CURVE_NAME_BYTES 64
#define UNIMPLEMENTED "x509: cannot verify signature: algorithm unimplemented"

struct pki_request {
    X509_REQ *x509;
};

DEFINE_OPENSSL_CLEANUP(X509_REQ, X509_REQ_free)
DEFINE_OPENSSL_CLEANUP(X509_NAME, X509_NAME_free)

void pki_request_free(struct pki_request *r)
{
    if (!r)
        return;
    X509_REQ_free(r->x509);
    mem_free(r);
}

static int refuse(const char **ret_reason, const char *reason)
{
    (void) pki_openssl_error(NULL);
    *ret_reason = reason;
    return -EINVAL;
}

/* ---- reading ------------------------------------------------------------------------------ */

struct pem_block {
    char *name, *header;
    unsigned char *data;
    long n;
};

static void pem_block_done(struct pem_block *b)
{
    OPENSSL_free(b->name);
    OPENSSL_free(b->header);
    OPENSSL_free(b->data);
}

static bool pem_block_read(struct pem_block *b, BIO *bio)
{
    return PEM_read_bio(bio, &b->name, &b->header, &b->data, &b->n) == 1;
}

static int read_block(struct str pem, struct pem_block *ret, const char **ret_reason)
{
    CLEANUP(pem_block_done) struct pem_block second = {0};
    BIO_AUTO *bio = BIO_new_mem_buf(pem.p ? pem.p : "", (int) pem.n);
    if (!bio || !pem_block_read(ret, bio) || !str_is(str_of(ret->name), PEM_STRING_X509_REQ))
        return refuse(ret_reason, "PEM block type must be CERTIFICATE REQUEST");
    if (ret->header[0])
        return refuse(ret_reason, "no PEM block headers are permitted");
    if (pem_block_read(&second, bio))
        return refuse(ret_reason, "there must be exactly one PEM block");
    (void) pki_openssl_error(NULL);
    return 0;
}

static bool is_nist_curve(EVP_PKEY *key)
{
    static const char *const curves[] = {SN_X9_62_prime256v1, SN_secp384r1, SN_secp521r1};
    char name[CURVE_NAME_BYTES] = "";
    int is_explicit = 0;
    if (!EVP_PKEY_get_utf8_string_param(key, OSSL_PKEY_PARAM_GROUP_NAME, name, sizeof(name), NULL))
        return false;
    (void) EVP_PKEY_get_int_param(key, OSSL_PKEY_PARAM_EC_DECODED_FROM_EXPLICIT_PARAMS,
                                  &is_explicit);
    for (size_t i = 0; i < N_ELEMENTS(curves); i++)
        if (str_is(str_of(name), curves[i]))
            return !is_explicit;
    return false;
}

static bool is_known_key(EVP_PKEY *key)
{
    switch (EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_RSA:
        return EVP_PKEY_get_bits(key) <= RSA_MAX_BITS;
    case EVP_PKEY_EC:
        return is_nist_curve(key);
    case EVP_PKEY_ED25519:
        return true;
    default:
        return false;
    }
}

/* Go knows none with older digests, nor do we. */
static bool is_known_signature(const X509_REQ *request)
{
    static const int digests[] = {NID_sha256, NID_sha384, NID_sha512};
    int signature = X509_REQ_get_signature_nid(request), digest = NID_undef;
    if (signature == NID_ED25519 || signature == NID_rsassaPss)
        return true;
    if (!OBJ_find_sigid_algs(signature, &digest, NULL))
        return false;
    for (size_t i = 0; i < N_ELEMENTS(digests); i++)
        if (digest == digests[i])
            return true;
    return false;
}

static const char *verification_failure(EVP_PKEY *key)
{
    switch (EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_RSA:
        return "crypto/rsa: verification error";
    case EVP_PKEY_EC:
        return "x509: ECDSA verification failure";
    default:
        return "x509: Ed25519 verification failure";
    }
}

static int check_signature(X509_REQ *request, const char **ret_reason)
{
    EVP_PKEY *key = X509_REQ_get0_pubkey(request);
    if (!key)
        return refuse(ret_reason, "x509: unsupported public key");
    if (!is_known_key(key) || !is_known_signature(request))
        return refuse(ret_reason, UNIMPLEMENTED);
    if (X509_REQ_verify(request, key) != 1)
        return refuse(ret_reason, verification_failure(key));
    return 0;
}

int pki_request_parse(struct str pem, struct pki_request **ret_request, const char **ret_reason)
{
    if (pem.n > PKI_REQUEST_MAX_BYTES)
        return refuse(ret_reason, "the request is larger than 64 KiB");
    CLEANUP(pem_block_done) struct pem_block block = {0};
    int r = read_block(pem, &block, ret_reason);
    if (r < 0)
        return r;
    const unsigned char *p = block.data;
    CLEANUP(X509_REQ_free_auto) X509_REQ *request = d2i_X509_REQ(NULL, &p, block.n);
    if (!request)
        return refuse(ret_reason, "asn1: structure error: not a certificate request");
    if (p != block.data + block.n)
        return refuse(ret_reason, "asn1: syntax error: trailing data");
    r = check_signature(request, ret_reason);
    if (r < 0)
        return r;
    *ret_request = NEW(struct pki_request);
    (*ret_request)->x509 = TAKE(request);
    return 0;
}

struct str pki_request_common_name(struct arena *a, const struct pki_request *r)
{
    return pki_name_common(a, X509_REQ_get_subject_name(r->x509));
}

size_t pki_request_organizations(struct arena *a, const struct pki_request *r,
                                 struct str **ret_names)
{
    return pki_name_organizations(a, X509_REQ_get_subject_name(r->x509), ret_names);
}

/* ---- signing ------------------------------------------------------------------------------ */

/* The attributes that Go's certificates have; others may mean something to somebody. */
static bool is_copied(const X509_NAME_ENTRY *e)
{
    static const int copied[] = {
        NID_countryName,  NID_organizationName,    NID_organizationalUnitName,
        NID_localityName, NID_stateOrProvinceName, NID_streetAddress,
        NID_postalCode,   NID_serialNumber,        NID_commonName};
    int nid = OBJ_obj2nid(X509_NAME_ENTRY_get_object(e));
    for (size_t i = 0; i < N_ELEMENTS(copied); i++)
        if (nid == copied[i])
            return true;
    return false;
}

static bool copy_subject(X509 *x, const struct pki_request *r)
{
    const X509_NAME *from = X509_REQ_get_subject_name(r->x509);
    CLEANUP(X509_NAME_free_auto) X509_NAME *to = X509_NAME_new();
    for (int i = 0; to && i < X509_NAME_entry_count(from); i++) {
        const X509_NAME_ENTRY *e = X509_NAME_get_entry(from, i);
        if (is_copied(e) && X509_NAME_add_entry(to, e, -1, 0) != 1)
            return false;
    }
    return to && X509_set_subject_name(x, to) == 1;
}

static bool add_usages(X509 *x, const X509 *issuer, const struct pki_request_terms *t)
{
    const char *usage = t->digital_signature && t->key_encipherment
                            ? "critical,digitalSignature,keyEncipherment"
                        : t->digital_signature ? "critical,digitalSignature"
                        : t->key_encipherment  ? "critical,keyEncipherment"
                                               : NULL;
    return (!usage || pki_issue_extension(x, issuer, NID_key_usage, usage)) &&
           (!t->client_auth || pki_issue_extension(x, issuer, NID_ext_key_usage, "clientAuth"));
}

static bool fill(X509 *x, const struct pki_request *r, const struct pki_request_terms *t,
                 const X509 *issuer)
{
    return X509_set_version(x, X509_VERSION_3) && pki_issue_serial(x) &&
           ASN1_TIME_set(X509_getm_notBefore(x), (time_t) t->not_before_s) &&
           ASN1_TIME_set(X509_getm_notAfter(x), (time_t) t->not_after_s) && copy_subject(x, r) &&
           X509_set_issuer_name(x, X509_get_subject_name(issuer)) &&
           X509_set_pubkey(x, X509_REQ_get0_pubkey(r->x509)) &&
           pki_issue_extension(x, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
           add_usages(x, issuer, t) &&
           pki_issue_extension(x, issuer, NID_authority_key_identifier, "keyid:always");
}

static bool is_strong(EVP_PKEY *key)
{
    return EVP_PKEY_get_base_id(key) != EVP_PKEY_RSA || EVP_PKEY_get_bits(key) >= RSA_MIN_BITS;
}

int pki_request_sign(const struct pki_request *r, const struct pki_request_terms *terms,
                     const struct pki_cert *issuer, const struct pki_key *issuer_key,
                     struct pki_cert **ret_cert, const char **ret_reason)
{
    struct pki_request_terms t = *terms;
    t.not_after_s = MIN(t.not_after_s, pki_cert_not_after(issuer));
    if (!is_strong(X509_REQ_get0_pubkey(r->x509)))
        return refuse(ret_reason, "an RSA key must have at least 2048 bits");
    if (t.not_after_s <= t.not_before_s)
        return refuse(ret_reason, "refusing to sign a certificate that expired in the past");
    X509_AUTO *x = X509_new();
    if (!x || !fill(x, r, &t, issuer->x509) || !X509_sign(x, issuer_key->pkey, EVP_sha256()))
        return refuse(ret_reason, "the subject does not fit a certificate");
    *ret_cert = pki_cert_of_x509(x);
    return 0;
}

/* ---- answers ------------------------------------------------------------------------------ */

/* STR_NONE: it is a certificate. */
static struct str check_certificate_block(struct arena *a, const struct pem_block *b)
{
    const unsigned char *p = b->data;
    if (!str_is(str_of(b->name), PEM_STRING_X509))
        return arena_printf(a, "only CERTIFICATE PEM blocks are allowed, found \"%s\"", b->name);
    if (b->header[0])
        return STR("no PEM block headers are permitted");
    X509_AUTO *x509 = d2i_X509(NULL, &p, b->n);
    if (!x509)
        return STR("x509: malformed certificate");
    return p == b->data + b->n ? STR_NONE : STR("x509: trailing data");
}

int pki_request_check_answer(struct arena *a, struct str pem, struct str *ret_reason)
{
    BIO_AUTO *bio = BIO_new_mem_buf(pem.p ? pem.p : "", (int) MIN(pem.n, PKI_FILE_MAX_BYTES));
    struct str reason = STR_NONE;
    size_t n = 0;
    for (bool is_more = bio; is_more && !reason.n;) {
        CLEANUP(pem_block_done) struct pem_block block = {0};
        is_more = pem_block_read(&block, bio);
        if (is_more)
            reason = check_certificate_block(a, &block);
        n += is_more;
    }
    (void) pki_openssl_error(NULL);
    if (!n)
        reason = STR("must contain at least one CERTIFICATE PEM block");
    *ret_reason = reason;
    return reason.n ? -EINVAL : 0;
}
