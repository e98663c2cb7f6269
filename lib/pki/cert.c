/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates: reading, writing, and what they say. */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <openssl/x509v3.h>
#include <time.h>

#include "base/alloc.h"
#include "pki/pki_internal.h"

struct pki_cert *pki_cert_of_x509(X509 *x509)
{
    X509_up_ref(x509);
    struct pki_cert *c = NEW(struct pki_cert);
    c->x509 = x509;
    return c;
}

void pki_cert_free(struct pki_cert *c)
{
    if (!c)
        return;
    X509_free(c->x509);
    mem_free(c);
}

int pki_cert_parse(struct str pem_or_der, struct pki_cert **ret_cert)
{
    if (pem_or_der.n > PKI_FILE_MAX_BYTES)
        return -EFBIG;
    X509_AUTO *x509 = NULL;
    /* DER of a certificate begins with a SEQUENCE tag, no text does. */
    if (pem_or_der.n && pem_or_der.p[0] == 0x30) {
        const unsigned char *p = (const unsigned char *) pem_or_der.p;
        x509 = d2i_X509(NULL, &p, (long) pem_or_der.n);
    } else {
        BIO_AUTO *bio = BIO_new_mem_buf(pem_or_der.p ? pem_or_der.p : "", (int) pem_or_der.n);
        if (bio)
            x509 = PEM_read_bio_X509(bio, NULL, pki_no_passphrase, NULL);
    }
    if (!x509)
        return pki_openssl_error(NULL);
    *ret_cert = pki_cert_of_x509(x509);
    return 0;
}

int pki_cert_load(const char *path, struct pki_cert **ret_cert)
{
    BUF_AUTO content = {0};
    int r = pki_file_read(path, &content);
    if (r < 0)
        return r;
    return pki_cert_parse(buf_str(&content), ret_cert);
}

struct str pki_cert_pem(struct arena *a, const struct pki_cert *c)
{
    BIO_AUTO *bio = BIO_new(BIO_s_mem());
    int ok = bio && PEM_write_bio_X509(bio, c->x509);
    assert(ok);
    (void) ok;
    return pki_bio_str(a, bio);
}

struct str pki_cert_der(struct arena *a, const struct pki_cert *c)
{
    int n = i2d_X509(c->x509, NULL);
    assert(n > 0);
    unsigned char *der = arena_alloc(a, (size_t) n), *end = der;
    n = i2d_X509(c->x509, &end);
    assert(n == end - der);
    return str_range((char *) der, (size_t) n);
}

struct str pki_cert_public_der(struct arena *a, const struct pki_cert *c)
{
    const X509_PUBKEY *key = X509_get_X509_PUBKEY(c->x509);
    int n = i2d_X509_PUBKEY(key, NULL);
    assert(n > 0);
    unsigned char *der = arena_alloc(a, (size_t) n), *end = der;
    n = i2d_X509_PUBKEY(key, &end);
    assert(n == end - der);
    return str_range((char *) der, (size_t) n);
}

void pki_cert_fingerprint(const struct pki_cert *c, unsigned char out[SHA256_BYTES])
{
    ARENA_AUTO a = arena_new();
    pki_sha256(pki_cert_der(a, c), out);
}

int pki_cert_save(const struct pki_cert *c, const char *path)
{
    ARENA_AUTO a = arena_new();
    return pki_file_write(path, pki_cert_pem(a, c), 0644);
}

static struct str entry_text(struct arena *a, const X509_NAME *subject, int index)
{
    unsigned char *utf8 = NULL;
    int n =
        ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, index)));
    if (n < 0) {
        (void) pki_openssl_error(NULL);
        return STR("");
    }
    struct str text = arena_str(a, str_range((char *) utf8, (size_t) n));
    OPENSSL_free(utf8);
    return text;
}

/* The last one counts when there are several, as in Go, by whose reading Kubernetes names its
 * users. */
struct str pki_name_common(struct arena *a, const X509_NAME *subject)
{
    int found = -1;
    for (int i = -1; (i = X509_NAME_get_index_by_NID(subject, NID_commonName, i)) >= 0;)
        found = i;
    return found < 0 ? STR("") : entry_text(a, subject, found);
}

size_t pki_name_organizations(struct arena *a, const X509_NAME *subject, struct str **ret_names)
{
    struct str *names = ARENA_ARRAY(a, struct str, X509_NAME_entry_count(subject));
    size_t n = 0;
    for (int i = -1; (i = X509_NAME_get_index_by_NID(subject, NID_organizationName, i)) >= 0;)
        names[n++] = entry_text(a, subject, i);
    *ret_names = names;
    return n;
}

struct str pki_cert_common_name(struct arena *a, const struct pki_cert *c)
{
    return pki_name_common(a, X509_get_subject_name(c->x509));
}

size_t pki_cert_organizations(struct arena *a, const struct pki_cert *c, struct str **ret_names)
{
    return pki_name_organizations(a, X509_get_subject_name(c->x509), ret_names);
}

static int64_t time_of(const ASN1_TIME *time, int64_t or_else)
{
    struct tm tm = {0};
    if (ASN1_TIME_to_tm(time, &tm) != 1) {
        (void) pki_openssl_error(NULL);
        return or_else;
    }
    return timegm(&tm);
}

int64_t pki_cert_not_after(const struct pki_cert *c)
{
    return time_of(X509_get0_notAfter(c->x509), 0); /* unreadable counts as long over */
}

int64_t pki_cert_not_before(const struct pki_cert *c)
{
    return time_of(X509_get0_notBefore(c->x509), INT64_MAX); /* and as never begun */
}

bool pki_cert_has_name(const struct pki_cert *c, struct str dns_or_ip)
{
    if (dns_or_ip.n == 0)
        return false;
    ARENA_AUTO a = arena_new();
    const char *name = arena_strz(a, dns_or_ip);
    unsigned char address[16];
    int r = 0;
    if (inet_pton(AF_INET, name, address) == 1)
        r = X509_check_ip(c->x509, address, 4, 0);
    else if (inet_pton(AF_INET6, name, address) == 1)
        r = X509_check_ip(c->x509, address, 16, 0);
    else
        r = X509_check_host(
            c->x509, name, dns_or_ip.n,
            X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS, NULL);
    if (r < 0)
        (void) pki_openssl_error(NULL);
    return r == 1;
}

bool pki_cert_is_authority(const struct pki_cert *c)
{
    return X509_check_ca(c->x509) == 1;
}

bool pki_cert_is_signed_by(const struct pki_cert *c, const struct pki_cert *issuer)
{
    /* check_issued looks at names, key identifiers and the issuer's key usage; that it is an
     * authority is another matter. */
    EVP_PKEY *key = X509_get0_pubkey(issuer->x509);
    bool is_signed = key && pki_cert_is_authority(issuer) &&
                     X509_check_issued(issuer->x509, c->x509) == X509_V_OK &&
                     X509_verify(c->x509, key) == 1;
    (void) pki_openssl_error(NULL);
    return is_signed;
}

bool pki_cert_is_signed_with(const struct pki_cert *c, const struct pki_public *key)
{
    bool is_signed = key && X509_verify(c->x509, key->pkey) == 1;
    (void) pki_openssl_error(NULL);
    return is_signed;
}
