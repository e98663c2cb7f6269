/* SPDX-License-Identifier: Apache-2.0 */
/* The device's TPM, through tpm2-tss, which is loaded when a TPM is first asked and not before: an
 * agent without one does without its memory. Keys and handles are those of EVE's tpmmgr, so that
 * either finds what the other has made. Everything blocks, for seconds where a key must be made,
 * and may be called from any thread; one request at a time reaches the TPM, and nothing stays open
 * between two, so that other programs can use it, too. */
#pragma once

#include "base/arena.h"

#define TPM_PCRS 24
#define TPM_QUOTED_PCRS 16 /* the first ones are in the statement */
#define TPM_PCR_BYTES 32
#define TPM_MIN_NONCE_BYTES 12
#define TPM_MAX_NONCE_BYTES 32
/* What the TPM hashes at once: of data that is signed with a restricted key. */
#define TPM_MAX_SIGNED_BYTES 1024
#define TPM_POINT_BYTES 64

struct tpm;
/* Nothing is opened yet. The name is tpm2-tss's: "device:/dev/tpmrm0", "swtpm:path=..." */
struct tpm *tpm_new(const char *tcti);
struct tpm *tpm_ref(struct tpm *t);
/* NULL allowed. */
void tpm_unref(struct tpm *t);

enum tpm_key {
    TPM_KEY_ENDORSEMENT, /* RSA */
    TPM_KEY_STORAGE,     /* RSA */
    TPM_KEY_AIK,         /* RSA, signs what the TPM says */
    TPM_KEY_QUOTE,       /* P-256, the same for quotes */
    TPM_KEY_ECDH,        /* P-256 */
    TPM_KEYS,
};

/* Errors of all: -ELIBACC tpm2-tss is not installed, -ENODEV nobody answers, -EIO the TPM says no.
 */

/* Makes the keys that are not there. */
int tpm_prepare(struct tpm *t);

struct tpm_public {
    struct str der;  /* SubjectPublicKeyInfo */
    struct str tpmt; /* TPMT_PUBLIC */
    struct str name;
};
int tpm_public(struct tpm *t, struct arena *a, enum tpm_key key, struct tpm_public *ret);

struct tpm_quote {
    struct str statement; /* TPMS_ATTEST */
    struct str signature; /* ASN.1 DER */
    unsigned char pcrs[TPM_PCRS][TPM_PCR_BYTES];
};
/* -EINVAL: the nonce has not the length that is allowed. */
int tpm_quote(struct tpm *t, struct arena *a, struct str nonce, struct tpm_quote *ret);

/* The ECDH key times the other's point, X || Y. */
int tpm_ecdh(struct tpm *t, const unsigned char other[TPM_POINT_BYTES],
             unsigned char ret[TPM_POINT_BYTES]);

struct tpm_challenge {
    struct str credential, secret; /* for the name of the AIK, by the endorsement key */
    struct str data;               /* to be signed with the AIK */
};
int tpm_activate(struct tpm *t, struct arena *a, const struct tpm_challenge *c,
                 struct str *ret_secret, struct str *ret_signature);

/* A small secret that only this TPM opens, and only while its registers are what they are now
 * (0 to 14 but 5, which changes with the disk). */
#define TPM_MAX_SEALED_BYTES 128
int tpm_seal(struct tpm *t, struct arena *a, struct str plain, struct str *ret_blob);
/* -EPERM: the registers are others, or the TPM is; -EBADMSG: no such blob. */
int tpm_unseal(struct tpm *t, struct arena *a, struct str blob, struct str *ret_plain);
