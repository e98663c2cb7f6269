/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/telemetry.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "telemetry/telemetry_internal.h"

/* With a limit on everything, so many segments at least: they go one at a time. */
#define MIN_SEGMENTS 8
#define MIN_SEGMENT_BYTES ((int64_t) 1024 * 1024)

void segments_add(struct telemetry *t, struct segment *s)
{
    if (t->n_segments == t->capacity) {
        t->capacity = MAX(t->capacity * 2, 16);
        t->segments = mem_realloc_array(t->segments, t->capacity, sizeof(struct segment *));
    }
    t->segments[t->n_segments++] = s;
}

static int64_t segment_bytes(const struct telemetry_options *o)
{
    int64_t n = o->segment_bytes;
    if (n <= 0) {
        n = TELEMETRY_SEGMENT_BYTES;
        if (o->max_bytes > 0)
            n = MIN(n, MAX(o->max_bytes / MIN_SEGMENTS, MIN_SEGMENT_BYTES));
    }
    return MIN(n, (int64_t) SEGMENT_MAX_BYTES);
}

static struct telemetry *telemetry_new(const struct telemetry_options *o)
{
    struct telemetry *t = NEW(struct telemetry);
    t->options = *o;
    t->options.segment_bytes = segment_bytes(o);
    if (t->options.max_queued_bytes == 0)
        t->options.max_queued_bytes = TELEMETRY_QUEUED_BYTES;
    t->directory = mem_strdup(o->directory);
    t->options.directory = t->directory;
    t->directory_fd = -1;
    t->queue_tail = &t->queue;
    list_init(&t->waiters);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->waiter_fired, NULL);
    pthread_mutex_init(&t->queue_lock, NULL);
    pthread_mutex_init(&t->keep_lock, NULL);
    pthread_mutex_init(&t->keeper_lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&t->keeper_wake, &monotonic);
    pthread_cond_init(&t->queue_filled, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return t;
}

static void destroy(struct telemetry *t)
{
    for (size_t i = 0; i < t->n_segments; i++)
        segment_unref(t->segments[i]);
    mem_free(t->segments);
    tracks_done(t);
    if (t->directory_fd >= 0)
        (void) close(t->directory_fd);
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->waiter_fired);
    pthread_mutex_destroy(&t->queue_lock);
    pthread_cond_destroy(&t->queue_filled);
    pthread_mutex_destroy(&t->keep_lock);
    pthread_mutex_destroy(&t->keeper_lock);
    pthread_cond_destroy(&t->keeper_wake);
    mem_free(t->directory);
    mem_free(t);
}

/* Made when missing, and ours alone. */
static int open_directory(struct telemetry *t, char **ret_error)
{
    int r = 0;
    if (mkdir(t->directory, 0700) < 0 && errno != EEXIST)
        r = -errno;
    if (r == 0) {
        t->directory_fd = open(t->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (t->directory_fd < 0 || flock(t->directory_fd, LOCK_EX | LOCK_NB) < 0)
            r = -errno;
    }
    if (r == 0)
        return 0;
    BUF_AUTO b = {0};
    buf_printf(&b, "%s: cannot use it for telemetry: %s", t->directory,
               r == -EWOULDBLOCK ? "another process does" : log_errno_text(r));
    *ret_error = buf_take(&b);
    return r;
}

int telemetry_open(const struct telemetry_options *o, struct telemetry **ret, char **ret_error)
{
    struct telemetry *t = telemetry_new(o);
    int r = open_directory(t, ret_error);
    if (r == 0)
        r = telemetry_load(t, ret_error);
    if (r < 0) {
        destroy(t);
        return r;
    }
    (void) pthread_create(&t->writer, NULL, writer_main, t);
    (void) pthread_create(&t->keeper, NULL, keeper_main, t);
    *ret = t;
    return 0;
}

void telemetry_free(struct telemetry *t)
{
    if (!t)
        return;
    pthread_mutex_lock(&t->queue_lock);
    t->is_stopping = true;
    pthread_cond_signal(&t->queue_filled);
    pthread_mutex_unlock(&t->queue_lock);
    (void) pthread_join(t->writer, NULL);
    pthread_mutex_lock(&t->keeper_lock);
    t->keeper_is_stopping = true;
    pthread_cond_signal(&t->keeper_wake);
    pthread_mutex_unlock(&t->keeper_lock);
    (void) pthread_join(t->keeper, NULL);
    destroy(t);
}

void telemetry_stats(const struct telemetry *t, struct telemetry_stats *ret)
{
    *ret = (struct telemetry_stats){
        .n_refused = atomic_load(&t->n_refused),
        .n_damaged = atomic_load(&t->n_damaged),
        .n_expired = atomic_load(&t->n_expired),
        .n_syncs = atomic_load(&t->n_syncs),
        .n_repeats = atomic_load(&t->n_repeats),
        .queued_bytes = atomic_load(&t->queued_bytes),
    };
    for (size_t i = 0; i < TELEMETRY_STREAMS; i++) {
        ret->n_appended[i] = atomic_load(&t->n_appended[i]);
        ret->bytes_appended[i] = atomic_load(&t->bytes_appended[i]);
    }
    pthread_mutex_t *lock = (pthread_mutex_t *) &t->lock;
    pthread_mutex_lock(lock);
    ret->n_segments = t->n_segments;
    for (size_t i = 0; i < t->n_segments; i++)
        ret->disk_bytes += t->segments[i]->file_bytes;
    pthread_mutex_unlock(lock);
}
