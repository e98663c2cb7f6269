/* SPDX-License-Identifier: Apache-2.0 */
/* The keys and names under which this server issues ServiceAccount tokens and knows them again, and
 * the documents that tell others (OpenID Connect discovery). What a token stands for is looked up
 * elsewhere. Immutable; from any thread. */
#pragma once

#include "api/document.h"
#include "api/status.h"
#include "api/token/account_claims.h"

struct token_issuer;

struct token_issuer_options {
    const char *own_key_path;     /* ECDSA P-256, made at first start */
    const char *signing_key_file; /* ""; else an operator's key, P-256 or RSA, instead */
    const char *key_files;        /* comma-separated PEM files: keys that verify too; "" : none */
    const char *issuers;          /* comma-separated: the first is written, all are known */
    const char *api_audiences;    /* comma-separated; "": the issuer */
    const char *jwks_uri;     /* where others find the keys: "https://<address>/openid/v1/jwks" */
    int64_t max_expiration_s; /* a longer one that is asked for is shortened; 0: no limit */
};

/* Failure: negative errno and *ret_error (heap). */
int token_issuer_open(const struct token_issuer_options *o, struct token_issuer **ret,
                      char **ret_error);
void token_issuer_free(struct token_issuer *i);
struct audiences token_issuer_audiences(const struct token_issuer *i);
int64_t token_issuer_max_expiration_s(const struct token_issuer *i);

/* The token for these claims; issuer and id are filled in here. */
struct str token_issuer_sign(const struct token_issuer *i, struct arena *a,
                             struct account_claims *c);
/* The claims of a token of ours whose signature is good; times and objects are the caller's to
 * check. -ENOENT: no token of this issuer; -EACCES: one, but no good. */
int token_issuer_verify(const struct token_issuer *i, struct arena *a, struct str token,
                        struct account_claims *ret);

/* "/.well-known/openid-configuration" and "/openid/v1/jwks". */
bool token_issuer_has_document(const struct token_issuer *i, struct str path);
/* One of them; 405 in st. */
int token_issuer_document(const struct token_issuer *i, const struct document_request *q,
                          struct document_reply *ret_reply, struct status *st);
