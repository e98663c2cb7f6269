/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of one issuer, fetched as they are needed: once for however many wait, again when a
 * token shows a key that is not known (but not faster than a bucket allows), and before they get
 * old. An issuer that is down keeps the keys it had. From any thread. */
#pragma once

#include "api/oidc/rules.h"
#include "base/clock.h"
#include "fetch/fetch.h"
#include "loop/workers.h"

/* Fetches beyond the regular ones: so many at once, then one in so many microseconds. */
#define OIDC_FETCH_BURST 3
#define OIDC_FETCH_INTERVAL_US ((int64_t) 5 * 1000 * 1000)
/* After a failure nobody asks for so long. */
#define OIDC_FETCH_PAUSE_US ((int64_t) 5 * 1000 * 1000)
#define OIDC_FETCH_TIMEOUT_MS 10000
/* Age at which keys are fetched again while the old ones serve, unless the issuer says its own; and
 * how much older they may get before nobody believes them unless the issuer is down. */
#define OIDC_KEYS_AGE_US ((int64_t) 5 * 60 * 1000 * 1000)
#define OIDC_KEYS_MIN_AGE_US ((int64_t) 60 * 1000 * 1000)
#define OIDC_KEYS_MAX_AGE_US ((int64_t) 15 * 60 * 1000 * 1000)
#define OIDC_KEYS_GRACE_US ((int64_t) 60 * 60 * 1000 * 1000)

/* What it needs of the outside; outlives it. */
struct oidc_outside {
    const struct clock *clock;
    struct fetch_client *fetch;
    struct workers *workers; /* NULL: no fetching in the background */
};

struct oidc_issuer;
/* Begins to fetch in the background. Copies what it needs of the rules. */
struct oidc_issuer *oidc_issuer_new(const struct oidc_outside *o, const struct oidc_rules *rules);
struct oidc_issuer *oidc_issuer_ref(struct oidc_issuer *i);
void oidc_issuer_unref(struct oidc_issuer *i); /* NULL allowed */
/* The rules speak of this issuer, at the same place with the same trust. */
bool oidc_issuer_is(const struct oidc_issuer *i, const struct oidc_rules *rules);

/* 0: the issuer has signed it. -EACCES: it has not. -EAGAIN: not with the keys at hand, and
 * may_block is false. kid STR_NONE: any key. */
int oidc_issuer_verify(struct oidc_issuer *i, enum jws_algorithm alg, struct str kid,
                       const struct jws *t, bool may_block);
