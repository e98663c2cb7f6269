/* SPDX-License-Identifier: Apache-2.0 */
/* What every write is asked besides the rules of its kind: hooks in one table, in running order.
 * The first that refuses ends the write. */
#pragma once

#include "api/call.h"

struct admission {
    struct call *call;
    const struct json *old;     /* NULL: a create */
    struct json *object;        /* NULL: a delete */
    struct str name;            /* as refusals give it */
    const struct json *options; /* DeleteOptions of a delete */
};

struct admission_hook {
    const char *name;
    /* Before the object is validated; may change it. Any may be NULL. */
    int (*admit)(struct admission *a);
    /* After, and may not. */
    int (*validate)(struct admission *a);
    /* An object is about to be deleted: `old`. */
    int (*remove)(struct admission *a);
    /* The write has committed or failed, or comes to nothing. Called at least once for every call,
     * perhaps without validate() before it. */
    void (*release)(struct call *c);
};

extern const struct admission_hook definition_lifecycle, namespace_lifecycle, limit_range,
    mutating_webhooks, escalation, certificate_rights, validating_webhooks, reference_rules,
    unique_values, enrollment_rights, resource_quota;

/* Each fills the call's status on failure, or sets must_block and leaves the status empty. */
int admission_admit(struct admission *a);
int admission_validate(struct admission *a);
int admission_delete(struct admission *a);
void admission_release(struct call *c);
