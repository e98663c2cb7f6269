/* SPDX-License-Identifier: Apache-2.0 */
/* JSONPath as Kubernetes uses it in printer columns, selectable fields and scale paths: compiled
 * once, evaluated over values. */
#pragma once

#include "json/json.h"

#define JSONPATH_MAX_TEXT_BYTES 4096
/* Values looked at in one evaluation; past it nothing matches any more. */
#define JSONPATH_MAX_WORK 1000000

struct jsonpath;

/* The form without braces: `.spec.ports[0].name`, `.status.conditions[?(@.type=="Ready")].status`,
 * `.metadata.annotations.a\.b`, `['a']`, `[*]`, `..x`, slices, unions. Lives in the arena. Failure:
 * -EINVAL and *ret_error in client-go's words. As there, dots within brackets separate names too,
 * and
 * `['a\.b']` is the name with a dot. */
int jsonpath_compile(struct arena *a, struct str text, struct jsonpath **ret_path,
                     struct str *ret_error);
/* Calls on_match for each value found, in order, until it returns false. What client-go reports as
 * an error (an index out of bounds, a filter on no array, a comparison of unlike types) yields no
 * match at all; what is absent is skipped. */
void jsonpath_eval(const struct jsonpath *path, const struct json *root,
                   bool (*on_match)(void *ctx, const struct json *value), void *ctx);
/* The first match or NULL. */
const struct json *jsonpath_first(const struct jsonpath *path, const struct json *root);
/* True when the path is plain member names only (.a.b.c), as scale and selectable fields demand. */
bool jsonpath_is_simple(const struct jsonpath *path);
