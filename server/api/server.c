/* SPDX-License-Identifier: Apache-2.0 */
#include "api/server.h"

#include <pthread.h>

#include "api/door.h"
#include "base/alloc.h"

/* Threads that read for annexes, and readers that may wait for one. */
#define ANNEX_THREADS 16
#define ANNEX_MAX_WAITING 65536

struct api_server {
    struct door *doors;
    size_t n_doors;
    struct workers *annex_workers;
    struct api *api;
    struct str address;
    const struct health *health;
    pthread_rwlock_t lock;
    struct documents *documents;

    /* Draining: the doors still open, counted on the first loop. */
    size_t n_draining;
    void (*on_drained)(void *arg);
    void *arg;
};

/* ---- documents ---------------------------------------------------------------------------- */

struct documents *documents_new(struct registry *r, const struct discovery_options *o)
{
    struct documents *d = NEW(struct documents);
    atomic_init(&d->refs, 1);
    d->discovery = discovery_new(r, o);
    d->openapi = openapi_new(r);
    return d;
}

struct documents *documents_ref(struct documents *d)
{
    atomic_fetch_add_explicit(&d->refs, 1, memory_order_relaxed);
    return d;
}

void documents_unref(struct documents *d)
{
    if (!d || atomic_fetch_sub_explicit(&d->refs, 1, memory_order_acq_rel) != 1)
        return;
    discovery_unref(d->discovery);
    openapi_unref(d->openapi);
    mem_free(d);
}

struct documents *api_server_documents(struct api_server *s)
{
    (void) pthread_rwlock_rdlock(&s->lock);
    struct documents *d = documents_ref(s->documents);
    (void) pthread_rwlock_unlock(&s->lock);
    return d;
}

static void on_registry(void *ctx, struct registry *r)
{
    struct api_server *s = ctx;
    ARENA_AUTO a = arena_new();
    struct discovery_options o = {.server_address = s->address};
    static const struct str documents[] = {STR("/metrics"), STR("/openapi/v2"), STR("/openapi/v3"),
                                           STR("/version")};
    struct str *health = NULL;
    size_t n_health = health_paths(a, s->health, &health);
    struct str *paths = ARENA_ARRAY(a, struct str, n_health + N_ELEMENTS(documents));
    memcpy(paths, health, n_health * sizeof(*paths));
    memcpy(paths + n_health, documents, sizeof(documents));
    o.n_paths = n_health + N_ELEMENTS(documents);
    o.paths = paths;
    struct documents *fresh = documents_new(r, &o);
    (void) pthread_rwlock_wrlock(&s->lock);
    struct documents *old = s->documents;
    s->documents = fresh;
    (void) pthread_rwlock_unlock(&s->lock);
    documents_unref(old);
}

/* ---- life --------------------------------------------------------------------------------- */

static void door_open(struct api_server *s, const struct api_server_options *o, struct door *d,
                      struct loop *loop)
{
    *d = (struct door){.server = s,
                       .api = o->api,
                       .loop = loop,
                       .health = o->health,
                       .workers = o->workers,
                       .fairness = o->fairness,
                       .annexes = o->annexes,
                       .n_annexes = o->n_annexes,
                       .annex_workers = s->annex_workers,
                       .audit = o->audit,
                       .metrics = o->metrics,
                       .meter = request_meter_new(o->metrics)};
    list_init(&d->annex_streams);
    d->hub = watch_hub_new(s->api, loop);
    d->http = http_server_new(&(struct http_server_options){
        .loop = loop,
        .limits = &http_default_limits,
        .on_request = door_on_request,
        .on_refused = door_on_refused,
        .ctx = d,
    });
}

struct api_server *api_server_new(const struct api_server_options *o)
{
    struct api_server *s = NEW(struct api_server);
    s->api = o->api;
    s->health = o->health;
    s->address = str_range(mem_dup(o->address.p, o->address.n), o->address.n);
    (void) pthread_rwlock_init(&s->lock, NULL);
    api_on_registry(s->api, on_registry, s);
    s->annex_workers = workers_new(ANNEX_THREADS, ANNEX_MAX_WAITING);
    s->n_doors = o->n_loops;
    s->doors = mem_zalloc(sizeof(*s->doors) * s->n_doors);
    for (size_t i = 0; i < s->n_doors; i++)
        door_open(s, o, &s->doors[i], o->loops[i]);
    return s;
}

void *api_server_accept(void *server, struct stream *stream,
                        const struct stream_events **ret_events)
{
    struct api_server *s = server;
    for (size_t i = 0; i < s->n_doors; i++)
        if (s->doors[i].loop == stream_loop(stream))
            return http_server_accept(s->doors[i].http, stream, ret_events);
    return NULL;
}

static void on_door_closed(void *arg)
{
    struct api_server *s = arg;
    if (--s->n_draining == 0)
        s->on_drained(s->arg);
}

static void on_door_drained(void *arg)
{
    struct door *d = arg;
    loop_post(d->server->doors[0].loop, on_door_closed, d->server);
}

static void drain_door(void *arg)
{
    struct door *d = arg;
    watch_hub_drain(d->hub);
    annex_drain(d);
    http_server_drain(d->http, on_door_drained, d);
}

void api_server_drain(struct api_server *s, void (*on_drained)(void *arg), void *arg)
{
    s->on_drained = on_drained;
    s->arg = arg;
    s->n_draining = s->n_doors;
    for (size_t i = 0; i < s->n_doors; i++)
        loop_post(s->doors[i].loop, drain_door, &s->doors[i]);
}

void api_server_close(struct api_server *s)
{
    for (size_t i = 0; s && i < s->n_doors; i++) {
        watch_hub_drain(s->doors[i].hub);
        annex_drain(&s->doors[i]);
        http_server_free(s->doors[i].http);
    }
    api_server_settle(s);
}

void api_server_settle(struct api_server *s)
{
    if (s)
        workers_settle(s->annex_workers);
}

void api_server_free(struct api_server *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_doors; i++) {
        watch_hub_free(s->doors[i].hub);
        door_done(&s->doors[i]);
        request_meter_free(s->doors[i].meter);
    }
    workers_free(s->annex_workers);
    documents_unref(s->documents);
    (void) pthread_rwlock_destroy(&s->lock);
    mem_free((char *) s->address.p);
    mem_free(s->doors);
    mem_free(s);
}
