/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of tpm2-tss that are used, found when the libraries are loaded. */
#pragma once

#include <tss2/tss2_esys.h>
#include <tss2/tss2_mu.h>
#include <tss2/tss2_tctildr.h>

/* X(library, function) */
#define TSS_FUNCTIONS(X) \
    X(TSS_ESYS, Esys_ActivateCredential) \
    X(TSS_ESYS, Esys_Create) \
    X(TSS_ESYS, Esys_CreatePrimary) \
    X(TSS_ESYS, Esys_ECDH_ZGen) \
    X(TSS_ESYS, Esys_EvictControl) \
    X(TSS_ESYS, Esys_Finalize) \
    X(TSS_ESYS, Esys_FlushContext) \
    X(TSS_ESYS, Esys_Free) \
    X(TSS_ESYS, Esys_GetCapability) \
    X(TSS_ESYS, Esys_Hash) \
    X(TSS_ESYS, Esys_Initialize) \
    X(TSS_ESYS, Esys_Load) \
    X(TSS_ESYS, Esys_PCR_Read) \
    X(TSS_ESYS, Esys_PolicyGetDigest) \
    X(TSS_ESYS, Esys_PolicyPCR) \
    X(TSS_ESYS, Esys_PolicySecret) \
    X(TSS_ESYS, Esys_Quote) \
    X(TSS_ESYS, Esys_ReadPublic) \
    X(TSS_ESYS, Esys_Sign) \
    X(TSS_ESYS, Esys_StartAuthSession) \
    X(TSS_ESYS, Esys_TR_FromTPMPublic) \
    X(TSS_ESYS, Esys_Unseal) \
    X(TSS_MU, Tss2_MU_TPM2B_PRIVATE_Marshal) \
    X(TSS_MU, Tss2_MU_TPM2B_PRIVATE_Unmarshal) \
    X(TSS_MU, Tss2_MU_TPM2B_PUBLIC_Marshal) \
    X(TSS_MU, Tss2_MU_TPM2B_PUBLIC_Unmarshal) \
    X(TSS_MU, Tss2_MU_TPMT_PUBLIC_Marshal) \
    X(TSS_TCTI, Tss2_TctiLdr_Finalize) \
    X(TSS_TCTI, Tss2_TctiLdr_Initialize)

enum tss_library { TSS_ESYS, TSS_MU, TSS_TCTI, TSS_LIBRARIES };

struct tss {
    void *libraries[TSS_LIBRARIES];
#define TSS_MEMBER(library, function) __typeof__(function) *function;
    TSS_FUNCTIONS(TSS_MEMBER)
#undef TSS_MEMBER
};

/* -ELIBACC: they are not there, or too old. Loading what is loaded costs nothing. */
int tss_load(struct tss *s);
void tss_unload(struct tss *s);
