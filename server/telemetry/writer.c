/* SPDX-License-Identifier: Apache-2.0 */
/* The writer: takes what is queued as a group, appends it, makes it durable once for all, lets
 * readers see it, answers. */
#include <errno.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "telemetry/crc32c.h"
#include "telemetry/telemetry_internal.h"

/* A group: so much that the disk is busy with it, so little that nobody waits long. */
#define GROUP_MAX_BYTES ((size_t) 8 * 1024 * 1024)
#define WRITE_MAX_PIECES 512
/* Notes wait so long for company, or until they are so many. */
#define NOTES_WAIT_S 1
#define NOTES_MAX_BYTES ((size_t) 1024 * 1024)
#define MAX_LOOPS 64

/* ---- the queue ------------------------------------------------------------------------------ */

struct append *append_new(const struct telemetry_record *r)
{
    struct append *a = mem_alloc(sizeof(*a) + FRAME_BYTES + r->bytes.n);
    *a = (struct append){.frame = {
                             .device_us = r->device_us,
                             .device = r->device,
                             .app = r->app,
                             .stream = r->stream,
                             .form = r->form,
                             .n_bytes = (uint32_t) r->bytes.n,
                             .crc = crc32c(0, r->bytes.p, r->bytes.n),
                         }};
    a->has_digest = r->digest != NULL;
    if (r->digest)
        memcpy(a->digest, r->digest, sizeof(a->digest));
    if (r->bytes.n)
        memcpy(a->bytes + FRAME_BYTES, r->bytes.p, r->bytes.n);
    return a;
}

static size_t append_size(const struct append *a)
{
    return FRAME_BYTES + a->frame.n_bytes;
}

static void complete(void *arg)
{
    for (struct append *a = arg, *next; a; a = next) {
        next = a->next;
        if (a->done)
            a->done(a->arg, a->result);
        mem_free(a);
    }
}

static void hand_over(struct append *first)
{
    if (first->loop)
        loop_post(first->loop, complete, first);
    else
        complete(first);
}

static void refuse(struct telemetry *t, struct append *a, int r)
{
    atomic_fetch_add(&t->n_refused, 1);
    a->next = NULL;
    a->result = r;
    hand_over(a);
}

/* With the queue locked. The writer is woken when it is to write, or to look at the clock: once for
 * each group, not for each record. */
static void enqueue(struct telemetry *t, struct append *a)
{
    size_t n = append_size(a), queued = atomic_fetch_add(&t->queued_bytes, n);
    bool is_first = !t->queue;
    if (is_first && a->is_note) {
        (void) clock_gettime(CLOCK_MONOTONIC, &t->notes_due);
        t->notes_due.tv_sec += NOTES_WAIT_S;
    }
    a->next = NULL;
    *t->queue_tail = a;
    t->queue_tail = &a->next;
    bool is_due =
        a->is_note ? queued < NOTES_MAX_BYTES && queued + n >= NOTES_MAX_BYTES : t->n_urgent++ == 0;
    if (is_first || is_due)
        pthread_cond_signal(&t->queue_filled);
}

void append_queue(struct telemetry *t, struct append *a, bool is_forced)
{
    size_t n = append_size(a);
    size_t max = t->options.max_queued_bytes;
    pthread_mutex_lock(&t->queue_lock);
    size_t queued = atomic_load(&t->queued_bytes);
    bool is_taken = is_forced || (queued < max && n <= max - queued) || queued == 0;
    if (is_taken)
        enqueue(t, a);
    pthread_mutex_unlock(&t->queue_lock);
    if (!is_taken)
        refuse(t, a, -EAGAIN);
}

static bool is_bad(const struct telemetry_record *r)
{
    return r->bytes.n > TELEMETRY_MAX_RECORD_BYTES || (unsigned) r->stream >= TELEMETRY_STREAMS ||
           (unsigned) r->form > TELEMETRY_JSON;
}

void telemetry_append(struct telemetry *t, const struct telemetry_record *r, struct loop *loop,
                      void (*done)(void *arg, int64_t result), void *arg)
{
    struct append *a = append_new(is_bad(r) ? &(struct telemetry_record){0} : r);
    a->loop = loop;
    a->done = done;
    a->arg = arg;
    if (is_bad(r))
        refuse(t, a, r->bytes.n > TELEMETRY_MAX_RECORD_BYTES ? -EMSGSIZE : -EINVAL);
    else
        append_queue(t, a, /* is_forced= */ false);
}

void telemetry_note(struct telemetry *t, const struct telemetry_record *r)
{
    if (is_bad(r)) {
        atomic_fetch_add(&t->n_refused, 1);
        return;
    }
    struct append *a = append_new(r);
    a->is_note = true;
    append_queue(t, a, /* is_forced= */ false);
}

