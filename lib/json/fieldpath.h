/* SPDX-License-Identifier: Apache-2.0 */
/* The path of a field as error messages write it: `spec.containers[0].name`,
 * `metadata.labels[a/b]`, `spec.ports[0]`. A chain of stack frames, rendered only when an error
 * needs it. */
#pragma once

#include "base/arena.h"

struct field_path {
    const struct field_path *parent; /* NULL: root */
    struct str name;                 /* a member name (p != NULL) ... */
    struct str key;                  /* ... or a map key, written [key] ... */
    int64_t index;                   /* ... or an index, written [index] */
};

#define FIELD_NAME(up, text) ((struct field_path){.parent = (up), .name = (text)})
#define FIELD_KEY(up, text) ((struct field_path){.parent = (up), .key = (text)})
#define FIELD_INDEX(up, i) ((struct field_path){.parent = (up), .index = (i)})

/* "<nil>" never occurs: an empty path renders as "". */
struct str field_path_text(struct arena *a, const struct field_path *path);
