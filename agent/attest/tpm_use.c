/* SPDX-License-Identifier: Apache-2.0 */
/* What the TPM's keys do: quotes, agreements, proofs. */
#include <errno.h>

#include "attest/tpm_internal.h"

#define P256_BYTES 32

/* ---- quotes --------------------------------------------------------------------------------- */

/* An INTEGER of ASN.1: no zeros in front but one that keeps it positive. */
static struct str der_integer(struct arena *a, const TPM2B_ECC_PARAMETER *n)
{
    size_t from = 0;
    while (from + 1 < n->size && !n->buffer[from])
        from++;
    const size_t n_bytes = n->size - from;
    const bool needs_zero = n_bytes == 0 || n->buffer[from] & 0x80;
    char *out = arena_alloc(a, 3 + n_bytes);
    out[0] = 0x02;
    out[1] = (char) (n_bytes + needs_zero);
    out[2] = 0;
    memcpy(out + 2 + needs_zero, n->buffer + from, n_bytes);
    return str_range(out, 2 + needs_zero + n_bytes);
}

static struct str der_signature(struct arena *a, const TPMS_SIGNATURE_ECC *s)
{
    const struct str r = der_integer(a, &s->signatureR), t = der_integer(a, &s->signatureS);
    const char head[] = {0x30, (char) (r.n + t.n)};
    const struct str parts[] = {str_range(head, sizeof(head)), r, t};
    return arena_join(a, parts, N_ELEMENTS(parts));
}

/* The TPM answers with as many registers as it likes. Returns those it has read. */
static uint32_t take_pcrs(const TPML_PCR_SELECTION *read, const TPML_DIGEST *values,
                          struct tpm_quote *ret)
{
    uint32_t taken = 0;
    size_t at = 0;
    const TPMS_PCR_SELECTION *s = &read->pcrSelections[0];
    for (unsigned i = 0; read->count == 1 && i < TPM_PCRS && at < values->count; i++) {
        if (i / 8 >= s->sizeofSelect || !(s->pcrSelect[i / 8] & (1 << i % 8)))
            continue;
        if (values->digests[at].size != TPM_PCR_BYTES)
            return 0;
        memcpy(ret->pcrs[i], values->digests[at++].buffer, TPM_PCR_BYTES);
        taken |= UINT32_C(1) << i;
    }
    return taken;
}

static int read_pcrs(struct tpm_talk *k, struct tpm_quote *ret)
{
    uint32_t left = (UINT32_C(1) << TPM_PCRS) - 1;
    while (left) {
        const TPML_PCR_SELECTION wanted = tpm_selection(left);
        TPML_PCR_SELECTION *read = NULL;
        TPML_DIGEST *values = NULL;
        int r = tpm_check(k->tss->Esys_PCR_Read(k->esys, ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE,
                                                &wanted, NULL, &read, &values),
                          "PCR_Read");
        if (r < 0)
            return r;
        const uint32_t taken = take_pcrs(read, values, ret);
        k->tss->Esys_Free(read);
        k->tss->Esys_Free(values);
        if (!(taken & left))
            return -EIO; /* there is no bank of SHA-256 */
        left &= ~taken;
    }
    return 0;
}

