/* SPDX-License-Identifier: Apache-2.0 */
#include "api/client.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "api/admission/references.h"
#include "api/call_blocking.h"
#include "api/codec.h"
#include "base/alloc.h"

struct local_client {
    struct kube_client client;
    struct api *api;
    char *manager;

    /* The watch: the store's thread appends, our own delivers. */
    struct store_follower follower;
    bool is_watching, is_stopping;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct store_event **queue;
    size_t n_queue, capacity;
    void (*on_event)(void *ctx, const struct kube_event *e);
    void *ctx;
    struct kube_event_memo memo; /* our own thread's */
};

/* ---- requests ----------------------------------------------------------------------------- */

static struct json *reply_value(struct arena *a, const struct call_reply *r)
{
    if (r->value)
        return r->value;
    BUF_AUTO b = {0};
    for (size_t i = 0; i < r->n_slices; i++)
        buf_append_str(&b, r->body[i].s);
    return json_parse_quick(a, buf_str(&b));
}

static int error_of(int http_code)
{
    switch (http_code) {
    case 404:
        return -ENOENT;
    case 409:
        return -ESTALE;
    case 403:
        return -EPERM;
    case 507:
        return -ENOSPC;
    default:
        return -EINVAL;
    }
}

/* manager: what stands before the slash in the user agent of a remote client. */
static int run(struct call *c, const struct kube_request *r, struct str manager,
               struct json **ret_object, struct status *st)
{
    const struct user user = c->in.user;
    c->in = (struct call_input){
        .user = user,
        .path = {.is_resource = true,
                 .group = r->group,
                 .version = r->version,
                 .resource = r->resource,
                 .namespace = r->namespace,
                 .name = r->name,
                 .subresource = r->subresource},
        .query = request_parse_query(c->arena, r->query),
        .verb = r->verb,
        .content_type = r->content_type.n ? r->content_type : STR("application/json"),
        .user_agent = manager,
        .body = STR(""),
        .value = r->body,
    };
    c->takes_value = ret_object != NULL;
    call_run_blocking(c);
    int result = 0;
    if (c->status.code) {
        *st = c->status;
        result = str_is(st->reason, "AlreadyExists") ? -EEXIST : error_of(st->code);
    } else if (ret_object) {
        *ret_object = reply_value(c->arena, &c->reply);
    }
    call_done(c);
    return result;
}

static int local_request(struct kube_client *client, struct arena *a, const struct kube_request *r,
                         struct json **ret_object, struct status *st)
{
    static const struct str masters[] = {{"system:masters", 14}};
    struct local_client *lc = CONTAINER_OF(client, struct local_client, client);
    struct call c = {
        .api = lc->api, .arena = a, .in = {.user = {STR("system:apiserver"), masters, 1}}};
    return run(&c, r, str_of(lc->manager), ret_object, st);
}

int kube_try(struct api *api, struct arena *a, const struct kube_trial *t,
             const struct kube_request *r, struct json **ret_object, struct status *st)
{
    struct call c = {.api = api, .arena = a, .overlay = t->overlay, .in = {.user = *t->user}};
    return run(&c, r, t->manager, ret_object, st);
}

/* ---- watching ----------------------------------------------------------------------------- */

/* managedFields are more than half of the values of many an object, and nothing to who hears of it.
 */
static struct json *parse_heard(struct arena *a, struct str text)
{
    return json_parse_quick(a, codec_without_managed(a, text));
}

static void deliver(struct local_client *lc, enum kube_event_type type, struct str collection,
                    const struct object *o)
{
    struct kube_event e = {
        .type = type,
        .collection = collection,
        .namespace = object_span(o, o->head.namespace),
        .name = object_span(o, o->head.name),
        .uid = object_span(o, o->head.uid),
        .is_deleting = o->head.is_deleting,
        .has_owners = o->head.has_owners,
        .text = object_text(o),
        .memo = &lc->memo,
    };
    lc->on_event(lc->ctx, &e);
    if (lc->memo.object)
        arena_reset(lc->memo.arena);
    lc->memo.object = NULL;
}

/* On the store's thread. */
static void on_store_events(struct store_follower *f, struct store_event *const *events, size_t n,
                            int64_t revision)
{
    struct local_client *lc = CONTAINER_OF(f, struct local_client, follower);
    (void) revision;
    (void) pthread_mutex_lock(&lc->lock);
    if (lc->n_queue + n > lc->capacity) {
        lc->capacity = MAX(lc->capacity * 2, lc->n_queue + n);
        lc->queue = mem_realloc_array(lc->queue, lc->capacity, sizeof(struct store_event *));
    }
    for (size_t i = 0; i < n; i++) {
        bytes_ref(&events[i]->bytes);
        lc->queue[lc->n_queue++] = events[i];
    }
    (void) pthread_cond_signal(&lc->wake);
    (void) pthread_mutex_unlock(&lc->lock);
}

