/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of native kinds pass through Go structs in kube-apiserver, and that shows on the wire:
 * values of a wrong type are refused, quantities and times come back in canonical form, empty
 * values of fields with `omitempty` go away and zero values of fields without it appear. This does
 * the same by the manifest's schema (see kinds/README.md); metadata is left alone. */
#pragma once

#include "api/kind.h"

/* Rewrites object in place, its members in the manifest's order; what the schema does not know
 * stays. -EINVAL and *ret_error in the words of Go's decoders. */
int native_decode(struct arena *a, const struct kind *kind, struct json *object,
                  struct str *ret_error);
/* What an empty Go struct of the kind looks like on the wire, without metadata: nobody owns these
 * fields by creating an object. */
struct json native_zero(struct arena *a, const struct kind *kind);
