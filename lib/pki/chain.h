/* SPDX-License-Identifier: Apache-2.0 */
/* Several certificates that vouch for one, and whether a device would believe them. */
#pragma once

#include "pki/pki.h"

/* In one file or message. */
#define PKI_CHAIN_MAX 32

/* {0} is a valid empty one. */
struct pki_chain {
    struct pki_cert *certs[PKI_CHAIN_MAX];
    size_t n;
};
void pki_chain_done(struct pki_chain *c);
#define PKI_CHAIN_AUTO CLEANUP(pki_chain_done) struct pki_chain

/* All certificates of a PEM text behind those that *chain has; other blocks, such as keys, are
 * passed over. -EINVAL: there is none, or one is damaged; -E2BIG: too many. */
int pki_chain_parse(struct str pem, struct pki_chain *chain);

/* That the first certificate leads, through the others where it must, to one of the roots, all good
 * at that time (seconds since 1970); and that each that restricts the use of its key lets it be a
 * server's, which is what Go asks unless told otherwise. *ret_between: those between it and the
 * root. -EKEYREJECTED with *ret_reason (static) otherwise. */
int pki_chain_verify(const struct pki_chain *chain, const struct pki_chain *roots, int64_t at_s,
                     struct pki_chain *ret_between, const char **ret_reason);

/* A private key in a PEM text, other blocks passed over. */
int pki_key_parse(struct str pem, struct pki_key **ret_key);
bool pki_key_is_p256(const struct pki_key *k);
/* The certificate is of this key. */
bool pki_key_fits(const struct pki_key *k, const struct pki_cert *c);
/* DNS names and IP addresses of the certificate, as text; returns their number. */
size_t pki_cert_names(struct arena *a, const struct pki_cert *c, struct str **ret_names);
