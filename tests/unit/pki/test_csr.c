/* SPDX-License-Identifier: Apache-2.0 */
#include "pki/csr.h"

#include <errno.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>
#include <time.h>

#include "base/buf.h"
#include "pki/openssl.h"
#include "test.h"

DEFINE_OPENSSL_CLEANUP(X509_REQ, X509_REQ_free)
#define X509_REQ_AUTO CLEANUP(X509_REQ_free_auto) X509_REQ
#define NOW_S ((int64_t) 1800000000)

/* ---- making requests ---------------------------------------------------------------------- */

struct entry {
    int nid;
    const char *text;
    int length; /* -1: up to the zero */
};

static const struct entry jane[] = {{NID_organizationName, "dev", -1},
                                    {NID_organizationName, "ops", -1},
                                    {NID_commonName, "jane", -1}};

static X509_REQ *request_of(EVP_PKEY *key, const struct entry *entries, size_t n)
{
    X509_REQ *r = X509_REQ_new();
    X509_NAME *name = X509_REQ_get_subject_name(r);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(X509_NAME_add_entry_by_NID(name, entries[i].nid, MBSTRING_UTF8,
                                                    (const unsigned char *) entries[i].text,
                                                    entries[i].length, -1, 0),
                         1);
    assert_int_equal(X509_REQ_set_pubkey(r, key), 1);
    return r;
}

static void ask_too_much(X509_REQ *r)
{
    STACK_OF(X509_EXTENSION) *list = sk_X509_EXTENSION_new_null();
    sk_X509_EXTENSION_push(
        list, X509V3_EXT_conf_nid(NULL, NULL, NID_basic_constraints, "critical,CA:TRUE"));
    sk_X509_EXTENSION_push(list,
                           X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "DNS:kubernetes"));
    assert_int_equal(X509_REQ_add_extensions(r, list), 1);
    sk_X509_EXTENSION_pop_free(list, X509_EXTENSION_free);
}

static struct str pem_of(struct arena *a, X509_REQ *r)
{
    char *p = NULL;
    BIO_AUTO *bio = BIO_new(BIO_s_mem());
    assert_int_equal(PEM_write_bio_X509_REQ(bio, r), 1);
    long n = BIO_get_mem_data(bio, &p);
    return arena_str(a, str_range(p, (size_t) n));
}

static struct str signed_pem(struct arena *a, X509_REQ *r, EVP_PKEY *key, const EVP_MD *digest)
{
    assert_true(X509_REQ_sign(r, key, digest) > 0);
    return pem_of(a, r);
}

/* A good one, of an own key. */
static struct str request_pem(struct arena *a, const struct entry *entries, size_t n)
{
    EVP_PKEY_AUTO *key = EVP_EC_gen("P-256");
    X509_REQ_AUTO *r = request_of(key, entries, n);
    return signed_pem(a, r, key, EVP_sha256());
}

static const char *why_not(struct str pem)
{
    CLEANUP(pki_request_freep) struct pki_request *r = NULL;
    const char *reason = "";
    int result = pki_request_parse(pem, &r, &reason);
    assert_int_equal(result, r ? 0 : -EINVAL);
    return reason;
}

static struct pki_request *parsed(struct str pem)
{
    struct pki_request *r = NULL;
    const char *reason = NULL;
    assert_int_equal(pki_request_parse(pem, &r, &reason), 0);
    return r;
}

/* ---- reading ------------------------------------------------------------------------------ */

TEST(subjects_are_read)
{
    ARENA_AUTO a = arena_new();
    CLEANUP(pki_request_freep)
    struct pki_request *r = parsed(request_pem(a, jane, N_ELEMENTS(jane)));
    struct str *names = NULL;
    assert_true(str_is(pki_request_common_name(a, r), "jane"));
    assert_int_equal(pki_request_organizations(a, r, &names), 2);
    assert_true(str_is(names[0], "dev") && str_is(names[1], "ops"));
}

TEST(a_zero_byte_does_not_end_a_name)
{
    ARENA_AUTO a = arena_new();
    static const struct entry sly[] = {{NID_organizationName, "system:masters\0x", 16}};
    CLEANUP(pki_request_freep) struct pki_request *r = parsed(request_pem(a, sly, 1));
    struct str *names = NULL;
    assert_int_equal(pki_request_organizations(a, r, &names), 1);
    assert_int_equal(names[0].n, 16);
}

