/* SPDX-License-Identifier: Apache-2.0 */
/* Who refers to what: from every object to those that name it, kept from the store's events, so
 * that a question is a look-up. When a write is answered this knows of it.
 *
 * It also holds the claims of writes that the store does not show yet: of two that come at once,
 * one that begins to use an object and one that deletes it, the later is refused.
 *
 * Threads: every function from any. */
#pragma once

#include "api/admission/reference.h"
#include "api/registry.h"
#include "base/list.h"
#include "store/store.h"

struct references;

/* Reads all objects of the kinds that refer to others and follows the store from there on. Nobody
 * writes meanwhile. */
struct references *references_new(struct store *s, const struct registry *kinds);
void references_free(struct references *r); /* NULL allowed; before the store is closed */

/* Keys of the store (in the arena) of at most max objects that refer to the key and are not being
 * deleted, in no order. A key may be of an object that is not there.
 * "storageclasses.storage.k8s.io/ <namespace>/<name>" has those of one namespace that refer to a
 * cluster-wide object with REFERENCE_INHERITS. */
size_t references_users(struct references *r, struct arena *a, struct str key, size_t max,
                        struct str **ret_keys);

/* ---- claims -------------------------------------------------------------------------------- */

/* Of a write under way. The caller's memory, strings included, until it is released. */
struct reference_claim {
    struct str key;  /* of the object referred to */
    struct str user; /* key of the one that refers to it; not of a removal */
    bool is_removal, is_question;
    struct reference_target *target; /* the references' own, like the link */
    struct list link;
    struct reference_claim *next; /* the caller's */
};

/* Why an object may not go. */
struct reference_use {
    struct str user; /* key of the store, in the arena */
    struct str by;   /* the object that brings it about, or STR_NONE */
    bool is_pending; /* the store does not show it yet */
};

/* From here on the object is in use. -EBUSY: it is being removed at this moment. A question claims
 * nothing. */
int references_claim_use(struct references *r, struct reference_claim *c);
/* From here on nobody begins to use it. -EBUSY: it is in use. */
int references_claim_removal(struct references *r, struct arena *a, struct reference_claim *c,
                             struct reference_use *ret_use);
/* Once the store shows the write, or it has failed. */
void references_release(struct references *r, struct reference_claim *c);
