/* SPDX-License-Identifier: Apache-2.0 */
/* CustomResourceDefinitions: what kube-apiserver fills in and refuses. Establishing them, and the
 * conditions that say so, are a controller's. */
#pragma once

#include "api/hooks.h"

#define CRD_MAX_VERSIONS 100

extern const struct kind_hooks customresourcedefinition_hooks;

/* ---- between its files -------------------------------------------------------------------- */

/* spec and everything below it. */
void crd_check_spec(const struct json *spec, struct causes *causes);
/* Names in spec or status; of a spec, some must be there. */
void crd_check_names(const struct json *names, bool is_spec, const struct field_path *at,
                     struct causes *causes);
/* What one version says: schema, subresources, columns, selectable fields. */
void crd_check_version(const struct json *spec, size_t i, struct causes *causes);
/* The parts that are the same in every version, which kube-apiserver checks once and as the spec's
 * own. */
void crd_check_shared(const struct json *spec, struct causes *causes);
/* The name of the version that is stored, the first if there are several; STR_NONE: none. */
struct str crd_storage_version(const struct json *spec);
