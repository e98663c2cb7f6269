/* SPDX-License-Identifier: Apache-2.0 */
/* The objects of a body: one, a List, an array, or several YAML documents of any of these. */
#pragma once

#include "api/status.h"

#define MANIFEST_MAX_BYTES ((size_t) 3 * 1024 * 1024)
#define MANIFEST_MAX_OBJECTS 256

struct manifest {
    struct json *objects[MANIFEST_MAX_OBJECTS];
    size_t n;
};

/* 0, or a negative errno with st filled. */
int manifest_read(struct arena *a, struct str body, struct manifest *ret, struct status *st);
