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

/* What a memory BIO has gathered, copied into the arena. */
struct str pki_bio_str(struct arena *a, BIO *bio);
