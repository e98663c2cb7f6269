/* SPDX-License-Identifier: Apache-2.0 */
/* What a device does when its configuration changes so: who restarts, what is lost. A pure
 * function. */
#pragma once

#include "preview/difference.h"

enum effect_kind {
    EFFECT_REBOOT,
    EFFECT_UPDATE, /* of EVE: it reboots into it */
    EFFECT_SHUTDOWN,
    EFFECT_PURGE,
    EFFECT_RESTART,
    EFFECT_VOLUME_GOES,
    EFFECT_VOLUME_ANEW,
    EFFECT_APPLICATION_GOES,
    EFFECT_APPLICATION_COMES,
    EFFECT_APPLICATION_STOPS,
    EFFECT_APPLICATION_STARTS,
};

struct effect {
    enum effect_kind kind;
    struct str name; /* of the application or volume, the version of EVE */
};
struct effects {
    struct effect *items; /* by kind, then as the configuration has them */
    size_t n;
};

/* Both configurations, and how they differ; overridden changes are the caller's to leave out. */
struct effects effects_find(struct arena *a, const struct schema *schema, const struct json *old,
                            const struct json *new, const struct difference *d);
size_t effects_count(const struct effects *e, enum effect_kind kind);
/* "application web restarts" */
struct str effect_text(struct arena *a, const struct effect *e);
