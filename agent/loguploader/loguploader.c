/* SPDX-License-Identifier: Apache-2.0 */
/* One timer. Each time it looks for the oldest file of the device, then for the oldest of an
 * application, and sends one of each:
 *
 *     idle -> device's file -> application's file -> idle
 *
 * A file goes when the controller has it: never before, so that at worst it is sent again. */
#include "loguploader/loguploader.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "eve/newlog.h"
#include "loguploader/logfiles.h"
#include "loguploader/newlog_metrics.h"
#include "loguploader/pace.h"
#include "loop/loop.h"
#include "node/link.h"

#define MAX_4XX 10         /* of one file; then it is put aside */
#define METRICS_LINK_S 300 /* besides after each upload */
#define SPREAD_PERCENT 20  /* of the first look */

/* What the controller thought of the file that is refused most lately. */
struct refused {
    struct logfile file;
    unsigned n;
};

struct loguploader {
    struct node *node;
    struct node_link *link;
    struct node_watch watch;
    struct publication *publication;
    struct loop_timer *timer;
    char *root;
    bool is_started; /* there was a UUID and an address */
    struct pace pace;
    struct newlog_metrics metrics;
    struct refused refused[2]; /* of the device, of applications */
    uint64_t n_failures;

    /* While a file is on its way. */
    struct uplink_call *call;
    enum log_directory directory;
    struct logfile file;
    struct str name; /* heap */
    size_t n_bytes;
    int64_t began_us;
    bool has_sent; /* anything, in this turn */
};

static void look(struct loguploader *u, enum log_directory d);

static int64_t now_us(const struct loguploader *u)
{
    return u->node->clock->monotonic_us(u->node->clock);
}

static int64_t wall_us(const struct loguploader *u)
{
    return u->node->clock->wall_us(u->node->clock);
}

static struct newlog_stream_metrics *stream_of(struct loguploader *u)
{
    return u->directory == LOG_APP_UPLOAD ? &u->metrics.apps : &u->metrics.device;
}

static void publish(struct loguploader *u)
{
    ARENA_AUTO a = arena_new();
    u->metrics.interval_s = u->pace.interval_s;
    u->metrics.is_failing = u->pace.is_failing;
    int r = publication_publish(u->publication, STR("global"), newlog_metrics_json(a, &u->metrics));
    if (r < 0)
        log_warning("metrics of log uploads are not published, ignoring", LOG_ERRNO(r));
    node_link_publish(u->link);
}

/* ---- what becomes of a file ----------------------------------------------------------------- */

static void put_aside(struct loguploader *u)
{
    struct logfiles_usage failed = {0};
    logfiles_measure(u->root, LOG_FAILED, &failed);
    if (failed.n_files >= LOGFILES_MAX_FAILED)
        (void) logfiles_remove_oldest(u->root, LOG_FAILED, 0,
                                      failed.n_files - LOGFILES_MAX_FAILED + 1);
    stream_of(u)->n_kept_local++;
    int r = logfiles_move(u->root, u->directory, LOG_FAILED, u->name, !u->node->is_simulated);
    if (r < 0)
        log_error("a log file cannot be put aside", LOG_STR("file", u->name), LOG_ERRNO(r));
    else
        log_warning("a log file is put aside", LOG_STR("file", u->name));
}

static void let_go(struct loguploader *u)
{
    ARENA_AUTO a = arena_new();
    bool syncs = !u->node->is_simulated;
    int r = 0;
    if (u->directory == LOG_APP_UPLOAD)
        r = logfiles_move(u->root, u->directory, LOG_KEEP_SENT, u->name, syncs);
    else if (unlink(logfiles_path(a, u->root, u->directory, u->name)) < 0 && errno != ENOENT)
        r = -errno;
    else if (syncs)
        r = logfiles_sync(u->root, u->directory);
    if (r < 0)
        log_error("a log file that was sent cannot be removed", LOG_STR("file", u->name),
                  LOG_ERRNO(r));
}

