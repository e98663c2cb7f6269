/* SPDX-License-Identifier: Apache-2.0 */
#include "controllerconn/tls_internal.h"

#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "pki/openssl.h"
#include "test.h"

DEFINE_OPENSSL_CLEANUP(SSL_CTX, SSL_CTX_free)
DEFINE_OPENSSL_CLEANUP(X509_STORE_CTX, X509_STORE_CTX_free)

struct authority {
    struct pki_key *key;
    struct pki_cert *cert;
};

static struct authority authority(const char *name)
{
    struct authority a = {.key = pki_key_new()};
    const struct pki_cert_options o = {.common_name = str_of(name), .is_ca = true, .valid_days = 2};
    a.cert = pki_cert_new(&o, a.key, NULL, NULL);
    return a;
}

static void authority_done(struct authority *a)
{
    pki_cert_free(a->cert);
    pki_key_free(a->key);
}

static X509 *x509_of(struct arena *a, const struct pki_cert *c)
{
    const struct str der = pki_cert_der(a, c);
    const unsigned char *p = (const unsigned char *) der.p;
    return d2i_X509(NULL, &p, (long) der.n);
}

/* Whether a server of this authority would be believed. */
static bool is_believed(struct uplink_trust *trust, const struct authority *by)
{
    ARENA_AUTO a = arena_new();
    CLEANUP(uplink_tls_unrefp) struct uplink_tls *tls = NULL;
    CLEANUP(SSL_CTX_free_auto) SSL_CTX *ssl = SSL_CTX_new(TLS_client_method());
    CLEANUP(X509_STORE_CTX_free_auto) X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    CLEANUP(pki_key_freep) struct pki_key *key = pki_key_new();
    const struct str name = STR("controller.example");
    const struct pki_cert_options o = {.common_name = STR("server"),
                                       .names = &name,
                                       .n_names = 1,
                                       .for_server = true,
                                       .valid_days = 1};
    CLEANUP(pki_cert_freep) struct pki_cert *cert = pki_cert_new(&o, key, by->cert, by->key);
    X509_AUTO *leaf = x509_of(a, cert);
    assert_int_equal(uplink_tls_new(&(struct uplink_tls_options){.trust = trust}, &tls), 0);
    assert_int_equal(uplink_tls_apply(tls, "controller.example", ssl), 0);
    assert_int_equal(X509_STORE_CTX_init(ctx, SSL_CTX_get_cert_store(ssl), leaf, NULL), 1);
    return X509_verify_cert(ctx) == 1;
}

static char *hashed_file(struct arena *a, const char *directory, const struct authority *by)
{
    X509_AUTO *x = x509_of(a, by->cert);
    return arena_strz(a, arena_printf(a, "%s/%08lx.0", directory, X509_subject_name_hash(x)));
}

TEST(anchors_of_the_machine_are_read_when_they_are_needed)
{
    ARENA_AUTO a = arena_new();
    CLEANUP(authority_done) struct authority early = authority("early");
    CLEANUP(authority_done) struct authority late = authority("late");
    CLEANUP(authority_done) struct authority own = authority("own");
    CLEANUP(uplink_trust_unrefp) struct uplink_trust *trust = NULL;
    char directory[] = "/tmp/test-tls-XXXXXX";
    size_t which = 0;
    assert_non_null(mkdtemp(directory));
    assert_int_equal(setenv("SSL_CERT_DIR", directory, 1), 0);
    assert_int_equal(pki_cert_save(early.cert, hashed_file(a, directory, &early)), 0);
    const struct str pem = pki_cert_pem(a, own.cert);
    const struct uplink_trust_options o = {.with_system = true, .pem = &pem, .n_pem = 1};
    assert_int_equal(uplink_trust_new(&o, &trust, &which), 0);

    assert_true(is_believed(trust, &early));
    assert_true(is_believed(trust, &own));
    assert_false(is_believed(trust, &late));
    /* What was not there at the start is believed: nothing was loaded then. */
    assert_int_equal(pki_cert_save(late.cert, hashed_file(a, directory, &late)), 0);
    assert_true(is_believed(trust, &late));

    (void) unlink(hashed_file(a, directory, &early));
    (void) unlink(hashed_file(a, directory, &late));
    (void) rmdir(directory);
    (void) unsetenv("SSL_CERT_DIR");
}

TEST(without_a_hashed_directory_the_file_is_read)
{
    ARENA_AUTO a = arena_new();
    CLEANUP(authority_done) struct authority in_file = authority("in a file");
    CLEANUP(authority_done) struct authority stranger = authority("stranger");
    CLEANUP(uplink_trust_unrefp) struct uplink_trust *trust = NULL;
    char directory[] = "/tmp/test-tls-XXXXXX";
    size_t which = 0;
    assert_non_null(mkdtemp(directory));
    const char *file = arena_printf(a, "%s/bundle.pem", directory).p;
    assert_int_equal(pki_cert_save(in_file.cert, file), 0);
    assert_int_equal(setenv("SSL_CERT_DIR", directory, 1), 0);
    assert_int_equal(setenv("SSL_CERT_FILE", file, 1), 0);
    const struct uplink_trust_options o = {.with_system = true};
    assert_int_equal(uplink_trust_new(&o, &trust, &which), 0);
    assert_true(is_believed(trust, &in_file));
    assert_false(is_believed(trust, &stranger));
    (void) unlink(file);
    (void) rmdir(directory);
    (void) unsetenv("SSL_CERT_DIR");
    (void) unsetenv("SSL_CERT_FILE");
}
