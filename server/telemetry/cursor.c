/* SPDX-License-Identifier: Apache-2.0 */
/* Reading: entries of one segment after the other, a few at a time; the lock is held only to look
 * something up. */
#include <errno.h>

#include "base/alloc.h"
#include "base/log.h"
#include "telemetry/telemetry_internal.h"

#define CHUNK_ENTRIES 256

struct telemetry_cursor {
    struct telemetry *t;
    struct telemetry_query query;
    struct uuid device, app; /* what the query points to */
    uint64_t position;       /* looked at up to here */
    bool is_placed;          /* `newest` has been counted */
    struct segment *segment; /* being read; NULL: find it */
    uint64_t scan_at;        /* in it, when read for all devices */
    struct entry chunk[CHUNK_ENTRIES];
    size_t i, n;
    struct buf frame;
};

struct telemetry_cursor *telemetry_read(struct telemetry *t, const struct telemetry_query *q)
{
    struct telemetry_cursor *c = NEW(struct telemetry_cursor);
    c->t = t;
    c->query = *q;
    c->position = q->after;
    if (q->device) {
        c->device = *q->device;
        c->query.device = &c->device;
    }
    if (q->app) {
        c->app = *q->app;
        c->query.app = &c->app;
    }
    return c;
}

void telemetry_cursor_free(struct telemetry_cursor *c)
{
    if (!c)
        return;
    segment_unref(c->segment);
    buf_done(&c->frame);
    mem_free(c);
}

uint64_t telemetry_last_id(struct telemetry *t)
{
    pthread_mutex_lock(&t->lock);
    uint64_t id = t->last_id;
    pthread_mutex_unlock(&t->lock);
    return id;
}

uint64_t telemetry_cursor_position(const struct telemetry_cursor *c)
{
    return c->position;
}

/* ---- entries of a segment -------------------------------------------------------------------- */

static ssize_t entries_of_all(const struct segment *s, uint64_t after, uint64_t *position,
                              struct entry *ret, size_t max)
{
    uint64_t end = atomic_load(&s->end), at = MAX(*position, SEGMENT_HEAD_BYTES);
    size_t n = 0;
    while (at < end && n < max) {
        struct frame f;
        int r = segment_read_frame(s, at, &f);
        if (r == -EBADMSG) {
            at = segment_next_frame(s, at + 1, end);
            continue;
        }
        if (r < 0)
            return r;
        if (f.id > after)
            ret[n++] = entry_of(&s->head, &f, at);
        at += FRAME_BYTES + f.n_bytes;
    }
    *position = at;
    return (ssize_t) n;
}

ssize_t segment_entries(struct telemetry *t, struct segment *s, const struct uuid *device,
                        uint64_t after, uint64_t *position, struct entry *ret, size_t max)
{
    if (!device)
        return entries_of_all(s, after, position, ret, max);
    pthread_mutex_lock(&t->lock);
    bool is_live = s->live != NULL;
    size_t n = is_live ? live_entries(s->live, &s->head, device, after, ret, max) : 0;
    pthread_mutex_unlock(&t->lock);
    return is_live ? (ssize_t) n : footer_entries(s, device, after, ret, max);
}

/* ---- what a reader may see ------------------------------------------------------------------- */

struct sight {
    uint64_t floor;
    int64_t oldest_us;
};

static struct sight sight_of(struct telemetry *t, const struct uuid *device)
{
    pthread_mutex_lock(&t->lock);
    const struct track *k = track_find(t, device);
    struct sight s = {k ? k->floor : 0, track_oldest_us(t, k)};
    pthread_mutex_unlock(&t->lock);
    return s;
}

/* The millisecond of its arrival begins here. */
static int64_t entry_us(const struct segment *s, const struct entry *e)
{
    return e->arrived_ms == UINT32_MAX ? INT64_MAX - 1000
                                       : s->head.base_us + (int64_t) e->arrived_ms * 1000;
}

/* By the entry alone; times only to the millisecond, so a match may still be none. */
static bool may_match(const struct telemetry_query *q, const struct segment *s,
                      const struct entry *e)
{
    unsigned stream = entry_stream(e);
    return stream < TELEMETRY_STREAMS && (q->streams >> stream & 1) &&
           (!q->start_us || entry_us(s, e) + 1000 > q->start_us);
}

