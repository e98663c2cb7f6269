/* SPDX-License-Identifier: Apache-2.0 */
/* How many Devices came by each object that lets devices register, kept from their events: a count
 * that would cost a list of all Devices for every one that comes. */
#pragma once

#include "api/client.h"

struct onboard_tally;
struct onboard_tally *onboard_tally_new(void);
void onboard_tally_free(struct onboard_tally *t);

/* A Device changed: calls changed(ctx, sponsor) for each "<Kind>/<namespace>/<name>" whose count
 * is another now. From one thread. */
void onboard_tally_event(struct onboard_tally *t, const struct kube_event *e,
                         void (*changed)(void *ctx, struct str sponsor), void *ctx);
/* From any thread. */
size_t onboard_tally_count(struct onboard_tally *t, struct str sponsor);
