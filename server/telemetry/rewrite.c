/* SPDX-License-Identifier: Apache-2.0 */
/* A segment written anew without what nobody may read any more, under the same name. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "telemetry/keeper.h"

#define WRITE_BYTES ((size_t) 1024 * 1024)

struct copy {
    struct telemetry *t;
    struct segment *from, *to;
    bool is_oldest;
    struct buf pending; /* goes to the end of `to` */
    int error;
};

static bool is_alive(struct copy *c, const struct frame *f)
{
    /* It is needed as long as there may be something before it that it forgets. */
    if (f->stream == FRAME_FORGET)
        return !c->is_oldest;
    pthread_mutex_lock(&c->t->lock);
    const struct track *k = track_find(c->t, &f->device);
    bool is_alive = f->id > (k ? k->floor : 0) && f->arrived_us >= track_oldest_us(c->t, k);
    pthread_mutex_unlock(&c->t->lock);
    return is_alive;
}

static void flush(struct copy *c)
{
    uint64_t end = atomic_load(&c->to->end);
    if (c->error == 0)
        c->error = segment_pwrite(c->to, c->pending.p ? c->pending.p : "", c->pending.n, end);
    atomic_store(&c->to->end, end + c->pending.n);
    buf_reset(&c->pending);
}

static void copy_frame(void *ctx, const struct frame *f, uint64_t position)
{
    struct copy *c = ctx;
    if (c->error < 0 || !is_alive(c, f))
        return;
    uint64_t to = atomic_load(&c->to->end) + c->pending.n;
    char *p = buf_reserve(&c->pending, FRAME_BYTES + f->n_bytes);
    frame_encode(c->to->head.salt, f, (unsigned char *) p);
    c->error = segment_pread(c->from, p + FRAME_BYTES, f->n_bytes, position + FRAME_BYTES);
    c->pending.n += FRAME_BYTES + f->n_bytes;
    live_add(c->to->live, &c->to->head, f, to);
    c->to->last_id = f->id;
    c->to->last_arrived_us = f->arrived_us;
    c->to->n_records++;
    if (c->pending.n >= WRITE_BYTES)
        flush(c);
}

static int copy_all(struct copy *c)
{
    struct scan scan = {.on_frame = copy_frame, .ctx = c};
    int r = segment_scan(c->from, atomic_load(&c->from->end), &scan);
    flush(c);
    buf_done(&c->pending);
    return r < 0 ? r : c->error;
}

/* Gives the new file its index and the old one's name. */
static int replace_file(struct telemetry *t, struct segment *to, const char *fresh,
                        const char *name)
{
    uint32_t n_rows = 0;
    int r = footer_write(to, to->live, &n_rows, &to->file_bytes);
    if (r < 0)
        return r;
    to->n_rows = n_rows;
    to->n_entries = (uint32_t) to->n_records;
    live_free(TAKE(to->live));
    if (renameat(t->directory_fd, fresh, t->directory_fd, name) < 0 || fsync(t->directory_fd) < 0)
        return -errno;
    return 0;
}

static void swap(struct telemetry *t, struct segment *from, struct segment *to)
{
    pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < t->n_segments; i++)
        if (t->segments[i] == from)
            t->segments[i] = to;
    pthread_mutex_unlock(&t->lock);
    atomic_fetch_add(&t->n_expired, from->n_records - to->n_records);
    segment_unref(from);
}

bool keeper_rewrite(struct telemetry *t, struct segment *s, bool is_oldest)
{
    char fresh[SEGMENT_NAME_BYTES], name[SEGMENT_NAME_BYTES];
    segment_name(s->head.first_id, "new", fresh);
    segment_name(s->head.first_id, "seg", name);
    CLEANUP(segment_unrefp) struct segment *to = NULL;
    int r = segment_create(t->directory_fd, fresh, s->head.first_id, s->head.base_us, &to);
    if (r == 0)
        r = copy_all(&(struct copy){.t = t, .from = s, .to = to, .is_oldest = is_oldest});
    bool is_empty = r == 0 && to->n_records == 0;
    if (r == 0 && !is_empty)
        r = replace_file(t, to, fresh, name);
    if (r < 0)
        log_warning("cannot rewrite a telemetry segment, retrying later",
                    LOG_TEXT("path", t->directory), LOG_ERRNO(r));
    if (r < 0 || is_empty)
        (void) unlinkat(t->directory_fd, fresh, 0);
    if (is_empty)
        keeper_delete(t, s);
    else if (r == 0)
        swap(t, s, TAKE(to));
    return is_empty;
}
