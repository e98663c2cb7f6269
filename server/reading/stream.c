/* SPDX-License-Identifier: Apache-2.0 */
#include "reading/stream.h"

#include <errno.h>

#include "base/alloc.h"
#include "reading/stream_internal.h"

/* Looked at in one call: a reader that went is noticed between two. */
#define BUDGET_BYTES ((int64_t) 8 * 1024 * 1024)
#define RECORD_COST 1024
#define PLACE_MIN_RECORDS 64
#define PLACE_MAX_RECORDS 1024

/* ---- records --------------------------------------------------------------------------------- */

static const unsigned streams_of[READING_WHATS] = {
    [READING_LOG] = 1u << TELEMETRY_LOG | 1u << TELEMETRY_APP_LOG,
    [READING_INFO] = 1u << TELEMETRY_INFO,
    [READING_METRICS] = 1u << TELEMETRY_METRICS,
    [READING_FLOWLOG] = 1u << TELEMETRY_FLOWLOG,
    [READING_HARDWARE] = 1u << TELEMETRY_HARDWARE,
    [READING_REQUESTS] = 1u << TELEMETRY_REQUESTS,
};

static struct telemetry_query query_of(const struct reading_stream *s)
{
    const struct reading_query *q = &s->query;
    struct telemetry_query t = {.device = &s->device->uuid, .streams = streams_of[q->what]};
    if (q->what == READING_LOG && q->has_app) {
        t.streams = uuid_is_zero(&q->app) ? 1u << TELEMETRY_LOG : 1u << TELEMETRY_APP_LOG;
        t.app = uuid_is_zero(&q->app) ? NULL : &q->app;
    }
    if (!q->is_by_device) {
        t.start_us = q->start_us;
        t.end_us = q->end_us;
    }
    return t;
}

void stream_open_cursor(struct reading_stream *s, uint64_t after, uint64_t before, uint64_t newest)
{
    struct telemetry_query t = query_of(s);
    t.after = after;
    t.before = before;
    t.newest = newest;
    s->cursor = telemetry_read(s->telemetry, &t);
    s->n_records = 0;
}

void stream_close_cursor(struct reading_stream *s)
{
    lines_close(&s->lines);
    s->is_open = false;
    telemetry_cursor_free(TAKE(s->cursor));
}

int stream_next_line(struct reading_stream *s, struct line *ret)
{
    for (;;) {
        if (!s->is_open) {
            if (s->budget <= 0)
                return -EAGAIN;
            int r = telemetry_next(s->cursor, &s->record);
            if (r <= 0)
                return 0;
            if (s->n_records++ == 0)
                s->first_record = s->record.id;
            lines_open(&s->lines, &s->record);
            s->budget -= RECORD_COST + (int64_t) (s->record.bytes.n + s->lines.inflated.n);
            s->is_open = true;
        }
        while (lines_next(&s->lines, ret))
            if (line_matches(ret, &s->query))
                return 1;
        lines_close(&s->lines);
        s->is_open = false;
    }
}

/* ---- where to begin -------------------------------------------------------------------------- */

/* The last record of which nothing more is to be given. */
static uint64_t given_record(const struct reading_stream *s)
{
    return s->after.line && s->after.record ? s->after.record - 1 : s->after.record;
}

static bool was_given(const struct reading_stream *s, const struct line *line)
{
    return line->id.record == s->after.record &&
           (s->after.line == 0 || line->id.line <= s->after.line);
}

static void count_line(struct reading_stream *s, const struct line *line)
{
    if (s->n_counts == 0 || s->counts[s->n_counts - 1].record != line->id.record) {
        if (s->n_counts == s->counts_capacity) {
            s->counts_capacity = MAX(s->counts_capacity * 2, 64);
            s->counts = mem_realloc_array(s->counts, s->counts_capacity, sizeof(*s->counts));
        }
        s->counts[s->n_counts++] = (struct reading_count){line->id.record, 0};
    }
    s->counts[s->n_counts - 1].n_lines++;
}

/* true: the beginning is found among what was counted. */
static bool settle(struct reading_stream *s)
{
    for (size_t i = s->n_counts; i-- > 0;) {
        const struct reading_count *c = &s->counts[i];
        if (c->n_lines >= s->n_wanted) {
            s->skip = (struct reading_count){c->record, c->n_lines - s->n_wanted};
            return true;
        }
        s->n_wanted -= c->n_lines;
    }
    s->before = s->first_record;
    return s->n_records < s->n_at_once;
}

/* Goes back from the end until the newest `limit` lines are found: 0 when they are. */
static int place(struct reading_stream *s)
{
    struct line line;
    for (;;) {
        if (!s->cursor) {
            s->n_at_once = MIN(MAX(s->n_wanted, PLACE_MIN_RECORDS), PLACE_MAX_RECORDS);
            s->n_counts = 0;
            stream_open_cursor(s, given_record(s), s->before, s->n_at_once);
        }
        int r;
        while ((r = stream_next_line(s, &line)) > 0)
            if (!was_given(s, &line))
                count_line(s, &line);
        if (r < 0)
            return r;
        stream_close_cursor(s);
        if (settle(s))
            break;
    }
    mem_free(TAKE(s->counts));
    s->n_counts = s->counts_capacity = 0;
    return 0;
}

