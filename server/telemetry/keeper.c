/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper: gives finished segments their index on disk, deletes what is beyond the limits, and
 * rewrites segments that hold mostly what nobody may read any more. */
#include <errno.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "telemetry/keeper.h"

#define PERIOD_S 30
/* Looking at every device of every segment is for now and then. */
#define CLOSE_LOOK_US ((int64_t) 10 * 60 * 1000000)
/* A disk with so much room is no longer full. */
#define ROOM_BYTES ((uint64_t) 64 * 1024 * 1024)

/* ---- segments, as the keeper sees them ------------------------------------------------------ */

/* All but the newest, which keeps the last id given in its name. Each with a reference. */
static struct segment **finished_segments(struct telemetry *t, size_t *ret_n)
{
    pthread_mutex_lock(&t->lock);
    size_t n = t->n_segments > 0 ? t->n_segments - 1 : 0;
    struct segment **all = mem_realloc_array(NULL, MAX(n, 1), sizeof(struct segment *));
    for (size_t i = 0; i < n; i++)
        all[i] = segment_ref(t->segments[i]);
    pthread_mutex_unlock(&t->lock);
    *ret_n = n;
    return all;
}

static void segments_release(struct segment **all, size_t n)
{
    for (size_t i = 0; i < n; i++)
        segment_unref(all[i]);
    mem_free(all);
}

void keeper_delete(struct telemetry *t, struct segment *s)
{
    char name[SEGMENT_NAME_BYTES];
    segment_name(s->head.first_id, "seg", name);
    pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < t->n_segments; i++) {
        if (t->segments[i] != s)
            continue;
        t->n_segments--;
        memmove(t->segments + i, t->segments + i + 1,
                (t->n_segments - i) * sizeof(struct segment *));
        break;
    }
    pthread_mutex_unlock(&t->lock);
    if (unlinkat(t->directory_fd, name, 0) < 0)
        log_warning("cannot delete old telemetry", LOG_TEXT("path", t->directory),
                    LOG_TEXT("name", name), LOG_ERRNO(-errno));
    atomic_fetch_add(&t->n_expired, s->n_records);
    segment_unref(s);
}

/* ---- indexes -------------------------------------------------------------------------------- */

static void give_footer(struct telemetry *t, struct segment *s)
{
    uint32_t n_rows = 0;
    uint64_t file_bytes = 0;
    int r = footer_write(s, s->live, &n_rows, &file_bytes);
    if (r < 0) {
        log_warning("cannot write the index of a telemetry segment, retrying later",
                    LOG_TEXT("path", t->directory), LOG_ERRNO(r));
        return;
    }
    pthread_mutex_lock(&t->lock);
    struct live *live = TAKE(s->live);
    s->n_rows = n_rows;
    s->n_entries = (uint32_t) s->n_records;
    s->file_bytes = file_bytes;
    pthread_mutex_unlock(&t->lock);
    live_free(live);
}

static void give_footers(struct telemetry *t)
{
    size_t n = 0;
    struct segment **all = finished_segments(t, &n);
    for (size_t i = 0; i < n; i++)
        if (all[i]->live)
            give_footer(t, all[i]);
    segments_release(all, n);
}

/* ---- limits of everything ------------------------------------------------------------------- */

/* The longest any device's records are kept: INT64_MIN for ever. */
static int64_t oldest_of_all(struct telemetry *t)
{
    struct track longest = {.max_age_s = t->options.max_age_s};
    if (longest.max_age_s <= 0)
        return INT64_MIN;
    size_t position = 0;
    struct map_entry item;
    pthread_mutex_lock(&t->lock);
    while (map_next(&t->tracks, &position, &item))
        longest.max_age_s = MAX(longest.max_age_s, ((const struct track *) item.value)->max_age_s);
    pthread_mutex_unlock(&t->lock);
    return track_oldest_us(t, &longest);
}

static void delete_expired(struct telemetry *t)
{
    int64_t oldest = oldest_of_all(t);
    size_t n = 0;
    struct segment **all = finished_segments(t, &n);
    for (size_t i = 0; i < n && all[i]->last_arrived_us < oldest; i++)
        keeper_delete(t, all[i]);
    segments_release(all, n);
}