TEST(text_around_the_block_is_of_no_account)
{
    ARENA_AUTO a = arena_new();
    struct str pem = request_pem(a, jane, N_ELEMENTS(jane));
    assert_string_equal(why_not(arena_printf(a, "hello\n%.*sbye\n", STR_ARG(pem))), "");
}

TEST(what_is_no_request_is_refused)
{
    static const char must[] = "PEM block type must be CERTIFICATE REQUEST";
    ARENA_AUTO a = arena_new();
    struct str pem = request_pem(a, jane, N_ELEMENTS(jane));
    assert_string_equal(why_not(STR_NONE), must);
    assert_string_equal(why_not(STR("not a csr")), must);
    assert_string_equal(why_not(str_sub(pem, 0, pem.n - 10)), must);
    assert_string_equal(
        why_not(STR("-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n")), must);
    assert_string_equal(why_not(STR("-----BEGIN CERTIFICATE REQUEST-----\nMAA=\n"
                                    "-----END CERTIFICATE REQUEST-----\n")),
                        "asn1: structure error: not a certificate request");
    assert_string_equal(why_not(STR("-----BEGIN CERTIFICATE REQUEST-----\nA: b\n\nMAA=\n"
                                    "-----END CERTIFICATE REQUEST-----\n")),
                        "no PEM block headers are permitted");
    assert_string_equal(why_not(arena_printf(a, "%.*s%.*s", STR_ARG(pem), STR_ARG(pem))),
                        "there must be exactly one PEM block");
    struct str large =
        str_range(arena_alloc(a, PKI_REQUEST_MAX_BYTES + 1), PKI_REQUEST_MAX_BYTES + 1);
    memset((char *) large.p, '\n', large.n);
    assert_string_equal(why_not(large), "the request is larger than 64 KiB");
    assert_string_equal(why_not(str_sub(large, 0, PKI_REQUEST_MAX_BYTES)), must);
}

TEST(bytes_behind_the_request_are_refused)
{
    EVP_PKEY_AUTO *key = EVP_EC_gen("P-256");
    X509_REQ_AUTO *r = request_of(key, jane, N_ELEMENTS(jane));
    assert_true(X509_REQ_sign(r, key, EVP_sha256()) > 0);
    unsigned char der[1024], *p = der;
    int n = i2d_X509_REQ(r, &p);
    der[n] = 0;
    BIO_AUTO *bio = BIO_new(BIO_s_mem());
    char *text = NULL;
    PEM_write_bio(bio, "CERTIFICATE REQUEST", "", der, n + 1);
    long n_text = BIO_get_mem_data(bio, &text);
    assert_string_equal(why_not(str_range(text, (size_t) n_text)),
                        "asn1: syntax error: trailing data");
}

TEST(a_signature_of_another_key_is_refused)
{
    static const struct {
        const char *type, *reason;
    } cases[] = {{"P-256", "x509: ECDSA verification failure"},
                 {"P-384", "x509: ECDSA verification failure"},
                 {"ED25519", "x509: Ed25519 verification failure"},
                 {"RSA", "crypto/rsa: verification error"}};
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        ARENA_AUTO a = arena_new();
        const char *t = cases[i].type;
        EVP_PKEY_AUTO *key = NULL, *other = NULL;
        for (int k = 0; k < 2; k++) {
            EVP_PKEY *one = str_is(str_of(t), "RSA")       ? EVP_RSA_gen(2048)
                            : str_is(str_of(t), "ED25519") ? EVP_PKEY_Q_keygen(NULL, NULL, t)
                                                           : EVP_EC_gen(t);
            *(k ? &other : &key) = one;
        }
        const EVP_MD *digest = str_is(str_of(t), "ED25519") ? NULL : EVP_sha256();
        X509_REQ_AUTO *r = request_of(key, jane, N_ELEMENTS(jane));
        assert_string_equal(why_not(signed_pem(a, r, key, digest)), "");
        assert_string_equal(why_not(signed_pem(a, r, other, digest)), cases[i].reason);
    }
}

