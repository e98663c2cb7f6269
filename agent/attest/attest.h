/* SPDX-License-Identifier: Apache-2.0 */
/* Proving to the controller what runs here: the device's certificates, and with a TPM a quote and
 * the escrow of the disk's key. Also the certificates themselves (EdgeNodeCert as `tpmmgr`) and the
 * device's keys as other services use them. */
#pragma once

#include "msrv/msrv.h"
#include "node/node.h"

struct zedagent;
struct attest;

struct node_keys;

struct attest_options {
    struct node_keys *keys; /* whose TPM is asked; NULL: there is none. Outlives it. */
};
int attest_new(struct zedagent *z, struct node *n, const struct attest_options *o,
               struct attest **ret);
/* NULL allowed. */
void attest_free(struct attest *a);

/* ---- keys of the device as others use them ----------------------------------------------------
 */

struct node_keys_options {
    const char *tcti; /* of the TPM, as tpm2-tss names it ("device:/dev/tpmrm0"); NULL: none */
};
/* Before attest and whoever opens secrets. o NULL: all defaults. */
int node_keys_new(struct node *n, const struct node_keys_options *o, struct node_keys **ret);
/* After whoever uses it, and the loop has settled. NULL allowed. */
void node_keys_free(struct node_keys *k);
/* The metadata server's functions on a worker (sign, decrypt, TPM); ctx is the struct node_keys. */
extern const struct msrv_world node_keys_world;
/* A CipherBlockStatus as topics carry it, opened with the device's ECDH key and the context's
 * controller certificate. -ENOENT: the context or a certificate is not known (yet); -EBADMSG. From
 * any thread. */
int node_keys_open(struct node_keys *k, struct arena *a, const struct json *cipher_block_status,
                   struct str *ret_plaintext);
