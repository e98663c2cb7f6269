/* SPDX-License-Identifier: Apache-2.0 */
/* The client interface: how controllers, the device API and the console reach objects, whether the
 * API server is this process or another. Requests block; they are for threads that may. */
#pragma once

#include "api/status.h"
#include "json/json.h"

struct kube_request {
    enum verb verb;
    struct str group, version, resource; /* version of the kind, e.g. "v1" */
    struct str namespace, name, subresource;
    struct str query;        /* "fieldManager=x&force=true", as in a URL */
    struct str content_type; /* of a patch; STR_NONE: application/json */
    const struct json *body;
};

enum kube_event_type {
    KUBE_ADDED,
    KUBE_MODIFIED,
    KUBE_DELETED,
    KUBE_SYNCED, /* once, without an object: all that existed at the start has been delivered */
};

struct kube_event {
    enum kube_event_type type;
    struct str collection; /* "configmaps", "devices.eve.lfedge.org" */
    struct str namespace, name, uid;
    bool is_deleting, has_owners;
    struct str text;              /* the object; see kube_event_object() when more is needed */
    struct kube_event_memo *memo; /* what its hearers share; NULL: nothing */
};

/* The value of an event that is being told. */
struct kube_event_memo {
    struct arena *arena;
    struct json *(*parse)(struct arena *a, struct str text);
    const struct json *object; /* NULL: nobody has asked yet */
};

/* The object of an event, parsed once for all who hear of it: not to be changed, and gone with the
 * event (or with the arena, if nothing is shared). Its managedFields may be missing. */
static inline const struct json *kube_event_object(const struct kube_event *e, struct arena *a)
{
    if (!e->memo)
        return json_parse_quick(a, e->text);
    if (!e->memo->object)
        e->memo->object = e->memo->parse(e->memo->arena, e->text);
    return e->memo->object;
}

struct kube_client;
struct registry;

struct kube_client_ops {
    int (*request)(struct kube_client *c, struct arena *a, const struct kube_request *r,
                   struct json **ret_object, struct status *st);
    /* All objects of all kinds as ADDED, then SYNCED, then everything that changes, in order, one
     * call at a time, until kube_client_free(). on_event runs on a thread of the client's; strings
     * live for the call. */
    void (*watch)(struct kube_client *c, void (*on_event)(void *ctx, const struct kube_event *e),
                  void *ctx);
    void (*free)(struct kube_client *c);
    /* The kinds that are served, with a reference. */
    struct registry *(*kinds)(struct kube_client *c);
    /* Returns when what is served is what the CRDs say now. */
    void (*refresh_kinds)(struct kube_client *c);
    /* Keys "<collection>/<namespace>/<name>" (in the arena) of at most max objects that refer to
     * the one of this key, in no order. A look-up, not a request. */
    size_t (*users)(struct kube_client *c, struct arena *a, struct str key, size_t max,
                    struct str **ret_keys);
};

/* Embed first. */
struct kube_client {
    const struct kube_client_ops *ops;
};

/* 0 and the object (or Status of a delete, or list), or a negative errno with st filled: -ENOENT
 * not found, -EEXIST, -ESTALE conflict. */
static inline int kube_request(struct kube_client *c, struct arena *a, const struct kube_request *r,
                               struct json **ret_object, struct status *st)
{
    return c->ops->request(c, a, r, ret_object, st);
}
static inline void kube_watch(struct kube_client *c,
                              void (*on_event)(void *ctx, const struct kube_event *e), void *ctx)
{
    c->ops->watch(c, on_event, ctx);
}
static inline struct registry *kube_kinds(struct kube_client *c)
{
    return c->ops->kinds(c);
}
static inline void kube_refresh_kinds(struct kube_client *c)
{
    c->ops->refresh_kinds(c);
}
static inline size_t kube_users(struct kube_client *c, struct arena *a, struct str key, size_t max,
                                struct str **ret_keys)
{
    return c->ops->users(c, a, key, max, ret_keys);
}
static inline void kube_client_free(struct kube_client *c)
{
    if (c)
        c->ops->free(c);
}

struct api;
/* The API server of this process. manager is the field manager of its writes ("seth-controllers").
 */
struct kube_client *kube_client_local(struct api *api, const char *manager);

struct user;
struct overlay;
/* In whose name a request is tried, and what it finds besides what is stored. */
struct kube_trial {
    const struct user *user; /* whose rights are the caller's affair */
    struct str manager;
    const struct overlay *overlay;
};
/* As kube_request(), to this process. For dry runs (the query says dryRun=All). */
int kube_try(struct api *api, struct arena *a, const struct kube_trial *t,
             const struct kube_request *r, struct json **ret_object, struct status *st);
