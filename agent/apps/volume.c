/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes: made of content or blank, kept until nobody names them (volumemgr's VolumeStatus). */
#include <errno.h>
#include <inttypes.h>

#include "apps/apps_internal.h"
#include "base/alloc.h"
#include "base/log.h"

struct volume *volume_find(const struct apps *a, struct str key)
{
    LIST_FOR_EACH (&a->volumes, item) {
        struct volume *v = CONTAINER_OF(item, struct volume, link);
        if (str_is(key, v->key))
            return v;
    }
    return NULL;
}

struct str volume_key(struct arena *arena, const struct json *names_it)
{
    int64_t generation = json_get_int(names_it, STR("GenerationCounter"), 0) +
                         json_get_int(names_it, STR("LocalGenerationCounter"), 0);
    return arena_printf(arena, "%.*s#%" PRId64, STR_ARG(json_get_str(names_it, STR("VolumeID"))),
                        generation);
}

/* A runtime's id knows no '#'. */
static void exchange(char *s, char from, char to)
{
    char *at = strrchr(s, from);
    if (at)
        *at = to;
}

static struct volume *volume_new(struct apps *a, struct str key_or_id)
{
    struct volume *v = NEW(struct volume);
    ARENA_AUTO arena = arena_new_with(128);
    v->key = mem_strdup(arena_strz(arena, key_or_id));
    v->id = mem_strdup(v->key);
    exchange(v->key, '.', '#');
    exchange(v->id, '#', '.');
    list_append(&a->volumes, &v->link);
    return v;
}

void volume_free(struct volume *v)
{
    list_remove(&v->link);
    trouble_done(&v->trouble);
    mem_free(v->key);
    mem_free(v->id);
    mem_free(v->content);
    mem_free(v);
}

void volume_configure(struct apps *a, struct str key, const struct json *config)
{
    struct volume *v = volume_find(a, key);
    if (!config) {
        if (v)
            v->is_configured = false;
        return;
    }
    if (!v)
        v = volume_new(a, key);
    ARENA_AUTO arena = arena_new_with(128);
    v->is_configured = true;
    v->origin = (int) json_get_int(config, STR("VolumeContentOriginType"), 0);
    v->target = (int) json_get_int(config, STR("Target"), 0);
    mem_free(TAKE(v->content));
    if (v->origin == ORIGIN_DOWNLOAD)
        v->content = mem_strdup(arena_strz(arena, json_get_str(config, STR("ContentID"))));
    v->published = 0;
}

void volume_changed(struct apps *a, const struct runtime_status *s)
{
    struct volume *v = NULL;
    LIST_FOR_EACH (&a->volumes, item) {
        if (str_is(s->id, CONTAINER_OF(item, struct volume, link)->id))
            v = CONTAINER_OF(item, struct volume, link);
    }
    if (!v)
        v = volume_new(a, s->id);
    v->state = s->state;
    v->published = 0;
    bool is_wrong = s->error.p && s->state != RUNTIME_INVALID; /* not that its removal ended it */
    trouble_set(&v->trouble, a, is_wrong ? s->error : STR_NONE);
    if (is_wrong)
        trouble_retry(&v->trouble, a, items_int(a->node->items, "timer.download.retry"));
    if (s->state == RUNTIME_CREATED_VOLUME)
        v->created_us = apps_wall_us(a);
    if (s->state == RUNTIME_CREATED_VOLUME || s->state == RUNTIME_INVALID)
        v->trouble.n_times = 0, v->trouble.retry_us = 0;
}

/* ---- what is told of it -------------------------------------------------------------------- */

/* NULL: it needs none, or does not need it any more. */
static const struct content *content_of(const struct apps *a, const struct volume *v)
{
    if (!v->content || (v->state != RUNTIME_INVALID && v->state != RUNTIME_INITIAL))
        return NULL;
    return content_find(a, str_of(v->content));
}

enum sw_state volume_sw_state(const struct apps *a, const struct volume *v)
{
    const struct content *c = content_of(a, v);
    if (c && c->state)
        return sw_state_of(c->state);
    return v->state ? sw_state_of(v->state) : SW_INITIAL;
}

const struct trouble *volume_trouble(const struct apps *a, const struct volume *v)
{
    const struct content *c = content_of(a, v);
    if (v->trouble.text)
        return &v->trouble;
    return c && c->trouble.text ? &c->trouble : NULL;
}

int volume_percent(const struct apps *a, const struct volume *v)
{
    const struct content *c = content_of(a, v);
    if (v->state == RUNTIME_CREATED_VOLUME)
        return 100;
    return c ? c->percent : 0;
}

int volume_format(const struct apps *a, const struct volume *v)
{
    const struct content *c = v->content ? content_find(a, str_of(v->content)) : NULL;
    return c && c->format ? c->format : v->content ? FORMAT_CONTAINER : FORMAT_RAW;
}

struct str volume_location(struct arena *arena, const struct apps *a, const struct volume *v)
{
    if (!v || v->state != RUNTIME_CREATED_VOLUME)
        return STR("");
    struct str path = runtime_volume_path(a->runtime, arena, str_of(v->id));
    return path.p ? path : str_of(v->id);
}

enum { SUB_INITIAL, SUB_PREPARING, SUB_PREPARED, SUB_CREATED };

static uint64_t fingerprint(const struct apps *a, const struct volume *v)
{
    const struct trouble *t = volume_trouble(a, v);
    uint64_t h = apps_hash_int(APPS_HASH, volume_sw_state(a, v));
    h = apps_hash_int(h, (uint64_t) volume_percent(a, v));
    return apps_hash(h, str_of(t ? t->text : NULL));
}

static void publish(struct apps *a, struct volume *v)
{
    static const char *const same[] = {"VolumeID",
                                       "ContentID",
                                       "VolumeContentOriginType",
                                       "MaxVolSize",
                                       "ReadOnly",
                                       "GenerationCounter",
                                       "LocalGenerationCounter",
                                       "Encrypted",
                                       "DisplayName",
                                       "Target",
                                       "CustomMeta",
                                       "IsReplicated"};
    uint64_t now = fingerprint(a, v);
    if (v->published == now)
        return;
    ARENA_AUTO arena = arena_new();
    const struct json *config = topics_get(arena, a, IN_VOLUME, str_of(v->key));
    struct json o = json_object();
    for (size_t i = 0; i < N_ELEMENTS(same); i++)
        put_copy(arena, &o, config, same[i]);
    bool is_there = v->state == RUNTIME_CREATED_VOLUME;
    int64_t size = json_get_int(config, STR("MaxVolSize"), 0);
    put_int(arena, &o, "State", volume_sw_state(a, v));
    put_int(arena, &o, "SubState", is_there ? SUB_CREATED : SUB_INITIAL);
    put_int(arena, &o, "RefCount", 1);
    put_int(arena, &o, "Progress", volume_percent(a, v));
    put_int(arena, &o, "TotalSize", size);
    put_int(arena, &o, "CurrentSize", is_there ? size : 0);
    put_str(arena, &o, "FileLocation", volume_location(arena, a, v));
    put_time(arena, &o, "CreateTime", v->created_us);
    put_int(arena, &o, "ContentFormat", volume_format(a, v));
    put_time(arena, &o, "LastUse", v->created_us);
    put_trouble(arena, &o, volume_trouble(a, v), "types.ContentTreeStatus");
    topics_publish(a, OUT_VOLUME, str_of(v->key), &o);
    v->published = now;
}

/* ---- carrying it out ----------------------------------------------------------------------- */

static void create(struct apps *a, struct volume *v)
{
    ARENA_AUTO arena = arena_new_with(256);
    const struct json *config = topics_get(arena, a, IN_VOLUME, str_of(v->key));
    struct runtime_volume wish = {
        .id = str_of(v->id),
        .content = v->content ? str_of(v->content) : STR_NONE,
        .size_bytes = MAX(json_get_int(config, STR("MaxVolSize"), 0), 0),
    };
    struct str error = STR_NONE;
    int r = v->origin == ORIGIN_BLANK || v->content ? runtime_create(a->runtime, &wish) : -EINVAL;
    if (r == -EINVAL)
        error = arena_printf(arena, "volume of origin type %d: neither blank nor of content",
                             v->origin);
    if (r >= 0 || r == -EBUSY)
        return;
    trouble_set(&v->trouble, a, error.p ? error : str_of(log_errno_text(r)));
    trouble_retry(&v->trouble, a, items_int(a->node->items, "timer.download.retry"));
}

static bool is_used(const struct apps *a, const struct volume *v)
{
    LIST_FOR_EACH (&a->applications, item) {
        const struct application *p = CONTAINER_OF(item, struct application, link);
        /* It runs on others than it names now: this may be one of them. */
        if (application_lives(p) && p->started_volumes != p->volumes_hash)
            return true;
        for (size_t i = 0; application_lives(p) && i < p->n_volumes; i++)
            if (strcmp(p->volumes[i].key, v->key) == 0)
                return true;
    }
    return false;
}

static void forget(struct apps *a, struct volume *v)
{
    if (v->state == RUNTIME_INVALID) {
        ARENA_AUTO arena = arena_new_with(256);
        struct str path = runtime_volume_path(a->runtime, arena, str_of(v->id));
        topics_unpublish(a, OUT_VOLUME, str_of(v->key));
        topics_unpublish(a, OUT_APP_DISK, disks_key(arena, path.p ? path : STR("")));
        volume_free(v);
        apps_reconcile_soon(a); /* its content may go, too */
        return;
    }
    /* -EBUSY: an instance that was started on it still runs; its end brings us back. */
    if (!is_used(a, v))
        (void) runtime_purge(a->runtime, RUNTIME_VOLUME, str_of(v->id));
}

void volume_reconcile(struct apps *a, struct volume *v)
{
    if (!v->is_configured) {
        if (v->origin || a->is_swept)
            forget(a, v);
        return;
    }
    if ((v->state == RUNTIME_INVALID || v->trouble.text) && trouble_is_due(&v->trouble, a))
        create(a, v);
    publish(a, v);
}
