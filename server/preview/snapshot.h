/* SPDX-License-Identifier: Apache-2.0 */
/* What a device would be told: its configuration as it can be compared and shown. */
#pragma once

#include "api/client.h"
#include "api/registry.h"
#include "composer/composer.h"
#include "fleet/fleet.h"
#include "preview/difference.h"

struct snapshot {
    struct compose_result result;
    struct json *config; /* sealed parts are texts here */
    struct str *places;  /* of the result's sources */
    bool is_gone;        /* the Device would not be there */
};

/* The schema of configurations, as long as the registry is held. */
const struct schema *snapshot_schema(const struct registry *r);
struct snapshot_question {
    const struct schema *schema;
    struct str namespace, name;       /* of the Device */
    const struct json *device_config; /* what it was told before; NULL: nothing */
    const struct fleet_change *changes;
    size_t n_changes;
};
/* 0; -ENOENT: there is no such Device; other negative errnos with st filled. Blocks. */
int snapshot_make(struct fleet *f, struct arena *a, const struct snapshot_question *q,
                  struct snapshot *ret, struct status *st);
/* A configuration as a DeviceConfig has it (NULL: none), in the same form. */
struct json *snapshot_config(struct arena *a, const struct schema *schema,
                             const struct json *config);
/* One of the sources, as the status of a DeviceConfig has it. */
struct json snapshot_source(struct arena *a, const struct snapshot *s, size_t i);
/* What explains the place: the sources nearest above it, else those within it. Their numbers, in
 * the arena; returns how many. */
size_t snapshot_explain(struct arena *a, const struct snapshot *s, struct str place,
                        size_t **ret_sources);
