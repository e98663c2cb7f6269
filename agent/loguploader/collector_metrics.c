/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/log.h"
#include "loguploader/collector_internal.h"
#include "loguploader/newlog_metrics.h"

#define TOP_SOURCES 10

/* ---- who wrote how much --------------------------------------------------------------------- */

void collector_metrics_source(struct collector *c, struct str source, size_t n_bytes)
{
    for (size_t i = 0; i < c->n_sources; i++) {
        if (!str_eq(c->sources[i].name, source))
            continue;
        c->sources[i].n_bytes += n_bytes;
        return;
    }
    if (c->n_sources == COLLECTOR_MAX_SOURCES || source.n > COLLECTOR_MAX_WORD_BYTES ||
        !str_is_utf8(source))
        return;
    c->sources = mem_realloc_array(c->sources, c->n_sources + 1, sizeof(*c->sources));
    c->sources[c->n_sources++] =
        (struct collector_source){{mem_dup(source.n ? source.p : "", source.n), source.n}, n_bytes};
}

static void forget_sources(struct collector *c)
{
    for (size_t i = 0; i < c->n_sources; i++)
        mem_free((char *) c->sources[i].name.p);
    mem_free(c->sources);
    c->sources = NULL;
    c->n_sources = 0;
}

static int by_bytes(const void *a, const void *b)
{
    const struct collector_source *x = a, *y = b;
    return x->n_bytes < y->n_bytes ? 1 : x->n_bytes > y->n_bytes ? -1 : 0;
}

static const struct json *top_sources(struct arena *a, struct collector *c)
{
    uint64_t total = 0;
    struct json *top = json_new(a, json_object());
    if (c->n_sources)
        qsort(c->sources, c->n_sources, sizeof(*c->sources), by_bytes);
    for (size_t i = 0; i < c->n_sources; i++)
        total += c->sources[i].n_bytes;
    for (size_t i = 0; i < c->n_sources && i < TOP_SOURCES && total; i++)
        (void) json_set(a, top, arena_str(a, c->sources[i].name),
                        json_int((int64_t) (c->sources[i].n_bytes * 100 / total)));
    return top;
}

/* ---- publishing ----------------------------------------------------------------------------- */

static struct newlog_stream_metrics stream_metrics(const struct collector_counts *n, int is_app)
{
    return (struct newlog_stream_metrics){.gzip_bytes = n->gzip_bytes[is_app],
                                          .n_bytes = n->n_bytes[is_app],
                                          .n_events = n->n_events[is_app]};
}

static void publish(struct collector *c)
{
    ARENA_AUTO a = arena_new();
    const struct collector_counts *n = &c->counts;
    bool is_fast = items_bool(c->node->items, "newlog.allow.fastupload");
    struct newlog_metrics m = {
        .rotate_s =
            c->rotate_s ? c->rotate_s : (is_fast ? COLLECTOR_FAST_ROTATE_S : COLLECTOR_ROTATE_S),
        .oldest_us = n->oldest_ms * 1000,
        .max_gzip = n->max_gzip,
        .average_gzip = n->n_files ? n->total_gzip / n->n_files : 0,
        .n_removed = n->n_removed,
        .n_broken = n->n_broken,
        .n_skipped = n->n_skipped_files,
        .n_kernel = n->n_kernel,
        .n_syslog = n->n_syslog,
        .disk_bytes = n->disk_bytes,
        .top_sources = top_sources(a, c),
        .device = stream_metrics(n, 0),
        .apps = stream_metrics(n, 1),
    };
    struct json *value = newlog_metrics_json(a, &m);
    newlog_metrics_merge(a, value, subscription_get(a, c->uploads, STR("global")));
    int r = publication_publish(c->metrics, STR("global"), value);
    if (r < 0)
        log_warning("metrics of logs are not published, ignoring", LOG_ERRNO(r));
    forget_sources(c);
}

static void on_publishing(void *arg)
{
    struct collector *c = arg;
    c->is_publishing = false;
    publish(c);
}

void collector_metrics_changed(struct collector *c)
{
    if (c->is_publishing || !c->publishing)
        return;
    c->is_publishing = true;
    loop_timer_start(c->publishing, node_jitter_ms(c->node, COLLECTOR_METRICS_S), 0);
}

static void on_upload(void *arg, struct str key, const struct json *value)
{
    (void) key;
    (void) value;
    collector_metrics_changed(arg);
}

static void on_upload_modified(void *arg, struct str key, const struct json *value,
                               const struct json *old)
{
    (void) old;
    on_upload(arg, key, value);
}

int collector_metrics_begin(struct collector *c)
{
    static const struct subscription_handlers handlers = {.on_create = on_upload,
                                                          .on_modify = on_upload_modified};
    const struct pubsub_name own = {.agent = STR("newlogd"), .topic = STR("NewlogMetrics")};
    const struct pubsub_name uploads = {.agent = STR("loguploader"), .topic = STR("NewlogMetrics")};
    int r = publication_new(c->node->pubsub, &own, &c->metrics);
    if (r == 0)
        r = subscription_new(c->node->pubsub, &uploads, &handlers, c, &c->uploads);
    if (r < 0)
        return r;
    c->publishing = loop_timer_new(c->node->loop, on_publishing, c);
    publish(c);
    return 0;
}

void collector_metrics_end(struct collector *c)
{
    loop_timer_free(c->publishing);
    c->publishing = NULL;
    subscription_free(c->uploads);
    publication_free(c->metrics);
    forget_sources(c);
}
