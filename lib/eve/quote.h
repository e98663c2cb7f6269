/* SPDX-License-Identifier: Apache-2.0 */
/* A TPM's quote: the signed statement about its registers, checked against the nonce and the
 * register values sent beside it. */
#pragma once

#include "base/str.h"
#include "pki/pki.h"

#define QUOTE_PCRS 24
#define QUOTE_PCR_BYTES 32
#define QUOTE_MIN_NONCE_BYTES 12
#define QUOTE_MAX_NONCE_BYTES 32

struct quote_pcr {
    uint32_t index;
    bool is_sha256; /* the bank it was read from */
    struct str value;
};

struct quote {
    struct str attest_data; /* TPMS_ATTEST */
    struct str signature;   /* ASN.1 DER ECDSA */
    const struct quote_pcr *pcrs;
    size_t n_pcrs;
};

/* What the statement says, all inside attest_data. */
struct quote_statement {
    struct str extra_data;
    uint32_t pcr_mask; /* of the SHA-256 bank */
    struct str pcr_digest;
    uint64_t clock;
    uint32_t reset_count, restart_count;
};
/* -EBADMSG: no TPMS_ATTEST of a quote, or bytes are left over. */
int quote_parse(struct str attest_data, struct quote_statement *ret);

enum quote_result {
    QUOTE_GOOD,
    QUOTE_MALFORMED,
    QUOTE_BAD_SIGNATURE,
    QUOTE_WRONG_NONCE,
    QUOTE_WRONG_DIGEST, /* register values are not what the TPM signed */
};
enum quote_result quote_verify(const struct quote *q, const struct pki_public *key,
                               struct str nonce);
const char *quote_result_text(enum quote_result r);
