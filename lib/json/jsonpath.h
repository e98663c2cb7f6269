/* SPDX-License-Identifier: Apache-2.0 */
/* JSONPath as Kubernetes uses it in printer columns, selectable fields and scale paths: compiled once,
 * evaluated over values. */
#pragma once

#include "json/json.h"

struct jsonpath;

/* The form without braces: `.spec.ports[0].name`, `.status.conditions[?(@.type=="Ready")].status`,
 * `.metadata.annotations.a\.b`, `['a']`, `[*]`, `..x`, slices, unions. Lives in the arena. Failure:
 * -EINVAL and *ret_error in client-go's words. */
int jsonpath_compile(struct arena *a, struct str text, struct jsonpath **ret_path, struct str *ret_error);
/* Calls on_match for each value found, in order, until it returns false. */
void jsonpath_eval(const struct jsonpath *path, const struct json *root,
                   bool (*on_match)(void *ctx, const struct json *value), void *ctx);
/* The first match or NULL. */
const struct json *jsonpath_first(const struct jsonpath *path, const struct json *root);
/* True when the path is plain member names only (.a.b.c), as scale and selectable fields demand. */
bool jsonpath_is_simple(const struct jsonpath *path);