/* ---- the stages ------------------------------------------------------------------------------ */

static bool is_wanted(struct reading_stream *s, const struct line *line)
{
    if (was_given(s, line))
        return false;
    if (line->id.record != s->skip.record || s->skip.n_lines == 0)
        return true;
    s->skip.n_lines--;
    return false;
}

static enum annex_read read_lines(struct reading_stream *s, struct buf *to, size_t room)
{
    if (!s->cursor) {
        uint64_t after = given_record(s);
        if (s->skip.record)
            after = MAX(after, s->skip.record - 1);
        stream_open_cursor(s, after, s->query.is_following ? 0 : s->last_id + 1, 0);
    }
    struct line line;
    while (to->n < room) {
        int r = stream_next_line(s, &line);
        if (r < 0)
            return ANNEX_MORE;
        if (r == 0)
            return s->query.is_following && !atomic_load(&s->device->is_gone) ? ANNEX_WAIT
                                                                              : ANNEX_END;
        if (is_wanted(s, &line))
            line_write(&line, s->query.is_binary, to);
    }
    return ANNEX_MORE;
}

static enum annex_read read_ordered(struct reading_stream *s, struct buf *to, size_t room)
{
    for (;;) {
        if (s->stage == STAGE_BOUND) {
            if (stream_bound(s) < 0)
                return ANNEX_MORE;
            s->stage = STAGE_GATHER;
        }
        if (s->stage == STAGE_GATHER) {
            if (stream_gather(s) < 0)
                return ANNEX_MORE;
            s->stage = STAGE_GIVE;
        }
        if (!stream_give(s, to, room))
            return ANNEX_MORE;
        if (!s->ordered.is_partial)
            break;
        s->stage = STAGE_GATHER;
    }
    ordered_done(&s->ordered);
    buf_done(&s->text);
    if (!s->query.is_following)
        return ANNEX_END;
    /* What comes now is given as it comes. */
    s->after = (struct reading_id){.record = s->last_id};
    s->stage = STAGE_READ;
    return ANNEX_MORE;
}

static enum annex_read on_read(struct annex_stream *base, struct buf *to, size_t room)
{
    struct reading_stream *s = CONTAINER_OF(base, struct reading_stream, base);
    s->budget = BUDGET_BYTES;
    if (s->stage == STAGE_PLACE) {
        if (place(s) < 0)
            return ANNEX_MORE;
        s->stage = STAGE_READ;
    }
    return s->stage == STAGE_READ ? read_lines(s, to, room) : read_ordered(s, to, room);
}

/* ---- the stream ------------------------------------------------------------------------------ */

static void on_wait(struct annex_stream *base, void (*wake)(void *arg), void *arg)
{
    struct reading_stream *s = CONTAINER_OF(base, struct reading_stream, base);
    struct telemetry_query t = query_of(s);
    t.after = telemetry_cursor_position(s->cursor);
    s->waiter = telemetry_wait(s->telemetry, &t, wake, arg);
}

static void on_cancel(struct annex_stream *base)
{
    struct reading_stream *s = CONTAINER_OF(base, struct reading_stream, base);
    telemetry_cancel(TAKE(s->waiter));
}

static void on_close(struct annex_stream *base)
{
    struct reading_stream *s = CONTAINER_OF(base, struct reading_stream, base);
    telemetry_cancel(s->waiter);
    telemetry_cursor_free(s->cursor);
    device_unref(s->device);
    lines_done(&s->lines);
    ordered_done(&s->ordered);
    buf_done(&s->text);
    mem_free(s->counts);
    mem_free(s);
}

static enum reading_stage first_stage(const struct reading_query *q)
{
    if (q->is_by_device)
        return q->limit ? STAGE_BOUND : STAGE_GATHER;
    return q->limit ? STAGE_PLACE : STAGE_READ;
}

struct annex_stream *reading_stream_new(struct telemetry *t, struct device *device,
                                        const struct reading_query *q, struct status *st)
{
    struct reading_stream *s = NEW(struct reading_stream);
    s->base = (struct annex_stream){on_read, on_wait, on_cancel, on_close};
    s->telemetry = t;
    s->device = device_ref(device);
    s->query = *q;
    s->stage = first_stage(q);
    s->last_id = telemetry_last_id(t);
    s->before = s->last_id + 1;
    s->n_wanted = q->limit;
    s->floor = (struct ordered_key){.time_us = INT64_MIN};
    if (q->has_after && !q->is_by_device)
        s->after = q->after;
    if (q->has_after && q->is_by_device && stream_find_floor(s) < 0) {
        (void) status_fail(st, 410, "Expired",
                           "the line that the parameter after names is no longer kept: with "
                           "by=device there is no way to go on from it");
        on_close(&s->base);
        return NULL;
    }
    return &s->base;
}
