/* SPDX-License-Identifier: Apache-2.0 */
/* What apply does to values: judge a configuration by the schema's types, merge it into a live
 * object, take fields out of one. Results share parts with their inputs. */
#pragma once

#include "schema/fieldset_internal.h"

/* -EINVAL and the complaint of structured-merge-diff about a configuration that does not fit the
 * schema: a wrong type, an undeclared field, a repeated or missing key. */
int merge_check(struct arena *a, const struct schema *schema, const struct json *config,
                struct str *ret_error);
/* The live object with all that the configuration says. */
struct json merge_values(struct arena *a, const struct schema *schema, const struct json *live,
                         const struct json *config);
/* The value without the members of the set and all that is below them. A map or list that loses
 * everything stays, empty. */
struct json merge_without(struct arena *a, const struct schema *schema, const struct json *value,
                          const struct fieldset *set);
