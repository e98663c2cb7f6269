/* SPDX-License-Identifier: Apache-2.0 */
#include "pki/pki.h"

#include <dirent.h>
#include <errno.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "pki/openssl.h"
#include "test.h"

/* ---- a scratch directory -------------------------------------------------------------------- */

struct scratch {
    char path[64];
    char file[96];
};

static void scratch_init(struct scratch *s)
{
    snprintf(s->path, sizeof(s->path), "/tmp/seth-pki-XXXXXX");
    assert_non_null(mkdtemp(s->path));
    snprintf(s->file, sizeof(s->file), "%s/it.pem", s->path);
}

static void scratch_done(struct scratch *s)
{
    (void) unlink(s->file);
    /* Fails, and with it the test, when a temporary file was left behind. */
    assert_int_equal(rmdir(s->path), 0);
}

static void scratch_write(struct scratch *s, const void *p, size_t n)
{
    FILE *f = fopen(s->file, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    fclose(f);
}

static unsigned mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

/* ---- a small authority ---------------------------------------------------------------------- */

struct authority {
    struct pki_key *key;
    struct pki_cert *cert;
};

static struct authority authority_new(void)
{
    struct pki_key *key = pki_key_new();
    struct pki_cert_options o = {.common_name = STR("test-ca"), .is_ca = true, .valid_days = 10};
    struct pki_cert *cert = pki_cert_new(&o, key, NULL, NULL);
    assert_non_null(cert);
    return (struct authority){key, cert};
}

static void authority_done(struct authority *a)
{
    pki_cert_free(a->cert);
    pki_key_free(a->key);
}

static X509 *x509_of(const struct pki_cert *c)
{
    ARENA_AUTO a = arena_new();
    struct str pem = pki_cert_pem(a, c);
    BIO_AUTO *bio = BIO_new_mem_buf(pem.p, (int) pem.n);
    X509 *x = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    assert_non_null(x);
    return x;
}

/* The verifier's verdict on c for a purpose, trusting ca. */
static int verify(const struct pki_cert *c, const struct pki_cert *ca, int purpose)
{
    X509_AUTO *leaf = x509_of(c);
    X509_AUTO *root = x509_of(ca);
    X509_STORE *store = X509_STORE_new();
    X509_STORE_add_cert(store, root);
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    X509_STORE_CTX_init(ctx, store, leaf, NULL);
    X509_STORE_CTX_set_purpose(ctx, purpose);
    X509_STORE_CTX_set_flags(ctx, X509_V_FLAG_X509_STRICT | X509_V_FLAG_PARTIAL_CHAIN);
    (void) X509_verify_cert(ctx);
    int verdict = X509_STORE_CTX_get_error(ctx);
    X509_STORE_CTX_free(ctx);
    X509_STORE_free(store);
    return verdict;
}

static const struct str server_names[] = {
    {"seth.example", 12}, {"*.wild.example", 14}, {"127.0.0.1", 9}, {"fd00::1", 7}};

static struct pki_cert *server_cert(const struct authority *a, const struct pki_key *key)
{
    struct pki_cert_options o = {
        .common_name = STR("seth"),
        .names = server_names,
        .n_names = N_ELEMENTS(server_names),
        .for_server = true,
        .valid_days = 5,
    };
    return pki_cert_new(&o, key, a->cert, a->key);
}

/* ---- issuing -------------------------------------------------------------------------------- */

TEST(an_issued_certificate_verifies_for_its_purpose_alone)
{
    struct authority a = authority_new(), other = authority_new();
    CLEANUP(pki_key_freep) struct pki_key *key = pki_key_new();
    CLEANUP(pki_cert_freep) struct pki_cert *server = server_cert(&a, key);
    assert_non_null(server);
    struct pki_cert_options o = {.common_name = STR("jane"), .for_client = true, .valid_days = 1};
    CLEANUP(pki_cert_freep) struct pki_cert *client = pki_cert_new(&o, key, a.cert, a.key);
    assert_int_equal(verify(server, a.cert, X509_PURPOSE_SSL_SERVER), X509_V_OK);
    assert_int_equal(verify(server, a.cert, X509_PURPOSE_SSL_CLIENT), X509_V_ERR_INVALID_PURPOSE);
    assert_int_equal(verify(client, a.cert, X509_PURPOSE_SSL_CLIENT), X509_V_OK);
    assert_int_equal(verify(client, a.cert, X509_PURPOSE_SSL_SERVER), X509_V_ERR_INVALID_PURPOSE);
    assert_int_not_equal(verify(server, other.cert, X509_PURPOSE_SSL_SERVER), X509_V_OK);
    authority_done(&a);
    authority_done(&other);
}

TEST(a_certificate_is_made_for_a_public_key_alone)
{
    ARENA_AUTO arena = arena_new();
    struct authority a = authority_new();
    CLEANUP(pki_key_freep) struct pki_key *key = pki_key_new();
    CLEANUP(pki_cert_freep) struct pki_cert *server = server_cert(&a, key);
    const struct str der = pki_cert_public_der(arena, server);
    struct pki_cert_options o = {.common_name = STR("of a TPM"), .valid_days = 1};
    CLEANUP(pki_cert_freep) struct pki_cert *made = pki_cert_new_for(&o, der, a.cert, a.key);
    assert_non_null(made);
    assert_true(str_eq(pki_cert_public_der(arena, made), der));
    assert_true(pki_cert_is_signed_by(made, a.cert));
    assert_null(pki_cert_new_for(&o, str_sub(der, 0, der.n - 1), a.cert, a.key));
    const struct str more[] = {der, STR("+")};
    assert_null(pki_cert_new_for(&o, arena_join(arena, more, N_ELEMENTS(more)), a.cert, a.key));
    authority_done(&a);
}

TEST(a_leaf_cannot_issue)
{
    struct authority a = authority_new();
    CLEANUP(pki_key_freep) struct pki_key *key = pki_key_new();
    CLEANUP(pki_cert_freep) struct pki_cert *leaf = server_cert(&a, key);
    struct pki_cert_options o = {.common_name = STR("evil"), .for_client = true, .valid_days = 1};
    CLEANUP(pki_cert_freep) struct pki_cert *below = pki_cert_new(&o, key, leaf, key);
    assert_non_null(below);
    assert_int_equal(verify(below, leaf, X509_PURPOSE_SSL_CLIENT), X509_V_ERR_INVALID_CA);
    authority_done(&a);
}

TEST(names_are_found_as_dns_or_address)
{
    struct authority a = authority_new();
    CLEANUP(pki_key_freep) struct pki_key *key = pki_key_new();
    CLEANUP(pki_cert_freep) struct pki_cert *c = server_cert(&a, key);
    static const struct {
        const char *name;
        bool found;
    } cases[] = {
        {"seth.example", true},      {"SETH.example", true}, {"a.wild.example", true},
        {"127.0.0.1", true},         {"fd00::1", true},      {"fd00:0:0:0:0:0:0:1", true},
        {"other.example", false},    {"127.0.0.2", false},   {"fd00::2", false},
        {"a.b.wild.example", false}, {"seth", false},        {"", false},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++)
        if (pki_cert_has_name(c, str_of(cases[i].name)) != cases[i].found)
            fail_msg("name \"%s\": expected %d", cases[i].name, cases[i].found);
    authority_done(&a);
}

TEST(subject_carries_common_name_and_organizations_in_order)
{
    ARENA_AUTO a = arena_new();
    CLEANUP(pki_key_freep) struct pki_key *key = pki_key_new();
    const struct str groups[] = {STR("system:masters"), STR("zoë"), STR("alpha")};
    struct pki_cert_options o = {.common_name = STR("kubernetes-admin"),
                                 .organizations = groups,
                                 .n_organizations = N_ELEMENTS(groups),
                                 .for_client = true,
                                 .valid_days = 1};
    CLEANUP(pki_cert_freep) struct pki_cert *c = pki_cert_new(&o, key, NULL, NULL);
    assert_str(pki_cert_common_name(a, c), "kubernetes-admin");
    struct str *names = NULL;
    assert_int_equal(pki_cert_organizations(a, c, &names), 3);
    for (size_t i = 0; i < N_ELEMENTS(groups); i++)
        assert_true(str_eq(names[i], groups[i]));
}

TEST(an_empty_subject_reads_as_empty)
{
    ARENA_AUTO a = arena_new();
    CLEANUP(pki_key_freep) struct pki_key *key = pki_key_new();
    struct pki_cert_options o = {
        .names = server_names, .n_names = 1, .for_server = true, .valid_days = 1};
    CLEANUP(pki_cert_freep) struct pki_cert *c = pki_cert_new(&o, key, NULL, NULL);
    struct str *names = NULL;
    assert_str(pki_cert_common_name(a, c), "");
    assert_int_equal(pki_cert_organizations(a, c, &names), 0);
    X509_AUTO *x = x509_of(c);
    int critical = 0;
    GENERAL_NAMES *san = X509_get_ext_d2i(x, NID_subject_alt_name, &critical, NULL);
    assert_int_equal(critical, 1);
    GENERAL_NAMES_free(san);
}

TEST(validity_begins_a_minute_back_and_serials_differ)
{
    struct authority a = authority_new(), b = authority_new();
    X509_AUTO *x = x509_of(a.cert);
    X509_AUTO *y = x509_of(b.cert);
    time_t now = time(NULL);
    int64_t not_after = pki_cert_not_after(a.cert);
    assert_true(not_after >= now + 10 * 86400 - 5 && not_after <= now + 10 * 86400 + 5);
    struct tm tm = {0};
    assert_int_equal(ASN1_TIME_to_tm(X509_get0_notBefore(x), &tm), 1);
    int64_t not_before = timegm(&tm);
    assert_true(not_before >= now - 65 && not_before <= now - 55);
    assert_int_not_equal(ASN1_INTEGER_cmp(X509_get_serialNumber(x), X509_get_serialNumber(y)), 0);
    BIGNUM *serial = ASN1_INTEGER_to_BN(X509_get_serialNumber(x), NULL);
    assert_false(BN_is_negative(serial));
    assert_true(BN_num_bits(serial) > 64);
    BN_free(serial);
    authority_done(&a);
    authority_done(&b);
}

TEST(names_that_do_not_fit_are_refused)
{
    CLEANUP(pki_key_freep) struct pki_key *key = pki_key_new();
    char long_name[66];
    memset(long_name, 'a', sizeof(long_name));
    struct pki_cert_options o = {.common_name = str_range(long_name, 65), .valid_days = 1};
    assert_null(pki_cert_new(&o, key, NULL, NULL));
    const struct str bad_group = STR("\xff\xfe");
    o = (struct pki_cert_options){.common_name = STR("x"),
                                  .organizations = &bad_group,
                                  .n_organizations = 1,
                                  .valid_days = 1};
    assert_null(pki_cert_new(&o, key, NULL, NULL));
}

/* ---- files ---------------------------------------------------------------------------------- */

TEST(key_is_saved_for_its_owner_alone_and_loads_again)
{
    struct scratch s;
    scratch_init(&s);
    ARENA_AUTO a = arena_new();
    CLEANUP(pki_key_freep) struct pki_key *key = pki_key_new();
    scratch_write(&s, "old", 3);
    assert_int_equal(chmod(s.file, 0644), 0);
    assert_int_equal(pki_key_save(key, s.file), 0);
    assert_int_equal(mode_of(s.file), 0600);
    CLEANUP(pki_key_freep) struct pki_key *again = NULL;
    assert_int_equal(pki_key_load(s.file, &again), 0);
    assert_true(str_eq(pki_key_pem(a, key), pki_key_pem(a, again)));
    assert_true(str_starts_with(pki_key_pem(a, key), STR("-----BEGIN PRIVATE KEY-----\n")));
    scratch_done(&s);
}

TEST(certificate_survives_saving_and_both_encodings)
{
    struct scratch s;
    scratch_init(&s);
    ARENA_AUTO a = arena_new();
    struct authority ca = authority_new();
    assert_int_equal(pki_cert_save(ca.cert, s.file), 0);
    assert_int_equal(mode_of(s.file), 0644);
    CLEANUP(pki_cert_freep) struct pki_cert *loaded = NULL;
    assert_int_equal(pki_cert_load(s.file, &loaded), 0);
    assert_true(str_eq(pki_cert_pem(a, ca.cert), pki_cert_pem(a, loaded)));

    X509_AUTO *x = x509_of(ca.cert);
    unsigned char *der = NULL;
    int n = i2d_X509(x, &der);
    CLEANUP(pki_cert_freep) struct pki_cert *parsed = NULL;
    assert_int_equal(pki_cert_parse(str_range((char *) der, (size_t) n), &parsed), 0);
    assert_true(str_eq(pki_cert_pem(a, ca.cert), pki_cert_pem(a, parsed)));
    OPENSSL_free(der);
    authority_done(&ca);
    scratch_done(&s);
}

TEST(what_is_no_certificate_is_refused)
{
    struct pki_cert *c = NULL;
    const struct str bad[] = {
        STR_NONE,
        STR(""),
        STR("hello"),
        STR("0"),
        STR("0\x82\xff\xff zz"),
        STR("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")};
    for (size_t i = 0; i < N_ELEMENTS(bad); i++) {
        assert_int_equal(pki_cert_parse(bad[i], &c), -EBADMSG);
        assert_null(c);
    }
}

TEST(bad_files_give_their_errno)
{
    struct scratch s;
    scratch_init(&s);
    struct pki_key *key = NULL;
    struct pki_cert *cert = NULL;
    assert_int_equal(pki_key_load(s.file, &key), -ENOENT);
    assert_int_equal(pki_cert_load(s.path, &cert), -EISDIR);
    scratch_write(&s, "no key", 6);
    assert_int_equal(pki_key_load(s.file, &key), -EBADMSG);
    char *large = calloc(1, PKI_FILE_MAX_BYTES + 1);
    scratch_write(&s, large, PKI_FILE_MAX_BYTES + 1);
    free(large);
    assert_int_equal(pki_key_load(s.file, &key), -EFBIG);
    assert_null(key);
    assert_null(cert);
    scratch_done(&s);
}

/* A passphrase would be asked for on the terminal, where nobody sits. */
TEST(an_encrypted_key_is_refused_without_asking)
{
    struct scratch s;
    scratch_init(&s);
    EVP_PKEY_AUTO *pkey = EVP_EC_gen("P-256");
    FILE *f = fopen(s.file, "w");
    assert_int_equal(PEM_write_PKCS8PrivateKey(f, pkey, EVP_aes_128_cbc(), "secret", 6, NULL, NULL),
                     1);
    fclose(f);
    struct pki_key *key = NULL;
    assert_int_equal(pki_key_load(s.file, &key), -EBADMSG);
    scratch_done(&s);
}

TEST(saving_where_one_cannot_write_leaves_nothing)
{
    struct scratch s;
    scratch_init(&s);
    CLEANUP(pki_key_freep) struct pki_key *key = pki_key_new();
    assert_int_equal(pki_key_save(key, "/nonexistent/key.pem"), -ENOENT);
    /* The target is a directory: the rename fails after the temporary file was written. */
    assert_int_equal(mkdir(s.file, 0700), 0);
    assert_int_equal(pki_key_save(key, s.file), -EISDIR);
    assert_int_equal(rmdir(s.file), 0);
    scratch_done(&s);
}
