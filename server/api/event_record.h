/* SPDX-License-Identifier: Apache-2.0 */
/* Events that tell users what happened to an object. What happens again is counted in the Event
 * there is: their number is bounded by what they are about, not by how often a device asks. */
#pragma once

#include "api/client.h"
#include "base/clock.h"

struct event_subject {
    struct str api_version, kind, namespace, name, uid;
};

struct event_notice {
    struct event_subject about;
    bool is_warning;
    const char *reason; /* one word: DeviceRegistered */
    struct str message; /* for people; of a repeated Event the newest stays */
    /* Tells Events of one reason apart: the name of a Device, perhaps. Nothing that a stranger may
     * choose. STR_NONE: the object has one. */
    struct str key;
};

/* Blocks. 0 or a negative errno: who cannot tell goes on all the same. */
int event_record(struct kube_client *c, const struct clock *clock, const struct event_notice *n);