/* Neither this nor any later one is wanted. */
static bool is_past(const struct telemetry_query *q, const struct segment *s, const struct entry *e)
{
    return (q->before && entry_id(s, e) >= q->before) ||
           (q->end_us && e->arrived_ms != UINT32_MAX && entry_us(s, e) >= q->end_us);
}

static bool does_match(const struct telemetry_query *q, struct sight sight, const struct uuid *app,
                       uint64_t id, int64_t arrived_us)
{
    return (!q->start_us || arrived_us >= q->start_us) && (!q->end_us || arrived_us < q->end_us) &&
           (!q->app || uuid_eq(q->app, app)) && id > sight.floor && arrived_us >= sight.oldest_us;
}

/* ---- going on -------------------------------------------------------------------------------- */

/* The first segment with something above `after` since start_us, with a reference; or NULL, and
 * *ret_last is how far everything was looked at. */
static struct segment *segment_above(struct telemetry *t, uint64_t after, int64_t start_us,
                                     uint64_t *ret_last)
{
    pthread_mutex_lock(&t->lock);
    struct segment *found = NULL;
    /* From the end: who follows is there. */
    for (size_t i = t->n_segments; i-- > 0;) {
        struct segment *s = t->segments[i];
        if (s->last_id == 0 || s->last_arrived_us < start_us)
            continue;
        if (s->last_id <= after)
            break;
        found = s;
    }
    if (found)
        segment_ref(found);
    *ret_last = t->last_id;
    pthread_mutex_unlock(&t->lock);
    return found;
}

static uint64_t last_id_of(struct telemetry *t, const struct segment *s)
{
    pthread_mutex_lock(&t->lock);
    uint64_t last = s->last_id;
    pthread_mutex_unlock(&t->lock);
    return last;
}

/* 1: the chunk holds entries above the position; 0: no more for now. */
static int fill(struct telemetry_cursor *c)
{
    for (;;) {
        uint64_t last = 0;
        if (!c->segment) {
            c->segment = segment_above(c->t, c->position, c->query.start_us, &last);
            c->scan_at = 0;
        }
        if (!c->segment) {
            c->position = MAX(c->position, last);
            return 0;
        }
        /* Before the look: what comes meanwhile is found the next time. */
        uint64_t end = last_id_of(c->t, c->segment);
        ssize_t n = segment_entries(c->t, c->segment, c->query.device, c->position, &c->scan_at,
                                    c->chunk, CHUNK_ENTRIES);
        /* Ids grow: an index that says otherwise must not keep us here. */
        if (n > 0 && entry_id(c->segment, &c->chunk[n - 1]) > c->position) {
            c->i = 0;
            c->n = (size_t) n;
            return 1;
        }
        if (n < 0)
            log_warning("cannot read telemetry, skipping a segment",
                        LOG_TEXT("path", c->t->directory), LOG_ERRNO((int) n));
        c->position = MAX(c->position, end);
        segment_unref(TAKE(c->segment));
    }
}

/* The next entry that may match. */
static int next_entry(struct telemetry_cursor *c, struct entry *ret)
{
    for (;;) {
        while (c->i < c->n) {
            const struct entry *e = &c->chunk[c->i];
            uint64_t id = entry_id(c->segment, e);
            if (is_past(&c->query, c->segment, e))
                return 0;
            c->i++;
            if (id <= c->position)
                continue;
            c->position = id;
            if (may_match(&c->query, c->segment, e)) {
                *ret = *e;
                return 1;
            }
        }
        int r = fill(c);
        if (r <= 0)
            return r;
    }
}

static void note_damage(struct telemetry *t, const struct segment *s, uint64_t id)
{
    atomic_fetch_add(&t->n_damaged, 1);
    log_warning("telemetry record is damaged, skipping it", LOG_TEXT("path", t->directory),
                LOG_INT("segment", (int64_t) s->head.first_id), LOG_INT("id", (int64_t) id));
}

/* ---- the newest ------------------------------------------------------------------------------ */

static bool is_near(int64_t from_us, int64_t bound_us)
{
    return bound_us >= from_us && bound_us - from_us < 1000;
}

