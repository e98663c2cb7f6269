/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <openssl/err.h>
#include <time.h>

#include "base/base64.h"
#include "base/buf.h"
#include "pki/pki_internal.h"
#include "test.h"

#define KEY_AUTO CLEANUP(pki_key_freep) struct pki_key *
#define CERT_AUTO CLEANUP(pki_cert_freep) struct pki_cert *

static struct pki_cert *issued(const char *name, bool is_ca, const struct pki_key *key,
                               const struct pki_cert *issuer, const struct pki_key *issuer_key)
{
    struct pki_cert_options o = {
        .common_name = str_of(name), .is_ca = is_ca, .for_client = !is_ca, .valid_days = 3};
    struct pki_cert *c = pki_cert_new(&o, key, issuer, issuer_key);
    assert_non_null(c);
    return c;
}

static struct str wrap(struct arena *a, struct str s)
{
    return base64_encode(a, s, BASE64_STANDARD);
}

/* What base64(1) prints: broken after 76 characters, and a line feed at the end. */
static struct str wrap_in_lines(struct arena *a, struct str s)
{
    BUF_AUTO lines = {0};
    for (struct str rest = wrap(a, s); rest.n > 0; rest = str_from(rest, 76)) {
        buf_append_str(&lines, str_sub(rest, 0, MIN(rest.n, 76)));
        buf_append_char(&lines, '\n');
    }
    return arena_str(a, buf_str(&lines));
}

/* As YAML reads lines that are no block. */
static struct str folded(struct arena *a, struct str lines)
{
    char *copy = arena_strz(a, lines);
    for (size_t i = 0; i < lines.n; i++)
        if (copy[i] == '\n')
            copy[i] = ' ';
    return str_range(copy, lines.n);
}

TEST(certificates_are_found_in_each_of_their_wrappings)
{
    ARENA_AUTO a = arena_new();
    KEY_AUTO key = pki_key_new();
    CERT_AUTO cert = issued("the first", true, key, NULL, NULL);
    CERT_AUTO second = issued("the second", true, key, NULL, NULL);
    struct str pem = pki_cert_pem(a, cert), der = pki_cert_der(a, cert);
    struct str two = arena_printf(a, "%.*s%.*s", STR_ARG(pem), STR_ARG(pki_cert_pem(a, second)));
    struct str texts[] = {
        pem,
        two,
        str_trim(pem),
        arena_printf(a, "0 is where it begins\n%.*s", STR_ARG(pem)),
        wrap(a, pem),
        wrap(a, two),
        wrap_in_lines(a, pem),
        arena_printf(a, "  %.*s \r\n", STR_ARG(wrap(a, pem))),
        wrap(a, wrap(a, pem)),
        wrap_in_lines(a, wrap_in_lines(a, pem)),
        folded(a, wrap_in_lines(a, wrap_in_lines(a, pem))),
        wrap(a, der),
        wrap_in_lines(a, der),
    };
    for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
        CERT_AUTO found = NULL;
        const char *reason = "none";
        assert_int_equal(pki_cert_decode(texts[i], &found, &reason), 0);
        assert_string_equal(reason, "none");
        assert_true(str_eq(pki_cert_der(a, found), der));
        unsigned char digest[SHA256_BYTES], quick[SHA256_BYTES] = {0};
        pki_sha256(der, digest);
        assert_int_equal(pki_cert_decode_fingerprint(texts[i], quick), 0);
        assert_memory_equal(digest, quick, sizeof(digest));
    }
}

TEST(what_is_no_certificate_is_refused_with_the_reason)
{
    ARENA_AUTO a = arena_new();
    KEY_AUTO key = pki_key_new();
    CERT_AUTO cert = issued("c", true, key, NULL, NULL);
    struct str pem = pki_cert_pem(a, cert), der = pki_cert_der(a, cert);
    char *huge = arena_alloc(a, 2 * PKI_FILE_MAX_BYTES);
    memset(huge, 'A', 2 * PKI_FILE_MAX_BYTES);
    const struct {
        struct str text;
        const char *reason;
    } cases[] = {
        {STR_NONE, "empty"},
        {STR(" \n"), "empty"},
        {str_range(huge, 2 * PKI_FILE_MAX_BYTES), "too long for a certificate"},
        {STR("certificate!"), "neither PEM nor base64"},
        {der, "neither PEM nor base64"},
        {wrap(a, STR("\x01\x02")), "base64 of something that is no certificate"},
        {wrap(a, wrap(a, wrap(a, pem))), "holds neither PEM nor DER"},
        {str_sub(pem, 0, pem.n / 2), "PEM without a readable certificate"},
        {pki_key_pem(a, key), "PEM without a readable certificate"},
        {wrap(a, str_sub(der, 0, der.n / 2)), "DER of no readable certificate"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct pki_cert *found = NULL;
        const char *reason = NULL;
        assert_int_equal(pki_cert_decode(cases[i].text, &found, &reason), -EINVAL);
        assert_null(found);
        assert_string_equal(reason, cases[i].reason);
        unsigned char digest[SHA256_BYTES];
        assert_int_equal(pki_cert_decode_fingerprint(cases[i].text, digest), -EINVAL);
        assert_int_equal(ERR_peek_error(), 0);
    }
}

TEST(a_fingerprint_is_the_digest_of_the_der)
{
    KEY_AUTO key = pki_key_new();
    CERT_AUTO cert = issued("c", true, key, NULL, NULL);
    unsigned char ours[SHA256_BYTES], theirs[SHA256_BYTES];
    unsigned n = 0;
    pki_cert_fingerprint(cert, ours);
    assert_int_equal(X509_digest(cert->x509, EVP_sha256(), theirs, &n), 1);
    assert_memory_equal(ours, theirs, sizeof(ours));
}

TEST(a_certificate_tells_when_it_begins)
{
    KEY_AUTO key = pki_key_new();
    CERT_AUTO cert = issued("c", true, key, NULL, NULL);
    assert_non_null(ASN1_TIME_set(X509_getm_notBefore(cert->x509), 1700000000));
    assert_int_equal(pki_cert_not_before(cert), 1700000000);
    assert_int_equal(ASN1_STRING_set(X509_getm_notBefore(cert->x509), "yesterday", -1), 1);
    assert_int_equal(pki_cert_not_before(cert), INT64_MAX);
    assert_int_equal(ERR_peek_error(), 0);
}

TEST(only_an_authority_that_signed_is_an_issuer)
{
    KEY_AUTO ca_key = pki_key_new();
    KEY_AUTO other_key = pki_key_new();
    KEY_AUTO leaf_key = pki_key_new();
    CERT_AUTO ca = issued("device", true, ca_key, NULL, NULL);
    CERT_AUTO namesake = issued("device", true, other_key, NULL, NULL);
    CERT_AUTO stranger = issued("another", true, ca_key, NULL, NULL);
    CERT_AUTO leaf = issued("leaf", false, leaf_key, ca, ca_key);
    CERT_AUTO self_signed_leaf = issued("lone", false, leaf_key, NULL, NULL);
    assert_true(pki_cert_is_signed_by(leaf, ca));
    assert_true(pki_cert_is_signed_by(ca, ca));
    assert_false(pki_cert_is_signed_by(leaf, namesake));
    assert_false(pki_cert_is_signed_by(leaf, stranger));
    assert_false(pki_cert_is_signed_by(ca, leaf));
    assert_false(pki_cert_is_signed_by(leaf, leaf));
    assert_false(pki_cert_is_signed_by(self_signed_leaf, self_signed_leaf));
    assert_int_equal(ERR_peek_error(), 0);
}
