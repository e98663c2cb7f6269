/* SPDX-License-Identifier: Apache-2.0 */
/* The store: a log of revisions under an in-memory index of every version still remembered. One
 * writer thread assigns gapless revisions and commits whatever arrived while the last group was
 * being written; a write is answered after its group is on disk. Reads never touch the disk.
 *
 * Keys are `<collection>/<namespace>/<name>` (an empty namespace for cluster-wide kinds), where the
 * collection is the plural and group of a kind (`devices.eve.lfedge.org`, `configmaps`). Iteration
 * is in byte order of the key.
 *
 * Threads: every function may be called from any thread unless said otherwise. */
#pragma once

#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"
#include "store/object.h"

struct store;

/* ---- life --------------------------------------------------------------------------------- */

/* How texts of some collections are made unreadable in the file; memory always holds them plain. A
 * file may hold both: each text shows which it is. `bound` names the one row that a text belongs
 * to, so that nobody can put it in the place of another. */
struct store_cipher {
    void *ctx;
    /* The file is this process's alone and none of its rows was read yet. */
    int (*on_locked)(void *ctx, char **ret_error);
    /* Every row could be read; writes follow. */
    int (*on_loaded)(void *ctx, char **ret_error);
    /* Whether texts of the collection are sealed when they are written. */
    bool (*wants)(void *ctx, struct str collection);
    /* Whether the text is as seal() would make it now. */
    bool (*is_current)(void *ctx, struct str sealed);
    /* Appends at most STORE_SEAL_MAX_BYTES more than the plain text has. */
    int (*seal)(void *ctx, struct str bound, struct str plain, struct buf *to);
    /* Appends the plain text. Failure: negative errno and *ret_error (heap, for a person: what it
     * lacks and what to do). */
    int (*open)(void *ctx, struct str bound, struct str sealed, struct buf *to, char **ret_error);
};

#define STORE_SEAL_MAX_BYTES 256

struct store_options {
    const char *path; /* the SQLite file */
    /* Fills the head of a stored text when the file is read at start; -EINVAL refuses the file. */
    int (*parse_head)(void *ctx, struct str key, struct str text, struct object_head *ret_head);
    void *ctx;
    const struct store_cipher *cipher; /* NULL: nothing is sealed, and what is cannot be read */
    const struct clock *clock;
    int64_t history_max_age_ms; /* 0: the default, 5 minutes */
    int64_t history_max_bytes;  /* of superseded versions; 0: the default, 64 MiB */
};

/* Opens or creates. Failure: negative errno and *ret_error (heap, for a person: names the file,
 * says what is wrong and which command mends it). -EBADMSG: corrupt; -EBUSY: another process has
 * it; -ENOKEY and others of the cipher's. Texts that should be sealed and are not, or not as they
 * would be now, are written again, and nothing is left of them in the file as they were. */
int store_open(const struct store_options *options, struct store **ret_store, char **ret_error);
/* Waits for what was submitted, checkpoints, closes. Nobody follows any more. NULL allowed. */
void store_close(struct store *s);

/* ---- writing ------------------------------------------------------------------------------ */

enum store_condition {
    STORE_CREATE,  /* the key must not exist */
    STORE_REPLACE, /* the key must exist at expected_revision */
    STORE_REMOVE,  /* likewise */
};

/* One write. Owned by the submitter; must stay until on_done. */
struct store_write {
    enum store_condition condition;
    struct str key;
    int64_t expected_revision;
    struct object
        *object; /* the new version, one reference taken over; for STORE_REMOVE the last state to
                    show to watchers (its text gets the revision of the removal) */
    /* Called once on the writer thread, after the commit is durable and visible to readers (or has
     * failed): do nothing there but hand over to a thread of one's own. */
    void (*on_done)(struct store_write *w);

    /* Results, valid from on_done on. */
    int result; /* 0; -EEXIST create of a key that exists; -ENOENT gone; -ESTALE another revision;
                   -ENOSPC disk full; -EIO; -EINVAL no valid key, or an object larger than
                   OBJECT_MAX_BYTES */
    int64_t revision;
    struct object *committed; /* with one reference for the submitter; on -EEXIST and -ESTALE: the
                                 current version */

    struct list link; /* the store's */
};

void store_submit(struct store *s, struct store_write *w);
/* Submits and waits. For tests and for threads that may block. Returns w->result. */
int store_write_sync(struct store *s, struct store_write *w);

/* Waits until everything submitted before has been answered. */
void store_settle(struct store *s);

/* ---- reading ------------------------------------------------------------------------------ */

