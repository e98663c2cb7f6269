/* SPDX-License-Identifier: Apache-2.0 */
/* What Go's typed decoder does to an object before anybody validates it: wrong JSON types are
 * refused, empty values of metadata and of native kinds go away. The rest of a custom resource is
 * the schema's affair. */
#pragma once

#include "api/kind.h"

/* Rewrites in place. -EINVAL and *ret_error ("json: cannot unmarshal number into Go struct field
 * ObjectMeta.metadata.labels of type string"). */
int decode_object(struct arena *a, const struct kind *kind, struct json *object,
                  struct str *ret_error);
