/* SPDX-License-Identifier: Apache-2.0 */
/* One segment file: its head, frames up to `end`, and behind them, once nothing more is written, an
 * index by device (footer.h). Shared by reference count: one that is deleted or replaced is read to
 * the end by whoever holds it. */
#pragma once

#include <stdatomic.h>

#include "base/buf.h"
#include "telemetry/frame.h"

struct live;

/* Where a record is; 16 bytes, also on disk. */
struct entry {
    uint32_t position;    /* of its frame */
    uint32_t size_stream; /* of frame and bytes, then three bits of stream */
    uint32_t id_delta;    /* from the head's first id */
    uint32_t arrived_ms;  /* from the head's base */
};

struct segment {
    atomic_uint refs;
    int fd;
    struct segment_head head;
    _Atomic uint64_t end; /* frames before it are good and on disk */
    /* The rest belongs to the telemetry's lock once others see the segment. */
    uint64_t last_id; /* 0: no frames */
    int64_t last_arrived_us;
    uint64_t n_records, file_bytes;
    struct live *live;          /* its index while it has no footer */
    uint32_t n_rows, n_entries; /* of the footer */
};

/* Ids a segment may span: entries hold them in 32 bits. */
#define SEGMENT_MAX_IDS ((uint64_t) UINT32_MAX)
/* Positions are 32 bits, too. */
#define SEGMENT_MAX_BYTES ((uint64_t) 2 * 1024 * 1024 * 1024)

#define SEGMENT_NAME_BYTES 24
void segment_name(uint64_t first_id, const char *suffix, char out[SEGMENT_NAME_BYTES]);
/* -EINVAL: not the name of a segment. */
int segment_parse_name(const char *name, uint64_t *ret_first_id);

/* With fresh salt and one reference, in the file `name`, on disk. */
int segment_create(int directory, const char *name, uint64_t first_id, int64_t base_us,
                   struct segment **ret);
/* Reads the head alone: no index, end at the head's. -EBADMSG: the head is damaged. */
int segment_open(int directory, const char *name, struct segment **ret);
struct segment *segment_ref(struct segment *s);
void segment_unref(struct segment *s); /* NULL allowed */
DEFINE_CLEANUP(struct segment *, segment_unref)

/* Whole frames at a position, into `to`; checked. 0, -EBADMSG, other errno. */
int segment_read_frame(const struct segment *s, uint64_t position, struct frame *ret);
int segment_read_record(const struct segment *s, const struct entry *e, struct buf *to,
                        struct telemetry_record *ret);
/* All n bytes or an errno; -EBADMSG when the file ends before. */
int segment_pread(const struct segment *s, void *to, size_t n, uint64_t position);
int segment_pwrite(const struct segment *s, const void *from, size_t n, uint64_t position);

static inline struct entry entry_of(const struct segment_head *h, const struct frame *f,
                                    uint64_t position)
{
    uint64_t ms = (uint64_t) (f->arrived_us - h->base_us) / 1000;
    return (struct entry){(uint32_t) position,
                          (uint32_t) (FRAME_BYTES + f->n_bytes) << FRAME_STREAM_BITS | f->stream,
                          (uint32_t) (f->id - h->first_id), (uint32_t) MIN(ms, UINT32_MAX)};
}
static inline uint32_t entry_size(const struct entry *e)
{
    return e->size_stream >> FRAME_STREAM_BITS;
}
static inline unsigned entry_stream(const struct entry *e)
{
    return e->size_stream & ((1u << FRAME_STREAM_BITS) - 1);
}
static inline uint64_t entry_id(const struct segment *s, const struct entry *e)
{
    return s->head.first_id + e->id_delta;
}

/* ---- finding the frames of a file (scan.c) -------------------------------------------------- */

struct scan {
    void (*on_frame)(void *ctx, const struct frame *f, uint64_t position);
    void *ctx;
    /* Results. */
    uint64_t end;        /* of the last good frame */
    uint64_t n_damaged;  /* places with good frames behind them */
    uint64_t n_bad_tail; /* bytes behind the last good frame */
};
/* Every good frame of the first n_bytes, in order; what is damaged is skipped. Linear in the
 * file's size whatever it holds. Negative errno: the disk cannot be read from some place on;
 * the results then hold up to there. */
int segment_scan(const struct segment *s, uint64_t n_bytes, struct scan *scan);
/* Where the next good frame head is from `at` on; `end` when there is none. */
uint64_t segment_next_frame(const struct segment *s, uint64_t at, uint64_t end);
