/* SPDX-License-Identifier: Apache-2.0 */
/* Where pki's types and OpenSSL's meet, for the files of pki and for net/tls. */
#pragma once

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "pki/file.h"
#include "pki/pki.h"

/* Turns what OpenSSL has queued on this thread into a negative errno and empties the queue; the
 * words go to *ret_reason (static; NULL: not wanted). The only place that does. */
int pki_openssl_error(const char **ret_reason);
/* For PEM readers: an encrypted file fails instead of asking the terminal for its passphrase. */
int pki_no_passphrase(char *buffer, int size, int is_writing, void *arg);

/* Takes a reference of its own. */
struct pki_cert *pki_cert_of_x509(X509 *x509);
/* Borrowed. */
EVP_PKEY *pki_key_openssl(const struct pki_key *k);

#define DEFINE_OPENSSL_CLEANUP(type, fn) \
    static inline void fn##_auto(type **p) \
    { \
        fn(*p); \
    }
DEFINE_OPENSSL_CLEANUP(BIO, BIO_free_all)
DEFINE_OPENSSL_CLEANUP(X509, X509_free)
DEFINE_OPENSSL_CLEANUP(EVP_PKEY, EVP_PKEY_free)
#define BIO_AUTO CLEANUP(BIO_free_all_auto) BIO
#define X509_AUTO CLEANUP(X509_free_auto) X509
#define EVP_PKEY_AUTO CLEANUP(EVP_PKEY_free_auto) EVP_PKEY