/* Bytes on disk beyond the limit. */
static int64_t excess_bytes(const struct telemetry *t)
{
    struct telemetry_stats stats;
    telemetry_stats(t, &stats);
    return t->options.max_bytes > 0 ? (int64_t) stats.disk_bytes - t->options.max_bytes : 0;
}

static void delete_beyond_bytes(struct telemetry *t)
{
    int64_t excess = excess_bytes(t);
    size_t n = 0;
    struct segment **all = finished_segments(t, &n);
    for (size_t i = 0; i < n && excess > 0; i++) {
        excess -= (int64_t) all[i]->file_bytes;
        keeper_delete(t, all[i]);
    }
    segments_release(all, n);
}

/* ---- segments that are mostly dead ----------------------------------------------------------- */

struct inquest {
    struct telemetry *t;
    uint64_t n_dead_bytes;
};

static void note_dead(void *ctx, const struct row *r)
{
    struct inquest *q = ctx;
    pthread_mutex_lock(&q->t->lock);
    const struct track *k = track_find(q->t, &r->device);
    if ((k && r->last_id <= k->floor) || r->last_arrived_us < track_oldest_us(q->t, k))
        q->n_dead_bytes += r->n_bytes;
    pthread_mutex_unlock(&q->t->lock);
}

static void rewrite_dead(struct telemetry *t)
{
    size_t n = 0;
    struct segment **all = finished_segments(t, &n);
    bool is_oldest = true;
    for (size_t i = 0; i < n; i++) {
        struct inquest q = {.t = t};
        struct segment *s = all[i];
        uint64_t n_bytes = atomic_load(&s->end) - SEGMENT_HEAD_BYTES;
        bool is_gone = false;
        if (!s->live && footer_each(s, note_dead, &q) == 0 && q.n_dead_bytes * 2 > n_bytes)
            is_gone = keeper_rewrite(t, s, is_oldest);
        is_oldest = is_oldest && is_gone;
    }
    segments_release(all, n);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void note_room(struct telemetry *t)
{
    struct statvfs v;
    if (atomic_load(&t->is_full) && fstatvfs(t->directory_fd, &v) == 0 &&
        (uint64_t) v.f_bavail * v.f_frsize >= ROOM_BYTES)
        atomic_store(&t->is_full, false);
}

static void sweep(struct telemetry *t, bool is_close_look)
{
    pthread_mutex_lock(&t->keep_lock);
    give_footers(t);
    delete_expired(t);
    keeper_trim_devices(t);
    /* One device's excess goes before anything of others has to. */
    if (is_close_look || excess_bytes(t) > 0)
        rewrite_dead(t);
    delete_beyond_bytes(t);
    note_room(t);
    pthread_mutex_unlock(&t->keep_lock);
}

void telemetry_sweep(struct telemetry *t)
{
    sweep(t, /* is_close_look= */ true);
}

void keeper_call(struct telemetry *t)
{
    pthread_mutex_lock(&t->keeper_lock);
    t->keeper_is_wanted = true;
    pthread_cond_signal(&t->keeper_wake);
    pthread_mutex_unlock(&t->keeper_lock);
}

/* false: the end. */
static bool pause_keeper(struct telemetry *t)
{
    struct timespec until;
    (void) clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PERIOD_S;
    pthread_mutex_lock(&t->keeper_lock);
    int r = 0;
    while (r == 0 && !t->keeper_is_stopping && !t->keeper_is_wanted)
        r = pthread_cond_timedwait(&t->keeper_wake, &t->keeper_lock, &until);
    t->keeper_is_wanted = false;
    bool goes_on = !t->keeper_is_stopping;
    pthread_mutex_unlock(&t->keeper_lock);
    return goes_on;
}

void *keeper_main(void *telemetry)
{
    struct telemetry *t = telemetry;
    const struct clock *c = t->options.clock;
    int64_t looked = c->monotonic_us(c) - CLOSE_LOOK_US;
    do {
        bool is_close_look = c->monotonic_us(c) - looked >= CLOSE_LOOK_US;
        sweep(t, is_close_look);
        if (is_close_look)
            looked = c->monotonic_us(c);
    } while (pause_keeper(t));
    return NULL;
}
