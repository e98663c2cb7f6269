/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "reading/lines.h"
#include "reading/ordered.h"
#include "reading/stream.h"

/*  by arrival:   PLACE (limit) -> READ
 *  by=device:    BOUND (limit) -> GATHER <-> GIVE -> READ (follow) */
enum reading_stage { STAGE_PLACE, STAGE_READ, STAGE_BOUND, STAGE_GATHER, STAGE_GIVE };

struct reading_count {
    uint64_t record, n_lines;
};

struct reading_stream {
    struct annex_stream base;
    struct telemetry *telemetry;
    struct device *device;
    struct reading_query query;
    enum reading_stage stage;
    uint64_t last_id; /* on disk when it began: where what is stored ends */

    struct telemetry_cursor *cursor; /* NULL: the stage has not begun */
    struct telemetry_record record;
    struct lines lines;
    bool is_open;   /* the record */
    int64_t budget; /* of this call, in bytes looked at */

    /* PLACE: back from the end, some records at a time, until there are enough lines. */
    uint64_t before, n_wanted, n_records, first_record;
    uint64_t n_at_once;
    struct reading_count *counts; /* of records with lines that match */
    size_t n_counts, counts_capacity;

    struct reading_id after;   /* what is not behind this was given */
    struct reading_count skip; /* so many matching lines of the record are too old */

    struct ordered ordered;
    struct ordered_key floor; /* what is not above this was given */
    size_t given;             /* of the ordered */
    struct buf text;

    struct telemetry_waiter *waiter;
};

/* 1 and a line that matches; 0: no more; -EAGAIN: the call has looked at enough. */
int stream_next_line(struct reading_stream *s, struct line *ret);
/* A cursor for the stage, from `after` up to the last id that was there at the beginning. */
void stream_open_cursor(struct reading_stream *s, uint64_t after, uint64_t before, uint64_t newest);
void stream_close_cursor(struct reading_stream *s);

/* by=device; as stream_next_line() does: 0 when the stage is over. */
int stream_bound(struct reading_stream *s);
int stream_gather(struct reading_stream *s);
/* false: there is more, but no room. */
bool stream_give(struct reading_stream *s, struct buf *to, size_t room);
/* Where after=<id> is in the order. -ENOENT: it is gone. */
int stream_find_floor(struct reading_stream *s);
