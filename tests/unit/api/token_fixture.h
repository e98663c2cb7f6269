/* SPDX-License-Identifier: Apache-2.0 */
/* A store, a clock that stands still and an issuer of tokens, in a directory of their own. */
#pragma once

#include "api/token/authenticate.h"
#include "api/token/token_issuer.h"

#define NOW_US ((int64_t) 1800000000 * 1000 * 1000)
#define ISSUER "https://kubernetes.default.svc"

struct token_fixture {
    char directory[40];
    struct arena *arena;
    struct clock_virtual clock;
    struct store *store;
    struct token_issuer *issuer;
};

/* False: it could not be made, and the test fails. */
bool token_fixture_init(struct token_fixture *f);
void token_fixture_done(struct token_fixture *f);
/* A path below the directory. */
const char *token_fixture_path(struct token_fixture *f, const char *name);
bool token_fixture_write(struct token_fixture *f, const char *name, const char *content);
/* Creates or replaces "<collection>/<namespace>/<name>"; rest are further members of the object,
 * beginning with a comma, meta of its metadata. */
bool token_fixture_put(struct token_fixture *f, const char *key, const char *uid, const char *meta,
                       const char *rest);
void token_fixture_remove(struct token_fixture *f, const char *key);
/* Claims of the account ns/robot, uid u1, for ten minutes from now. */
struct account_claims token_fixture_claims(const struct token_fixture *f);
