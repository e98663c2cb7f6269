/* SPDX-License-Identifier: Apache-2.0 */
/* Proving to the controller what runs here: the device's certificates, and with a TPM a quote and
 * the escrow of the disk's key. Also the certificates themselves (EdgeNodeCert as `tpmmgr`) and the
 * device's keys as other services use them. */
#pragma once

#include "msrv/msrv.h"
#include "node/node.h"

struct zedagent;
struct attest;

struct attest_options {
    const char *tcti; /* of the TPM, as tpm2-tss names it ("device:/dev/tpmrm0"); NULL: none */
};
int attest_new(struct zedagent *z, struct node *n, const struct attest_options *o,
               struct attest **ret);
/* NULL allowed. */
void attest_free(struct attest *a);

/* The metadata server's functions on a worker (sign, decrypt, TPM); ctx is the struct node_keys. */
struct node_keys;
int node_keys_new(struct node *n, struct node_keys **ret);
void node_keys_free(struct node_keys *k);
extern const struct msrv_world node_keys_world;
/* A CipherBlockStatus as topics carry it, opened with the device's ECDH key and the context's
 * controller certificate. -ENOENT: the context or a certificate is not known (yet); -EBADMSG. From
 * any thread. */
int node_keys_open(struct node_keys *k, struct arena *a, const struct json *cipher_block_status,
                   struct str *ret_plaintext);
