/* SPDX-License-Identifier: Apache-2.0 */
/* What a ServiceAccount token says, as kube-apiserver writes it: the bound form of today, and the
 * legacy form that Secrets of type kubernetes.io/service-account-token carry. */
#pragma once

#include "api/token/audiences.h"

#define ACCOUNT_LEGACY_ISSUER "kubernetes/serviceaccount"
#define ACCOUNT_USER_PREFIX "system:serviceaccount:"

struct account_reference {
    struct str name, uid; /* name empty: none */
};

struct account_claims {
    bool is_legacy; /* then: no times, no audiences, no id; secret has a name alone */
    struct str issuer, id;
    struct audiences audiences;
    int64_t issued_s, not_before_s, expires_s;
    struct str namespace;
    struct account_reference account, secret, pod, node;
};

/* "system:serviceaccount:<namespace>:<name>" */
struct str account_user_name(struct arena *a, struct str namespace, struct str name);
/* The payload's JSON text. */
struct str account_claims_write(struct arena *a, const struct account_claims *c);
/* Just the issuer of a payload, before its signature was looked at; STR_NONE: it has none. */
struct str account_claims_issuer(struct arena *a, struct str payload);
/* -EINVAL: not such a payload, or its parts contradict each other. */
int account_claims_read(struct arena *a, struct str payload, struct account_claims *ret);
