/* SPDX-License-Identifier: Apache-2.0 */
/* pki's types as its own files see them. */
#pragma once

#include "pki/openssl.h"

struct pki_key {
    EVP_PKEY *pkey;
};

struct pki_cert {
    X509 *x509;
};

struct pki_ready; /* what verifying can prepare once for a key */
struct pki_public {
    EVP_PKEY *pkey;
    size_t curve_bytes;
    struct pki_ready *ready;
};
/* Of a coordinate; 0: no EC key, or on a curve that is not one of NIST's P-256, P-384, P-521. */
size_t pki_curve_bytes(const EVP_PKEY *pkey);

/* What a memory BIO has gathered, copied into the arena. */
struct str pki_bio_str(struct arena *a, BIO *bio);

/* Of a subject, be it a certificate's or a request's; see pki_cert_common_name(). */
struct str pki_name_common(struct arena *a, const X509_NAME *subject);
size_t pki_name_organizations(struct arena *a, const X509_NAME *subject, struct str **ret_names);

/* Parts of a new certificate. The extension's value is as in OpenSSL's configuration. */
bool pki_issue_serial(X509 *x);
bool pki_issue_extension(X509 *x, const X509 *issuer, int nid, const char *value);
