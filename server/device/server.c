/* SPDX-License-Identifier: Apache-2.0 */
#include "device/server.h"

#include "base/alloc.h"
#include "device/figures.h"
#include "device/visit.h"

/* A device may send so many seconds' worth at once: after it was out of touch it has a lot to say.
 */
#define BURST_S 10
#define DEVICE_MAX_BODY_BYTES ((size_t) 4 * 1024 * 1024)

struct device_server {
    struct device_door *doors;
    size_t n_doors;
    struct device_api *api;
    struct http_limits limits;
    size_t max_inflight;
    uint32_t per_second;
    atomic_size_t n_inflight;
    struct figures *figures;

    /* Draining: the doors still open, counted on the first loop. */
    size_t n_draining;
    void (*on_drained)(void *arg);
    void *arg;
};

/* ---- limits -------------------------------------------------------------------------------- */

bool device_server_enter(struct device_server *s, enum device_class class)
{
    /* In percent of the places. */
    static const size_t parts[DEVICE_CLASSES] = {
        [DEVICE_ESSENTIAL] = 100, [DEVICE_INFO] = 85, [DEVICE_METRICS] = 70, [DEVICE_LOGS] = 50};
    size_t n = atomic_fetch_add(&s->n_inflight, 1);
    if (n < s->max_inflight * parts[class] / 100)
        return true;
    (void) atomic_fetch_sub(&s->n_inflight, 1);
    return false;
}

void device_server_leave(struct device_server *s)
{
    (void) atomic_fetch_sub(&s->n_inflight, 1);
}

bool device_server_allows(struct device_server *s, struct device *d)
{
    const struct clock *clock = s->api->clock;
    int64_t now_ms = clock->monotonic_us(clock) / 1000;
    uint32_t burst = s->per_second * BURST_S;
    if (!s->per_second)
        return true;
    (void) pthread_mutex_lock(&d->lock);
    if (!d->tokens_at_ms) {
        d->n_tokens = burst;
        d->tokens_at_ms = now_ms;
    }
    int64_t fresh = (now_ms - d->tokens_at_ms) * s->per_second / 1000;
    if (fresh > 0) {
        d->n_tokens = (uint32_t) MIN(fresh + d->n_tokens, (int64_t) burst);
        d->tokens_at_ms = now_ms;
    }
    bool is_allowed = d->n_tokens > 0;
    d->n_tokens -= is_allowed;
    (void) pthread_mutex_unlock(&d->lock);
    return is_allowed;
}

/* ---- life ---------------------------------------------------------------------------------- */

static void door_open(struct device_server *s, struct device_door *d, struct loop *loop)
{
    *d = (struct device_door){.server = s, .api = s->api, .loop = loop};
    d->http = http_server_new(&(struct http_server_options){
        .loop = loop, .limits = &s->limits, .on_request = device_on_request, .ctx = d});
}

struct device_server *device_server_new(const struct device_server_options *o)
{
    struct device_server *s = NEW(struct device_server);
    s->api = o->api;
    s->limits = http_default_limits;
    s->limits.body_bytes = DEVICE_MAX_BODY_BYTES;
    s->max_inflight = o->max_inflight;
    s->per_second = o->device_per_second;
    s->figures = figures_new(o->metrics, o->api);
    s->n_doors = o->n_loops;
    s->doors = mem_zalloc(sizeof(*s->doors) * s->n_doors);
    for (size_t i = 0; i < s->n_doors; i++)
        door_open(s, &s->doors[i], o->loops[i]);
    return s;
}

void *device_server_accept(void *server, struct stream *stream,
                           const struct stream_events **ret_events)
{
    struct device_server *s = server;
    for (size_t i = 0; i < s->n_doors; i++)
        if (s->doors[i].loop == stream_loop(stream))
            return http_server_accept(s->doors[i].http, stream, ret_events);
    return NULL;
}

static void on_door_closed(void *arg)
{
    struct device_server *s = arg;
    if (--s->n_draining == 0)
        s->on_drained(s->arg);
}

static void on_door_drained(void *arg)
{
    struct device_door *d = arg;
    loop_post(d->server->doors[0].loop, on_door_closed, d->server);
}

static void drain_door(void *arg)
{
    struct device_door *d = arg;
    http_server_drain(d->http, on_door_drained, d);
}

void device_server_drain(struct device_server *s, void (*on_drained)(void *arg), void *arg)
{
    s->on_drained = on_drained;
    s->arg = arg;
    s->n_draining = s->n_doors;
    for (size_t i = 0; i < s->n_doors; i++)
        loop_post(s->doors[i].loop, drain_door, &s->doors[i]);
}

void device_server_close(struct device_server *s)
{
    for (size_t i = 0; s && i < s->n_doors; i++)
        http_server_free(s->doors[i].http);
}

void device_server_free(struct device_server *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_doors; i++)
        device_door_done(&s->doors[i]);
    figures_free(s->figures);
    mem_free(s->doors);
    mem_free(s);
}

struct figures *device_server_figures(struct device_server *s)
{
    return s->figures;
}
