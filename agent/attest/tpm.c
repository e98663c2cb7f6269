/* SPDX-License-Identifier: Apache-2.0 */
/* Talking to the TPM, and the keys that are kept in it. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "attest/tpm_internal.h"
#include "base/alloc.h"
#include "base/log.h"

#define RSA_BITS 2048
#define RSA_BYTES (RSA_BITS / 8)
#define P256_BYTES 32

struct tpm {
    atomic_uint n_refs;
    char *tcti;
    pthread_mutex_t lock; /* held while a conversation lasts */
    struct tss tss;
};

struct tpm *tpm_new(const char *tcti)
{
    struct tpm *t = NEW(struct tpm);
    atomic_init(&t->n_refs, 1);
    t->tcti = mem_strdup(tcti);
    (void) pthread_mutex_init(&t->lock, NULL);
    return t;
}

struct tpm *tpm_ref(struct tpm *t)
{
    atomic_fetch_add(&t->n_refs, 1);
    return t;
}

void tpm_unref(struct tpm *t)
{
    if (!t || atomic_fetch_sub(&t->n_refs, 1) > 1)
        return;
    tss_unload(&t->tss);
    (void) pthread_mutex_destroy(&t->lock);
    mem_free(t->tcti);
    mem_free(t);
}

/* ---- conversations -------------------------------------------------------------------------- */

int tpm_check(TSS2_RC rc, const char *what)
{
    if (rc == TSS2_RC_SUCCESS)
        return 0;
    log_debug("TPM", LOG_TEXT("call", what), LOG_INT("code", rc));
    return -EIO;
}

static int connect_to(struct tpm_talk *k)
{
    if (k->tss->Tss2_TctiLdr_Initialize(k->tpm->tcti, &k->tcti) != TSS2_RC_SUCCESS)
        return -ENODEV;
    if (k->tss->Esys_Initialize(&k->esys, k->tcti, NULL) == TSS2_RC_SUCCESS)
        return 0;
    k->tss->Tss2_TctiLdr_Finalize(&k->tcti);
    return -ENODEV;
}

int tpm_talk_begin(struct tpm *t, struct tpm_talk *ret)
{
    (void) pthread_mutex_lock(&t->lock);
    int r = tss_load(&t->tss);
    *ret = (struct tpm_talk){.tpm = t, .tss = &t->tss};
    if (r == 0)
        r = connect_to(ret);
    if (r < 0)
        (void) pthread_mutex_unlock(&t->lock);
    return r;
}

void tpm_talk_end(struct tpm_talk *k)
{
    k->tss->Esys_Finalize(&k->esys);
    k->tss->Tss2_TctiLdr_Finalize(&k->tcti);
    (void) pthread_mutex_unlock(&k->tpm->lock);
}

void tpm_flush(struct tpm_talk *k, ESYS_TR *handle)
{
    if (*handle == ESYS_TR_NONE)
        return;
    (void) k->tss->Esys_FlushContext(k->esys, *handle);
    *handle = ESYS_TR_NONE;
}

int tpm_policy_begin(struct tpm_talk *k, TPM2_SE type, ESYS_TR *ret)
{
    const TPMT_SYM_DEF none = {.algorithm = TPM2_ALG_NULL};
    return tpm_check(k->tss->Esys_StartAuthSession(k->esys, ESYS_TR_NONE, ESYS_TR_NONE,
                                                   ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE, NULL,
                                                   type, &none, TPM2_ALG_SHA256, ret),
                     "StartAuthSession");
}

TPML_PCR_SELECTION tpm_selection(uint32_t mask)
{
    return (TPML_PCR_SELECTION){
        .count = 1,
        .pcrSelections = {{.hash = TPM2_ALG_SHA256,
                           .sizeofSelect = 3,
                           .pcrSelect = {(BYTE) mask, (BYTE) (mask >> 8), (BYTE) (mask >> 16)}}}};
}