/* Does the entry match? The record's head is read only where the entry cannot tell. */
static bool counts(struct telemetry_cursor *c, const struct segment *s, const struct entry *e,
                   struct sight sight)
{
    const struct telemetry_query *q = &c->query;
    int64_t from_us = entry_us(s, e);
    struct frame f = {.id = entry_id(s, e), .arrived_us = from_us};
    if (!may_match(q, s, e))
        return false;
    if (!q->device || q->app || e->arrived_ms == UINT32_MAX || is_near(from_us, q->start_us) ||
        is_near(from_us, q->end_us) || is_near(from_us, sight.oldest_us)) {
        if (segment_read_frame(s, e->position, &f) < 0)
            return false;
        if (!q->device)
            sight = sight_of(c->t, &f.device);
    }
    return does_match(q, sight, &f.app, f.id, f.arrived_us);
}

/* How many match in a segment, up to max, and the id of the last of them. */
static uint64_t count_in(struct telemetry_cursor *c, struct segment *s, uint64_t max,
                         uint64_t *ret_id)
{
    struct entry chunk[CHUNK_ENTRIES];
    uint64_t n_found = 0, after = c->query.after, scan_at = 0;
    struct sight sight = c->query.device ? sight_of(c->t, c->query.device) : (struct sight){0};
    for (;;) {
        ssize_t n =
            segment_entries(c->t, s, c->query.device, after, &scan_at, chunk, CHUNK_ENTRIES);
        if (n <= 0 || entry_id(s, &chunk[n - 1]) <= after)
            return n_found;
        for (ssize_t i = 0; i < n && n_found < max; i++) {
            if (is_past(&c->query, s, &chunk[i]))
                return n_found;
            if (!counts(c, s, &chunk[i], sight))
                continue;
            n_found++;
            *ret_id = entry_id(s, &chunk[i]);
        }
        if (n_found == max)
            return n_found;
        after = entry_id(s, &chunk[n - 1]);
    }
}

/* Nothing in the segments before this one is wanted. */
static bool is_before(const struct telemetry_query *q, const struct segment *s)
{
    return s->head.first_id - 1 <= q->after || (q->start_us && s->head.base_us < q->start_us);
}

/* From the newest segment back, until there are enough. */
static void place(struct telemetry_cursor *c)
{
    struct telemetry *t = c->t;
    pthread_mutex_lock(&t->lock);
    size_t n = t->n_segments;
    struct segment **all = mem_realloc_array(NULL, MAX(n, 1), sizeof(struct segment *));
    for (size_t i = 0; i < n; i++)
        all[i] = segment_ref(t->segments[i]);
    pthread_mutex_unlock(&t->lock);
    uint64_t n_found = 0, newest = c->query.newest;
    for (size_t i = n; i-- > 0 && n_found < newest;) {
        if (i + 1 < n && is_before(&c->query, all[i + 1]))
            break;
        uint64_t id = 0, here = count_in(c, all[i], UINT64_MAX, &id);
        n_found += here;
        if (n_found < newest)
            continue;
        id = all[i]->head.first_id - 1;
        if (n_found > newest)
            (void) count_in(c, all[i], n_found - newest, &id);
        c->position = MAX(c->position, id);
    }
    for (size_t i = 0; i < n; i++)
        segment_unref(all[i]);
    mem_free(all);
}

int telemetry_next(struct telemetry_cursor *c, struct telemetry_record *ret)
{
    if (c->query.newest && !c->is_placed)
        place(c);
    c->is_placed = true;
    struct entry e;
    int r;
    while ((r = next_entry(c, &e)) > 0) {
        struct telemetry_record record;
        r = segment_read_record(c->segment, &e, &c->frame, &record);
        if (r < 0 || (c->query.device && !uuid_eq(c->query.device, &record.device))) {
            note_damage(c->t, c->segment, entry_id(c->segment, &e));
            continue;
        }
        if (does_match(&c->query, sight_of(c->t, &record.device), &record.app, record.id,
                       record.arrived_us)) {
            *ret = record;
            return 1;
        }
    }
    buf_done(&c->frame); /* whoever waits for more holds nothing */
    return r;
}
