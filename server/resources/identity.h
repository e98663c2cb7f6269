/* SPDX-License-Identifier: Apache-2.0 */
/* status.uuid: the name of an object in the EVE API. The server gives it, random, when the object
 * is made; it stays whatever is written, and nobody chooses it. */
#pragma once

#include "api/hooks.h"

/* The object's own status, which on writes to the object is still the old one's, with room for
 * n_more members. */
struct json *identity_own_status(struct hook_context *h, struct json *object, size_t n_more);
/* A new object begins with this status; what was stored before without a uuid is given one now. */
void identity_prepare(struct hook_context *h, const struct json *old, struct json *object);
/* The same with a uuid for a new object; STR_NONE: random. */
void identity_prepare_as(struct hook_context *h, const struct json *old, struct json *object,
                         struct str uuid);
/* For validate_update. */
void identity_check(struct hook_context *h, const struct json *old, const struct json *object,
                    struct causes *causes);

/* Adds the condition Ready, Unknown, that a new object begins with. */
void identity_begin_ready(struct hook_context *h, struct json *object, struct str reason,
                          struct str message);
