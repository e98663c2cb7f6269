/* SPDX-License-Identifier: Apache-2.0 */
/* What a token webhook has answered, for as long as that is believed, and who is asking right now:
 * one question at a time for each token. Tokens are kept as digests. From any thread. */
#pragma once

#include "api/token/authenticate.h"
#include "pki/pki.h"

/* Refusals have room apart: a flood of bad tokens pushes out no good one. */
#define WEBHOOK_MAX_GOOD 4096
#define WEBHOOK_MAX_BAD 1024

struct webhook_key {
    unsigned char digest[SHA256_BYTES];
};
struct webhook_key webhook_key_of(struct str token, const struct str *audiences,
                                  size_t n_audiences);

struct webhook_answers;
struct webhook_answers *webhook_answers_new(const struct clock *clock);
/* When nobody asks any more. */
void webhook_answers_free(struct webhook_answers *w);

/* 0 or -EACCES: what was answered, copied into the arena. -ENOENT: nothing known. */
int webhook_answers_find(struct webhook_answers *w, const struct webhook_key *k, struct arena *a,
                         struct token_identity *ret);
/* As find, but waits for whoever is asking already. -ENOENT: the caller is to ask, and to tell. */
int webhook_answers_begin(struct webhook_answers *w, const struct webhook_key *k, struct arena *a,
                          struct token_identity *ret);
/* The answer (0 or -EACCES, with identity->error), good for so long. */
void webhook_answers_tell(struct webhook_answers *w, const struct webhook_key *k, int result,
                          const struct token_identity *identity, int64_t good_us);
/* Forgets what was answered. */
void webhook_answers_clear(struct webhook_answers *w);
