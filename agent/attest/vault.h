/* SPDX-License-Identifier: Apache-2.0 */
/* The key of the device's vault: what EVE's vaultmgr does about it, but for the encryption of a
 * disk. With a TPM it is a random key, sealed to the TPM and to what has booted, and given to the
 * controller encrypted, so that it comes back when something else has booted and the controller
 * accepts that. Without one there is nothing to keep. */
#pragma once

#include "node/node.h"

#define VAULT_NAME STR("Application Data Store")

struct tpm;
struct vault;

/* Publishes EncryptedVaultKeyFromDevice and VaultStatus as `vaultmgr`. tpm NULL: none; else it
 * takes a reference. -EADDRINUSE: somebody does already. */
int vault_new(struct node *n, struct tpm *tpm, struct vault **ret);
/* NULL allowed. */
void vault_free(struct vault *v);

/* The controller has the key: from now on a key that cannot be opened is waited for, and no new
 * one made. */
int vault_note_escrowed(struct node *n);
