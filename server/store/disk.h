/* SPDX-License-Identifier: Apache-2.0 */
/* The store's file: a log of rows in SQLite. The only user of SQLite in the store but for copies of
 * the file (backup.c). It knows rows and revisions, nothing of what they mean.
 *
 * Threads: one writes, one may checkpoint at the same time; opening, loading and closing happen
 * alone. */
#pragma once

#include "store/row.h"

#define DISK_CHECKPOINT_BYTES (4 * 1024 * 1024)

struct disk;

enum disk_access {
    DISK_SERVE, /* takes the lock, creates a missing file, writes */
    DISK_CHECK, /* reads an existing file that nobody else has, without the lock */
};

/* Failure: negative errno and *ret_error (heap) as store_open() says. */
int disk_open(const char *path, enum disk_access access, struct disk **ret_disk, char **ret_error);
/* Checkpoints, closes, gives up the lock. NULL allowed. */
void disk_close(struct disk *d);
DEFINE_CLEANUP(struct disk *, disk_close)

/* The oldest revision a read may begin at, as the file has it. */
int64_t disk_floor(const struct disk *d);
/* Calls on_row for each row in revision order until it returns a negative errno and *ret_error. The
 * row is valid during the call. Pages are checked as a whole; rows are as they lie in the file. */
int disk_load(struct disk *d, int (*on_row)(void *ctx, const struct row *row, char **ret_error),
              void *ctx, char **ret_error);

/* ---- a group: begin, any of the middle ones, then commit or roll back ------------------------ */

/* All return -ENOSPC when the disk is full, -EIO for anything else. */
int disk_begin(struct disk *d);
int disk_append(struct disk *d, const struct row *row);
/* Deletes a row; no failure when there is none. */
int disk_delete(struct disk *d, int64_t revision);
int disk_set_floor(struct disk *d, int64_t floor);
/* Durable when it returns 0. */
int disk_commit(struct disk *d);
void disk_rollback(struct disk *d);
/* SQLite's words for the last failure of these. */
const char *disk_last_error(const struct disk *d);

/* ---- rewriting: in groups too, while nobody else writes -----------------------------------------
 */

/* Copies key and text into room. -ENOENT: there is no such row. */
int disk_read(struct disk *d, int64_t revision, struct buf *room, struct row *ret_row);
/* Gives the row of that revision another text and checksum. */
int disk_rewrite(struct disk *d, const struct row *row);
/* Before the first group: from here on what is replaced is overwritten too. */
int disk_begin_rewriting(struct disk *d);
/* Notes in the file, with the group, that it is to be scrubbed; whoever opens it next can ask. */
int disk_want_scrub(struct disk *d);
bool disk_is_scrub_wanted(const struct disk *d);
/* Builds the file anew, so that neither it nor its log holds anything of what was replaced or
 * deleted before. Takes as much memory as the file is long. -EBUSY: somebody reads an older state.
 */
int disk_scrub(struct disk *d);

/* ---- upkeep -------------------------------------------------------------------------------- */

/* Size of the write-ahead log in use, as of the last commit. */
int64_t disk_wal_bytes(const struct disk *d);
/* Moves what it can from the write-ahead log into the file without holding up the writer. */
void disk_checkpoint(struct disk *d);

/* ---- words and files ------------------------------------------------------------------------ */

/* "<path>: <what is wrong>; restore ...", for a damaged file. */
char *disk_damage(const char *path, const char *format, ...) PRINTF_LIKE(2, 3);
/* "<path>: <doing>: <errno in words>". */
char *disk_complaint(const char *path, const char *doing, int negative_errno);
/* path with suffix, heap. */
char *disk_sibling(const char *path, const char *suffix);
int disk_sync_directory(const char *path);
int disk_sync_file(const char *path);
/* Takes the lock that a serving process holds; a file descriptor, to be closed, or -EBUSY and
 * others. */
int disk_lock(const char *path, char **ret_error);

#define DISK_RESTORING_SUFFIX ".restoring"
