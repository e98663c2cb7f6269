/* SPDX-License-Identifier: Apache-2.0 */
#include "msrv/usage.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/map.h"
#include "loop/loop.h"
#include "pubsub/publication.h"

#define DELAY_MS 10000

struct usage_entry {
    struct arena *arena; /* of its strings */
    struct str key, app, patch, version;
    int64_t n_calls, n_downloads;
    bool is_changed;
};

struct usage {
    struct publication *publication;
    struct loop_timer *timer;
    int64_t delay_ms;
    bool is_waiting;
    struct map entries;
};

static void on_timeout(void *arg)
{
    usage_publish(arg);
}

int usage_new(struct pubsub *ps, struct loop *loop, int64_t delay_ms, struct usage **ret)
{
    struct pubsub_name name = {
        .agent = STR("msrv"), .topic = STR("PatchEnvelopeUsage"), .is_persistent = true};
    struct usage *u = NEW(struct usage);
    int r = publication_new(ps, &name, &u->publication);
    if (r < 0) {
        mem_free(u);
        return r;
    }
    u->timer = loop_timer_new(loop, on_timeout, u);
    u->delay_ms = delay_ms ? delay_ms : DELAY_MS;
    *ret = u;
    return 0;
}

void usage_free(struct usage *u)
{
    if (!u)
        return;
    usage_publish(u);
    size_t position = 0;
    struct map_entry item;
    while (map_next(&u->entries, &position, &item)) {
        struct usage_entry *e = item.value;
        arena_free(e->arena);
        mem_free(e);
    }
    map_done(&u->entries);
    loop_timer_free(u->timer);
    publication_free(u->publication);
    mem_free(u);
}

static void publish_entry(struct usage *u, struct usage_entry *e)
{
    ARENA_AUTO a = arena_new_with(1024);
    struct json value = json_object();
    json_append_member(a, &value, STR("AppUUID"), json_string(e->app));
    json_append_member(a, &value, STR("PatchID"), json_string(e->patch));
    json_append_member(a, &value, STR("Version"), json_string(e->version));
    json_append_member(a, &value, STR("PatchAPICallCount"), json_int(e->n_calls));
    json_append_member(a, &value, STR("DownloadCount"), json_int(e->n_downloads));
    e->is_changed = false;
    int r = publication_publish(u->publication, e->key, &value);
    if (r < 0)
        log_warning("use of a patch cannot be published, ignoring", LOG_STR("patch", e->patch),
                    LOG_ERRNO(r));
}

void usage_publish(struct usage *u)
{
    size_t position = 0;
    struct map_entry item;
    u->is_waiting = false;
    while (map_next(&u->entries, &position, &item)) {
        struct usage_entry *e = item.value;
        if (e->is_changed)
            publish_entry(u, e);
    }
}

/* With what an earlier life has counted. */
static struct usage_entry *add_entry(struct usage *u, struct str key, const struct msrv_app *app,
                                     const struct msrv_envelope *envelope)
{
    struct usage_entry *e = NEW(struct usage_entry);
    e->arena = arena_new_with(512);
    e->key = arena_str(e->arena, key);
    e->app = arena_str(e->arena, app->uuid);
    e->patch = arena_str(e->arena, envelope->id);
    e->version = arena_str(e->arena, envelope->version.p ? envelope->version : STR(""));
    ARENA_AUTO a = arena_new_with(1024);
    const struct json *earlier = publication_get(a, u->publication, key);
    e->n_calls = json_get_int(earlier, STR("PatchAPICallCount"), 0);
    e->n_downloads = json_get_int(earlier, STR("DownloadCount"), 0);
    (void) map_put(&u->entries, e->key, e);
    return e;
}

void usage_count(struct usage *u, const struct msrv_app *app, const struct msrv_envelope *envelope,
                 enum msrv_patch_use use)
{
    ARENA_AUTO a = arena_new_with(512);
    struct str key =
        arena_printf(a, "patchEnvelopeUsage:%.*s-v-%.*s-app-%.*s", STR_ARG(envelope->id),
                     STR_ARG(envelope->version), STR_ARG(app->uuid));
    struct usage_entry *e = map_get(&u->entries, key);
    if (!e && u->entries.n_items >= USAGE_MAX_ENTRIES)
        return;
    if (!e)
        e = add_entry(u, key, app, envelope);
    e->n_calls += use == MSRV_PATCH_DESCRIBED;
    e->n_downloads += use == MSRV_PATCH_DOWNLOADED;
    e->is_changed = true;
    if (!u->is_waiting)
        loop_timer_start(u->timer, u->delay_ms, 0);
    u->is_waiting = true;
}
