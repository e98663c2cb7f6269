/* SPDX-License-Identifier: Apache-2.0 */
/* A token of an issuer, taken apart, and whom its claims name by the administrator's rules. Nothing
 * here is true before the signature is verified. Pure functions. */
#pragma once

#include "api/oidc/rules.h"
#include "api/token/authenticate.h"
#include "json/json.h"

#define OIDC_MAX_GROUPS 1000
/* How far clocks of issuers may be ahead of ours: as kube-apiserver has it. */
#define OIDC_LEEWAY_US ((int64_t) 5 * 60 * 1000 * 1000)

struct oidc_token {
    struct jws jws;
    struct json *header, *claims;
    struct str issuer;
    struct str kid; /* STR_NONE: without */
};

/* -ENOENT: it is no signed token with an issuer, so not for us. */
int oidc_token_parse(struct arena *a, struct str token, struct oidc_token *ret);

/* The algorithm that the header names, if the rules allow it; -EACCES with words otherwise. */
int oidc_token_algorithm(struct arena *a, const struct oidc_rules *rules,
                         const struct oidc_token *t, enum jws_algorithm *ret_alg,
                         struct str *ret_error);
/* The user and when the token ends; -EACCES with words when the claims do not hold now. */
int oidc_claims_check(struct arena *a, const struct oidc_rules *rules, const struct json *claims,
                      int64_t now_us, struct token_identity *ret, struct str *ret_error);
