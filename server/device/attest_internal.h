/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of attestation: one handler for each type of request. */
#pragma once

#include "device/endpoint.h"
#include "eve/attest.pb-c.h"
#include "roster/state.h"

#define ATTEST_MAX_CERTS 16
#define ATTEST_MAX_CERT_BYTES ((size_t) 16 * 1024)
#define ATTEST_MAX_CERTS_BYTES ((size_t) 128 * 1024) /* all, as they are kept */
#define ATTEST_MAX_KEYS 16
#define ATTEST_MAX_KEYS_BYTES ((size_t) 128 * 1024)
#define ATTEST_MAX_LOG_BYTES ((size_t) 256 * 1024) /* a longer event log is not kept */
#define ATTEST_MAX_PCRS 64
#define ATTEST_NONCE_LIFE_US ((int64_t) 300 * 1000000)
#define ATTEST_TOKEN_BYTES 32 /* twice as many in hex */

typedef int attest_handler(struct device_call *c, const Eve__Attest__ZAttestReq *req);
attest_handler attest_certs; /* attest_certs.c */
attest_handler attest_quote; /* attest_quote.c */

/* The store did not do it: 503, whatever the reason, so that the device asks again. */
int attest_put_off(struct device_call *c, const struct status *st);
int attest_answer(struct device_call *c, Eve__Attest__ZAttestResponse *r);

/* The certificate of that type among those a device has sent; NULL when it has none. In the
 * arena. */
const Eve__Certs__ZCert *attest_find_cert(struct arena *a, const struct device_state *s, int type);
/* One of them says that the device has a TPM. */
bool attest_certs_show_tpm(struct arena *a, const struct device_state *s);
