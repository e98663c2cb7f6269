/* SPDX-License-Identifier: Apache-2.0 */
/* The rules for metadata that all kinds share, in kube-apiserver's words. */
#pragma once

#include "api/hooks.h"
#include "schema/causes.h"

/* A new object's metadata; an update's is judged by object_meta_validate_update() alone. */
void object_meta_validate(struct hook_context *h, const struct json *object, struct causes *causes);
/* What an update may not change, and the rest of the rules once more. kube-apiserver judges
 * metadata in its generic code and again in nearly every kind's own, so most causes come twice; the
 * message shows them once. */
void object_meta_validate_update(struct hook_context *h, const struct json *old,
                                 const struct json *object, struct causes *causes);

/* A generateName is judged as if the dash at its end were a letter. */
struct str object_meta_mask_prefix(struct arena *a, struct str name, bool is_prefix);
/* Adds one cause for each thing that is wrong with a name. */
void object_meta_add_errors(struct causes *causes, const struct field_path *at, struct str value,
                            const struct name_errors *errors);
/* "field is immutable" when the members differ; absent equals null. */
void object_meta_check_immutable(struct causes *causes, const struct field_path *at,
                                 const struct json *old, const struct json *value);
