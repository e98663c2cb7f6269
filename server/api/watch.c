/* SPDX-License-Identifier: Apache-2.0 */
#include "api/watch.h"

#include <errno.h>
#include <inttypes.h>

#include "api/codec.h"
#include "api/watch_event.h"
#include "base/alloc.h"
#include "base/random.h"

#define WATCH_TICK_MS 500
#define WATCH_BOOKMARK_MS 60000
#define WATCH_BOOKMARK_BEFORE_END_MS 2000
/* Above this a watcher reads from history at its own pace until it has caught up. */
#define WATCH_AHEAD_BYTES ((size_t) 256 * 1024)

/* All watchers of one collection on this loop. */
struct channel {
    struct str collection; /* owned */
    struct list watchers;
};

struct watch_hub {
    struct api *api;
    struct loop *loop;
    struct store_follower follower;
    bool is_following;
    struct map channels;
    struct loop_timer *timer;
    int64_t seen;        /* newest revision dispatched here */
    uint64_t generation; /* of the registry that watches were last held against */
    size_t n_watchers;
};

/*  INITIAL ── all sent ──> BACKLOG ── none left ──> LIVE
 *                             ^───── too far ahead ──┘        */
enum watcher_state { WATCHER_INITIAL, WATCHER_BACKLOG, WATCHER_LIVE };

struct watcher {
    struct list link;
    struct watch_hub *hub;
    struct http_exchange *exchange;
    struct watch_request request;
    struct watch_meter meter;
    void (*on_end)(void *arg);
    void *arg;
    enum watcher_state state;
    int64_t after; /* events up to this revision have been sent or do not matter */
    struct store_page initial;
    size_t n_initial_sent;
    struct store_event **backlog;
    size_t n_backlog, n_backlog_sent;
    bool has_sent_columns;
    int64_t ends_at_ms, bookmark_at_ms;
};

/* ---- sending ------------------------------------------------------------------------------ */

static void backlog_drop(struct watcher *w)
{
    for (size_t i = w->n_backlog_sent; i < w->n_backlog; i++)
        bytes_unref(&w->backlog[i]->bytes);
    mem_free(TAKE(w->backlog));
    w->n_backlog = w->n_backlog_sent = 0;
}

static void watcher_free(struct watcher *w)
{
    list_remove(&w->link);
    w->hub->n_watchers--;
    backlog_drop(w);
    store_page_done(&w->initial);
    registry_unref(w->request.registry);
    mem_free(w);
}

static void watcher_end(struct watcher *w)
{
    w->on_end(w->arg);
    http_end(w->exchange);
    watcher_free(w);
}

static void on_peer_gone(void *arg)
{
    struct watcher *w = arg;
    w->on_end(w->arg);
    watcher_free(w);
}

static void send_text(struct watcher *w, struct buf *b)
{
    size_t n = b->n;
    struct slice s = slice_adopt(buf_take(b), n);
    http_send(w->exchange, &s, 1);
}

/* The watch cannot go on: the last event says why, then it ends. */
static void watcher_fail(struct watcher *w, struct str message)
{
    ARENA_AUTO a = arena_new();
    struct status st;
    struct buf b = {0};
    status_init(&st, a);
    (void) status_fail(&st, 410, "Expired", "%.*s", STR_ARG(message));
    buf_append_str(&b, STR("{\"type\":\"ERROR\",\"object\":"));
    status_write(&b, &st);
    b.n--; /* its newline */
    buf_append_str(&b, STR("}\n"));
    send_text(w, &b);
    watcher_end(w);
}

static void watcher_expire(struct watcher *w)
{
    ARENA_AUTO a = arena_new();
    watcher_fail(w, arena_printf(a, "too old resource version: %" PRId64 " (%" PRId64 ")", w->after,
                                 store_compacted(api_store(w->hub->api)) + 1));
}

