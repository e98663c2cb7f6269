/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the volumes controller. */
#pragma once

#include "controllers/objects.h"
#include "volumes/links.h"

/* What one key is worked on with. */
struct volumes_task {
    const struct controller_context *ctx;
    struct arena *arena;
    const struct registry *kinds;
    struct links *links;
    struct str namespace, name;
};

/* "<namespace>/<name>" */
struct str volumes_key(struct arena *a, struct str namespace, struct str name);
/* The claim of an Application's own volume, as Kubernetes names those of pods. */
struct str volumes_own_claim(struct arena *a, struct str application, struct str volume);
/* The uid of the owner that is its controller; "" for none. */
struct str volumes_controller_uid(const struct json *object);
/* metadata.ownerReferences with the owner as the controller. */
struct json volumes_owned_by(struct arena *a, const struct json *owner);

struct object_place volumes_place(const struct volumes_task *t, const char *collection,
                                  struct str name);
/* An Event about the object; what cannot be told is let go. */
void volumes_tell(const struct volumes_task *t, const struct json *object, bool is_warning,
                  const char *reason, struct str message);

/* Makes the claims of an Application's own. Both as reconcile() answers. */
int64_t ephemeral_reconcile(const struct volumes_task *t);
/* Makes the Volumes of a claim, and says so in its status. */
int64_t binding_reconcile(const struct volumes_task *t);