static void deliver_existing(struct local_client *lc)
{
    CLEANUP(registry_unrefp) struct registry *r = api_registry(lc->api);
    size_t position = 0;
    struct map_entry entry;
    while (map_next(&r->collections, &position, &entry)) {
        CLEANUP(store_page_done) struct store_page page = {0};
        struct store_range range = {.collection = entry.key};
        if (store_list(api_store(lc->api), &range, &page) < 0)
            continue;
        for (size_t i = 0; i < page.n; i++)
            deliver(lc, KUBE_ADDED, entry.key, page.objects[i]);
    }
}

/* Takes everything queued, waiting for something if asked to; false when the client is going away.
 */
static bool take_queue(struct local_client *lc, bool may_wait, struct store_event ***ret_events,
                       size_t *ret_n)
{
    (void) pthread_mutex_lock(&lc->lock);
    while (may_wait && !lc->n_queue && !lc->is_stopping)
        (void) pthread_cond_wait(&lc->wake, &lc->lock);
    bool goes_on = !lc->is_stopping;
    *ret_events = TAKE(lc->queue);
    *ret_n = lc->n_queue;
    lc->n_queue = lc->capacity = 0;
    (void) pthread_mutex_unlock(&lc->lock);
    return goes_on;
}

/* False when the client is going away. */
static bool deliver_queue(struct local_client *lc, bool may_wait)
{
    static const enum kube_event_type types[] = {[STORE_ADDED] = KUBE_ADDED,
                                                 [STORE_MODIFIED] = KUBE_MODIFIED,
                                                 [STORE_DELETED] = KUBE_DELETED};
    struct store_event **events = NULL;
    size_t n = 0;
    bool goes_on = take_queue(lc, may_wait, &events, &n);
    for (size_t i = 0; i < n; i++) {
        if (goes_on)
            deliver(lc, types[events[i]->type], events[i]->collection, events[i]->object);
        bytes_unref(&events[i]->bytes);
    }
    mem_free(events);
    return goes_on;
}

static void *watch_thread(void *arg)
{
    struct local_client *lc = arg;
    deliver_existing(lc);
    /* The kinds were listed one after the other: what changed meanwhile belongs to the beginning,
     * too. */
    bool goes_on = deliver_queue(lc, /* may_wait= */ false);
    if (goes_on)
        lc->on_event(lc->ctx, &(struct kube_event){.type = KUBE_SYNCED});
    while (goes_on)
        goes_on = deliver_queue(lc, /* may_wait= */ true);
    return NULL;
}

static void local_watch(struct kube_client *client,
                        void (*on_event)(void *ctx, const struct kube_event *e), void *ctx)
{
    struct local_client *lc = CONTAINER_OF(client, struct local_client, client);
    int64_t ignored = 0;
    lc->on_event = on_event;
    lc->ctx = ctx;
    lc->is_watching = true;
    lc->follower.on_events = on_store_events;
    store_follow(api_store(lc->api), &lc->follower, &ignored);
    if (pthread_create(&lc->thread, NULL, watch_thread, lc) != 0)
        abort();
}

static void local_free(struct kube_client *client)
{
    struct local_client *lc = CONTAINER_OF(client, struct local_client, client);
    if (lc->is_watching) {
        store_unfollow(api_store(lc->api), &lc->follower);
        (void) pthread_mutex_lock(&lc->lock);
        lc->is_stopping = true;
        (void) pthread_cond_signal(&lc->wake);
        (void) pthread_mutex_unlock(&lc->lock);
        (void) pthread_join(lc->thread, NULL);
    }
    (void) pthread_mutex_destroy(&lc->lock);
    (void) pthread_cond_destroy(&lc->wake);
    arena_free(lc->memo.arena);
    mem_free(lc->manager);
    mem_free(lc);
}

static struct registry *local_kinds(struct kube_client *client)
{
    return api_registry(CONTAINER_OF(client, struct local_client, client)->api);
}

static void local_refresh_kinds(struct kube_client *client)
{
    api_refresh_registry(CONTAINER_OF(client, struct local_client, client)->api);
}

static size_t local_users(struct kube_client *client, struct arena *a, struct str key, size_t max,
                          struct str **ret_keys)
{
    struct local_client *lc = CONTAINER_OF(client, struct local_client, client);
    return references_users(api_references(lc->api), a, key, max, ret_keys);
}

struct kube_client *kube_client_local(struct api *api, const char *manager)
{
    static const struct kube_client_ops ops = {.request = local_request,
                                               .watch = local_watch,
                                               .free = local_free,
                                               .kinds = local_kinds,
                                               .refresh_kinds = local_refresh_kinds,
                                               .users = local_users};
    struct local_client *lc = NEW(struct local_client);
    lc->client.ops = &ops;
    lc->api = api;
    lc->manager = mem_strdup(manager);
    lc->memo = (struct kube_event_memo){.arena = arena_new(), .parse = parse_heard};
    (void) pthread_mutex_init(&lc->lock, NULL);
    (void) pthread_cond_init(&lc->wake, NULL);
    return &lc->client;
}
