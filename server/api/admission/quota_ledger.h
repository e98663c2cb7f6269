/* SPDX-License-Identifier: Apache-2.0 */
/* Writes that a quota has let through and that the store does not show yet: together with what it
 * shows they are what is used. One ledger for all threads; what happens between begin and end
 * happens to one write after the other, so two of them never take the same last place. */
#pragma once

#include "api/quota.h"
#include "base/list.h"
#include "store/store.h"

struct quota_ledger;

/* The caller's memory, for as long as it is in the ledger. */
struct quota_pending {
    struct str collection, namespace, name;
    struct str key;            /* of the store */
    struct quota_facts facts;  /* of the object as it will be */
    bool is_stored, is_listed; /* the ledger's, like the link */
    struct list link;
};

struct quota_ledger *quota_ledger_new(void);
void quota_ledger_free(struct quota_ledger *l);

void quota_ledger_begin(struct quota_ledger *l);
void quota_ledger_end(struct quota_ledger *l);

/* Between begin and end. What the namespace uses under the limit, whose collection exists. */
int quota_ledger_used(struct quota_ledger *l, struct store *s, const struct quota_limit *limit,
                      struct str namespace, struct quantity *ret_used);
/* Between begin and end. */
void quota_ledger_add(struct quota_ledger *l, struct quota_pending *p);
/* Not between them: once the store shows the write, or it has failed. */
void quota_ledger_remove(struct quota_ledger *l, struct quota_pending *p);
