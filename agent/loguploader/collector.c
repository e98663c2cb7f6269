/* SPDX-License-Identifier: Apache-2.0 */
#include "loguploader/collector.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "loguploader/collector_internal.h"
#include "loguploader/loginput.h"

/* newlogd syncs a raw file every 30 lines; here no more often than once a second, on a worker. */
#define SYNC_LINES 30
#define SYNC_US ((int64_t) 1000000)
#define RETRY_MS 5000 /* when rotation is due and was not possible */

static int64_t now_us(const struct collector *c)
{
    return c->node->clock->monotonic_us(c->node->clock);
}

/* ---- streams -------------------------------------------------------------------------------- */

static void free_stream(struct collector *c, struct collector_stream *s)
{
    list_remove(&s->link);
    mem_free(s->name);
    mem_free(s);
    c->n_streams--;
}

/* An application that nobody has heard of for longest begins its message ids anew. */
static void forget_one(struct collector *c)
{
    LIST_FOR_EACH (&c->streams, item) {
        struct collector_stream *s = CONTAINER_OF(item, struct collector_stream, link);
        if (uuid_is_zero(&s->app) || s->raw_ms)
            continue;
        free_stream(c, s);
        return;
    }
}

struct collector_stream *collector_stream_of(struct collector *c, const struct uuid *app)
{
    LIST_FOR_EACH (&c->streams, item) {
        struct collector_stream *s = CONTAINER_OF(item, struct collector_stream, link);
        if (!uuid_eq(&s->app, app))
            continue;
        if (!uuid_is_zero(app)) { /* in the order of their use, behind the device */
            list_remove(&s->link);
            list_append(&c->streams, &s->link);
        }
        return s;
    }
    if (c->n_streams > COLLECTOR_MAX_APPS)
        forget_one(c);
    struct collector_stream *s = NEW(struct collector_stream);
    s->app = *app;
    s->next_msgid = 1;
    list_append(&c->streams, &s->link);
    c->n_streams++;
    return s;
}

static struct logfile raw_of(const struct collector_stream *s)
{
    return (struct logfile){.is_app = !uuid_is_zero(&s->app),
                            .is_skipped = s->is_raw_skipped,
                            .app = s->app,
                            .time_ms = s->raw_ms};
}

/* Later than any name given before, whatever the clock says. */
static int64_t next_ms(struct collector *c)
{
    c->last_ms = MAX(c->last_ms + 1, c->node->clock->wall_us(c->node->clock) / 1000);
    return c->last_ms;
}

/* ---- rotation ------------------------------------------------------------------------------- */

static int64_t rotate_us(const struct collector *c)
{
    int64_t s = c->rotate_s;
    if (!s)
        s = items_bool(c->node->items, "newlog.allow.fastupload") ? COLLECTOR_FAST_ROTATE_S
                                                                  : COLLECTOR_ROTATE_S;
    return s * 1000000;
}

static void arm(struct collector *c)
{
    int64_t first = INT64_MAX;
    LIST_FOR_EACH (&c->streams, item) {
        const struct collector_stream *s = CONTAINER_OF(item, struct collector_stream, link);
        if (s->raw_ms)
            first = MIN(first, s->opened_us);
    }
    if (first == INT64_MAX) {
        loop_timer_stop(c->rotation);
        return;
    }
    int64_t left_us = first + rotate_us(c) - now_us(c);
    loop_timer_start(c->rotation, left_us > 0 ? left_us / 1000 + 1 : RETRY_MS, 0);
}

static struct pack pack_of(const struct collector *c)
{
    return (struct pack){.root = c->root,
                         .syncs = !c->node->is_simulated,
                         .created_s = c->node->clock->wall_us(c->node->clock) / 1000000};
}