static void send_bookmark(struct watcher *w, bool ends_initial)
{
    struct buf b = {0};
    const struct reply_form *f = &w->request.form;
    bool is_plain = f->media.form == MEDIA_OBJECT;
    ARENA_AUTO a = arena_new();
    struct str version = is_plain ? f->kind->api_version
                                  : arena_printf(a, "meta.k8s.io/%.*s", STR_ARG(f->media.version));
    struct str kind = is_plain                       ? f->kind->kind
                      : f->media.form == MEDIA_TABLE ? STR("Table")
                                                     : STR("PartialObjectMetadata");
    buf_printf(&b,
               "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"%.*s\",\"apiVersion\":\"%.*s\","
               "\"metadata\":{"
               "\"resourceVersion\":\"%" PRId64 "\"",
               STR_ARG(kind), STR_ARG(version), w->after);
    if (ends_initial)
        buf_append_str(&b, STR(",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}"));
    buf_append_char(&b, '}');
    if (f->media.form == MEDIA_TABLE)
        buf_append_str(&b, STR(",\"columnDefinitions\":null,\"rows\":[]"));
    buf_append_str(&b, STR("}}\n"));
    send_text(w, &b);
}

static void send_event(struct watcher *w, struct watch_event_cache *cache,
                       enum watch_event_type type, struct object *o)
{
    struct slice slices[WATCH_EVENT_MAX_SLICES];
    bool with_columns = w->request.form.media.form == MEDIA_TABLE && !w->has_sent_columns;
    size_t n = watch_event_slices(cache, &w->request.form, type, o, with_columns, slices);
    w->has_sent_columns = true;
    size_t n_bytes = 0;
    for (size_t i = 0; i < n; i++)
        n_bytes += slices[i].s.n;
    watch_meter_event(&w->meter, n_bytes);
    http_send(w->exchange, slices, n);
}

static bool is_selected(const struct watcher *w, const struct object *o)
{
    struct str namespace = w->request.namespace;
    if (namespace.n && !str_eq(namespace, object_span(o, o->head.namespace)))
        return false;
    return selector_is_empty(&w->request.options.selector) ||
           selector_matches(&w->request.options.selector, o);
}

/* What a commit means to this watcher: an object may enter or leave what it selects. */
static void deliver(struct watcher *w, struct watch_event_cache *cache, const struct store_event *e)
{
    w->after = e->revision;
    bool was = e->previous && is_selected(w, e->previous);
    bool is = e->type != STORE_DELETED && is_selected(w, e->object);
    if (is)
        send_event(w, cache, was ? WATCH_MODIFIED : WATCH_ADDED, e->object);
    else if (was && e->type == STORE_DELETED)
        send_event(w, cache, WATCH_DELETED, e->object);
    else if (was)
        send_event(w, cache, WATCH_DELETED, watch_event_departed(cache, e));
}

/* ---- catching up -------------------------------------------------------------------------- */

static bool is_ahead(const struct watcher *w)
{
    return http_pending(w->exchange) > WATCH_AHEAD_BYTES;
}

static void send_initial(struct watcher *w)
{
    struct watch_event_cache cache = {0};
    while (w->n_initial_sent < w->initial.n && !is_ahead(w)) {
        send_event(w, &cache, WATCH_ADDED, w->initial.objects[w->n_initial_sent++]);
        watch_event_cache_done(&cache);
    }
    if (w->n_initial_sent < w->initial.n)
        return;
    store_page_done(&w->initial);
    w->state = WATCHER_BACKLOG;
    const struct list_options *o = &w->request.options;
    if (o->has_initial_events && o->sends_initial_events && o->allows_bookmarks)
        send_bookmark(w, true);
}

/* False when the watcher has ended. */
static bool fetch_backlog(struct watcher *w)
{
    struct watch_hub *h = w->hub;
    if (w->after >= h->seen) {
        w->state = WATCHER_LIVE;
        return true;
    }
    backlog_drop(w);
    int r = store_history(api_store(h->api), w->request.collection, w->after, h->seen, &w->backlog,
                          &w->n_backlog);
    if (r < 0) {
        watcher_expire(w);
        return false;
    }
    if (w->n_backlog == 0)
        w->after = h->seen;
    return true;
}

static bool send_backlog(struct watcher *w)
{
    while (w->state == WATCHER_BACKLOG && !is_ahead(w)) {
        if (w->n_backlog_sent == w->n_backlog) {
            if (!fetch_backlog(w))
                return false;
            continue;
        }
        struct watch_event_cache cache = {0};
        struct store_event *e = w->backlog[w->n_backlog_sent++];
        deliver(w, &cache, e);
        watch_event_cache_done(&cache);
        bytes_unref(&e->bytes);
    }
    return true;
}