TEST(weak_digests_and_strange_curves_are_refused)
{
    static const char *const unknown = "x509: cannot verify signature: algorithm unimplemented";
    ARENA_AUTO a = arena_new();
    EVP_PKEY_AUTO *key = EVP_EC_gen("P-256");
    EVP_PKEY_AUTO *strange = EVP_EC_gen("secp256k1");
    X509_REQ_AUTO *weak = request_of(key, jane, N_ELEMENTS(jane));
    X509_REQ_AUTO *other = request_of(strange, jane, N_ELEMENTS(jane));
    assert_string_equal(why_not(signed_pem(a, weak, key, EVP_sha1())), unknown);
    assert_string_equal(why_not(signed_pem(a, other, strange, EVP_sha256())), unknown);
}

/* ---- signing ------------------------------------------------------------------------------ */

struct authority {
    struct pki_key *key;
    struct pki_cert *cert;
};

static struct authority authority_new(void)
{
    struct pki_key *key = pki_key_new();
    struct pki_cert_options o = {.common_name = STR("ca"), .is_ca = true, .valid_days = 3650};
    return (struct authority){key, pki_cert_new(&o, key, NULL, NULL)};
}

static void authority_done(struct authority *a)
{
    pki_cert_free(a->cert);
    pki_key_free(a->key);
}

static const struct pki_request_terms client_terms = {.not_before_s = NOW_S,
                                                      .not_after_s = NOW_S + 3600,
                                                      .digital_signature = true,
                                                      .client_auth = true};

static struct pki_cert *sign(const struct authority *ca, struct str pem,
                             const struct pki_request_terms *terms, const char **ret_reason)
{
    CLEANUP(pki_request_freep) struct pki_request *r = parsed(pem);
    struct pki_cert *c = NULL;
    *ret_reason = "";
    int result = pki_request_sign(r, terms, ca->cert, ca->key, &c, ret_reason);
    assert_int_equal(result, c ? 0 : -EINVAL);
    return c;
}

static X509 *x509_of(const struct pki_cert *c)
{
    ARENA_AUTO a = arena_new();
    struct str pem = pki_cert_pem(a, c);
    BIO_AUTO *bio = BIO_new_mem_buf(pem.p, (int) pem.n);
    return PEM_read_bio_X509(bio, NULL, NULL, NULL);
}

TEST(a_certificate_has_the_subject_and_nothing_else_that_was_asked)
{
    CLEANUP(authority_done) struct authority ca = authority_new();
    ARENA_AUTO a = arena_new();
    EVP_PKEY_AUTO *key = EVP_EC_gen("P-256");
    X509_REQ_AUTO *r = request_of(key, jane, N_ELEMENTS(jane));
    const char *reason = NULL;
    ask_too_much(r);
    CLEANUP(pki_cert_freep)
    struct pki_cert *c = sign(&ca, signed_pem(a, r, key, EVP_sha256()), &client_terms, &reason);
    X509_AUTO *x = x509_of(c);
    struct str *names = NULL;
    assert_true(str_is(pki_cert_common_name(a, c), "jane"));
    assert_int_equal(pki_cert_organizations(a, c, &names), 2);
    assert_true(str_is(names[0], "dev") && str_is(names[1], "ops"));
    assert_int_equal(pki_cert_not_after(c), NOW_S + 3600);
    assert_false(pki_cert_has_name(c, STR("kubernetes")));
    assert_int_equal(X509_check_ca(x), 0);
    assert_int_equal(X509_get_key_usage(x), KU_DIGITAL_SIGNATURE);
    assert_int_equal(X509_get_extended_key_usage(x), XKU_SSL_CLIENT);
    assert_int_equal(EVP_PKEY_eq(X509_get0_pubkey(x), key), 1);
    X509_AUTO *root = x509_of(ca.cert);
    assert_int_equal(X509_verify(x, X509_get0_pubkey(root)), 1);
    assert_int_equal(X509_check_issued(root, x), X509_V_OK);
}

TEST(usages_are_those_of_the_terms)
{
    CLEANUP(authority_done) struct authority ca = authority_new();
    ARENA_AUTO a = arena_new();
    struct pki_request_terms terms = client_terms;
    const char *reason = NULL;
    terms.key_encipherment = true;
    CLEANUP(pki_cert_freep)
    struct pki_cert *c = sign(&ca, request_pem(a, jane, N_ELEMENTS(jane)), &terms, &reason);
    X509_AUTO *x = x509_of(c);
    assert_int_equal(X509_get_key_usage(x), KU_DIGITAL_SIGNATURE | KU_KEY_ENCIPHERMENT);
}