static void count_packed(struct collector *c, const struct logfile *f,
                         const struct pack_result *packed)
{
    struct collector_counts *n = &c->counts;
    n->gzip_bytes[f->is_app] += packed->n_bytes;
    n->n_files += packed->n_files;
    n->total_gzip += packed->n_bytes;
    n->max_gzip = MAX(n->max_gzip, packed->max_bytes);
    n->n_broken += packed->n_files > 1 ? packed->n_files - 1 : 0;
    n->n_skipped_files += f->is_skipped ? packed->n_files : 0;
    c->last_ms = MAX(c->last_ms, packed->last_ms);
    collector_quota_check(c, packed->n_bytes, packed->n_files);
    collector_metrics_changed(c);
}

/* A file of an earlier life may be all that knows its last id. */
static int remember_id(void *arg, const struct logfile *f, uint64_t last_msgid)
{
    struct collector *c = arg;
    struct collector_stream *s = collector_stream_of(c, &f->app);
    if (last_msgid < s->next_msgid)
        return 0;
    s->next_msgid = last_msgid + 1;
    return collector_state_save(c);
}

static int pack_raw(struct collector *c, const struct logfile *f, bool is_checked,
                    struct pack_result *ret)
{
    struct pack p = pack_of(c);
    p.on_commit = remember_id;
    p.arg = c;
    int r = pack_file(&p, f, is_checked, ret);
    if (r < 0) {
        c->is_unfinished = true;
        log_error("cannot pack log lines; retrying with the next file",
                  LOG_TEXT("directory", c->root), LOG_ERRNO(r));
        return r;
    }
    if (ret->n_damaged)
        log_warning("log lines were damaged; ignoring them", LOG_TEXT("directory", c->root),
                    LOG_INT("lines", (int64_t) ret->n_damaged));
    count_packed(c, f, ret);
    return 0;
}

static bool is_open(struct collector *c, const struct logfile *f)
{
    LIST_FOR_EACH (&c->streams, item) {
        const struct collector_stream *s = CONTAINER_OF(item, struct collector_stream, link);
        if (s->raw_ms && s->raw_ms == f->time_ms && uuid_eq(&s->app, &f->app))
            return true;
    }
    return false;
}

static void recover_raw(struct collector *c, const struct pack *p, struct pack_raw *raw)
{
    struct pack_result packed = {0};
    if (raw->file.time_ms == 0 && pack_adopt(p, raw, next_ms(c)) < 0)
        return;
    c->last_ms = MAX(c->last_ms, raw->file.time_ms);
    if (pack_raw(c, &raw->file, /* is_checked= */ true, &packed) == -EFBIG) {
        ARENA_AUTO a = arena_new();
        (void) logfiles_move(c->root, LOG_COLLECT, LOG_FAILED, logfile_raw_name(a, &raw->file),
                             p->syncs);
    }
}

/* What an earlier life, or an attempt without success, has left. */
static int recover(struct collector *c)
{
    ARENA_AUTO a = arena_new();
    struct pack p = pack_of(c);
    struct pack_raw *raws;
    size_t n;
    c->is_unfinished = false;
    int r = pack_recover(&p);
    if (r == 0)
        r = pack_list(a, c->root, &raws, &n);
    if (r < 0) {
        c->is_unfinished = true;
        return r;
    }
    for (size_t i = 0; i < n; i++)
        c->last_ms = MAX(c->last_ms, raws[i].file.time_ms);
    for (size_t i = 0; i < n; i++)
        if (!is_open(c, &raws[i].file))
            recover_raw(c, &p, &raws[i]);
    return 0;
}

/* The message ids are safe already. */
static void close_stream(struct collector *c, struct collector_stream *s)
{
    struct pack_result packed = {0};
    struct logfile f = raw_of(s);
    s->raw_ms = 0;
    s->raw_bytes = 0;
    (void) pack_raw(c, &f, /* is_checked= */ false, &packed);
}

static bool save_state(struct collector *c)
{
    int r = collector_state_save(c);
    if (r < 0)
        log_error("cannot keep the ids of log messages; the files stay as they are",
                  LOG_TEXT("directory", c->root), LOG_ERRNO(r));
    return r == 0;
}

void collector_rotate_stream(struct collector *c, struct collector_stream *s)
{
    if (!s->raw_ms || !save_state(c))
        return;
    close_stream(c, s);
    arm(c);
}