/* Sends what there is, as far as the peer takes it. */
static void progress(struct watcher *w)
{
    if (w->state == WATCHER_INITIAL)
        send_initial(w);
    if (w->state == WATCHER_BACKLOG)
        (void) send_backlog(w);
}

static void on_drained(void *arg)
{
    progress(arg);
}

/* ---- the hub ------------------------------------------------------------------------------ */

struct batch {
    struct watch_hub *hub;
    int64_t revision;
    size_t n;
    struct store_event *events[];
};

static void dispatch(struct watch_hub *h, struct store_event *e)
{
    struct channel *channel = map_get(&h->channels, e->collection);
    if (!channel)
        return;
    struct watch_event_cache cache = {0};
    LIST_FOR_EACH (&channel->watchers, link) {
        struct watcher *w = CONTAINER_OF(link, struct watcher, link);
        if (w->state != WATCHER_LIVE || e->revision <= w->after)
            continue;
        if (is_ahead(w))
            w->state = WATCHER_BACKLOG;
        else
            deliver(w, &cache, e);
    }
    watch_event_cache_done(&cache);
}

static void on_batch(void *arg)
{
    struct batch *b = arg;
    struct watch_hub *h = b->hub;
    for (size_t i = 0; i < b->n; i++) {
        h->seen = b->events[i]->revision;
        dispatch(h, b->events[i]);
        bytes_unref(&b->events[i]->bytes);
    }
    h->seen = MAX(h->seen, b->revision);
    mem_free(b);
}

/* On the store's thread. */
static void on_store_events(struct store_follower *f, struct store_event *const *events, size_t n,
                            int64_t revision)
{
    struct watch_hub *h = CONTAINER_OF(f, struct watch_hub, follower);
    struct batch *b = mem_alloc(sizeof(*b) + n * sizeof(*b->events));
    b->hub = h;
    b->revision = revision;
    b->n = n;
    for (size_t i = 0; i < n; i++) {
        b->events[i] = events[i];
        bytes_ref(&events[i]->bytes);
    }
    loop_post(h->loop, on_batch, b);
}

static void tick_watcher(struct watcher *w, int64_t now_ms)
{
    if (now_ms >= w->ends_at_ms) {
        watcher_end(w);
        return;
    }
    if (now_ms < w->bookmark_at_ms || w->state != WATCHER_LIVE)
        return;
    w->bookmark_at_ms = now_ms + WATCH_BOOKMARK_MS;
    if (w->request.options.allows_bookmarks && !is_ahead(w)) {
        /* Everything up to here was delivered or does not concern it. */
        w->after = MAX(w->after, w->hub->seen);
        send_bookmark(w, false);
    }
}

static void for_each_watcher(struct watch_hub *h, void (*fn)(struct watcher *w, int64_t now_ms))
{
    int64_t now_ms = loop_now_ms(h->loop);
    size_t position = 0;
    struct map_entry entry;
    while (map_next(&h->channels, &position, &entry)) {
        struct channel *channel = entry.value;
        LIST_FOR_EACH (&channel->watchers, link)
            fn(CONTAINER_OF(link, struct watcher, link), now_ms);
    }
}

/* A kind that is no longer served takes its watches along. */
static void end_unserved(struct watch_hub *h)
{
    CLEANUP(registry_unrefp) struct registry *now = api_registry(h->api);
    if (now->generation == h->generation)
        return;
    h->generation = now->generation;
    size_t position = 0;
    struct map_entry entry;
    while (map_next(&h->channels, &position, &entry)) {
        struct channel *channel = entry.value;
        LIST_FOR_EACH (&channel->watchers, link) {
            struct watcher *w = CONTAINER_OF(link, struct watcher, link);
            const struct kind *k = w->request.form.kind;
            if (!registry_find(now, k->group, k->version, k->plural))
                watcher_end(w);
        }
    }
}

static void on_tick(void *arg)
{
    end_unserved(arg);
    for_each_watcher(arg, tick_watcher);
}

struct watch_hub *watch_hub_new(struct api *api, struct loop *loop)
{
    struct watch_hub *h = NEW(struct watch_hub);
    h->api = api;
    h->loop = loop;
    h->follower.on_events = on_store_events;
    h->timer = loop_timer_new(loop, on_tick, h);
    loop_timer_start(h->timer, WATCH_TICK_MS, WATCH_TICK_MS);
    store_follow(api_store(api), &h->follower, &h->seen);
    h->is_following = true;
    return h;
}

