/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this module share. Three threads' worth of work: the writer appends, the keeper
 * indexes, expires and rewrites, whoever reads does it on a thread of its own. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/list.h"
#include "base/map.h"
#include "telemetry/footer.h"

#define TELEMETRY_SEGMENT_BYTES ((int64_t) 64 * 1024 * 1024)
#define TELEMETRY_QUEUED_BYTES ((size_t) 64 * 1024 * 1024)

/* An append on its way; the frame is one run of memory, so that a write takes it as it is. */
struct append {
    struct append *next;
    struct loop *loop;
    void (*done)(void *arg, int64_t result);
    void *arg;
    int64_t result;
    uint64_t position;
    bool is_note; /* the disk is not to be woken for it */
    bool has_digest;
    unsigned char digest[TELEMETRY_DIGEST_BYTES];
    const struct append *repeated; /* of the same group, when this is a repeat */
    struct frame frame;
    unsigned char bytes[]; /* FRAME_BYTES, then the record's */
};

/* The last record of a stream that had a digest. */
struct remembered {
    struct uuid app;
    uint64_t id;
    unsigned char digest[TELEMETRY_DIGEST_BYTES];
    unsigned char stream;
};

/* What is known of a device; made when it first sends, or somebody waits for it. */
struct track {
    struct uuid device;
    uint64_t last_id;  /* of what it sent; 0: nothing */
    uint64_t floor;    /* what is not above this is no longer read */
    int64_t n_bytes;   /* on disk above the floor, never less than it is */
    int64_t max_age_s; /* 0: as the options say */
    struct list waiters;
    struct remembered *remembered;
    size_t n_remembered;
};

struct telemetry {
    struct telemetry_options options;
    char *directory;
    int directory_fd; /* locked */

    pthread_mutex_t lock;      /* of what follows, never held while the disk works */
    struct segment **segments; /* by id; each with a reference */
    size_t n_segments, capacity;
    struct segment *current; /* the last, while it is written */
    struct map tracks;       /* uuid bytes -> struct track */
    struct list waiters;     /* for any device */
    size_t n_waiters;
    pthread_cond_t waiter_fired;
    uint64_t last_id; /* on disk */

    pthread_mutex_t queue_lock; /* of the queue */
    pthread_cond_t queue_filled;
    struct append *queue, **queue_tail;
    size_t n_urgent;           /* of those queued: no notes */
    struct timespec notes_due; /* when something is queued: written then at the latest */
    bool is_stopping;
    atomic_size_t queued_bytes;
    atomic_bool is_full;

    /* The writer's. */
    pthread_t writer;
    uint64_t next_id;
    int64_t last_arrived_us;

    pthread_mutex_t keep_lock; /* one sweep at a time */
    pthread_mutex_t keeper_lock;
    pthread_cond_t keeper_wake;
    bool keeper_is_wanted, keeper_is_stopping;
    pthread_t keeper;

    atomic_ullong n_appended[TELEMETRY_STREAMS], bytes_appended[TELEMETRY_STREAMS];
    atomic_ullong n_refused, n_damaged, n_expired, n_syncs, n_repeats;
};

/* With the lock held. */
struct track *track_of(struct telemetry *t, const struct uuid *device); /* made when missing */
struct track *track_find(const struct telemetry *t, const struct uuid *device);
void tracks_done(struct telemetry *t);
/* A row of a segment found on disk. */
void track_row(struct telemetry *t, const struct row *r);
/* Records that arrived before this are too old to be read; track NULL: by the options. */
int64_t track_oldest_us(const struct telemetry *t, const struct track *k);
void segments_add(struct telemetry *t, struct segment *s); /* takes the reference */

/* repeats.c, with the lock held: what is known of the stream, or NULL. */
struct remembered *remembered_find(const struct track *k, unsigned stream, const struct uuid *app);
/* The record of an append is on disk. */
void remembered_set(struct track *k, const struct append *a);
/* Takes repeats out of the group, and returns them as a list. Takes the lock. */
struct append *repeats_take(struct telemetry *t, struct append **group);
/* Their results, once those of the group are there. */
void repeats_settle(struct telemetry *t, struct append *repeats);

/* load.c: what the directory holds. */
int telemetry_load(struct telemetry *t, char **ret_error);

/* writer.c */
void *writer_main(void *telemetry);
struct append *append_new(const struct telemetry_record *r);
/* Queues it, or fails it with -EAGAIN. */
void append_queue(struct telemetry *t, struct append *a, bool is_forced);

/* keeper.c */
void *keeper_main(void *telemetry);
void keeper_call(struct telemetry *t); /* soon */
/* Everything the keeper does, now: indexes, limits, rewriting. From any thread. */
void telemetry_sweep(struct telemetry *t);

/* waiter.c: calls those who wait for any of these, with no lock held. */
void waiters_wake(struct telemetry *t, const struct append *batch);

/* Entries above `after` in a segment, of one device or of all. *position (0: from the beginning) is
 * where reading all goes on. 0 when there are no more. */
ssize_t segment_entries(struct telemetry *t, struct segment *s, const struct uuid *device,
                        uint64_t after, uint64_t *position, struct entry *ret, size_t max);
