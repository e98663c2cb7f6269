/* SPDX-License-Identifier: Apache-2.0 */
/* How much of the disk volumes use: looked at by a worker now and then (volumemgr's AppDiskMetric).
 */
#include <fts.h>
#include <sys/stat.h>

#include "apps/apps_internal.h"
#include "base/alloc.h"

struct scan {
    struct apps *apps; /* NULL: gone meanwhile */
    struct arena *arena;
    struct scanned {
        struct str key; /* of the volume */
        const char *path;
        int64_t used_bytes;
    } * items;
    size_t n;
};

/* ---- on the worker ------------------------------------------------------------------------- */

static int64_t measure(const char *path)
{
    char *const paths[] = {(char *) (uintptr_t) path, NULL};
    int64_t bytes = 0;
    FTS *f = fts_open(paths, FTS_PHYSICAL | FTS_XDEV | FTS_NOCHDIR, NULL);
    for (FTSENT *e; f && (e = fts_read(f));)
        if (e->fts_info != FTS_DP && e->fts_statp)
            bytes += (int64_t) e->fts_statp->st_blocks * 512;
    if (f)
        (void) fts_close(f);
    return bytes;
}

static void on_worker(void *arg)
{
    struct scan *s = arg;
    for (size_t i = 0; i < s->n; i++)
        s->items[i].used_bytes = measure(s->items[i].path);
}

/* ---- on the loop --------------------------------------------------------------------------- */

struct str disks_key(struct arena *arena, struct str path)
{
    char *key = arena_strz(arena, str_from(path, path.n && path.p[0] == '/'));
    for (char *c = key; *c; c++)
        if (*c == '/')
            *c = '-';
    return str_of(key);
}

static void publish(struct apps *a, struct arena *arena, const struct scanned *v)
{
    const struct json *config = topics_get(arena, a, IN_VOLUME, v->key);
    const struct volume *volume = volume_find(a, v->key);
    struct json o = json_object();
    if (!volume || volume->state != RUNTIME_CREATED_VOLUME)
        return;
    int64_t provisioned = json_get_int(config, STR("MaxVolSize"), 0);
    put_str(arena, &o, "DiskPath", str_of(v->path));
    put_int(arena, &o, "ProvisionedBytes", MAX(provisioned, v->used_bytes));
    put_int(arena, &o, "UsedBytes", v->used_bytes);
    put_str(arena, &o, "DiskType", STR("CONTAINER"));
    put_bool(arena, &o, "Dirty", false);
    topics_publish(a, OUT_APP_DISK, disks_key(arena, str_of(v->path)), &o);
}

static void on_done(void *arg)
{
    struct scan *s = arg;
    for (size_t i = 0; s->apps && i < s->n; i++)
        publish(s->apps, s->arena, &s->items[i]);
    if (s->apps)
        s->apps->scan = NULL;
    arena_free(s->arena);
    mem_free(s);
}

void disks_scan(struct apps *a)
{
    int64_t interval_s = items_int(a->node->items, "timer.metric.diskscan.interval");
    bool is_due = !a->disks_us || apps_now_us(a) - a->disks_us >= interval_s * 1000000;
    if (a->scan || !is_due)
        return;
    struct scan *s = NEW(struct scan);
    s->apps = a;
    s->arena = arena_new_with(1024);
    LIST_FOR_EACH (&a->volumes, item) {
        const struct volume *v = CONTAINER_OF(item, struct volume, link);
        struct str path = runtime_volume_path(a->runtime, s->arena, str_of(v->id));
        if (!path.p || !v->is_configured || v->state != RUNTIME_CREATED_VOLUME)
            continue;
        s->items = arena_grow(s->arena, s->items, s->n, sizeof(*s->items));
        s->items[s->n++] =
            (struct scanned){.key = arena_str(s->arena, str_of(v->key)), .path = path.p};
    }
    if (!s->n) {
        arena_free(s->arena);
        mem_free(s);
        return;
    }
    a->scan = s;
    a->disks_us = apps_now_us(a);
    loop_work(a->node->loop, on_worker, on_done, s);
}

void disks_stop(struct apps *a)
{
    if (a->scan)
        a->scan->apps = NULL;
}