static void end_watcher(struct watcher *w, int64_t now_ms)
{
    (void) now_ms;
    watcher_end(w);
}

void watch_hub_drain(struct watch_hub *h)
{
    /* No event may be posted to a loop that is about to stop. */
    if (h->is_following)
        store_unfollow(api_store(h->api), &h->follower);
    h->is_following = false;
    for_each_watcher(h, end_watcher);
}

void watch_hub_free(struct watch_hub *h)
{
    watch_hub_drain(h);
    loop_timer_free(h->timer);
    size_t position = 0;
    struct map_entry entry;
    while (map_next(&h->channels, &position, &entry)) {
        mem_free((char *) entry.key.p);
        mem_free(entry.value);
    }
    map_done(&h->channels);
    mem_free(h);
}

size_t watch_hub_watchers(const struct watch_hub *h)
{
    return h->n_watchers;
}

/* ---- beginning ---------------------------------------------------------------------------- */

static struct channel *channel_of(struct watch_hub *h, struct str collection)
{
    struct channel *channel = map_get(&h->channels, collection);
    if (!channel) {
        channel = NEW(struct channel);
        list_init(&channel->watchers);
        channel->collection = str_range(mem_dup(collection.p, collection.n), collection.n);
        (void) map_put(&h->channels, channel->collection, channel);
    }
    return channel;
}

static void set_times(struct watcher *w)
{
    int64_t now_ms = loop_now_ms(w->hub->loop);
    int64_t timeout_s = w->request.options.timeout_s;
    if (timeout_s <= 0)
        timeout_s = WATCH_MIN_TIMEOUT_S + (int64_t) random_below(WATCH_MIN_TIMEOUT_S);
    w->ends_at_ms = now_ms + timeout_s * 1000;
    w->bookmark_at_ms =
        MIN(now_ms + WATCH_BOOKMARK_MS, w->ends_at_ms - WATCH_BOOKMARK_BEFORE_END_MS);
}

static void load_initial(struct watcher *w)
{
    struct watch_request *r = &w->request;
    struct store_range range = {.collection = r->collection, .namespace = r->namespace};
    selector_restrict(&r->options.selector, &range);
    (void) store_list(api_store(w->hub->api), &range,
                      &w->initial); /* the newest state always exists */
    w->after = w->initial.revision;
}

static void start_answer(struct http_exchange *x, const struct http_header *headers,
                         size_t n_headers)
{
    static const struct str protocols[] = {{"base64.binary.k8s.io", 20}, {"binary.k8s.io", 13}};
    const struct http_request *r = http_request(x);
    if (!http_request_wants_websocket(r)) {
        http_start(x, 200, headers, n_headers);
        return;
    }
    struct str offered = http_request_header(r, STR("sec-websocket-protocol")), one = STR_NONE,
               chosen = STR("");
    while (str_split(&offered, ',', &one))
        for (size_t i = 0; i < N_ELEMENTS(protocols) && !chosen.n; i++)
            if (str_eq(str_trim(one), protocols[i]))
                chosen = protocols[i];
    http_start_websocket(x, chosen);
}

void watch_begin(struct watch_hub *h, struct http_exchange *x, const struct watch_start *start)
{
    const struct watch_request *request = start->request;
    struct watcher *w = NEW(struct watcher);
    w->hub = h;
    w->exchange = x;
    w->request = *request;
    w->request.registry = registry_ref(request->registry);
    w->meter = start->meter;
    w->on_end = start->on_end;
    w->arg = start->arg;
    h->n_watchers++;
    list_append(&channel_of(h, request->collection)->watchers, &w->link);
    set_times(w);
    start_answer(x, start->headers, start->n_headers);
    http_on_closed(x, on_peer_gone, w);
    http_on_drained(x, on_drained, w);
    if (!h->is_following) { /* drained: the server is about to end */
        watcher_end(w);
        return;
    }
    if (request->is_from_start) {
        w->state = WATCHER_INITIAL;
        load_initial(w);
    } else {
        w->state = WATCHER_BACKLOG;
        /* sendInitialEvents=false without a version begins now. */
        w->after = request->options.revision > 0 ? request->options.revision : h->seen;
    }
    progress(w);
}
