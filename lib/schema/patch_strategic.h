/* SPDX-License-Identifier: Apache-2.0 */
/* The two halves of a strategic merge, maps and lists, to each other. */
#pragma once

#include "schema/patch.h"

#define STRATEGIC_PATCH "$patch"
#define STRATEGIC_MAX_RETAINED 1000 /* names in one $retainKeys */

struct strategic {
    struct arena *arena;
    struct patch_error *error;
};

int strategic_fail(struct strategic *s, int kind, struct str message);
int strategic_fail_directive(struct strategic *s, const struct json *directive,
                             const struct json *in);
/* A value that meets nothing to merge with: without nulls and without maps that hold a $patch. The
 * other directives stay, unknown fields from then on, as Kubernetes has it. */
struct json strategic_plain(struct arena *a, const struct json *value);

int strategic_merge_map(struct strategic *s, const struct schema *schema, const struct json *old,
                        const struct json *patch, unsigned depth, struct json *ret);
/* schema is the list's; may be NULL. */
int strategic_merge_list(struct strategic *s, const struct schema *schema, const struct json *old,
                         const struct json *patch, struct json *ret);
/* The same when the patch gives the order; old or patch may be NULL. */
int strategic_order_list(struct strategic *s, const struct schema *schema, const struct json *old,
                         const struct json *patch, const struct json *order, struct json *ret);
/* The list without the items of the other. */
struct json strategic_without(struct arena *a, const struct json *list, const struct json *gone);
