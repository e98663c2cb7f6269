/* SPDX-License-Identifier: Apache-2.0 */
/* Which Applications use which claims on which Devices, and which Volumes there are of them: kept
 * from events, so that no event costs a look at all objects. Applications without volumes cost
 * nothing here.
 *
 * Threads: events come one at a time; everything else from any thread. */
#pragma once

#include "api/client.h"

struct links;
struct links *links_new(void);
void links_free(struct links *l);

struct links_touch {
    /* "<namespace>/<name>" of a claim whose Volumes or users are others now. */
    void (*claim)(void *ctx, struct str key);
    /* Of an Application with claims of its own, which may not be there. */
    void (*application)(void *ctx, struct str key);
    void *ctx;
};
void links_event(struct links *l, const struct kube_event *e, const struct links_touch *touch);

/* An Application that uses a claim. One whose own claim it should be, but is not, is none. */
struct link_user {
    struct str name;
    struct str device; /* "" until one is chosen, or when there is no such Device */
    bool is_deleting;
};
/* A Volume of a claim. */
struct link_volume {
    struct str name, uid, device, application;
    bool is_stranded; /* the Device it was on is gone */
};
/* What is known of a claim, by name; in the arena. */
struct link_claim {
    struct link_user *users;
    size_t n_users;
    struct link_volume *volumes;
    size_t n_volumes;
};
struct link_claim links_claim(struct links *l, struct arena *a, struct str key);
