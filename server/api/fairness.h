/* SPDX-License-Identifier: Apache-2.0 */
/* How much of the server one user may have, and how much there is: requests in flight, reads and
 * writes apart, each with a share per user once it gets crowded; and the price of failed logins. A
 * request that finds no place is answered 429 at once, it never queues. One per server, used by
 * every loop.
 *
 * The share is one rule: a user may take a place only while it holds fewer of the class than are
 * free. So it binds nobody while half of the class is free, one user alone ends at half, and k
 * users who take whatever they get end at 1/(k+1) of the class each, which leaves as much for the
 * next one: whoever holds nothing finds a place as long as there is one. Exempt requests take none
 * of these places. */
#pragma once

#include "api/status.h"
#include "api/user.h"
#include "base/clock.h"

/* Users with something in flight at once; what further ones send finds no place. */
#define FAIRNESS_MAX_USERS 65536

struct fairness;

struct fairness_options {
    /* In flight: --max-requests-inflight, --max-mutating-requests-inflight. 0: no limit. */
    size_t max_reads, max_writes;
    size_t max_long_running_per_user; /* watches; 0: no limit */
    const struct clock *clock;
};
struct fairness *fairness_new(const struct fairness_options *o);
/* Every place has been left. */
void fairness_free(struct fairness *f);

enum fairness_class { FAIR_READ, FAIR_WRITE, FAIR_LONG_RUNNING };

/* A place taken; all zero: none. */
struct fairness_place {
    struct fairness_user *user;
    enum fairness_class class;
};
/* 0, or 429 with Retry-After in st. system:masters and our own controllers (system:apiserver)
 * always find a place. From any thread, as the rest. */
int fairness_enter(struct fairness *f, const struct user *u, enum fairness_class class,
                   struct fairness_place *ret_place, struct status *st);
/* Safe on an empty place, and empties it. */
void fairness_leave(struct fairness *f, struct fairness_place *place);

/* Failed logins of an address: how long (ms) the 401 is to be held back, 0 at first, growing, with
 * a limit; forgotten after a while (login_failures.h). */
int64_t fairness_login_failed(struct fairness *f, struct str address);

struct fairness_stats {
    int64_t n_reads, n_writes, n_long_running; /* in flight now, exempt ones included */
    int64_t n_rejected_reads, n_rejected_writes, n_rejected_long_running; /* since start */
    int64_t n_login_failures;
};
void fairness_stats(struct fairness *f, struct fairness_stats *ret);
