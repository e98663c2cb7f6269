/* SPDX-License-Identifier: Apache-2.0 */
/* Paths to a field as CRDs give them for selectable fields and validation rules: .spec.mode,
 * .a['b.c']. */
#pragma once

#include "json/json.h"

/* The schema (JSON) of the field that the path leads to from `schema`; NULL: *ret_error says why,
 * in kube-apiserver's words. A key of a map is written as a member is. */
const struct json *schema_path_find(struct arena *a, const struct json *schema, struct str path,
                                    bool allow_brackets, struct str *ret_error);