/* With the queue locked: waits until there is something to write. */
static void wait_for_work(struct telemetry *t)
{
    int r = 0;
    while (!t->n_urgent && !t->is_stopping && !(t->queue && r == ETIMEDOUT) &&
           atomic_load(&t->queued_bytes) < NOTES_MAX_BYTES)
        r = t->queue ? pthread_cond_timedwait(&t->queue_filled, &t->queue_lock, &t->notes_due)
                     : pthread_cond_wait(&t->queue_filled, &t->queue_lock);
}

/* A list; NULL: nothing comes any more. */
static struct append *take_group(struct telemetry *t)
{
    pthread_mutex_lock(&t->queue_lock);
    wait_for_work(t);
    struct append *first = t->queue, **at = &t->queue;
    for (size_t n = 0; *at && (n == 0 || n + append_size(*at) <= GROUP_MAX_BYTES);) {
        n += append_size(*at);
        t->n_urgent -= !(*at)->is_note;
        at = &(*at)->next;
    }
    struct append *rest = first ? *at : NULL;
    if (first)
        *at = NULL;
    t->queue = rest;
    if (!rest)
        t->queue_tail = &t->queue;
    pthread_mutex_unlock(&t->queue_lock);
    return first;
}

/* ---- the file ------------------------------------------------------------------------------- */

/* A day, or an eighth of what is kept: whole files can then go when they are old. */
static int64_t max_span_us(const struct telemetry *t)
{
    int64_t s = (int64_t) 24 * 3600;
    if (t->options.max_age_s > 0)
        s = MIN(s, MAX(t->options.max_age_s / 8, 1));
    return s * 1000000;
}

static bool is_finished(const struct telemetry *t, const struct segment *s, int64_t now_us)
{
    uint64_t end = atomic_load(&s->end);
    return end >= (uint64_t) t->options.segment_bytes ||
           (end > SEGMENT_HEAD_BYTES && now_us - s->head.base_us > max_span_us(t)) ||
           t->next_id - s->head.first_id > SEGMENT_MAX_IDS / 2;
}

/* Nothing more is written to the current segment. */
static void finish_current(struct telemetry *t)
{
    pthread_mutex_lock(&t->lock);
    t->current = NULL;
    pthread_mutex_unlock(&t->lock);
}

static int start_segment(struct telemetry *t)
{
    char fresh[SEGMENT_NAME_BYTES], name[SEGMENT_NAME_BYTES];
    segment_name(t->next_id, "new", fresh);
    segment_name(t->next_id, "seg", name);
    CLEANUP(segment_unrefp) struct segment *s = NULL;
    int r = segment_create(t->directory_fd, fresh, t->next_id, t->last_arrived_us, &s);
    if (r < 0)
        return r;
    if (renameat(t->directory_fd, fresh, t->directory_fd, name) < 0 || fsync(t->directory_fd) < 0) {
        r = -errno;
        (void) unlinkat(t->directory_fd, fresh, 0);
        (void) unlinkat(t->directory_fd, name, 0);
        return r;
    }
    pthread_mutex_lock(&t->lock);
    t->current = s;
    segments_add(t, TAKE(s));
    pthread_mutex_unlock(&t->lock);
    /* The one before is finished. */
    keeper_call(t);
    return 0;
}

/* Gives each its id, time and place. */
static void number(struct telemetry *t, const struct segment *s, struct append *group)
{
    uint64_t position = atomic_load(&s->end);
    for (struct append *a = group; a; a = a->next) {
        a->frame.id = t->next_id++;
        a->frame.arrived_us = t->last_arrived_us;
        a->position = position;
        position += append_size(a);
        frame_encode(s->head.salt, &a->frame, a->bytes);
    }
}

static int write_pieces(int fd, struct iovec *v, int n, uint64_t position)
{
    while (n > 0) {
        ssize_t r = pwritev(fd, v, n, (off_t) position);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return -errno;
        size_t done = (size_t) r;
        position += done;
        for (; n > 0 && done >= v->iov_len; v++, n--)
            done -= v->iov_len;
        if (n > 0) {
            v->iov_base = (char *) v->iov_base + done;
            v->iov_len -= done;
        }
    }
    return 0;
}

static int write_group(const struct segment *s, struct append *group)
{
    struct iovec pieces[WRITE_MAX_PIECES];
    int r = 0;
    for (struct append *a = group; a && r == 0;) {
        int n = 0;
        uint64_t position = a->position;
        for (; a && n < WRITE_MAX_PIECES; a = a->next)
            pieces[n++] = (struct iovec){a->bytes, append_size(a)};
        r = write_pieces(s->fd, pieces, n, position);
    }
    return r;
}

/* No room, whoever says so: the disk, a quota, a limit on the file's size. */
static int no_room(int r)
{
    return r == -EDQUOT || r == -EFBIG ? -ENOSPC : r;
}

