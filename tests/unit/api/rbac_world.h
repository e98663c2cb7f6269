/* SPDX-License-Identifier: Apache-2.0 */
/* A store with roles and bindings, the index over it, and a slow evaluator that knows nothing of
 * the index: it walks the objects as JSON. */
#pragma once

#include "api/auth/rbac.h"
#include "json/json.h"

struct world_object {
    struct str resource, namespace, name; /* "roles", "clusterrolebindings" ... */
    const struct json *object;            /* NULL: it is gone */
    int64_t revision;
};

struct world {
    char directory[40];
    struct arena *arena;
    struct store *store;
    struct rbac *rbac;
    struct world_object *objects; /* in the arena */
    size_t n;
};

void world_open(struct world *w);
void world_close(struct world *w);
/* Makes or replaces an object: `rules` or `roleRef` and `subjects` in JSON with single quotes for
 * double ones. Cluster-wide kinds have the namespace "". */
void world_put(struct world *w, const char *resource, const char *namespace, const char *name,
               const char *text);
/* False: there was none. */
bool world_remove(struct world *w, const char *resource, const char *namespace, const char *name);
/* The index anew, from what is in the store. */
void world_restart(struct world *w);

bool reference_allows(const struct world *w, const struct access_question *q);