static int make_quote(struct tpm_talk *k, struct arena *a, struct str nonce, struct tpm_quote *ret)
{
    const TPML_PCR_SELECTION quoted = tpm_selection((UINT32_C(1) << TPM_QUOTED_PCRS) - 1);
    const TPMT_SIG_SCHEME own = {.scheme = TPM2_ALG_NULL};
    TPM2B_DATA extra = {.size = (UINT16) nonce.n};
    TPM2B_ATTEST *statement = NULL;
    TPMT_SIGNATURE *signature = NULL;
    ESYS_TR key = ESYS_TR_NONE;
    int r = tpm_open_key(k, TPM_KEY_QUOTE, &key);
    if (r < 0)
        return r;
    memcpy(extra.buffer, nonce.p, nonce.n);
    r = tpm_check(k->tss->Esys_Quote(k->esys, key, ESYS_TR_PASSWORD, ESYS_TR_NONE, ESYS_TR_NONE,
                                     &extra, &own, &quoted, &statement, &signature),
                  "Quote");
    if (r < 0)
        return r;
    ret->statement =
        arena_str(a, str_range((const char *) statement->attestationData, statement->size));
    r = signature->sigAlg == TPM2_ALG_ECDSA ? 0 : -EIO;
    if (r == 0)
        ret->signature = der_signature(a, &signature->signature.ecdsa);
    k->tss->Esys_Free(statement);
    k->tss->Esys_Free(signature);
    return r;
}

int tpm_quote(struct tpm *t, struct arena *a, struct str nonce, struct tpm_quote *ret)
{
    struct tpm_talk k;
    if (nonce.n < TPM_MIN_NONCE_BYTES || nonce.n > TPM_MAX_NONCE_BYTES)
        return -EINVAL;
    int r = tpm_talk_begin(t, &k);
    if (r < 0)
        return r;
    r = read_pcrs(&k, ret);
    if (r == 0)
        r = make_quote(&k, a, nonce, ret);
    tpm_talk_end(&k);
    return r;
}

/* ---- agreement ------------------------------------------------------------------------------ */

static void put_coordinate(const TPM2B_ECC_PARAMETER *n, unsigned char *to)
{
    const size_t n_bytes = MIN((size_t) n->size, (size_t) P256_BYTES);
    memset(to, 0, P256_BYTES);
    memcpy(to + (P256_BYTES - n_bytes), n->buffer + (n->size - n_bytes), n_bytes);
}

static int multiply(struct tpm_talk *k, const unsigned char other[TPM_POINT_BYTES],
                    unsigned char ret[TPM_POINT_BYTES])
{
    TPM2B_ECC_POINT point = {.point = {.x = {.size = P256_BYTES}, .y = {.size = P256_BYTES}}};
    TPM2B_ECC_POINT *product = NULL;
    ESYS_TR key = ESYS_TR_NONE;
    int r = tpm_open_key(k, TPM_KEY_ECDH, &key);
    if (r < 0)
        return r;
    memcpy(point.point.x.buffer, other, P256_BYTES);
    memcpy(point.point.y.buffer, other + P256_BYTES, P256_BYTES);
    r = tpm_check(k->tss->Esys_ECDH_ZGen(k->esys, key, ESYS_TR_PASSWORD, ESYS_TR_NONE, ESYS_TR_NONE,
                                         &point, &product),
                  "ECDH_ZGen");
    if (r < 0)
        return r;
    put_coordinate(&product->point.x, ret);
    put_coordinate(&product->point.y, ret + P256_BYTES);
    explicit_bzero(product, sizeof(*product));
    k->tss->Esys_Free(product);
    return 0;
}

int tpm_ecdh(struct tpm *t, const unsigned char other[TPM_POINT_BYTES],
             unsigned char ret[TPM_POINT_BYTES])
{
    struct tpm_talk k;
    int r = tpm_talk_begin(t, &k);
    if (r < 0)
        return r;
    r = multiply(&k, other, ret);
    tpm_talk_end(&k);
    return r;
}

/* ---- proofs --------------------------------------------------------------------------------- */

/* The endorsement key asks for the secret of its hierarchy, which is empty. */
static int endorsement_session(struct tpm_talk *k, ESYS_TR *ret)
{
    int r = tpm_policy_begin(k, TPM2_SE_POLICY, ret);
    if (r < 0)
        return r;
    r = tpm_check(k->tss->Esys_PolicySecret(k->esys, ESYS_TR_RH_ENDORSEMENT, *ret, ESYS_TR_PASSWORD,
                                            ESYS_TR_NONE, ESYS_TR_NONE, NULL, NULL, NULL, 0, NULL,
                                            NULL),
                  "PolicySecret");
    if (r < 0)
        tpm_flush(k, ret);
    return r;
}

