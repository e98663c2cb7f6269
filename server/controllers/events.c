/* SPDX-License-Identifier: Apache-2.0 */
/* Events are forgotten an hour after the last thing they tell of. Each waits in the queue for its
 * own time. */
#include "controllers/events.h"

#include <errno.h>

#include "controllers/objects.h"

#define EVENT_TTL_US ((int64_t) 3600 * 1000000)

/* Keys are "namespace/name". */
static struct str key_of(struct arena *a, const struct kube_event *e)
{
    return arena_printf(a, "%.*s/%.*s", STR_ARG(e->namespace), STR_ARG(e->name));
}

static void take_newer(struct str text, int64_t now_us, int64_t *newest_us)
{
    int64_t at_us = 0;
    /* A time that has not come yet is some writer's wrong clock. */
    if (text.n && clock_parse(text, &at_us) == 0 && at_us <= now_us)
        *newest_us = MAX(*newest_us, at_us);
}

/* How long the event still has to live; <= 0: it is over. */
static int64_t remaining_us(const struct json *event, int64_t now_us)
{
    int64_t newest_us = 0;
    take_newer(object_meta_text(event, "creationTimestamp"), now_us, &newest_us);
    take_newer(json_get_str(event, STR("lastTimestamp")), now_us, &newest_us);
    take_newer(json_get_str(event, STR("eventTime")), now_us, &newest_us);
    take_newer(json_str(json_at(event, "series", "lastObservedTime", NULL)), now_us, &newest_us);
    return newest_us + EVENT_TTL_US - now_us;
}

static int64_t ms_until(int64_t us)
{
    return us <= 0 ? 0 : us / 1000 + 1;
}

static void *start(const struct controller_context *ctx, struct controller_queue *q)
{
    (void) q;
    return (void *) ctx->clock;
}

/* A key that waits keeps its time: a later version only postpones the end, and reconcile() sees
 * that. */
static void on_event(void *state, const struct kube_event *e, struct controller_queue *q)
{
    const struct clock *clock = state;
    if (!str_is(e->collection, "events") || e->type == KUBE_DELETED)
        return;
    ARENA_AUTO a = arena_new();
    const struct json *event = kube_event_object(e, a);
    controller_enqueue(q, key_of(a, e), ms_until(remaining_us(event, clock->wall_us(clock))));
}

static int64_t reconcile(void *state, const struct controller_context *ctx, struct str key)
{
    (void) state;
    ARENA_AUTO a = arena_new();
    CLEANUP(registry_unrefp) struct registry *kinds = kube_kinds(ctx->client);
    ptrdiff_t slash = str_find(key, '/');
    struct object_place at = {registry_find(kinds, STR(""), STR("v1"), STR("events")),
                              str_sub(key, 0, (size_t) slash), str_from(key, (size_t) slash + 1)};
    struct json *event = NULL;
    int r = objects_get(ctx, a, &at, &event);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    int64_t left_us = remaining_us(event, ctx->clock->wall_us(ctx->clock));
    if (left_us > 0)
        return ms_until(left_us);
    struct delete_terms terms = {.uid = object_meta_text(event, "uid"),
                                 .revision = object_meta_text(event, "resourceVersion")};
    return objects_delete(ctx, a, &at, &terms);
}

const struct controller events_controller = {
    .name = "events", .start = start, .on_event = on_event, .reconcile = reconcile};