/* The file is again what it was. When that fails, or a sync did, nobody knows what the disk holds
 * behind the good end: nothing more goes there. Nor to a file that may not grow. */
static int undo(struct telemetry *t, const struct segment *s, int r, bool is_sync)
{
    if (ftruncate(s->fd, (off_t) atomic_load(&s->end)) < 0 || is_sync || r == -EFBIG)
        finish_current(t);
    return no_room(r);
}

static int store_group(struct telemetry *t, struct append *group)
{
    int64_t now = t->options.clock->wall_us(t->options.clock);
    t->last_arrived_us = MAX(t->last_arrived_us, now);
    if (t->current && is_finished(t, t->current, t->last_arrived_us))
        finish_current(t);
    int r = t->current ? 0 : start_segment(t);
    if (r < 0)
        return no_room(r);
    struct segment *s = t->current;
    number(t, s, group);
    r = write_group(s, group);
    if (r < 0)
        return undo(t, s, r, /* is_sync= */ false);
    atomic_fetch_add(&t->n_syncs, 1);
    return fdatasync(s->fd) < 0 ? undo(t, s, -errno, /* is_sync= */ true) : 0;
}

/* ---- afterwards ----------------------------------------------------------------------------- */

static void publish_one(struct telemetry *t, struct segment *s, const struct append *a)
{
    const struct frame *f = &a->frame;
    live_add(s->live, &s->head, f, a->position);
    struct track *k = track_of(t, &f->device);
    k->last_id = f->id;
    k->n_bytes += (int64_t) append_size(a);
    if (a->has_digest)
        remembered_set(k, a);
    if (f->stream == FRAME_FORGET) {
        k->floor = f->id;
        k->n_bytes = 0;
    } else {
        atomic_fetch_add(&t->n_appended[f->stream], 1);
        atomic_fetch_add(&t->bytes_appended[f->stream], f->n_bytes);
    }
    s->last_id = t->last_id = f->id;
    s->last_arrived_us = f->arrived_us;
    s->n_records++;
    s->file_bytes = a->position + append_size(a);
    atomic_store(&s->end, s->file_bytes);
}

static void publish(struct telemetry *t, struct append *group)
{
    pthread_mutex_lock(&t->lock);
    for (struct append *a = group; a; a = a->next) {
        publish_one(t, t->current, a);
        a->result = (int64_t) a->frame.id;
    }
    pthread_mutex_unlock(&t->lock);
    waiters_wake(t, group);
}

static void note_result(struct telemetry *t, struct append *group, int r)
{
    bool was_full = atomic_exchange(&t->is_full, r == -ENOSPC);
    if (r == 0) {
        if (was_full)
            log_info("the disk has room for telemetry again", LOG_TEXT("path", t->directory));
        return;
    }
    for (struct append *a = group; a; a = a->next) {
        a->result = r;
        atomic_fetch_add(&t->n_refused, 1);
    }
    if (!(r == -ENOSPC && was_full))
        log_error("cannot store telemetry", LOG_TEXT("path", t->directory), LOG_ERRNO(r));
}

/* One message for each loop, however many of its records were in the group. */
static void answer(struct telemetry *t, struct append *group)
{
    struct append *firsts[MAX_LOOPS], *lasts[MAX_LOOPS];
    size_t n = 0, n_bytes = 0;
    for (struct append *a = group, *next; a; a = next) {
        next = a->next;
        a->next = NULL;
        n_bytes += append_size(a);
        size_t i = 0;
        while (i < n && firsts[i]->loop != a->loop)
            i++;
        if (i == MAX_LOOPS) {
            hand_over(a);
        } else if (i == n) {
            firsts[n] = lasts[n] = a;
            n++;
        } else {
            lasts[i]->next = a;
            lasts[i] = a;
        }
    }
    atomic_fetch_sub(&t->queued_bytes, n_bytes);
    for (size_t i = 0; i < n; i++)
        hand_over(firsts[i]);
}

static void keep_group(struct telemetry *t, struct append *group)
{
    int r = store_group(t, group);
    if (r == 0)
        publish(t, group);
    note_result(t, group, r);
}

void *writer_main(void *telemetry)
{
    struct telemetry *t = telemetry;
    struct append *group;
    while ((group = take_group(t))) {
        struct append *repeats = repeats_take(t, &group);
        if (group)
            keep_group(t, group);
        repeats_settle(t, repeats);
        answer(t, group);
        answer(t, repeats);
    }
    return NULL;
}

size_t telemetry_queued_bytes(const struct telemetry *t)
{
    return atomic_load(&t->queued_bytes);
}

bool telemetry_is_full(const struct telemetry *t)
{
    return atomic_load(&t->is_full);
}