TEST(attributes_that_mean_something_elsewhere_stay_behind)
{
    static const struct entry entries[] = {{NID_commonName, "jane", -1},
                                           {NID_userId, "0", -1},
                                           {NID_organizationalUnitName, "unit", -1},
                                           {NID_pkcs9_emailAddress, "a@b", -1}};
    CLEANUP(authority_done) struct authority ca = authority_new();
    ARENA_AUTO a = arena_new();
    const char *reason = NULL;
    CLEANUP(pki_cert_freep)
    struct pki_cert *c =
        sign(&ca, request_pem(a, entries, N_ELEMENTS(entries)), &client_terms, &reason);
    X509_AUTO *x = x509_of(c);
    X509_NAME *subject = X509_get_subject_name(x);
    assert_int_equal(X509_NAME_entry_count(subject), 2);
    assert_true(X509_NAME_get_index_by_NID(subject, NID_organizationalUnitName, -1) >= 0);
}

TEST(serials_differ)
{
    CLEANUP(authority_done) struct authority ca = authority_new();
    ARENA_AUTO a = arena_new();
    struct str pem = request_pem(a, jane, N_ELEMENTS(jane));
    const char *reason = NULL;
    CLEANUP(pki_cert_freep) struct pki_cert *one = sign(&ca, pem, &client_terms, &reason);
    CLEANUP(pki_cert_freep) struct pki_cert *two = sign(&ca, pem, &client_terms, &reason);
    X509_AUTO *x = x509_of(one), *y = x509_of(two);
    assert_int_not_equal(ASN1_INTEGER_cmp(X509_get0_serialNumber(x), X509_get0_serialNumber(y)), 0);
}

TEST(no_certificate_outlives_its_issuer)
{
    CLEANUP(authority_done) struct authority ca = authority_new();
    ARENA_AUTO a = arena_new();
    struct str pem = request_pem(a, jane, N_ELEMENTS(jane));
    struct pki_request_terms terms = client_terms;
    const char *reason = NULL;
    terms.not_after_s = pki_cert_not_after(ca.cert) + 1;
    CLEANUP(pki_cert_freep) struct pki_cert *c = sign(&ca, pem, &terms, &reason);
    assert_int_equal(pki_cert_not_after(c), pki_cert_not_after(ca.cert));
    terms.not_before_s = pki_cert_not_after(ca.cert);
    assert_null(sign(&ca, pem, &terms, &reason));
    assert_string_equal(reason, "refusing to sign a certificate that expired in the past");
}

TEST(weak_keys_are_not_signed)
{
    CLEANUP(authority_done) struct authority ca = authority_new();
    ARENA_AUTO a = arena_new();
    EVP_PKEY_AUTO *key = EVP_RSA_gen(1024);
    X509_REQ_AUTO *r = request_of(key, jane, N_ELEMENTS(jane));
    const char *reason = NULL;
    assert_null(sign(&ca, signed_pem(a, r, key, EVP_sha256()), &client_terms, &reason));
    assert_string_equal(reason, "an RSA key must have at least 2048 bits");
}

/* ---- answers ------------------------------------------------------------------------------ */

static struct str answer_fault(struct arena *a, struct str pem)
{
    struct str reason = STR_NONE;
    int r = pki_request_check_answer(a, pem, &reason);
    assert_int_equal(r, reason.n ? -EINVAL : 0);
    return reason.n ? reason : STR("");
}

TEST(answers_are_certificates)
{
    CLEANUP(authority_done) struct authority ca = authority_new();
    ARENA_AUTO a = arena_new();
    struct str pem = pki_cert_pem(a, ca.cert);
    assert_true(str_is(answer_fault(a, pem), ""));
    assert_true(
        str_is(answer_fault(a, arena_printf(a, "x\n%.*sy\n%.*s", STR_ARG(pem), STR_ARG(pem))), ""));
    assert_true(
        str_is(answer_fault(a, STR("not pem")), "must contain at least one CERTIFICATE PEM block"));
    struct str request = request_pem(a, jane, N_ELEMENTS(jane));
    assert_true(str_is(answer_fault(a, arena_printf(a, "%.*s%.*s", STR_ARG(pem), STR_ARG(request))),
                       "only CERTIFICATE PEM blocks are allowed, found \"CERTIFICATE REQUEST\""));
    assert_true(str_is(
        answer_fault(a, STR("-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n")),
        "x509: malformed certificate"));
}
