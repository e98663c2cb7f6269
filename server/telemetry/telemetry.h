/* SPDX-License-Identifier: Apache-2.0 */
/* What devices send, kept as they sent it: append-only segment files apart from the object store.
 * An append is answered when it is on disk, together with whatever else arrived meanwhile; a reader
 * never makes a writer wait. */
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "base/uuid.h"
#include "loop/loop.h"

#define TELEMETRY_MAX_RECORD_BYTES ((size_t) 4 * 1024 * 1024)
#define TELEMETRY_DIGEST_BYTES 16
/* Streams of one device (its own logs, those of each application) whose last record is remembered;
 * of more, those that were quiet for longest are forgotten. */
#define TELEMETRY_MAX_REMEMBERED 64

enum telemetry_stream {
    TELEMETRY_LOG,      /* of the device; form gzip (newlogs) or a LogBundle */
    TELEMETRY_APP_LOG,  /* of an application; form gzip or an AppInstanceLogBundle */
    TELEMETRY_INFO,     /* ZInfoMsg */
    TELEMETRY_METRICS,  /* ZMetricMsg */
    TELEMETRY_FLOWLOG,  /* FlowMessage */
    TELEMETRY_HARDWARE, /* ZHardwareHealth */
    TELEMETRY_REQUESTS, /* what the device asked of us: JSON */
    TELEMETRY_STREAMS
};
enum telemetry_form { TELEMETRY_PROTO, TELEMETRY_GZIP, TELEMETRY_JSON };

struct telemetry_record {
    uint64_t id; /* given by the store: grows with every record, never used twice, the resume id */
    struct uuid device;
    struct uuid app; /* zero: none */
    enum telemetry_stream stream;
    enum telemetry_form form;
    int64_t arrived_us; /* wall clock; given by the store, never goes back */
    int64_t device_us;  /* the newest time the device says it speaks of; 0: it does not say */
    struct str bytes;
    /* For an append, TELEMETRY_DIGEST_BYTES of the bytes' hash: a record with the digest of the
     * last one of the same device, stream and application is a repeat. It is not kept again, and is
     * answered with the id of the first, never before that is on disk. NULL: kept in any case. */
    const unsigned char *digest;
};

struct telemetry_options {
    const char *directory; /* made when missing */
    const struct clock *clock;
    int64_t max_age_s;        /* of records; 0: no limit */
    int64_t max_bytes;        /* of everything; 0: no limit */
    int64_t max_device_bytes; /* of one device; 0: no limit */
    int64_t segment_bytes;    /* 0: the default */
    size_t max_queued_bytes;  /* waiting to be written; beyond it an append fails with -EAGAIN */
};

struct telemetry;
/* Failure: negative errno and *ret_error (heap). A segment torn by a crash is cut where it ends; a
 * damaged one is read as far as it is good, the rest counted and named in the log. */
int telemetry_open(const struct telemetry_options *o, struct telemetry **ret, char **ret_error);
/* Writes what is queued, then frees. NULL allowed. */
void telemetry_free(struct telemetry *t);

/* Copies the record. done(arg, id or negative errno) on the loop's thread once it is on disk:
 * -ENOSPC, -EAGAIN too much waits, -EMSGSIZE, -EIO. loop NULL: done runs on the writer's thread, or
 * at once when it is refused. From any thread. */
void telemetry_append(struct telemetry *t, const struct telemetry_record *r, struct loop *loop,
                      void (*done)(void *arg, int64_t result), void *arg);
/* Whether the digest of the last record is known; after a start it is not. From any thread. */
bool telemetry_remembers(struct telemetry *t, const struct telemetry_record *r);
/* Tells it, with the id of a record that was read, unless something newer is known by now. */
void telemetry_remember(struct telemetry *t, const struct telemetry_record *r);
/* What may be lost in a crash, and need not be there at once: it goes to disk with the next record
 * that somebody waits for, or after a second. Costs its thread a copy. Copies the record; one that
 * is too large, or too much when others wait, is dropped and counted. From any thread. */
void telemetry_note(struct telemetry *t, const struct telemetry_record *r);
/* Bytes waiting to be written: what shedding goes by. From any thread. */
size_t telemetry_queued_bytes(const struct telemetry *t);
bool telemetry_is_full(const struct telemetry *t); /* the disk */

/* A device is gone for good: its records are no longer read, and go with the next sweep. */
void telemetry_forget(struct telemetry *t, const struct uuid *device);
/* Limits of one device that differ from the options' (0: as the options say); what is over them
 * goes with the next sweep. */
void telemetry_limit(struct telemetry *t, const struct uuid *device, int64_t max_age_s);

/* ---- reading ------------------------------------------------------------------------------ */

struct telemetry_query {
    const struct uuid *device; /* NULL: of all devices */
    unsigned streams;          /* mask: 1u << TELEMETRY_LOG ... */
    const struct uuid *app;    /* NULL: any */
    uint64_t after;            /* ids above this only */
    uint64_t before;           /* ids below this only; 0: no limit */
    int64_t start_us, end_us;  /* of arrival, end not included; 0: open */
    uint64_t newest;           /* only the newest this many that match the rest; 0: all */
};

/* Blocks on the disk: for worker threads, one thread at a time. Sees what was on disk when it came
 * to the end; asked again, it goes on with what came since. */
struct telemetry_cursor;
struct telemetry_cursor *telemetry_read(struct telemetry *t, const struct telemetry_query *q);
/* 1 and a record, whose bytes live until the next call; 0: no more for now; negative errno. */
int telemetry_next(struct telemetry_cursor *c, struct telemetry_record *ret);
void telemetry_cursor_free(struct telemetry_cursor *c); /* NULL allowed */

/* Of the last record on disk; 0: none. From any thread. */
uint64_t telemetry_last_id(struct telemetry *t);
/* Every record up to this id was looked at, wanted or not: where to wait from, once there is no
 * more. */
uint64_t telemetry_cursor_position(const struct telemetry_cursor *c);

/* Calls wake(arg) once, on some thread, when a record that the query wants has come to disk since
 * id `after` (at once, before this returns, when the device sent anything since), or the device was
 * forgotten. Cancelled: wake is not running and will not be called; wake itself may cancel. */
struct telemetry_waiter;
struct telemetry_waiter *telemetry_wait(struct telemetry *t, const struct telemetry_query *q,
                                        void (*wake)(void *arg), void *arg);
void telemetry_cancel(struct telemetry_waiter *w); /* NULL allowed; also after wake: frees it */

struct telemetry_stats {
    uint64_t n_appended[TELEMETRY_STREAMS], bytes_appended[TELEMETRY_STREAMS];
    uint64_t n_refused, n_damaged, n_expired;
    uint64_t n_repeats; /* not kept again */
    uint64_t n_syncs;
    size_t n_segments, disk_bytes, queued_bytes;
};
/* From any thread. */
void telemetry_stats(const struct telemetry *t, struct telemetry_stats *ret);
