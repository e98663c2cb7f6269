/* SPDX-License-Identifier: Apache-2.0 */
/* What a write would lead to beyond its object, for who asks before it is made (dryRun=All). */
#pragma once

#include "api/call.h"

/* An object as it would be. */
struct forecast_change {
    struct str collection, namespace, name;
    const struct json *old;    /* NULL: there is none */
    const struct json *object; /* NULL: it would be gone */
};

struct forecast {
    void *ctx;
    /* Whether tell() may have something to say. On a loop. */
    bool (*is_concerned)(void *ctx, const struct forecast_change *change);
    /* The text of a warning, in the arena, or STR_NONE. On a thread that may block. */
    struct str (*tell)(void *ctx, struct arena *a, const struct forecast_change *changes, size_t n);
};

/* Of a dry run: warns of what the changes would lead to. False: this thread may not wait for that,
 * so must_block is set and the call has to end. */
bool forecast_dry_run(struct call *c, const struct forecast_change *changes, size_t n);
/* The same for a single change of the call's own kind. */
bool forecast_dry_write(struct call *c, const struct json *old, const struct json *object);
