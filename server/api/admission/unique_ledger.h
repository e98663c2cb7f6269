/* SPDX-License-Identifier: Apache-2.0 */
/* Who holds what no two objects of a kind may share. The store alone says what is true; this
 * remembers where to look, so that a write asks for one object and not for all, and keeps the
 * claims of writes that the store does not show yet, so that of two at once one is refused. What is
 * remembered wrongly (the object is gone, or has changed) is noticed when somebody wants it. */
#pragma once

#include "api/hooks.h"
#include "store/store.h"

struct unique_ledger;

/* A claim of a write under way. The caller's memory, strings included, until it is released. */
struct unique_claim {
    const struct kind *kind;
    const struct kind_unique *rule; /* of the kind */
    struct str value, key;          /* what is claimed and the store's key of the object */
    bool may_wait;
    bool is_question;             /* nothing is claimed, nothing to release */
    struct unique_holder *holder; /* the ledger's */
    struct unique_claim *next;    /* the caller's */
};

struct unique_ledger *unique_ledger_new(void);
void unique_ledger_free(struct unique_ledger *l);

/* -EEXIST: *ret_key (in the arena) is the key of the object that has it. -EAGAIN: all objects must
 * be read first, which takes a while; call again with may_wait. */
int unique_ledger_claim(struct unique_ledger *l, struct store *s, struct arena *a,
                        struct unique_claim *claim, struct str *ret_key);
/* Once the store shows the write, or it has failed. */
void unique_ledger_release(struct unique_ledger *l, struct unique_claim *claim);
