/* SPDX-License-Identifier: Apache-2.0 */
/* Whose a bearer token is. Tokens are tried against each source in turn: the token file, bootstrap
 * tokens, our own ServiceAccount tokens, OIDC issuers, a webhook. What was verified is remembered
 * briefly, never past its expiry; what it stands for (a ServiceAccount, a Secret) is looked up
 * again at every use, so a token dies with its object. From any thread. */
#pragma once

#include "api/user.h"
#include "base/clock.h"
#include "store/store.h"

struct authenticator;

/* A token's owner. */
struct token_identity {
    struct user user;
    const struct str *audiences; /* those of the request that the token is for */
    size_t n_audiences;
    int64_t expires_us; /* wall clock; INT64_MAX: never */
    struct str error;   /* of -EACCES: why, for TokenReview; STR_NONE: nothing to say */
    void *basis;        /* the source's own, beside the user: what still_valid() looks at */
};

/* One source of tokens. Made by its own function (see the headers beside this one), owned by the
 * authenticator. */
struct token_source {
    const char *name;
    /* 0: it is this user's, with everything in `a`. -ENOENT: not one of ours, ask the next.
     * -EACCES: ours and not valid (expired, revoked, wrong audience, bad signature): nobody else is
     * asked. -EAGAIN: has to ask another server: call again with may_block on a thread that may.
     * audiences: empty means the API server's own. */
    int (*verify)(struct token_source *s, struct arena *a, struct str token,
                  const struct str *audiences, size_t n_audiences, bool may_block,
                  struct token_identity *ret);
    /* A remembered identity is still good: its objects exist. Called at every use, from any thread.
     * NULL: always. False: verify() is asked again. */
    bool (*still_valid)(struct token_source *s, const struct token_identity *i);
    /* Reads its files again. NULL: none. Failure keeps the old and says why (heap). */
    int (*reload)(struct token_source *s, char **ret_error);
    void (*free)(struct token_source *s);
};

struct authenticator *authenticator_new(const struct clock *clock);
/* In the order in which they are asked; before the first token comes. Takes it over. */
void authenticator_add(struct authenticator *a, struct token_source *s);
void authenticator_free(struct authenticator *a);

/* 0 with the identity copied into arena; -EACCES nobody's (401); -EAGAIN when may_block is false
 * and only another server can tell. */
int authenticator_verify(struct authenticator *a, struct arena *arena, struct str token,
                         const struct str *audiences, size_t n_audiences, bool may_block,
                         struct token_identity *ret);
int authenticator_reload(struct authenticator *a, char **ret_error);