static void on_sent(struct loguploader *u, struct str reply)
{
    struct newlog_stream_metrics *s = stream_of(u);
    s->n_sent++;
    s->n_waiting -= s->n_waiting > 0;
    s->recent_us = u->file.time_ms / 1000 * 1000000;
    s->sent_us = wall_us(u);
    u->metrics.n_bytes_sent += u->n_bytes;
    newlog_metrics_take_latency(&u->metrics, (now_us(u) - u->began_us) / 1000);
    if (u->directory == LOG_DEV_UPLOAD)
        newlog_metrics_take_reply(&u->metrics, reply);
    (void) pace_sent(&u->pace);
    let_go(u);
}

static bool is_same(const struct logfile *a, const struct logfile *b)
{
    return a->time_ms == b->time_ms && uuid_eq(&a->app, &b->app);
}

static void on_4xx(struct loguploader *u)
{
    struct refused *r = &u->refused[u->directory == LOG_APP_UPLOAD];
    u->metrics.n_4xx++;
    if (!is_same(&r->file, &u->file))
        *r = (struct refused){.file = u->file};
    if (++r->n <= MAX_4XX)
        return;
    *r = (struct refused){0};
    stream_of(u)->n_waiting -= stream_of(u)->n_waiting > 0;
    put_aside(u);
}

static void on_not_sent(struct loguploader *u, int http_status)
{
    stream_of(u)->n_retries++;
    u->n_failures++;
    if (http_status == 429) {
        u->metrics.n_429++;
        u->metrics.refused_us = wall_us(u);
        pace_refused(&u->pace, now_us(u));
    }
    if (http_status >= 400 && http_status <= 499)
        on_4xx(u);
    else if (pace_unavailable(&u->pace, now_us(u)))
        u->metrics.failing_since_us = wall_us(u);
}

/* ---- looking and sending -------------------------------------------------------------------- */

static void arm(struct loguploader *u, int64_t after_ms)
{
    loop_timer_start(u->timer, after_ms, 0);
}

static void end_turn(struct loguploader *u)
{
    unsigned interval_s =
        pace_next(&u->pace, now_us(u), u->metrics.device.n_waiting + u->metrics.apps.n_waiting);
    if (u->has_sent)
        publish(u);
    u->has_sent = false;
    arm(u, (int64_t) interval_s * 1000);
}

static void go_on(struct loguploader *u)
{
    mem_free((char *) u->name.p);
    u->name = STR_NONE;
    if (u->directory == LOG_DEV_UPLOAD)
        look(u, LOG_APP_UPLOAD);
    else
        end_turn(u);
}

static void on_answer(void *arg, const struct uplink_answer *answer)
{
    struct loguploader *u = arg;
    u->call = NULL;
    u->has_sent = true;
    if (answer->error == 0)
        on_sent(u, answer->body);
    else
        on_not_sent(u, answer->last_http_status);
    if (answer->error)
        log_debug("a log file was not taken; retrying", LOG_STR("file", u->name),
                  LOG_INT("status", answer->last_http_status), LOG_STR("words", answer->words));
    go_on(u);
}

