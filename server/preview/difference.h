/* SPDX-License-Identifier: Apache-2.0 */
/* How one configuration differs from another: pure functions over their JSON form, by the lists'
 * keys as the schema has them, so that an application that moves in its list has not changed.
 * Places are written as conflicts of server-side apply have them, without the dot in front:
 * apps[displayname="web"].fixedresources.memory. */
#pragma once

#include "schema/schema.h"
#include "json/json.h"

struct difference_change {
    struct str place;
    const struct json *old, *new; /* NULL: not there */
    size_t at;                    /* of an item that is new in a list with keys: its index */
    bool is_order; /* of a list with keys: the items that stay stand in another order; old and new
                      are the keys of all */
};
struct difference {
    struct difference_change *items; /* what goes, then what stays and differs, then what comes */
    size_t n;
};

/* schema: of both values; NULL: nothing is known of lists, so each differs as a whole. */
struct difference difference_make(struct arena *a, const struct schema *schema,
                                  const struct json *old, const struct json *new);
/* The old value with the changes made: the new one, but for lists with keys that are empty, which
 * are left out. */
struct json difference_apply(struct arena *a, const struct schema *schema, const struct json *old,
                             const struct difference *d);

/* The place that a path by indices ("apps[0].restart") names in a value; what it does not lead to
 * stays as it is. */
struct str place_of_path(struct arena *a, const struct schema *schema, const struct json *value,
                         struct str path);
/* Whether the place is the one above, or lies below it. "" is above all. */
bool place_is_within(struct str place, struct str above);
/* "apps[displayname="web"]" of a place in it: the first step. */
struct str place_first(struct str place);
