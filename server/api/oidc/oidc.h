/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of OpenID Connect issuers, verified here with the issuers' published keys. */
#pragma once

#include "api/oidc/config.h"
#include "api/oidc/issuer.h"
#include "api/token/authenticate.h"

struct oidc_options {
    struct oidc_outside outside;
    struct audiences api_audiences; /* of this API server: what its tokens are good for; copied */
    struct str own_issuer;          /* of our ServiceAccount tokens, which no other may claim */
    const char *config_path;        /* AuthenticationConfiguration; NULL or "": the flags */
    struct oidc_flags flags;
};

/* True when the options name any issuer. */
bool oidc_is_wanted(const struct oidc_options *o);
/* Failure: negative errno and *ret_error (heap), which names file and field. Texts of the options
 * are copied. Reloading reads the files again; issuers that stay the same keep their keys. The
 * workers are to be freed before the source, and what the options call outside after it. */
int oidc_source_new(const struct oidc_options *o, struct token_source **ret_source,
                    char **ret_error);
