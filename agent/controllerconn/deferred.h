/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that must arrive, whenever that is: a queue by key in front of an uplink, which sends in
 * the order of priorities, waits longer and longer while nobody answers, and keeps only the latest
 * of each key. It lives in memory. */
#pragma once

#include "base/clock.h"
#include "controllerconn/uplink.h"

#define UPLINK_DEFERRED_MAX_ENTRIES 1024
#define UPLINK_DEFERRED_MAX_BYTES ((size_t) 16 * 1024 * 1024)

struct uplink_deferred;

/* Copied by uplink_deferred_set(). */
struct uplink_deferred_message {
    struct str key;
    struct str url;
    struct str body; /* empty: dropped when its turn comes */
    int type;        /* of the owner, for priorities */
    bool bails_on_http_error;
    bool is_discarded; /* dropped when it fails, and first to go when there is no room */
};

typedef bool uplink_deferred_priority(const struct uplink_deferred_message *m);

struct uplink_deferred_options {
    const struct clock *clock;
    struct loop *loop;     /* NULL: the owner calls uplink_deferred_wake() when it is due */
    struct uplink *uplink; /* outlives the queue; NULL: send does it */
    /* In order; behind the last comes everything else. */
    uplink_deferred_priority *const *priorities;
    size_t n_priorities;
    /* What became of an entry: UPLINK_NONE delivered, another status, UPLINK_FAILED when there is
     * none, UPLINK_DEBUG while it waits. NULL: nobody cares. */
    void (*on_status)(void *arg, const struct uplink_deferred_message *m, enum uplink_status s);
    /* For tests, instead of the uplink: ends with uplink_deferred_sent(), in the call or later. */
    void (*send)(void *arg, const struct uplink_deferred_message *m, int64_t budget_ms);
    uint64_t (*random_below)(void *arg, uint64_t bound); /* NULL: the kernel's */
    void *arg;
    size_t max_entries, max_bytes; /* 0: the defaults */
    int64_t budget_ms;             /* of a whole pass; 0: as one call of the uplink has it */
};

struct uplink_deferred *uplink_deferred_new(const struct uplink_deferred_options *o);
/* Not from on_status; before its uplink. NULL allowed. */
void uplink_deferred_free(struct uplink_deferred *q);

/* In place of the entry with this key, or behind all others, and a pass begins at once. Other bytes
 * end the entry's back-off. -ENOSPC: no room even without what may be discarded, nothing changed;
 * -EMSGSIZE: it would never fit. */
int uplink_deferred_set(struct uplink_deferred *q, const struct uplink_deferred_message *m);
void uplink_deferred_remove(struct uplink_deferred *q, struct str key);
/* A pass now, and when it fails the next from a second on, doubling: after the network changed. */
void uplink_deferred_hurry(struct uplink_deferred *q);

/* When a pass is due, on the monotonic clock. */
int64_t uplink_deferred_due_us(const struct uplink_deferred *q);
/* Begins a pass if it is due. */
void uplink_deferred_wake(struct uplink_deferred *q);
/* The end of send(): as an uplink's answer has them. */
void uplink_deferred_sent(struct uplink_deferred *q, int error, enum uplink_status status,
                          int last_http_status);

struct uplink_deferred_counts {
    size_t entries, bytes;
    uint64_t passes, delivered;
    uint64_t dropped;  /* refused for good, or discarded on failure */
    uint64_t evicted;  /* discarded for room */
    uint64_t rejected; /* -ENOSPC */
};
struct uplink_deferred_counts uplink_deferred_counts(const struct uplink_deferred *q);
