/* SPDX-License-Identifier: Apache-2.0 */
/* Objects for the composer, applied and removed as a user would; the state it derives is carried
 * from one composition to the next. */
#pragma once

#include "composer/composer.h"
#include "json/json.h"

#define WORLD_MAX 256

struct world {
    struct arena *arena;
    const struct json *objects[WORLD_MAX];
    size_t n_objects;
    const struct json *report;
    const struct json *derived;
    bool is_sealable;
    bool is_hidden; /* cipher blocks hold a hash of the plaintext rather than the plaintext */
};

/* Replaces the object of that kind and name, or adds it. */
void world_apply(struct world *w, const struct json *object);
void world_remove(struct world *w, struct str kind, struct str name);
const struct json *world_find(const struct world *w, const char *kind, const char *name);
/* Composes, and keeps nothing of it. */
void world_compose_once(struct world *w, struct arena *a, struct compose_result *ret);
void world_compose(struct world *w, struct arena *a, struct compose_result *ret);
/* Everything that came out, as one value. */
struct json *world_outcome(struct arena *a, const struct compose_result *r);
struct str world_bytes(struct arena *a, const struct compose_result *r);