static int open_credential(struct tpm_talk *k, struct arena *a, ESYS_TR aik,
                           const struct tpm_challenge *c, struct str *ret)
{
    TPM2B_ID_OBJECT credential = {.size = (UINT16) c->credential.n};
    TPM2B_ENCRYPTED_SECRET secret = {.size = (UINT16) c->secret.n};
    TPM2B_DIGEST *opened = NULL;
    ESYS_TR endorsement = ESYS_TR_NONE, session = ESYS_TR_NONE;
    memcpy(credential.credential, c->credential.p, c->credential.n);
    memcpy(secret.secret, c->secret.p, c->secret.n);
    int r = tpm_open_key(k, TPM_KEY_ENDORSEMENT, &endorsement);
    if (r == 0)
        r = endorsement_session(k, &session);
    if (r == 0)
        r = tpm_check(k->tss->Esys_ActivateCredential(k->esys, aik, endorsement, ESYS_TR_PASSWORD,
                                                      session, ESYS_TR_NONE, &credential, &secret,
                                                      &opened),
                      "ActivateCredential");
    tpm_flush(k, &session);
    if (r < 0)
        return r;
    *ret = arena_str(a, str_range((const char *) opened->buffer, opened->size));
    k->tss->Esys_Free(opened);
    return 0;
}

/* The key signs only what the TPM has hashed itself and found not to be a statement of its own. */
static int sign_with(struct tpm_talk *k, struct arena *a, ESYS_TR aik, struct str data,
                     struct str *ret)
{
    const TPMT_SIG_SCHEME own = {.scheme = TPM2_ALG_NULL};
    TPM2B_MAX_BUFFER text = {.size = (UINT16) data.n};
    TPM2B_DIGEST *digest = NULL;
    TPMT_TK_HASHCHECK *ticket = NULL;
    TPMT_SIGNATURE *signature = NULL;
    memcpy(text.buffer, data.p, data.n);
    int r = tpm_check(k->tss->Esys_Hash(k->esys, ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE, &text,
                                        TPM2_ALG_SHA256, ESYS_TR_RH_OWNER, &digest, &ticket),
                      "Hash");
    if (r == 0)
        r = tpm_check(k->tss->Esys_Sign(k->esys, aik, ESYS_TR_PASSWORD, ESYS_TR_NONE, ESYS_TR_NONE,
                                        digest, &own, ticket, &signature),
                      "Sign");
    if (r == 0)
        *ret = arena_str(a, str_range((const char *) signature->signature.rsassa.sig.buffer,
                                      signature->signature.rsassa.sig.size));
    k->tss->Esys_Free(digest);
    k->tss->Esys_Free(ticket);
    k->tss->Esys_Free(signature);
    return r;
}

int tpm_activate(struct tpm *t, struct arena *a, const struct tpm_challenge *c,
                 struct str *ret_secret, struct str *ret_signature)
{
    struct tpm_talk k;
    ESYS_TR aik = ESYS_TR_NONE;
    if (c->credential.n > sizeof(((TPM2B_ID_OBJECT *) NULL)->credential) ||
        c->secret.n > sizeof(((TPM2B_ENCRYPTED_SECRET *) NULL)->secret) ||
        c->data.n > TPM_MAX_SIGNED_BYTES)
        return -EMSGSIZE;
    int r = tpm_talk_begin(t, &k);
    if (r < 0)
        return r;
    r = tpm_open_key(&k, TPM_KEY_AIK, &aik);
    if (r == 0)
        r = open_credential(&k, a, aik, c, ret_secret);
    if (r == 0)
        r = sign_with(&k, a, aik, c->data, ret_signature);
    tpm_talk_end(&k);
    return r;
}
