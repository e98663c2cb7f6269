/* SPDX-License-Identifier: Apache-2.0 */
/* What users have taken over of a DeviceConfig: fields of spec.config that are somebody else's than
 * the composer's. */
#pragma once

#include "base/arena.h"
#include "json/json.h"

struct override {
    struct str path; /* as conflicts name it, within config: apps[displayname="web"].vncDisplay */
    struct str manager; /* whose it is */
    struct override *next;
};

/* Of the stored object, by manager and path; NULL: nothing. At most OVERRIDES_MAX. */
#define OVERRIDES_MAX 256
struct override *overrides_of(struct arena *a, const struct json *device_config);
/* Whether anybody but the composer has written to the spec. A look, no parsing of fields. */
bool overrides_are_possible(const struct json *device_config);
/* Takes the field (".spec.config.x", as a conflict names it) out of what the composer would apply:
 * its owner keeps it. False: there is no such field. */
bool overrides_yield(struct json *config, struct str path);
/* Items of lists that a user's fields keep alive although nothing composed is left of them: what
 * has no identity cannot be on a device. Removes them; true when there were any. */
bool overrides_drop_remains(struct json *config);
