/* SPDX-License-Identifier: Apache-2.0 */
/* Certificate requests (PKCS#10): what somebody wants certified, signed with the key in question.
 */
#pragma once

#include "pki/pki.h"

#define PKI_REQUEST_MAX_BYTES ((size_t) 64 * 1024)

struct pki_request; /* its signature is good; immutable, from any thread */

/* Text with exactly one PEM block, a CERTIFICATE REQUEST. -EINVAL: it is none, its key is neither
 * RSA of at most 8192 bits, ECDSA on a NIST curve nor Ed25519, or the signature is not that key's;
 * *ret_reason (static) says what, in Go's words where it has some. */
int pki_request_parse(struct str pem, struct pki_request **ret_request, const char **ret_reason);
void pki_request_free(struct pki_request *r);
DEFINE_CLEANUP(struct pki_request *, pki_request_free)

/* As pki_cert_common_name() and pki_cert_organizations() will read them from the certificate. */
struct str pki_request_common_name(struct arena *a, const struct pki_request *r);
size_t pki_request_organizations(struct arena *a, const struct pki_request *r,
                                 struct str **ret_names);

struct pki_request_terms {
    int64_t not_before_s, not_after_s; /* since 1970; it never outlives the issuer */
    bool digital_signature, key_encipherment, client_auth;
};
/* A certificate for the request's key and subject, and for nothing else it asks: extensions do not
 * come along, it is no CA. -EINVAL with *ret_reason (static): the key is too weak, the times leave
 * nothing. */
int pki_request_sign(const struct pki_request *r, const struct pki_request_terms *terms,
                     const struct pki_cert *issuer, const struct pki_key *issuer_key,
                     struct pki_cert **ret_cert, const char **ret_reason);

/* What a signer answers: PEM text with certificates alone, one at least, and without headers; other
 * text may stand between. -EINVAL with *ret_reason (in the arena), in kube-apiserver's words. */
int pki_request_check_answer(struct arena *a, struct str pem, struct str *ret_reason);
