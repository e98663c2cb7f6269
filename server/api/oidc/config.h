/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of issuers as an AuthenticationConfiguration or kube-apiserver's --oidc flags have
 * them. What would need expressions (CEL) is refused, never ignored. */
#pragma once

#include "api/oidc/rules.h"

#define OIDC_MAX_ISSUERS 64
#define OIDC_MAX_AUDIENCES 64
#define OIDC_MAX_REQUIRED 64

struct oidc_config {
    const struct oidc_rules *rules;
    size_t n_rules;
};

/* As the flags come: NULL or "" is not set. */
struct oidc_flags {
    const char *issuer_url, *client_id;
    const char *username_claim, *username_prefix;
    const char *groups_claim, *groups_prefix;
    const char *ca_file;
    const char *required_claims; /* key=value, comma-separated */
    const char *signing_algs;    /* comma-separated; not set: RS256 */
};
bool oidc_flags_are_set(const struct oidc_flags *f);

/* From the text of an AuthenticationConfiguration (YAML or JSON). -EINVAL with words that name the
 * field. */
int oidc_config_parse(struct arena *a, struct str text, struct oidc_config *ret,
                      struct str *ret_error);
/* ca_pem: what is in ca_file; STR_NONE without. */
int oidc_config_of_flags(struct arena *a, const struct oidc_flags *f, struct str ca_pem,
                         struct oidc_config *ret, struct str *ret_error);

/* ---- shared by both forms -------------------------------------------------------------------- */

/* NULL, or what is wrong with it as an issuer's URL. */
const char *oidc_url_fault(struct str url);
/* Where an issuer's document is when nothing else was said. */
struct str oidc_discovery_url(struct arena *a, struct str issuer);
/* True when it begins with a certificate in PEM. */
bool oidc_is_ca(struct str pem);
