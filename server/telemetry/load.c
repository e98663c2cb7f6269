/* SPDX-License-Identifier: Apache-2.0 */
/* What the directory holds when the server starts, whatever happened when it ended. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "telemetry/telemetry_internal.h"

/* More ids than a segment can hold: behind damage nobody knows which were given. */
#define ID_GAP ((uint64_t) 1 << 26)
_Static_assert(SEGMENT_MAX_BYTES / FRAME_BYTES < ID_GAP, "the gap is wider than a segment");

struct names {
    uint64_t *ids;
    size_t n;
};

static int by_id(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* Sorted; what a crash left half made is removed. */
static int list_names(struct telemetry *t, struct names *ret)
{
    int fd = dup(t->directory_fd);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        int r = -errno;
        if (fd >= 0)
            (void) close(fd);
        return r;
    }
    rewinddir(d);
    struct dirent *e;
    while ((e = readdir(d))) {
        uint64_t id = 0;
        if (str_ends_with(str_of(e->d_name), STR(".new")))
            (void) unlinkat(t->directory_fd, e->d_name, 0);
        if (segment_parse_name(e->d_name, &id) < 0)
            continue;
        ret->ids = mem_realloc_array(ret->ids, ret->n + 1, sizeof(*ret->ids));
        ret->ids[ret->n++] = id;
    }
    (void) closedir(d);
    if (ret->n > 1)
        qsort(ret->ids, ret->n, sizeof(*ret->ids), by_id);
    return 0;
}

/* A file we cannot make anything of keeps its bytes under another name. */
static void set_aside(struct telemetry *t, uint64_t id)
{
    char name[SEGMENT_NAME_BYTES], bad[SEGMENT_NAME_BYTES];
    segment_name(id, "seg", name);
    segment_name(id, "bad", bad);
    atomic_fetch_add(&t->n_damaged, 1);
    int r = renameat(t->directory_fd, name, t->directory_fd, bad) < 0 ? -errno : 0;
    log_error("telemetry segment is damaged, setting it aside", LOG_TEXT("path", t->directory),
              LOG_TEXT("name", r < 0 ? name : bad), LOG_INT("renamed", r == 0));
}

static void on_frame(void *ctx, const struct frame *f, uint64_t position)
{
    struct segment *s = ctx;
    live_add(s->live, &s->head, f, position);
    s->last_id = f->id;
    s->last_arrived_us = f->arrived_us;
    s->n_records++;
}

/* By its frames. true: all of it is good. */
static bool read_frames(struct telemetry *t, struct segment *s, bool is_last)
{
    struct scan scan = {.on_frame = on_frame, .ctx = s};
    s->live = live_new();
    int r = segment_scan(s, s->file_bytes, &scan);
    atomic_store(&s->end, scan.end);
    atomic_fetch_add(&t->n_damaged, scan.n_damaged);
    if (scan.n_damaged > 0 || r < 0)
        log_error("telemetry segment is damaged, reading the rest", LOG_TEXT("path", t->directory),
                  LOG_INT("segment", (int64_t) s->head.first_id),
                  LOG_INT("places", (int64_t) scan.n_damaged), LOG_ERRNO(r));
    else if (scan.n_bad_tail > 0)
        log_warning("telemetry segment has a torn end", LOG_TEXT("path", t->directory),
                    LOG_INT("segment", (int64_t) s->head.first_id),
                    LOG_INT("bytes", (int64_t) scan.n_bad_tail));
    if (is_last && r == 0 && scan.n_bad_tail > 0 && ftruncate(s->fd, (off_t) scan.end) < 0)
        r = -errno;
    return r == 0 && scan.n_damaged == 0 && scan.n_bad_tail == 0;
}

static void note_row(void *ctx, const struct row *r)
{
    track_row(ctx, r);
}

/* Takes a segment whose index is known into the array. */
static void take_segment(struct telemetry *t, struct segment *s)
{
    if (s->live)
        live_each(s->live, note_row, t);
    else
        (void) footer_each(s, note_row, t);
    t->last_id = MAX(t->last_id, s->last_id);
    t->next_id = MAX(t->next_id, MAX(s->last_id + 1, s->head.first_id));
    t->last_arrived_us = MAX(t->last_arrived_us, s->last_arrived_us);
    segments_add(t, s);
}

static void read_index(struct telemetry *t, struct segment *s, bool is_last)
{
    if (footer_load(s) == 0)
        return;
    s->n_rows = s->n_entries = 0;
    atomic_store(&s->end, SEGMENT_HEAD_BYTES);
    bool is_good = read_frames(t, s, is_last);
    if (!is_last)
        return;
    if (is_good)
        t->current = s;
    else
        t->next_id = s->head.first_id + ID_GAP;
}

static int load_one(struct telemetry *t, uint64_t id, bool is_last)
{
    char name[SEGMENT_NAME_BYTES];
    segment_name(id, "seg", name);
    CLEANUP(segment_unrefp) struct segment *s = NULL;
    int r = segment_open(t->directory_fd, name, &s);
    if (r < 0 && r != -EBADMSG)
        return r;
    /* Files that overlap are copies of each other: ids must stay unique. */
    if (r < 0 || s->head.first_id != id || id == 0 || id <= t->last_id || id > INT64_MAX / 2) {
        set_aside(t, id);
        t->next_id = MAX(t->next_id, MIN(id, INT64_MAX / 2) + ID_GAP);
        return 0;
    }
    read_index(t, s, is_last);
    take_segment(t, TAKE(s));
    return 0;
}

int telemetry_load(struct telemetry *t, char **ret_error)
{
    struct names names = {0};
    t->next_id = 1;
    int r = list_names(t, &names);
    for (size_t i = 0; i < names.n && r == 0; i++)
        r = load_one(t, names.ids[i], i + 1 == names.n);
    mem_free(names.ids);
    if (r < 0) {
        BUF_AUTO b = {0};
        buf_printf(&b, "%s: cannot read telemetry: %s", t->directory, log_errno_text(r));
        *ret_error = buf_take(&b);
    }
    return r;
}