/* ---- keys ----------------------------------------------------------------------------------- */

/* SHA-256 of the policy "knows the endorsement hierarchy's secret", as the TCG's profile of
 * endorsement keys has it. */
static const TPM2B_DIGEST endorsement_policy = {
    .size = 32, .buffer = {0x83, 0x71, 0x97, 0x67, 0x44, 0x84, 0xb3, 0xf8, 0x1a, 0x90, 0xcc,
                           0x8d, 0x46, 0xa5, 0xd7, 0x24, 0xfd, 0x52, 0xd7, 0x6e, 0x06, 0x52,
                           0x0b, 0x64, 0xf2, 0xa1, 0xda, 0x1b, 0x33, 0x14, 0x69, 0xaa}};

#define FIXED (TPMA_OBJECT_FIXEDTPM | TPMA_OBJECT_FIXEDPARENT | TPMA_OBJECT_SENSITIVEDATAORIGIN)
#define SIGNS \
    (FIXED | TPMA_OBJECT_USERWITHAUTH | TPMA_OBJECT_RESTRICTED | TPMA_OBJECT_NODA | \
     TPMA_OBJECT_SIGN_ENCRYPT)

/* Handles and templates of EVE. */
static const struct {
    TPM2_HANDLE handle;
    ESYS_TR hierarchy;
    TPM2_ALG_ID type;
    TPMA_OBJECT attributes;
    TPM2_ALG_ID scheme; /* of signatures; TPM2_ALG_NULL: none */
    bool has_cipher;    /* it is a parent of others */
    bool has_policy;
} keys[TPM_KEYS] = {
    [TPM_KEY_ENDORSEMENT] = {0x81000001, ESYS_TR_RH_ENDORSEMENT, TPM2_ALG_RSA,
                             FIXED | TPMA_OBJECT_ADMINWITHPOLICY | TPMA_OBJECT_RESTRICTED |
                                 TPMA_OBJECT_DECRYPT,
                             TPM2_ALG_NULL, .has_cipher = true, .has_policy = true},
    [TPM_KEY_STORAGE] = {0x81000002, ESYS_TR_RH_OWNER, TPM2_ALG_RSA,
                         FIXED | TPMA_OBJECT_USERWITHAUTH | TPMA_OBJECT_RESTRICTED |
                             TPMA_OBJECT_DECRYPT | TPMA_OBJECT_NODA,
                         TPM2_ALG_NULL, .has_cipher = true},
    [TPM_KEY_AIK] = {0x81000003, ESYS_TR_RH_OWNER, TPM2_ALG_RSA, SIGNS, TPM2_ALG_RSASSA},
    [TPM_KEY_QUOTE] = {0x81000004, ESYS_TR_RH_OWNER, TPM2_ALG_ECC, SIGNS, TPM2_ALG_ECDSA},
    [TPM_KEY_ECDH] = {0x81000005, ESYS_TR_RH_OWNER, TPM2_ALG_ECC,
                      TPMA_OBJECT_SIGN_ENCRYPT | TPMA_OBJECT_NODA | TPMA_OBJECT_DECRYPT |
                          TPMA_OBJECT_SENSITIVEDATAORIGIN | TPMA_OBJECT_USERWITHAUTH,
                      TPM2_ALG_NULL},
};

static void set_rsa(TPMT_PUBLIC *p, enum tpm_key key)
{
    p->parameters.rsaDetail = (TPMS_RSA_PARMS){
        .symmetric = {.algorithm = TPM2_ALG_NULL},
        .scheme = {.scheme = keys[key].scheme, .details.rsassa.hashAlg = TPM2_ALG_SHA256},
        .keyBits = RSA_BITS,
    };
    if (keys[key].has_cipher)
        p->parameters.rsaDetail.symmetric = (TPMT_SYM_DEF_OBJECT){
            .algorithm = TPM2_ALG_AES, .keyBits.aes = 128, .mode.aes = TPM2_ALG_CFB};
    /* As go-tpm writes an empty modulus; it is part of what the key is derived from. */
    p->unique.rsa.size = RSA_BYTES;
}

