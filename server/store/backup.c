/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of the store's file, checked before they count, and putting one back. */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "store/disk.h"
#include "store/replay.h"

#define PARTIAL_SUFFIX ".partial"
#define KEPT_SUFFIX ".before-restore"
/* How many files kept by earlier restores to look past. */
#define KEPT_MAX 1000
#define COPY_BUSY_TIMEOUT_MS 10000

/* ---- copying ------------------------------------------------------------------------------- */

static bool exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static int copy_failure(const char *from, const char *to, sqlite3 *db, int rc, char **ret_error)
{
    int primary = rc & 0xff;
    if (primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB) {
        *ret_error = disk_damage(from, "the file is damaged (%s)", sqlite3_errmsg(db));
        return -EBADMSG;
    }
    int e = sqlite3_system_errno(db);
    int r = primary == SQLITE_FULL ? -ENOSPC : primary == SQLITE_BUSY ? -EBUSY : e ? -e : -EIO;
    BUF_AUTO doing = {0};
    buf_printf(&doing, "cannot copy to %s: %s", to, sqlite3_errmsg(db));
    *ret_error = disk_complaint(from, doing.p, r);
    return r;
}

/* SQLite rewrites the whole file, so that the copy is dense, is one state, and needs no write-ahead
 * log. It would create the file readable to all. */
static int copy(const char *from, const char *to, char **ret_error)
{
    int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) {
        int r = -errno;
        *ret_error = disk_complaint(to, "cannot create", r);
        return r;
    }
    (void) close(fd);
    sqlite3 *db = NULL;
    int rc = sqlite3_open_v2(from, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE, NULL);
    char *sql = sqlite3_mprintf("VACUUM INTO %Q", to);
    (void) sqlite3_busy_timeout(db, COPY_BUSY_TIMEOUT_MS);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    int r = rc == SQLITE_OK ? 0 : copy_failure(from, to, db, rc, ret_error);
    sqlite3_free(sql);
    (void) sqlite3_close(db);
    return r;
}

/* ---- checking ------------------------------------------------------------------------------ */

static int replay_one(void *ctx, const struct row *row, char **ret_error)
{
    return replay_row(ctx, row, ret_error);
}

/* Reads the copy as a start would. What is wrong with it was wrong in the original. */
static int check(const char *path, const char *original, char **ret_error)
{
    CLEANUP(disk_closep) struct disk *d = NULL;
    int r = disk_open(path, DISK_CHECK, &d, ret_error);
    if (r < 0)
        return r;
    struct index ix;
    struct sweep sweep = {0};
    index_init(&ix, /* floor= */ 1);
    struct replay rp = {.ix = &ix,
                        .sweep = &sweep,
                        .path = original,
                        .floor = disk_floor(d),
                        .leaves_sealed = true};
    r = disk_load(d, replay_one, &rp, ret_error);
    replay_done(&rp);
    sweep_done(&sweep);
    index_done(&ix);
    return r;
}

/* A copy at `to` that is known to be whole and on disk. */
static int copy_checked(const char *from, const char *to, char **ret_error)
{
    int r = copy(from, to, ret_error);
    if (r == 0)
        r = check(to, from, ret_error);
    if (r == 0) {
        r = disk_sync_file(to);
        if (r < 0)
            *ret_error = disk_complaint(to, "cannot write", r);
    }
    if (r < 0)
        (void) unlink(to);
    return r;
}

/* ---- backup -------------------------------------------------------------------------------- */

/* Gives the finished copy its name, never over another file. */
static int put_in_place(const char *partial, const char *to, char **ret_error)
{
    int r = renameat2(AT_FDCWD, partial, AT_FDCWD, to, RENAME_NOREPLACE) < 0 ? -errno : 0;
    if (r == 0)
        r = disk_sync_directory(to);
    if (r < 0) {
        *ret_error = disk_complaint(to, "cannot put the copy in place", r);
        (void) unlink(partial);
    }
    return r;
}

int store_backup(const char *path, const char *to, char **ret_error)
{
    if (exists(to)) {
        *ret_error = disk_complaint(to, "will not overwrite it; choose another name", -EEXIST);
        return -EEXIST;
    }
    if (!exists(path)) {
        *ret_error = disk_complaint(path, "there is no store to back up", -ENOENT);
        return -ENOENT;
    }
    char *partial = disk_sibling(to, PARTIAL_SUFFIX);
    int r = copy_checked(path, partial, ret_error);
    if (r == 0)
        r = put_in_place(partial, to, ret_error);
    mem_free(partial);
    return r;
}

/* ---- restore ------------------------------------------------------------------------------- */

static int rename_sibling(const char *path, const char *kept, const char *suffix)
{
    char *from = disk_sibling(path, suffix);
    char *to = disk_sibling(kept, suffix);
    int r = rename(from, to) < 0 && errno != ENOENT ? -errno : 0;
    mem_free(from);
    mem_free(to);
    return r;
}

/* A name for the old file that no earlier restore has used. */
static char *choose_kept_name(const char *path)
{
    char *kept = disk_sibling(path, KEPT_SUFFIX);
    for (int i = 2; exists(kept) && i < KEPT_MAX; i++) {
        struct buf b = {0};
        buf_printf(&b, "%s%s-%d", path, KEPT_SUFFIX, i);
        mem_free(kept);
        kept = buf_take(&b);
    }
    return kept;
}

/* The old write-ahead log goes with the old file: beside the new one SQLite would apply it. Until
 * the last rename a start refuses, since it finds the copy still waiting. */
static int swap(const char *path, const char *restoring)
{
    char *kept = choose_kept_name(path);
    int r = rename_sibling(path, kept, "");
    if (r == 0)
        r = rename_sibling(path, kept, "-wal");
    if (r == 0)
        r = rename_sibling(path, kept, "-shm");
    if (r == 0)
        r = disk_sync_directory(path);
    if (r == 0 && rename(restoring, path) < 0)
        r = -errno;
    if (r == 0)
        r = disk_sync_directory(path);
    mem_free(kept);
    return r;
}

static int restore_locked(const char *from, const char *path, char **ret_error)
{
    char *restoring = disk_sibling(path, DISK_RESTORING_SUFFIX);
    int r = copy_checked(from, restoring, ret_error);
    if (r == 0) {
        r = swap(path, restoring);
        if (r < 0)
            *ret_error =
                disk_complaint(path, "cannot put the backup in place; run restore again", r);
    }
    mem_free(restoring);
    return r;
}

int store_restore(const char *from, const char *path, char **ret_error)
{
    if (!exists(from)) {
        *ret_error = disk_complaint(from, "there is no such backup", -ENOENT);
        return -ENOENT;
    }
    int lock = disk_lock(path, ret_error);
    if (lock < 0)
        return lock;
    int r = restore_locked(from, path, ret_error);
    (void) close(lock);
    return r;
}
