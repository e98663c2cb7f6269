/* SPDX-License-Identifier: Apache-2.0 */
/* What attestation says to the controller and hears from it: ZAttestReq and ZAttestResponse, made
 * from what topics carry. */
#pragma once

#include "base/arena.h"
#include "json/json.h"

/* Of the whole request with the quote: the event log stays behind where it would be longer. */
#define ATTEST_MAX_QUOTE_BYTES 63488
/* Of what a controller gives. */
#define ATTEST_MAX_NONCE_BYTES 1024
#define ATTEST_MAX_TOKEN_BYTES 65536
#define ATTEST_MAX_KEY_BYTES 32768
#define ATTEST_MAX_CERTS 32

/* EdgeNodeCert.CertType */
enum edge_node_cert_type {
    EDGE_NODE_CERT_ONBOARDING = 1,
    EDGE_NODE_CERT_QUOTE = 2,
    EDGE_NODE_CERT_ENDORSEMENT = 3,
    EDGE_NODE_CERT_ECDH = 4,
};

struct attest_versions {
    struct str eve, firmware; /* empty: not known */
};

struct str attest_nonce_request(struct arena *a);
/* AttestQuote as `tpmmgr` publishes it; without a TPM all of it is empty. event_log: gzip, may be
 * empty. -EBADMSG: no such value. */
int attest_quote_request(struct arena *a, const struct json *quote, struct attest_versions versions,
                         struct str event_log, struct str *ret);
struct str attest_escrow_request(struct arena *a, struct str token, struct str key);
/* Values of EdgeNodeCert; what is none of them is left out. -ENOENT: none is left. */
int attest_certs_request(struct arena *a, const struct json *const *certs, size_t n,
                         struct str *ret);

enum attest_answer_kind { ATTEST_ANSWER_NONCE, ATTEST_ANSWER_QUOTE, ATTEST_ANSWER_ESCROW };
struct attest_answer {
    bool is_granted;
    const char *problem; /* static: why not */
    bool misses_certs;   /* the controller has none to verify with */
    struct str nonce, token;
    struct str key; /* of the vault, as it was escrowed; empty: none */
};
/* -EBADMSG: it is not that answer, or one that means nothing; *ret_problem (static) says why. */
int attest_read_answer(struct arena *a, enum attest_answer_kind kind, struct str bytes,
                       struct attest_answer *ret, const char **ret_problem);
