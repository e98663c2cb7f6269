/* SPDX-License-Identifier: Apache-2.0 */
/* The certificates of a device beside its own, and quotes: what EVE's tpmmgr does. The device's key
 * signs them; their keys are in the TPM, or in files where there is none. */
#pragma once

#include "node/node.h"

struct tpm;
struct certificates;

/* Publishes EdgeNodeCert and AttestQuote as `tpmmgr`. tpm NULL: none; else it takes a reference.
 * -EADDRINUSE: somebody does already; -ENOKEY: the device's key is not here. */
int certificates_new(struct node *n, struct tpm *tpm, struct certificates **ret);
/* NULL allowed. */
void certificates_free(struct certificates *c);
