/* SPDX-License-Identifier: Apache-2.0 */
/* The publisher's side. A value is on disk before publication_publish() returns, and with every
 * subscriber soon after: subscribers are told the newest value of what has changed, not every value
 * there ever was, so a slow one costs the publisher nothing but one packet. */
#pragma once

#include "pubsub/pubsub.h"
#include "json/json.h"

struct publication;

/* Loads what an earlier life has left in the directory and listens. -EINVAL for a bad name,
 * -EADDRINUSE when somebody publishes it already. */
int publication_new(struct pubsub *ps, const struct pubsub_name *name, struct publication **ret);
/* Subscribers are disconnected; the values stay on disk for the next life. NULL allowed. */
void publication_free(struct publication *p);

/* The value must be an object. -EINVAL for a bad key or value; -EMSGSIZE when it does not fit a
 * packet without its large fields, -EFBIG when one of these is too large; -ENOSPC beyond
 * PUBSUB_MAX_KEYS and _TOTAL_BYTES. What was published before stays then. */
int publication_publish(struct publication *p, struct str key, const struct json *value);
/* -ENOENT when there is no such key. */
int publication_unpublish(struct publication *p, struct str key);
/* "I have gone through my own inputs once": follows all that was published before. */
int publication_signal_restarted(struct publication *p);
int publication_clear_restarted(struct publication *p);
int64_t publication_restarted(const struct publication *p);

/* NULL when absent. */
struct json *publication_get(struct arena *a, const struct publication *p, struct str key);
/* Every key in no order, *position from 0; false at the end. Nothing may change meanwhile. */
bool publication_next(const struct publication *p, size_t *position, struct str *ret_key,
                      struct str *ret_text);
struct pubsub_count publication_count(const struct publication *p);