static void rotate_older(struct collector *c, int64_t age_us)
{
    int64_t now = now_us(c);
    bool is_saved = false;
    LIST_FOR_EACH (&c->streams, item) {
        struct collector_stream *s = CONTAINER_OF(item, struct collector_stream, link);
        if (!s->raw_ms || now - s->opened_us < age_us)
            continue;
        if (!is_saved && !save_state(c))
            break;
        is_saved = true;
        close_stream(c, s);
    }
    if (c->is_unfinished && is_saved)
        (void) recover(c);
}

void collector_rotate(struct collector *c)
{
    rotate_older(c, /* age_us= */ 0);
    arm(c);
}

static void on_rotation(void *arg)
{
    struct collector *c = arg;
    rotate_older(c, rotate_us(c));
    arm(c);
}

/* ---- lines ---------------------------------------------------------------------------------- */

static void sync_file(void *arg)
{
    int *fd = arg;
    (void) fdatasync(*fd);
    (void) close(*fd);
}

/* Takes the fd over, or closes it. */
static void sync_behind(struct collector *c, struct collector_stream *s, int fd)
{
    int64_t now = now_us(c);
    if (c->node->is_simulated || ++s->n_unsynced < SYNC_LINES || now - c->synced_us < SYNC_US) {
        (void) close(fd);
        return;
    }
    s->n_unsynced = 0;
    c->synced_us = now;
    int *job = mem_dup(&fd, sizeof(fd));
    loop_work(c->node->loop, sync_file, mem_free, job);
}

static int append(struct collector *c, struct collector_stream *s, struct str bytes)
{
    ARENA_AUTO a = arena_new();
    struct logfile f = raw_of(s);
    const char *path = logfiles_path(a, c->root, LOG_COLLECT, logfile_raw_name(a, &f));
    /* Not held open: thousands of devices have thousands of these. */
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        int error = -errno;
        s->raw_ms = s->raw_bytes ? s->raw_ms : 0;
        return error;
    }
    ssize_t n = write(fd, bytes.p, bytes.n);
    if (n == (ssize_t) bytes.n) {
        s->raw_bytes += bytes.n;
        sync_behind(c, s, fd);
        return 0;
    }
    int r = n < 0 ? -errno : -ENOSPC;
    /* A piece of a line would spoil the next one: that goes into another file then. */
    if (s->raw_bytes == 0 || (n > 0 && ftruncate(fd, (off_t) s->raw_bytes) < 0)) {
        s->raw_ms = 0;
        c->is_unfinished = true;
    }
    (void) close(fd);
    return r;
}

static void open_raw(struct collector *c, struct collector_stream *s, struct buf *to)
{
    s->raw_ms = next_ms(c);
    s->raw_bytes = 0;
    s->is_raw_skipped = s->is_skipped;
    s->opened_us = now_us(c);
    collector_encode_head(to, c, s);
}

static void take_name(struct collector_stream *s, struct str name)
{
    if (name.n == 0 || (s->name && str_is(name, s->name)))
        return;
    mem_free(s->name);
    s->name = str_dup(name);
}

static int add_to(struct collector *c, struct collector_stream *s,
                  const struct collector_line *line)
{
    BUF_AUTO text = {0};
    bool was_open = s->raw_ms != 0;
    struct collector_line complete = *line;
    if (!complete.wall_us)
        complete.wall_us = c->node->clock->wall_us(c->node->clock);
    if (!was_open)
        open_raw(c, s, &text);
    size_t n_head = text.n;
    collector_encode(&text, &complete, s->next_msgid);
    int r = append(c, s, buf_str(&text));
    if (r < 0)
        return r;
    s->next_msgid++;
    bool is_app = !uuid_is_zero(&s->app);
    c->counts.n_events[is_app]++;
    c->counts.n_bytes[is_app] += text.n - n_head;
    if (!is_app)
        collector_metrics_source(c, line->source, text.n - n_head);
    if (s->raw_bytes >= COLLECTOR_MAX_RAW_BYTES)
        collector_rotate_stream(c, s);
    else if (!was_open)
        arm(c);
    return 0;
}

