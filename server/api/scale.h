/* SPDX-License-Identifier: Apache-2.0 */
/* The /scale subresource: an autoscaling/v1 Scale as a view of an object, through the paths its
 * kind names. */
#pragma once

#include "api/call.h"

/* The replicas that an object with a scale subresource holds must be a number a Scale can show. */
void scale_validate(const struct kind *kind, const struct json *object, struct causes *causes);
/* What a Scale shows of an object, and the number that one asks for put into it. */
struct json *scale_view(struct call *c, const struct json *object);
int scale_take(struct call *c, struct json *object, const struct json *scale);
void scale_reply(struct call *c, struct object *o);
void scale_update(struct call *c);
void scale_patch(struct call *c, enum media_patch type, const struct json *patch);
