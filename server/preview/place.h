/* SPDX-License-Identifier: Apache-2.0 */
/* Places in a configuration, step by step. */
#pragma once

#include "schema/schema.h"
#include "json/json.h"

/* The places of a list's items in it ("[displayname=\"web\"]"), in its order; NULL: it has no keys,
 * or two of the same. */
const struct str *place_items(struct arena *a, const struct schema *list, const struct json *value);
struct str place_item(struct arena *a, const struct schema *list, const struct json *item);
/* -1: not among them. */
ptrdiff_t place_find(const struct str *keys, size_t n, struct str key);
struct str place_member(struct arena *a, struct str place, struct str name);
/* Takes the next name, or item with its brackets, off the rest. */
bool place_step(struct str *rest, struct str *ret_step);
/* What is at a place; NULL: nothing. "" is the value itself. */
const struct json *place_value(struct arena *a, const struct schema *schema,
                               const struct json *value, struct str place);
