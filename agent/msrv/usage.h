/* SPDX-License-Identifier: Apache-2.0 */
/* How often applications have used patch envelopes: topic PatchEnvelopeUsage. Counters outlive a
 * reboot; they are published together some time later, so that asking often costs nothing. */
#pragma once

#include "msrv/msrv.h"

struct pubsub;
struct usage;

/* Counters that are remembered. */
#define USAGE_MAX_ENTRIES 4096

/* Publishes so long after the first change; 0: 10 s. */
int usage_new(struct pubsub *ps, struct loop *loop, int64_t delay_ms, struct usage **ret);
/* Publishes what waits. NULL allowed. */
void usage_free(struct usage *u);
void usage_count(struct usage *u, const struct msrv_app *app, const struct msrv_envelope *e,
                 enum msrv_patch_use use);
void usage_publish(struct usage *u);
