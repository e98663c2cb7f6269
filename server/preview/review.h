/* SPDX-License-Identifier: Apache-2.0 */
/* One device under consideration: what it is told now and would be told then. */
#pragma once

#include "fleet/overrides.h"
#include "preview/effects.h"
#include "preview/preview.h"
#include "preview/snapshot.h"

struct review {
    struct arena *arena;
    struct str namespace, name;
    struct registry *registry;
    const struct schema *schema;
    const struct json *device_config; /* NULL: there is none yet */
    bool is_whole;                    /* nobody composes it: all of it is its writer's */
    const struct override *overrides;
    const struct fleet_change *changes;
    size_t n_changes;

    struct snapshot now, then;
    bool has_now;            /* else `base` is the DeviceConfig's */
    const struct json *base; /* what `then` is compared with */
    struct difference difference;
    const struct override **kept_by; /* of each change: who keeps it from the device, or NULL */
    struct effects effects;
};

/* Reads what there is of the device; arena, namespace and name are set. 0, or a negative errno with
 * st filled. Blocks, as all here. */
int review_open(struct review *r, const struct preview *p, struct status *st);
void review_done(struct review *r);
/* Composes as things are. */
int review_now(struct review *r, const struct preview *p, struct status *st);
/* Compares the present composition with one with the changes made. */
int review_changes(struct review *r, const struct preview *p, struct status *st);
/* Compares the DeviceConfig with what would be composed now. */
int review_pending(struct review *r, const struct preview *p, struct status *st);

/* ---- as it is answered --------------------------------------------------------------------- */

struct json *review_preview_json(const struct review *r);
/* path: "" for all. */
struct json *review_provenance_json(const struct review *r, struct str path);
/* The same for people, from those. */
struct str preview_text(struct arena *a, const struct json *preview);
struct str provenance_text(struct arena *a, const struct json *provenance);
