/* SPDX-License-Identifier: Apache-2.0 */
#include "volumes/volumes.h"

#include "api/event_record.h"
#include "volumes/volumes_internal.h"

/* Each key waits for a few writes, one after the other. */
#define N_WORKERS 4

/* ---- shared by the parts --------------------------------------------------------------------- */

struct str volumes_key(struct arena *a, struct str namespace, struct str name)
{
    const struct str parts[] = {namespace, STR("/"), name};
    return arena_join(a, parts, N_ELEMENTS(parts));
}

struct str volumes_own_claim(struct arena *a, struct str application, struct str volume)
{
    const struct str parts[] = {application, STR("-"), volume};
    return arena_join(a, parts, N_ELEMENTS(parts));
}

struct str volumes_controller_uid(const struct json *object)
{
    JSON_FOR_EACH_ITEM (object_meta_at(object, "ownerReferences"), owner)
        if (json_get_bool(owner, STR("controller"), false))
            return json_get_str(owner, STR("uid"));
    return STR("");
}

struct json volumes_owned_by(struct arena *a, const struct json *owner)
{
    struct json reference = json_object(), list = json_array();
    const struct {
        const char *key;
        struct json value;
    } members[] = {
        {"apiVersion", json_string(json_get_str(owner, STR("apiVersion")))},
        {"kind", json_string(json_get_str(owner, STR("kind")))},
        {"name", json_string(object_meta_text(owner, "name"))},
        {"uid", json_string(object_meta_text(owner, "uid"))},
        {"controller", json_bool(true)},
        {"blockOwnerDeletion", json_bool(true)},
    };
    for (size_t i = 0; i < N_ELEMENTS(members); i++)
        (void) json_append_member(a, &reference, str_of(members[i].key), members[i].value);
    (void) json_push(a, &list, reference);
    return list;
}

struct object_place volumes_place(const struct volumes_task *t, const char *collection,
                                  struct str name)
{
    const struct kind *kind = objects_kind(t->kinds, str_of(collection));
    return (struct object_place){kind, kind->is_namespaced ? t->namespace : STR_NONE, name};
}

void volumes_tell(const struct volumes_task *t, const struct json *object, bool is_warning,
                  const char *reason, struct str message)
{
    (void) event_record(
        t->ctx->client, t->ctx->clock,
        &(struct event_notice){.about = {.api_version = json_get_str(object, STR("apiVersion")),
                                         .kind = json_get_str(object, STR("kind")),
                                         .namespace = object_meta_text(object, "namespace"),
                                         .name = object_meta_text(object, "name"),
                                         .uid = object_meta_text(object, "uid")},
                               .is_warning = is_warning,
                               .reason = reason,
                               .message = message});
}

/* ---- the controller: keys are "c/<namespace>/<claim>" and "a/<namespace>/<application>" ------ */

static void *start(const struct controller_context *ctx, struct controller_queue *q)
{
    (void) ctx;
    (void) q;
    return links_new();
}

static void stop(void *links)
{
    links_free(links);
}

static void enqueue(struct controller_queue *q, char letter, struct str key)
{
    ARENA_AUTO a = arena_new();
    const struct str parts[] = {{&letter, 1}, STR("/"), key};
    controller_enqueue(q, arena_join(a, parts, N_ELEMENTS(parts)), 0);
}

static void touch_claim(void *queue, struct str key)
{
    enqueue(queue, 'c', key);
}

static void touch_application(void *queue, struct str key)
{
    enqueue(queue, 'a', key);
}

static void on_event(void *links, const struct kube_event *e, struct controller_queue *q)
{
    links_event(
        links, e,
        &(struct links_touch){.claim = touch_claim, .application = touch_application, .ctx = q});
}

static int64_t reconcile(void *links, const struct controller_context *ctx, struct str key)
{
    ARENA_AUTO a = arena_new();
    CLEANUP(registry_unrefp) struct registry *kinds = kube_kinds(ctx->client);
    struct volumes_task t = {.ctx = ctx, .arena = a, .kinds = kinds, .links = links};
    struct str letter = STR_NONE;
    t.name = key;
    (void) str_split(&t.name, '/', &letter);
    (void) str_split(&t.name, '/', &t.namespace);
    return str_is(letter, "a") ? ephemeral_reconcile(&t) : binding_reconcile(&t);
}

const struct controller volumes_controller = {.name = "volumes",
                                              .start = start,
                                              .on_event = on_event,
                                              .reconcile = reconcile,
                                              .stop = stop,
                                              .n_workers = N_WORKERS};
