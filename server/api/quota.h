/* SPDX-License-Identifier: Apache-2.0 */
/* What the keys of a ResourceQuota's spec.hard mean, and what an object is charged under them. Who
 * has the objects adds up: the quota controller for status.used, admission before a write. */
#pragma once

#include "api/quantity.h"
#include "json/json.h"

#define QUOTA_CLAIMS "persistentvolumeclaims"

struct quota_limit {
    struct str collection;    /* what is limited: as a collection of the store, if there is such */
    struct str class;         /* claims of this StorageClass alone; STR_NONE: whichever */
    bool is_count_asked;      /* "count/..." names a collection; a plain name may be any resource */
    bool is_storage;          /* what the claims ask for together, not their number */
    const struct json *quota; /* for its scopes */
};

/* What there is to know of an object to charge it. All zero but for claims. */
struct quota_facts {
    bool is_claim;
    struct str class, attributes_class;
    struct quantity storage;
};

/* Borrows both. */
struct quota_limit quota_limit_of(const struct json *quota, struct str resource);
/* Every object of the collection is charged 1: counting them is enough. */
bool quota_limit_is_plain(const struct quota_limit *l);
struct quota_facts quota_facts_of(struct str collection, const struct json *object);
/* An object that the limit is not about is charged nothing. */
struct quantity quota_charge(const struct quota_limit *l, const struct quota_facts *facts);