/* The newest committed revision. */
int64_t store_revision(struct store *s);
/* The newest revision at which a read or feed can no longer begin. */
int64_t store_compacted(struct store *s);
/* Newest version with a reference, or NULL. */
struct object *store_get(struct store *s, struct str key);

struct store_range {
    struct str collection;
    struct str namespace; /* STR_NONE: all */
    struct str after;     /* "<namespace>/<name>" to begin behind; STR_NONE: from the start */
    int64_t at;           /* 0: newest; else the state at that revision */
    size_t limit;         /* 0: no limit on objects */
    /* Objects for which this says false are left out and do not count against the limit. NULL: take
     * all. */
    bool (*filter)(void *ctx, const struct object *o);
    void *ctx;
};

struct store_page {
    struct object **objects; /* heap, each with a reference */
    size_t n;
    int64_t revision; /* the state that was read */
    bool has_more;
    int64_t n_remaining; /* objects behind the page, counted without the filter's help; -1 when a
                            filter is set */
};

/* -ERANGE: `at` is compacted; -EAGAIN: `at` is in the future. */
int store_list(struct store *s, const struct store_range *range, struct store_page *ret_page);
void store_page_done(struct store_page *p);
/* How many objects the collection has now. */
size_t store_count(struct store *s, struct str collection);

/* ---- following ---------------------------------------------------------------------------- */

enum store_event_type { STORE_ADDED, STORE_MODIFIED, STORE_DELETED };

/* Immutable and shared; objects are referenced by the event. */
struct store_event {
    struct bytes bytes; /* reference count; first member */
    enum store_event_type type;
    int64_t revision;
    struct str collection; /* interned: lives as long as the store */
    struct object
        *object; /* the new version; for DELETED the last state with the revision of the removal */
    struct object *previous; /* NULL for ADDED */
};

/* A follower sees every commit after its start, in revision order, without gap or repeat. */
struct store_follower {
    /* Called on the writer thread (or in store_follow() for the past), one call per commit group,
     * events in order; take references on what is kept. `revision` is the newest revision the group
     * reached. No store call inside. */
    void (*on_events)(struct store_follower *f, struct store_event *const *events, size_t n_events,
                      int64_t revision);
    struct list link; /* the store's */
};

/* Begins following now; *ret_revision is the revision after which events will come. */
void store_follow(struct store *s, struct store_follower *f, int64_t *ret_revision);
/* After return on_events is not running and will not be called again. */
void store_unfollow(struct store *s, struct store_follower *f);

/* Events of one collection with from < revision <= to, oldest first, each with a reference, in a
 * heap array. -ERANGE when `from` is older than what is remembered. */
int store_history(struct store *s, struct str collection, int64_t from, int64_t to,
                  struct store_event ***ret_events, size_t *ret_n);

/* ---- upkeep ------------------------------------------------------------------------------- */

/* Forgets what came before the revision `before` (clamped to the newest): reads and feeds may still
 * begin at it, and store_compacted() is the one below. Done by the store itself by age and size.
 * Not from on_done or on_events. */
void store_compact(struct store *s, int64_t before);

struct store_stats {
    int64_t revision, compacted;
    int64_t n_objects, n_versions;
    int64_t file_bytes, wal_bytes;
    int64_t n_commits, n_writes; /* groups and writes since start */
    bool is_full;                /* the last group failed for want of space */
};
void store_stats(struct store *s, struct store_stats *ret_stats);

/* A consistent copy while the server runs (from any process): store_backup(from, to). Refuses to
 * overwrite. store_restore() checks the copy, refuses while a server has the data, and keeps the
 * old file beside it as *.before-restore. */
int store_backup(const char *path, const char *to, char **ret_error);
int store_restore(const char *from, const char *path, char **ret_error);

/* A store that is opened only to be sealed anew, which a server must not have meanwhile (-EBUSY).
 */
struct store_reseal;
/* Reads and checks everything, as a start does; options->cipher is there. */
int store_reseal_open(const struct store_options *options, struct store_reseal **ret_reseal,
                      char **ret_error);
/* Seals again every text that is sealed or should be, as the cipher does it now; on success the
 * file holds nothing of what they were before. Interrupted at any point it leaves a store whose
 * texts are sealed one way or the other. */
int store_reseal_run(struct store_reseal *rs, size_t *ret_n_rows, char **ret_error);
/* Gives the store up. NULL allowed. */
void store_reseal_close(struct store_reseal *rs);
DEFINE_CLEANUP(struct store_reseal *, store_reseal_close)
