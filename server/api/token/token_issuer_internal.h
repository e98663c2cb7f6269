/* SPDX-License-Identifier: Apache-2.0 */
/* The issuer of tokens as its own files see it. */
#pragma once

#include "api/token/token_issuer.h"
#include "pki/jws.h"

#define ISSUER_MAX_KEYS 64

struct token_issuer {
    struct arena *arena; /* all strings */
    struct pki_key *signer;
    struct jws_key *keys[ISSUER_MAX_KEYS]; /* the signer's first */
    struct str key_ids[ISSUER_MAX_KEYS];
    size_t n_keys;
    struct audiences issuers, api_audiences;
    int64_t max_expiration_s;
    struct str configuration, jwks; /* documents; configuration absent: not served */
};

/* Writes both documents. */
void token_issuer_describe(struct token_issuer *i, const char *jwks_uri);
