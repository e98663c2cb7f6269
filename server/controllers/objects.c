/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/objects.h"

#include <errno.h>

const struct kind *objects_kind(const struct registry *r, struct str collection)
{
    const struct kind *stored = registry_collection(r, collection);
    if (!stored || stored->is_served)
        return stored;
    const struct registry_group *group = registry_group(r, stored->group);
    for (size_t i = 0; group && i < group->n_versions; i++) {
        const struct kind *k =
            registry_find(r, group->name, group->versions[i].version, stored->plural);
        if (k)
            return k;
    }
    return NULL;
}

/* ---- requests ----------------------------------------------------------------------------- */

struct kube_request objects_request(enum verb verb, const struct object_place *at)
{
    return (struct kube_request){.verb = verb,
                                 .group = at->kind->group,
                                 .version = at->kind->version,
                                 .resource = at->kind->plural,
                                 .namespace = at->namespace,
                                 .name = at->name};
}

static int ask(const struct controller_context *ctx, struct arena *a, const struct kube_request *r,
               struct json **ret_object)
{
    struct status st;
    status_init(&st, a);
    return kube_request(ctx->client, a, r, ret_object, &st);
}

int objects_get(const struct controller_context *ctx, struct arena *a,
                const struct object_place *at, struct json **ret_object)
{
    struct kube_request r = objects_request(VERB_GET, at);
    return ask(ctx, a, &r, ret_object);
}

int objects_list(const struct controller_context *ctx, struct arena *a,
                 const struct object_place *at, struct json **ret_items)
{
    struct kube_request r = objects_request(VERB_LIST, at);
    struct json *list = NULL;
    int result = ask(ctx, a, &r, &list);
    if (result < 0)
        return result;
    struct json *items = json_get(list, STR("items"));
    *ret_items = json_is(items, JSON_ARRAY) ? items : json_new(a, json_array());
    return 0;
}

int objects_count(const struct controller_context *ctx, struct arena *a,
                  const struct object_place *at, int64_t *ret_n)
{
    struct kube_request r = objects_request(VERB_LIST, at);
    struct json *list = NULL;
    r.query = STR("limit=1");
    int result = ask(ctx, a, &r, &list);
    if (result < 0)
        return result;
    *ret_n = (int64_t) json_count(json_get(list, STR("items"))) +
             json_get_int(json_get(list, STR("metadata")), STR("remainingItemCount"), 0);
    return 0;
}

int objects_create(const struct controller_context *ctx, struct arena *a,
                   const struct object_place *at, const struct json *object)
{
    struct kube_request r = objects_request(VERB_CREATE, at);
    r.name = STR_NONE;
    r.body = object;
    return ask(ctx, a, &r, NULL);
}

int objects_update(const struct controller_context *ctx, struct arena *a,
                   const struct object_place *at, const char *subresource,
                   const struct json *object, struct json **ret_object)
{
    struct kube_request r = objects_request(VERB_UPDATE, at);
    r.subresource = str_of(subresource);
    r.body = object;
    return ask(ctx, a, &r, ret_object);
}

int objects_merge(const struct controller_context *ctx, struct arena *a,
                  const struct object_place *at, const char *subresource, const struct json *body)
{
    struct kube_request r = objects_request(VERB_PATCH, at);
    r.subresource = str_of(subresource);
    r.content_type = STR("application/merge-patch+json");
    r.body = body;
    return ask(ctx, a, &r, NULL);
}

int objects_patch_metadata(const struct controller_context *ctx, struct arena *a,
                           const struct object_place *at, const struct json *object,
                           const char *key, struct json value)
{
    struct json meta = json_object(), body = json_object();
    (void) json_append_member(a, &meta, STR("uid"), json_string(object_meta_text(object, "uid")));
    (void) json_append_member(a, &meta, STR("resourceVersion"),
                              json_string(object_meta_text(object, "resourceVersion")));
    (void) json_append_member(a, &meta, str_of(key), value);
    (void) json_append_member(a, &body, STR("metadata"), meta);
    return objects_merge(ctx, a, at, "", &body);
}

int objects_delete(const struct controller_context *ctx, struct arena *a,
                   const struct object_place *at, const struct delete_terms *terms)
{
    struct json body = json_object(), preconditions = json_object();
    if (terms->uid.n)
        (void) json_append_member(a, &preconditions, STR("uid"), json_string(terms->uid));
    if (terms->revision.n)
        (void) json_append_member(a, &preconditions, STR("resourceVersion"),
                                  json_string(terms->revision));
    if (terms->policy)
        (void) json_append_member(a, &body, STR("propagationPolicy"),
                                  json_string(str_of(terms->policy)));
    (void) json_append_member(a, &body, STR("preconditions"), preconditions);
    struct kube_request r = objects_request(VERB_DELETE, at);
    r.body = &body;
    int result = ask(ctx, a, &r, NULL);
    return result == -ENOENT ? 0 : result;
}

int objects_delete_all(const struct controller_context *ctx, struct arena *a,
                       const struct object_place *at)
{
    struct kube_request r = objects_request(VERB_DELETE_COLLECTION, at);
    return ask(ctx, a, &r, NULL);
}

/* ---- finalizers --------------------------------------------------------------------------- */

bool object_has_finalizer(const struct json *object, const char *name)
{
    JSON_FOR_EACH_ITEM (object_meta_at(object, "finalizers"), f)
        if (str_is(json_str(f), name))
            return true;
    return false;
}

int objects_drop_finalizer(const struct controller_context *ctx, struct arena *a,
                           const struct object_place *at, const struct json *object,
                           const char *name)
{
    if (!object_has_finalizer(object, name))
        return 0;
    struct json kept = json_array();
    JSON_FOR_EACH_ITEM (object_meta_at(object, "finalizers"), f)
        if (!str_is(json_str(f), name))
            (void) json_push(a, &kept, *f);
    int r = objects_patch_metadata(ctx, a, at, object, "finalizers",
                                   json_count(&kept) ? kept : json_null());
    return r == -ENOENT ? 0 : r;
}
