/* SPDX-License-Identifier: Apache-2.0 */
/* status.conditions, as several kinds have them. */
#pragma once

#include "base/clock.h"
#include "json/json.h"

struct condition {
    const char *type, *status;
    struct str reason, message;
    int64_t generation; /* of the object that was looked at; 0: not told */
};

/* status.conditions of the object, made when absent. */
struct json *conditions_of(struct arena *a, struct json *object);
/* The condition of that type, or NULL. */
struct json *conditions_find(struct json *conditions, const char *type);
bool conditions_is_true(struct json *conditions, const char *type);
/* True when that changed anything; the transition time moves only when the status does. */
bool conditions_set(struct arena *a, struct json *conditions, const struct condition *c,
                    int64_t now_us);
