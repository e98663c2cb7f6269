/* SPDX-License-Identifier: Apache-2.0 */
/* Whom we trust and who we are, for TLS; with the sessions that may be resumed. */
#pragma once

#include "base/str.h"

struct evp_pkey_st; /* OpenSSL's EVP_PKEY */
struct ssl_ctx_st;

/* Trust anchors, shared by many: thousands of devices in a process need one copy. */
struct uplink_trust;
struct uplink_trust_options {
    bool with_system;      /* the machine's own, too */
    const struct str *pem; /* root certificate, certificates of proxies: each may hold several */
    size_t n_pem;
};
/* -EINVAL: one of them is damaged or holds no certificate, so nothing is trusted at all; *ret_which
 * is its number. */
int uplink_trust_new(const struct uplink_trust_options *o, struct uplink_trust **ret_trust,
                     size_t *ret_which);
struct uplink_trust *uplink_trust_ref(struct uplink_trust *t);
void uplink_trust_unref(struct uplink_trust *t);
DEFINE_CLEANUP(struct uplink_trust *, uplink_trust_unref)

/* A configuration: trust, at most one identity, and its own session cache, so that no session of
 * one identity serves another. */
struct uplink_tls;
struct uplink_tls_options {
    struct uplink_trust *trust;
    struct str cert_pem, key_pem; /* absent: no certificate is shown */
    struct evp_pkey_st *key;      /* instead of key_pem, as of a TPM; a reference is taken */
};
/* -EINVAL: certificate or key are damaged; -EKEYREJECTED: they do not belong together. */
int uplink_tls_new(const struct uplink_tls_options *o, struct uplink_tls **ret_tls);
struct uplink_tls *uplink_tls_ref(struct uplink_tls *t);
void uplink_tls_unref(struct uplink_tls *t);
DEFINE_CLEANUP(struct uplink_tls *, uplink_tls_unref)
