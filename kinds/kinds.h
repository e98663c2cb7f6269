/* SPDX-License-Identifier: Apache-2.0 */
/* The manifests of all built-in kinds as JSON texts, compiled into the program (see
 * kinds/README.md). */
#pragma once

#include "base/str.h"

struct kinds_manifest {
    const char *path; /* "core/configmaps.yaml" */
    struct str json;
};

extern const struct kinds_manifest kinds_manifests[];
extern const size_t n_kinds_manifests;
/* bootstrap/: the objects that exist from the start, each file a list. */
extern const struct kinds_manifest kinds_bootstrap[];
extern const size_t n_kinds_bootstrap;
/* protobuf.yaml: the numbers of fields in the protobuf form of native kinds. */
extern const struct str kinds_protobuf;
