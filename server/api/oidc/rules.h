/* SPDX-License-Identifier: Apache-2.0 */
/* What an administrator says about one issuer of tokens: where it is, which of its tokens are for
 * us, and whom they name. Immutable; strings belong to whoever read it. */
#pragma once

#include "api/token/audiences.h"
#include "pki/jws.h"

#define OIDC_N_ALGORITHMS 2 /* of enum jws_algorithm */

struct oidc_required {
    struct str claim, value;
};

struct oidc_rules {
    struct str issuer;        /* as its tokens write it, byte for byte */
    struct str discovery_url; /* of its document */
    struct str ca_pem;        /* STR_NONE: the machine's */
    struct audiences audiences;
    bool allows[OIDC_N_ALGORITHMS];
    struct str username_claim, username_prefix;
    struct str groups_claim, groups_prefix; /* STR_NONE: no groups */
    struct str uid_claim;                   /* STR_NONE: no UID */
    const struct oidc_required *required;
    size_t n_required;
};
