/* SPDX-License-Identifier: Apache-2.0 */
/* The device's keys as attestation itself uses them. */
#pragma once

#include "attest/attest.h"
#include "attest/tpm.h"

/* Under the persistent directory; not there when the key is in the TPM. */
#define KEYS_ECDH_KEY STR("certs/ecdh.key.pem")

/* NULL: there is none. */
struct tpm *node_keys_tpm(const struct node_keys *k);