static void set_ecc(TPMT_PUBLIC *p, enum tpm_key key)
{
    p->parameters.eccDetail = (TPMS_ECC_PARMS){
        .symmetric = {.algorithm = TPM2_ALG_NULL},
        .scheme = {.scheme = keys[key].scheme, .details.ecdsa.hashAlg = TPM2_ALG_SHA256},
        .curveID = TPM2_ECC_NIST_P256,
        .kdf = {.scheme = TPM2_ALG_NULL},
    };
}

static TPM2B_PUBLIC template_of(enum tpm_key key)
{
    TPM2B_PUBLIC t = {.publicArea = {.type = keys[key].type,
                                     .nameAlg = TPM2_ALG_SHA256,
                                     .objectAttributes = keys[key].attributes}};
    if (keys[key].has_policy)
        t.publicArea.authPolicy = endorsement_policy;
    if (keys[key].type == TPM2_ALG_RSA)
        set_rsa(&t.publicArea, key);
    else
        set_ecc(&t.publicArea, key);
    return t;
}

static int has_key(struct tpm_talk *k, enum tpm_key key, bool *ret)
{
    TPMS_CAPABILITY_DATA *found = NULL;
    TPMI_YES_NO more = 0;
    const int r =
        tpm_check(k->tss->Esys_GetCapability(k->esys, ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE,
                                             TPM2_CAP_HANDLES, keys[key].handle, 1, &more, &found),
                  "GetCapability");
    if (r < 0)
        return r;
    *ret = found->data.handles.count > 0 && found->data.handles.handle[0] == keys[key].handle;
    k->tss->Esys_Free(found);
    return 0;
}

static int make_key(struct tpm_talk *k, enum tpm_key key)
{
    const TPM2B_SENSITIVE_CREATE nothing = {0};
    const TPM2B_DATA no_data = {0};
    const TPML_PCR_SELECTION no_pcrs = {0};
    const TPM2B_PUBLIC template = template_of(key);
    ESYS_TR made = ESYS_TR_NONE, kept = ESYS_TR_NONE;
    int r = tpm_check(k->tss->Esys_CreatePrimary(k->esys, keys[key].hierarchy, ESYS_TR_PASSWORD,
                                                 ESYS_TR_NONE, ESYS_TR_NONE, &nothing, &template,
                                                 &no_data, &no_pcrs, &made, NULL, NULL, NULL, NULL),
                      "CreatePrimary");
    if (r < 0)
        return r;
    r = tpm_check(k->tss->Esys_EvictControl(k->esys, ESYS_TR_RH_OWNER, made, ESYS_TR_PASSWORD,
                                            ESYS_TR_NONE, ESYS_TR_NONE, keys[key].handle, &kept),
                  "EvictControl");
    tpm_flush(k, &made);
    return r;
}

int tpm_prepare(struct tpm *t)
{
    struct tpm_talk k;
    int r = tpm_talk_begin(t, &k);
    if (r < 0)
        return r;
    for (enum tpm_key key = 0; r == 0 && key < TPM_KEYS; key++) {
        bool is_there = false;
        r = has_key(&k, key, &is_there);
        if (r == 0 && !is_there)
            r = make_key(&k, key);
    }
    tpm_talk_end(&k);
    return r;
}

int tpm_open_key(struct tpm_talk *k, enum tpm_key key, ESYS_TR *ret)
{
    return tpm_check(k->tss->Esys_TR_FromTPMPublic(k->esys, keys[key].handle, ESYS_TR_NONE,
                                                   ESYS_TR_NONE, ESYS_TR_NONE, ret),
                     "TR_FromTPMPublic");
}

/* ---- public parts --------------------------------------------------------------------------- */

