/* SPDX-License-Identifier: Apache-2.0 */
/* A conversation with the TPM, as the files of it see one. */
#pragma once

#include "attest/tpm.h"
#include "attest/tss.h"

struct tpm_talk {
    struct tpm *tpm;
    const struct tss *tss;
    TSS2_TCTI_CONTEXT *tcti;
    ESYS_CONTEXT *esys;
};

/* Waits until nobody else talks. What was opened in it must be flushed before its end. */
int tpm_talk_begin(struct tpm *t, struct tpm_talk *ret);
void tpm_talk_end(struct tpm_talk *k);
/* 0, or -EIO with a line in the log of debugging. */
int tpm_check(TSS2_RC rc, const char *what);

/* The handle of a key that is kept in the TPM. */
int tpm_open_key(struct tpm_talk *k, enum tpm_key key, ESYS_TR *ret);
void tpm_flush(struct tpm_talk *k, ESYS_TR *handle);

/* A session of a policy, to be flushed. */
int tpm_policy_begin(struct tpm_talk *k, TPM2_SE type, ESYS_TR *ret);
/* Registers of the SHA-256 bank. */
TPML_PCR_SELECTION tpm_selection(uint32_t mask);
