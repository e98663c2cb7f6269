/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets that only this TPM opens, and only in the state it was in. */
#include <errno.h>

#include "attest/tpm_internal.h"

/* What a boot measures, but for the partition table (5) and what the system itself may use (15). */
#define SEALING_PCRS UINT32_C(0x7fdf)
#define MAX_BLOB_BYTES ((size_t) 4096)

/* ---- the policy ----------------------------------------------------------------------------- */

static int registers_session(struct tpm_talk *k, TPM2_SE type, ESYS_TR *ret)
{
    const TPML_PCR_SELECTION pcrs = tpm_selection(SEALING_PCRS);
    int r = tpm_policy_begin(k, type, ret);
    if (r < 0)
        return r;
    r = tpm_check(k->tss->Esys_PolicyPCR(k->esys, *ret, ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE,
                                         NULL, &pcrs),
                  "PolicyPCR");
    if (r < 0)
        tpm_flush(k, ret);
    return r;
}

static int registers_digest(struct tpm_talk *k, TPM2B_DIGEST *ret)
{
    ESYS_TR session = ESYS_TR_NONE;
    TPM2B_DIGEST *digest = NULL;
    int r = registers_session(k, TPM2_SE_TRIAL, &session);
    if (r < 0)
        return r;
    r = tpm_check(k->tss->Esys_PolicyGetDigest(k->esys, session, ESYS_TR_NONE, ESYS_TR_NONE,
                                               ESYS_TR_NONE, &digest),
                  "PolicyGetDigest");
    tpm_flush(k, &session);
    if (r < 0)
        return r;
    *ret = *digest;
    k->tss->Esys_Free(digest);
    return 0;
}

/* ---- sealing -------------------------------------------------------------------------------- */

static int to_blob(struct tpm_talk *k, struct arena *a, const TPM2B_PUBLIC *public,
                   const TPM2B_PRIVATE *private, struct str *ret)
{
    BYTE *out = arena_alloc(a, MAX_BLOB_BYTES);
    size_t n = 0;
    int r = tpm_check(k->tss->Tss2_MU_TPM2B_PUBLIC_Marshal(public, out, MAX_BLOB_BYTES, &n),
                      "TPM2B_PUBLIC_Marshal");
    if (r == 0)
        r = tpm_check(k->tss->Tss2_MU_TPM2B_PRIVATE_Marshal(private, out, MAX_BLOB_BYTES, &n),
                      "TPM2B_PRIVATE_Marshal");
    *ret = str_range((const char *) out, n);
    return r;
}

static int seal(struct tpm_talk *k, struct arena *a, struct str plain, struct str *ret)
{
    TPM2B_SENSITIVE_CREATE secret = {.sensitive.data.size = (UINT16) plain.n};
    TPM2B_PUBLIC template = {
        .publicArea = {.type = TPM2_ALG_KEYEDHASH,
                       .nameAlg = TPM2_ALG_SHA256,
                       .objectAttributes =
                           TPMA_OBJECT_FIXEDTPM | TPMA_OBJECT_FIXEDPARENT | TPMA_OBJECT_NODA,
                       .parameters.keyedHashDetail.scheme.scheme = TPM2_ALG_NULL}};
    const TPM2B_DATA no_data = {0};
    const TPML_PCR_SELECTION no_pcrs = {0};
    TPM2B_PUBLIC *public = NULL;
    TPM2B_PRIVATE *private = NULL;
    ESYS_TR parent = ESYS_TR_NONE;
    int r = registers_digest(k, &template.publicArea.authPolicy);
    if (r == 0)
        r = tpm_open_key(k, TPM_KEY_STORAGE, &parent);
    if (r < 0)
        return r;
    memcpy(secret.sensitive.data.buffer, plain.p, plain.n);
    r = tpm_check(k->tss->Esys_Create(k->esys, parent, ESYS_TR_PASSWORD, ESYS_TR_NONE, ESYS_TR_NONE,
                                      &secret, &template, &no_data, &no_pcrs, &private, &public,
                                      NULL, NULL, NULL),
                  "Create");
    explicit_bzero(&secret, sizeof(secret));
    if (r < 0)
        return r;
    r = to_blob(k, a, public, private, ret);
    k->tss->Esys_Free(public);
    k->tss->Esys_Free(private);
    return r;
}

int tpm_seal(struct tpm *t, struct arena *a, struct str plain, struct str *ret_blob)
{
    struct tpm_talk k;
    if (!plain.n || plain.n > TPM_MAX_SEALED_BYTES)
        return -EMSGSIZE;
    int r = tpm_talk_begin(t, &k);
    if (r < 0)
        return r;
    r = seal(&k, a, plain, ret_blob);
    tpm_talk_end(&k);
    return r;
}

/* ---- opening -------------------------------------------------------------------------------- */

static int load(struct tpm_talk *k, struct str blob, ESYS_TR *ret)
{
    TPM2B_PUBLIC public = {0};
    TPM2B_PRIVATE private = {0};
    ESYS_TR parent = ESYS_TR_NONE;
    size_t at = 0;
    const BYTE *p = (const BYTE *) blob.p;
    if (blob.n > MAX_BLOB_BYTES ||
        k->tss->Tss2_MU_TPM2B_PUBLIC_Unmarshal(p, blob.n, &at, &public) != TSS2_RC_SUCCESS ||
        k->tss->Tss2_MU_TPM2B_PRIVATE_Unmarshal(p, blob.n, &at, &private) != TSS2_RC_SUCCESS)
        return -EBADMSG;
    int r = tpm_open_key(k, TPM_KEY_STORAGE, &parent);
    if (r < 0)
        return r;
    /* Another TPM's parent does not fit. */
    r = tpm_check(k->tss->Esys_Load(k->esys, parent, ESYS_TR_PASSWORD, ESYS_TR_NONE, ESYS_TR_NONE,
                                    &private, &public, ret),
                  "Load");
    return r < 0 ? -EPERM : 0;
}

static int unseal(struct tpm_talk *k, struct arena *a, ESYS_TR object, struct str *ret)
{
    ESYS_TR session = ESYS_TR_NONE;
    TPM2B_SENSITIVE_DATA *plain = NULL;
    int r = registers_session(k, TPM2_SE_POLICY, &session);
    if (r < 0)
        return r;
    r = tpm_check(k->tss->Esys_Unseal(k->esys, object, session, ESYS_TR_NONE, ESYS_TR_NONE, &plain),
                  "Unseal");
    tpm_flush(k, &session);
    if (r < 0)
        return -EPERM;
    *ret = arena_str(a, str_range((const char *) plain->buffer, plain->size));
    explicit_bzero(plain, sizeof(*plain));
    k->tss->Esys_Free(plain);
    return 0;
}

int tpm_unseal(struct tpm *t, struct arena *a, struct str blob, struct str *ret_plain)
{
    struct tpm_talk k;
    ESYS_TR object = ESYS_TR_NONE;
    int r = tpm_talk_begin(t, &k);
    if (r < 0)
        return r;
    r = load(&k, blob, &object);
    if (r == 0)
        r = unseal(&k, a, object, ret_plain);
    tpm_flush(&k, &object);
    tpm_talk_end(&k);
    return r;
}