/* SubjectPublicKeyInfo up to the number that differs. */
static const unsigned char p256_head[] = {0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48,
                                          0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48,
                                          0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04};
static const unsigned char rsa_head[] = {0x30, 0x82, 0x01, 0x22, 0x30, 0x0d, 0x06, 0x09, 0x2a,
                                         0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05,
                                         0x00, 0x03, 0x82, 0x01, 0x0f, 0x00, 0x30, 0x82, 0x01,
                                         0x0a, 0x02, 0x82, 0x01, 0x01, 0x00};
static const unsigned char rsa_tail[] = {0x02, 0x03, 0x01, 0x00, 0x01}; /* 65537 */

static struct str bytes_of(const void *p, size_t n)
{
    return str_range(p, n);
}

/* To n bytes, with zeros before it. */
static struct str padded(struct arena *a, const BYTE *p, size_t n_bytes, size_t n)
{
    char *out = arena_zalloc(a, n);
    const size_t used = MIN(n_bytes, n);
    memcpy(out + (n - used), p, used);
    return str_range(out, n);
}

static int public_der(struct arena *a, const TPMT_PUBLIC *p, struct str *ret)
{
    if (p->type == TPM2_ALG_ECC && p->parameters.eccDetail.curveID == TPM2_ECC_NIST_P256) {
        const TPMS_ECC_POINT *point = &p->unique.ecc;
        const struct str parts[] = {bytes_of(p256_head, sizeof(p256_head)),
                                    padded(a, point->x.buffer, point->x.size, P256_BYTES),
                                    padded(a, point->y.buffer, point->y.size, P256_BYTES)};
        *ret = arena_join(a, parts, N_ELEMENTS(parts));
        return 0;
    }
    if (p->type != TPM2_ALG_RSA || p->unique.rsa.size != RSA_BYTES ||
        (p->parameters.rsaDetail.exponent && p->parameters.rsaDetail.exponent != 65537))
        return -EIO;
    const struct str parts[] = {bytes_of(rsa_head, sizeof(rsa_head)),
                                bytes_of(p->unique.rsa.buffer, RSA_BYTES),
                                bytes_of(rsa_tail, sizeof(rsa_tail))};
    *ret = arena_join(a, parts, N_ELEMENTS(parts));
    return 0;
}

static int read_public(struct tpm_talk *k, struct arena *a, ESYS_TR handle, struct tpm_public *ret)
{
    TPM2B_PUBLIC *public = NULL;
    TPM2B_NAME *name = NULL;
    int r = tpm_check(k->tss->Esys_ReadPublic(k->esys, handle, ESYS_TR_NONE, ESYS_TR_NONE,
                                              ESYS_TR_NONE, &public, &name, NULL),
                      "ReadPublic");
    if (r < 0)
        return r;
    BYTE *text = arena_alloc(a, sizeof(TPMT_PUBLIC));
    size_t n = 0;
    r = tpm_check(
        k->tss->Tss2_MU_TPMT_PUBLIC_Marshal(&public->publicArea, text, sizeof(TPMT_PUBLIC), &n),
        "TPMT_PUBLIC_Marshal");
    if (r == 0)
        r = public_der(a, &public->publicArea, &ret->der);
    ret->tpmt = bytes_of(text, n);
    ret->name = arena_str(a, bytes_of(name->name, name->size));
    k->tss->Esys_Free(public);
    k->tss->Esys_Free(name);
    return r;
}

int tpm_public(struct tpm *t, struct arena *a, enum tpm_key key, struct tpm_public *ret)
{
    struct tpm_talk k;
    ESYS_TR handle = ESYS_TR_NONE;
    int r = tpm_talk_begin(t, &k);
    if (r < 0)
        return r;
    r = tpm_open_key(&k, key, &handle);
    if (r == 0)
        r = read_public(&k, a, handle, ret);
    tpm_talk_end(&k);
    return r;
}
