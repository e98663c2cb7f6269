/* SPDX-License-Identifier: Apache-2.0 */
/* What applies to which device: an index kept from events, so that a change is composed anew where
 * it matters and nowhere else, and the objects of one device are found without looking at all.
 *
 * Threads: events come one at a time; everything else from any thread. */
#pragma once

#include "api/client.h"
#include "base/clock.h"
#include "composer/composer.h"

/* Begins to seal for a device, as compose_inputs wants it: *ret_seal and *ret_ctx live in the
 * arena or as long as it does. 0, or a negative errno with st filled. Blocks. */
typedef int fleet_open_seal(void *ctx, struct arena *a, const struct json *device,
                            compose_seal **ret_seal, void **ret_ctx, struct status *st);

/* Fills in what the status of a DeviceConfig says of its delivery, so that one write does for all.
 * A failure leaves it to whoever delivers. */
typedef int fleet_fill_delivery(void *ctx, struct arena *a, struct str namespace, struct str name,
                                struct json *device_config);

struct fleet_options {
    struct kube_client *client;
    const struct clock *clock;
    fleet_open_seal *open_seal;         /* NULL: nothing can be sealed */
    fleet_fill_delivery *fill_delivery; /* NULL: nothing is filled in */
    void *devices;                      /* the context of both */
};
struct fleet;
struct fleet *fleet_new(const struct fleet_options *o);
void fleet_free(struct fleet *f); /* NULL allowed */

/* Called for each device that is concerned, by "<namespace>/<name>". */
typedef void fleet_touch(void *ctx, struct str device_key);
/* An object changed: the index follows, and what the devices concerned are told may be another. */
void fleet_on_event(struct fleet *f, const struct kube_event *e, fleet_touch *touch, void *ctx);

/* All that existed at the start has been told. Before, nothing is gathered: half of what applies to
 * a device would have it delete the rest. */
void fleet_set_synced(struct fleet *f);

/* An object as it would be, in place of the one that is stored. */
struct fleet_change {
    struct str collection, namespace, name;
    const struct json *object; /* NULL: it would not be there */
};
/* Who would be concerned if these were made; each once, in no order. Looks nothing up. */
void fleet_concerned(struct fleet *f, const struct fleet_change *changes, size_t n,
                     fleet_touch *touch, void *ctx);

/* Everything that applies to a device, with the changes made; in the arena. Applications that the
 * changes bring are the device's when their status.device says so, or when they have none and their
 * selectors name this device alone (nodeSelector `name`). 0; -ENOENT: there is no such Device;
 * other negative errnos with st filled. Blocks. */
int fleet_inputs(struct fleet *f, struct arena *a, struct str namespace, struct str name,
                 const struct fleet_change *changes, size_t n_changes, struct compose_inputs *ret,
                 struct status *st);

/* Composes, with what the device was told before (its DeviceConfig; NULL: nothing) for the sake of
 * applications that cannot be composed any more. */
void fleet_compose(struct arena *a, struct compose_inputs *in, const struct json *device_config,
                   struct compose_result *ret);
