/* SPDX-License-Identifier: Apache-2.0 */
/* The subscriber's side: a copy of a publication that keeps itself true, and is told what changes.
 * The publisher may come later, go and come back. */
#pragma once

#include "pubsub/pubsub.h"
#include "json/json.h"

struct subscription;

/* Each may be NULL, but modifications make no sense without creations. Values live until the
 * handler returns; members are sorted, empty arrays are null, whatever way a value came. A handler
 * may free the subscription. */
struct subscription_handlers {
    void (*on_create)(void *arg, struct str key, const struct json *value);
    void (*on_modify)(void *arg, struct str key, const struct json *value, const struct json *old);
    void (*on_delete)(void *arg, struct str key, const struct json *last);
    /* When the counter has changed. */
    void (*on_restarted)(void *arg, int64_t counter);
    /* Once: all that the publisher had when we found it is here. */
    void (*on_synchronized)(void *arg);
};

/* Starts at the end of this turn of the loop: no handler runs before this returns. A persistent one
 * first reads the files. -EINVAL for a bad name. */
int subscription_new(struct pubsub *ps, const struct pubsub_name *name,
                     const struct subscription_handlers *handlers, void *arg,
                     struct subscription **ret);
/* NULL allowed. */
void subscription_free(struct subscription *s);

/* NULL when absent. */
struct json *subscription_get(struct arena *a, const struct subscription *s, struct str key);
/* As publication_next(). */
bool subscription_next(const struct subscription *s, size_t *position, struct str *ret_key,
                       struct str *ret_text);
bool subscription_is_synchronized(const struct subscription *s);
int64_t subscription_restarted(const struct subscription *s);
struct pubsub_count subscription_count(const struct subscription *s);
