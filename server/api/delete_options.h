/* SPDX-License-Identifier: Apache-2.0 */
/* DeleteOptions of a body or a query, and what they mean for one object. */
#pragma once

#include "api/call.h"

enum propagation {
    PROPAGATION_DEFAULT,
    PROPAGATION_BACKGROUND,
    PROPAGATION_FOREGROUND,
    PROPAGATION_ORPHAN
};

struct delete_options {
    enum propagation propagation;
    struct str uid, revision;    /* preconditions; STR_NONE: none */
    const struct json *document; /* as admission webhooks are shown them */
};

/* Also sets c->is_dry_run. */
int delete_options_parse(struct call *c, struct delete_options *ret);

/* Asks admission about the deletion of an object, given in its storage version too. Fills c->status
 * on failure, or sets c->must_block. */
int delete_admit(struct call *c, const struct delete_options *o, const struct object *current,
                 const struct json *stored);

/* What a delete does to an object as it stands: nothing more, mark it, or remove it. */
enum delete_step { DELETE_WAIT, DELETE_MARK, DELETE_REMOVE };
/* May it be deleted, and how far? On DELETE_MARK *ret_marked is the object to store. Fills
 * c->status on failure (< 0). */
int delete_plan(struct call *c, const struct delete_options *o, const struct json *object,
                struct json **ret_marked);