static bool is_wanted(const struct collector *c, const struct collector_line *line)
{
    const struct items *i = c->node->items;
    const int level = loginput_level(line->severity);
    return !line->is_of_service ||
           (level <= loginput_level(items_agent_level(i, line->source, /* is_remote= */ false)) &&
            level <= loginput_level(items_agent_level(i, line->source, /* is_remote= */ true)));
}

int collector_add(struct collector *c, const struct collector_line *line)
{
    struct uuid app = {0};
    if (line->app.n && (uuid_parse(line->app, &app) < 0 || uuid_is_zero(&app)))
        return -EINVAL;
    if (!is_wanted(c, line))
        return 0;
    struct collector_stream *s = collector_stream_of(c, &app);
    take_name(s, line->app_name);
    const int r = add_to(c, s, line);
    c->counts.n_refused += r < 0;
    collector_metrics_changed(c);
    return r;
}

/* ---- its life ------------------------------------------------------------------------------- */

static void on_app(void *arg, struct str key, const struct json *value)
{
    struct collector *c = arg;
    struct uuid app;
    (void) key;
    if (uuid_parse(json_get_str(json_get(value, STR("UUIDandVersion")), STR("UUID")), &app) < 0 ||
        uuid_is_zero(&app))
        return;
    struct collector_stream *s = collector_stream_of(c, &app);
    bool is_skipped = json_get_bool(value, STR("DisableLogs"), false);
    take_name(s, json_get_str(value, STR("DisplayName")));
    if (is_skipped == s->is_skipped)
        return;
    s->is_skipped = is_skipped;
    collector_rotate_stream(c, s);
}

static void on_app_modified(void *arg, struct str key, const struct json *value,
                            const struct json *old)
{
    (void) old;
    on_app(arg, key, value);
}

static void on_change(struct node_watch *w, unsigned changes)
{
    struct collector *c = CONTAINER_OF(w, struct collector, watch);
    if (changes & NODE_ITEMS)
        arm(c);
}

static int begin(struct collector *c, const struct collector_options *o)
{
    int r = logfiles_make(c->root);
    if (r < 0)
        return r;
    collector_state_load(c);
    collector_quota_measure(c);
    r = recover(c);
    if (r < 0)
        return r;
    r = collector_metrics_begin(c);
    if (r < 0)
        return r;
    static const struct subscription_handlers handlers = {.on_create = on_app,
                                                          .on_modify = on_app_modified};
    const struct pubsub_name name = {.agent = STR("zedagent"), .topic = STR("AppInstanceConfig")};
    r = subscription_new(c->node->pubsub, &name, &handlers, c, &c->apps);
    if (r < 0 || (!o->syslog_path && !o->reads_kernel))
        return r;
    return collector_inputs_new(c, o);
}

int collector_new(struct node *n, const struct collector_options *o, struct collector **ret)
{
    ARENA_AUTO a = arena_new();
    struct collector *c = NEW(struct collector);
    c->node = n;
    c->rotate_s = o->rotate_s;
    c->root = mem_strdup(node_path(a, n, NODE_PERSIST, STR("newlog")));
    list_init(&c->streams);
    (void) collector_stream_of(c, &(struct uuid){0});
    c->rotation = loop_timer_new(n->loop, on_rotation, c);
    c->watch.on_change = on_change;
    node_watch(n, &c->watch);
    int r = begin(c, o);
    if (r < 0) {
        collector_free(c);
        return r;
    }
    *ret = c;
    return 0;
}

void collector_free(struct collector *c)
{
    if (!c)
        return;
    collector_inputs_free(c->inputs);
    subscription_free(c->apps);
    rotate_older(c, /* age_us= */ 0);
    collector_metrics_end(c);
    node_unwatch(&c->watch);
    loop_timer_free(c->rotation);
    while (!list_is_empty(&c->streams))
        free_stream(c, CONTAINER_OF(c->streams.next, struct collector_stream, link));
    mem_free(c->root);
    mem_free(c);
}
