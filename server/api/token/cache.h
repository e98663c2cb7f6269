/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens that were verified a moment ago, with their owner or the refusal. Each thread looks into a
 * part of its own, so event loops neither wait for nor share cache lines with each other. The size
 * is fixed; refusals have a place apart, so that a flood of bad tokens pushes out no good one. */
#pragma once

#include "api/token/authenticate.h"

/* How long an answer is believed. */
#define TOKEN_CACHE_GOOD_US ((int64_t) 10 * 1000 * 1000)
#define TOKEN_CACHE_BAD_US ((int64_t) 1000 * 1000)
/* Longer tokens are verified anew each time. */
#define TOKEN_CACHE_MAX_BYTES ((size_t) 8 * 1024)

/* What was asked. */
struct token_question {
    struct str token;
    const struct str *audiences;
    size_t n_audiences;
};

/* One answer, reference counted, immutable once it is in the cache. */
struct token_answer {
    struct bytes bytes;  /* the reference count; first member */
    struct arena *arena; /* everything below */
    struct token_question question;
    uint64_t hash;
    int result; /* 0 or -EACCES */
    struct token_identity identity;
    struct token_source *source; /* whose still_valid() counts; NULL for refusals */
    int64_t since_us, until_us;  /* wall clock; one set back makes nothing last longer */
};

/* With one reference and a copy of the question. */
struct token_answer *token_answer_new(const struct token_question *q);
void token_answer_unref(struct token_answer *e); /* NULL allowed */

struct token_cache;
struct token_cache *token_cache_new(void);
void token_cache_free(struct token_cache *c);
/* With a reference; NULL: none, or too old at this time of the wall clock. */
struct token_answer *token_cache_find(struct token_cache *c, const struct token_question *q,
                                      int64_t now_us);
/* Takes a reference of its own and sets hash and times. */
void token_cache_put(struct token_cache *c, struct token_answer *e, int64_t now_us);
/* Forgets everything, in all threads' parts. */
void token_cache_clear(struct token_cache *c);
