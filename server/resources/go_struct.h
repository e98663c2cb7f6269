/* SPDX-License-Identifier: Apache-2.0 */
/* How kube-apiserver shows a change to a field that may not change: both values as indented JSON of
 * its Go structs, as a unified diff. Clients print it as it is. */
#pragma once

#include "schema/schema.h"

/* The value with Go's field names, every field there, in the order given by the schema; it is the
 * field `name` ("" at the top). */
struct json go_struct_of(struct arena *a, const struct schema *schema, const struct json *value,
                         struct str name);
/* Go's name of a JSON field, in the struct of the given field ("" at the top). */
struct str go_field_name(struct arena *a, struct str in, struct str name);
/* "@@ -1,6 +1,6 @@\n {\n ..." with three lines around each change; "" when equal. */
struct str go_struct_diff(struct arena *a, const struct json *old, const struct json *value);