/* -EBADMSG: nothing a controller would take. */
static int read_file(struct loguploader *u, struct buf *to)
{
    ARENA_AUTO a = arena_new();
    struct stat st;
    struct newlog_head head;
    int fd = open(logfiles_path(a, u->root, u->directory, u->name),
                  O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    int r = fstat(fd, &st) < 0 ? -errno : 0;
    if (r == 0 && (!S_ISREG(st.st_mode) || st.st_size > (off_t) LOGFILES_MAX_UPLOAD_BYTES))
        r = -EBADMSG;
    if (r == 0) {
        ssize_t n = read(fd, buf_reserve(to, LOGFILES_MAX_UPLOAD_BYTES), LOGFILES_MAX_UPLOAD_BYTES);
        r = n < 0 ? -errno : 0;
        to->n = n < 0 ? 0 : (size_t) n;
    }
    (void) close(fd);
    if (r == 0 && newlog_read_head(a, buf_str(to), &head) < 0)
        r = -EBADMSG;
    return r;
}

static void send_file(struct loguploader *u, struct str bytes)
{
    ARENA_AUTO a = arena_new();
    char app[UUID_TEXT_BYTES];
    uuid_text(&u->file.app, app);
    struct str action = u->directory == LOG_APP_UPLOAD
                            ? arena_printf(a, "apps/instanceid/%s/newlogs", app)
                            : STR("newlogs");
    if (bytes.n > LOGFILES_TARGET_BYTES)
        log_warning("a log file is larger than intended", LOG_STR("file", u->name),
                    LOG_INT("bytes", (int64_t) bytes.n));
    u->n_bytes = bytes.n;
    u->began_us = now_us(u);
    u->call = uplink_send(
        u->link->uplink,
        &(struct uplink_request){.url = node_link_url(a, u->link, action), .body = bytes},
        on_answer, u);
}

static void look(struct loguploader *u, enum log_directory d)
{
    ARENA_AUTO a = arena_new();
    BUF_AUTO bytes = {0};
    struct logfiles_oldest oldest;
    u->directory = d;
    int r = logfiles_find_oldest(a, u->root, d, &oldest);
    stream_of(u)->n_waiting = oldest.n_files;
    if (r < 0 || !oldest.name.p) {
        go_on(u);
        return;
    }
    u->file = oldest.file;
    u->name = (struct str){mem_dup(oldest.name.p, oldest.name.n), oldest.name.n};
    r = read_file(u, &bytes);
    if (r == 0) {
        send_file(u, buf_str(&bytes));
        return;
    }
    if (r == -EBADMSG)
        put_aside(u);
    go_on(u);
}

static void on_timer(void *arg)
{
    look(arg, LOG_DEV_UPLOAD);
}

/* ---- its life ------------------------------------------------------------------------------- */

static bool is_fast(const struct loguploader *u)
{
    return items_bool(u->node->items, "newlog.allow.fastupload");
}

static void start(struct loguploader *u)
{
    if (u->is_started || uuid_is_zero(&u->node->device) ||
        !uplink_ports_have_address(u->node->ports))
        return;
    u->is_started = true;
    pace_init(&u->pace, now_us(u), is_fast(u));
    u->metrics.failing_since_us = wall_us(u);
    publish(u);
    /* Devices that began together need not come together. */
    arm(u, node_spread_ms(u->node, (int64_t) u->pace.interval_s * 1000, SPREAD_PERCENT));
}

static void on_change(struct node_watch *w, unsigned changes)
{
    struct loguploader *u = CONTAINER_OF(w, struct loguploader, watch);
    start(u);
    if (!u->is_started || !(changes & NODE_ITEMS) ||
        !pace_set_fast(&u->pace, now_us(u), is_fast(u)) || u->call)
        return;
    arm(u, (int64_t) pace_next(&u->pace, now_us(u),
                               u->metrics.device.n_waiting + u->metrics.apps.n_waiting) *
               1000);
}

int loguploader_new(struct node *n, struct loguploader **ret)
{
    ARENA_AUTO a = arena_new();
    struct loguploader *u = NEW(struct loguploader);
    u->node = n;
    u->root = mem_strdup(node_path(a, n, NODE_PERSIST, STR("newlog")));
    u->timer = loop_timer_new(n->loop, on_timer, u);
    u->watch.on_change = on_change;
    node_watch(n, &u->watch);
    const struct pubsub_name name = {.agent = STR("loguploader"), .topic = STR("NewlogMetrics")};
    int r = logfiles_make(u->root);
    if (r == 0)
        r = publication_new(n->pubsub, &name, &u->publication);
    if (r == 0)
        r = node_link_new(n,
                          &(struct node_link_options){.agent = STR("loguploader"),
                                                      .metrics_interval_s = METRICS_LINK_S},
                          &u->link);
    if (r < 0) {
        loguploader_free(u);
        return r;
    }
    *ret = u;
    return 0;
}

void loguploader_free(struct loguploader *u)
{
    if (!u)
        return;
    if (u->call)
        uplink_cancel(u->call);
    node_unwatch(&u->watch);
    node_link_free(u->link);
    publication_free(u->publication);
    loop_timer_free(u->timer);
    mem_free((char *) u->name.p);
    mem_free(u->root);
    mem_free(u);
}

struct loguploader_counts loguploader_counts(const struct loguploader *u)
{
    return (struct loguploader_counts){
        .files_sent = u->metrics.device.n_sent + u->metrics.apps.n_sent,
        .bytes_sent = u->metrics.n_bytes_sent,
        .failures = u->n_failures,
        .files_waiting = u->metrics.device.n_waiting + u->metrics.apps.n_waiting};
}
