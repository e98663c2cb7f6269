/* SPDX-License-Identifier: Apache-2.0 */
/* What controllers ask of the API, in one line each. Errors are kube_request()'s. */
#pragma once

#include "api/registry.h"
#include "controllers/controller.h"

/* Where an object lives. */
struct object_place {
    const struct kind *kind;
    struct str namespace, name;
};

/* A kind of this collection that can be asked for: stored in another version, perhaps. NULL when
 * none is served. */
const struct kind *objects_kind(const struct registry *r, struct str collection);

/* For what the functions below do not ask: the request for the object. */
struct kube_request objects_request(enum verb verb, const struct object_place *at);
int objects_get(const struct controller_context *ctx, struct arena *a,
                const struct object_place *at, struct json **ret_object);
/* All in at->namespace, or in all namespaces when that is absent; ret_items is the list's array,
 * never NULL. */
int objects_list(const struct controller_context *ctx, struct arena *a,
                 const struct object_place *at, struct json **ret_items);
/* How many objects_list() would give. */
int objects_count(const struct controller_context *ctx, struct arena *a,
                  const struct object_place *at, int64_t *ret_n);
int objects_create(const struct controller_context *ctx, struct arena *a,
                   const struct object_place *at, const struct json *object);
/* Writes the object or one of its subresources ("" for itself); ret_object may be NULL. */
int objects_update(const struct controller_context *ctx, struct arena *a,
                   const struct object_place *at, const char *subresource,
                   const struct json *object, struct json **ret_object);
/* Merges the body (a merge patch) into the object or one of its subresources, whatever its version.
 */
int objects_merge(const struct controller_context *ctx, struct arena *a,
                  const struct object_place *at, const char *subresource, const struct json *body);
/* Merges {"metadata": {<key>: value}} into exactly this version of the object. */
int objects_patch_metadata(const struct controller_context *ctx, struct arena *a,
                           const struct object_place *at, const struct json *object,
                           const char *key, struct json value);

struct delete_terms {
    struct str uid;      /* the object this is about, not a namesake; STR_NONE: whatever is there */
    struct str revision; /* exactly this version; STR_NONE: any */
    const char *policy;  /* "Background", "Foreground", "Orphan"; NULL: the kind's own */
};
/* Gone already is as good: 0. */
int objects_delete(const struct controller_context *ctx, struct arena *a,
                   const struct object_place *at, const struct delete_terms *terms);
/* All of the kind in at->namespace, at once. */
int objects_delete_all(const struct controller_context *ctx, struct arena *a,
                       const struct object_place *at);

/* ---- parts of objects --------------------------------------------------------------------- */

static inline const struct json *object_meta_at(const struct json *object, const char *key)
{
    return json_at(object, "metadata", key, NULL);
}
static inline struct str object_meta_text(const struct json *object, const char *key)
{
    return json_str(object_meta_at(object, key));
}
static inline int64_t object_generation(const struct json *object)
{
    return json_get_int(json_get(object, STR("metadata")), STR("generation"), 0);
}
static inline bool object_is_deleting(const struct json *object)
{
    return object_meta_text(object, "deletionTimestamp").n > 0;
}
bool object_has_finalizer(const struct json *object, const char *name);
/* Removes one finalizer; 0 when it or the object is not there any more. */
int objects_drop_finalizer(const struct controller_context *ctx, struct arena *a,
                           const struct object_place *at, const struct json *object,
                           const char *name);
