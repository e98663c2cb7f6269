/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of fields: the trie that FieldsV1 writes down (`f:name`, `k:{"name":"x"}`, `v:"x"`, `i:0`,
 * `.`). In an arena; treat a set you did not make as immutable. */
#pragma once

#include "schema/schema.h"

struct fieldset;

struct fieldset *fieldset_new(struct arena *a);
/* -EINVAL on what is not FieldsV1. */
int fieldset_from_json(struct arena *a, const struct json *fields_v1, struct fieldset **ret_set);
/* Keys in the order structured-merge-diff writes. */
struct json fieldset_to_json(struct arena *a, const struct fieldset *set);
bool fieldset_is_empty(const struct fieldset *set);
bool fieldset_equal(const struct fieldset *a, const struct fieldset *b);
struct fieldset *fieldset_union(struct arena *a, const struct fieldset *x,
                                const struct fieldset *y);
struct fieldset *fieldset_intersection(struct arena *a, const struct fieldset *x,
                                       const struct fieldset *y);
struct fieldset *fieldset_difference(struct arena *a, const struct fieldset *x,
                                     const struct fieldset *y);
/* All fields an object has, by the schema's list and map types (schema NULL: everything deduced).
 */
struct fieldset *fieldset_of(struct arena *a, const struct json *value,
                             const struct schema *schema);
/* Members in dotted form as conflict messages print them: ".data.a",
 * ".spec.ports[name=\"x\"].addr". */
void fieldset_for_each_leaf(struct arena *a, const struct fieldset *set,
                            void (*on_path)(void *ctx, struct str path), void *ctx);
