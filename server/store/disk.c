/* SPDX-License-Identifier: Apache-2.0 */
#include "store/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "store/disk_internal.h"

#define DISK_APPLICATION_ID 0x73657468 /* "seth" */
#define DISK_PAGE_BYTES \
    16384 /* seven objects of 2 KB to a page: a denser file, twice the rows per second of 4096 */
#define DISK_BUSY_TIMEOUT_MS 5000
/* A write-ahead log that had to grow (a backup held it) is cut back to this when it starts over. */
#define DISK_WAL_KEPT_BYTES (4 * DISK_CHECKPOINT_BYTES)
#define NEW_SUFFIX ".new"

/* In the order of disk_read_row(). */
#define ROW_QUERY "SELECT revision, type, revision_at, checksum, key, text FROM log"

static const char *const statement_texts[] = {
    [BEGIN] = "BEGIN IMMEDIATE",
    [APPEND] =
        "INSERT INTO log(revision, key, type, revision_at, checksum, text) VALUES(?,?,?,?,?,?)",
    [DELETE_ROW] = "DELETE FROM log WHERE revision = ?",
    [SET_FLOOR] = "UPDATE meta SET value = ? WHERE name = 'floor'",
    [COMMIT] = "COMMIT",
    [ROLLBACK] = "ROLLBACK",
    [READ] = ROW_QUERY " WHERE revision = ?",
    [REWRITE] = "UPDATE log SET checksum = ?, text = ? WHERE revision = ?",
    [WANT_SCRUB] = "INSERT OR REPLACE INTO meta VALUES('scrub', 1)",
    [UPGRADE] = "PRAGMA user_version = 2",
};

/* ---- SQLite's errors ----------------------------------------------------------------------- */

/* SQLite calls only one kind of lack of space by its name; the rest, and a commit's, has to be told
 * by errno. */
bool disk_is_full(int rc, int system_errno)
{
    return (rc & 0xff) == SQLITE_FULL ||
           ((rc & 0xff) == SQLITE_IOERR &&
            (system_errno == ENOSPC || system_errno == EDQUOT || system_errno == EFBIG));
}

/* Turns a failure to open or read into an errno and words that name the remedy. */
static int read_failure(const char *path, sqlite3 *db, int rc, char **ret_error)
{
    int primary = rc & 0xff;
    int e = db ? sqlite3_system_errno(db) : 0;
    if (primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB || primary == SQLITE_ERROR) {
        *ret_error = disk_damage(path, "the file is damaged (%s)", sqlite3_errmsg(db));
        return -EBADMSG;
    }
    int r = primary == SQLITE_BUSY ? -EBUSY : disk_is_full(rc, e) ? -ENOSPC : e ? -e : -EIO;
    *ret_error = disk_complaint(path, sqlite3_errmsg(db), r);
    return r;
}

/* ---- opening ------------------------------------------------------------------------------- */

static int connect_to(const char *path, int flags, sqlite3 **ret_db, char **ret_error)
{
    sqlite3 *db = NULL;
    int rc = sqlite3_open_v2(path, &db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
    if (rc != SQLITE_OK) {
        int r = read_failure(path, db, rc, ret_error);
        (void) sqlite3_close(db);
        return r;
    }
    (void) sqlite3_busy_timeout(db, DISK_BUSY_TIMEOUT_MS);
    *ret_db = db;
    return 0;
}

static int execute(const char *path, sqlite3 *db, const char *sql, char **ret_error)
{
    int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : read_failure(path, db, rc, ret_error);
}

/* The one number a statement yields; -ENOENT when it yields nothing. */
static int query_number(const char *path, sqlite3 *db, const char *sql, int64_t *ret_value,
                        char **ret_error)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(st);
    int r = 0;
    if (rc == SQLITE_ROW)
        *ret_value = sqlite3_column_int64(st, 0);
    else if (rc == SQLITE_DONE)
        r = -ENOENT;
    else
        r = read_failure(path, db, rc, ret_error);
    (void) sqlite3_finalize(st);
    return r;
}

static int fill_new_file(const char *path, char **ret_error)
{
    sqlite3 *db = NULL;
    int r = connect_to(path, SQLITE_OPEN_READWRITE, &db, ret_error);
    if (r < 0)
        return r;
    char *sql = sqlite3_mprintf(
        "PRAGMA page_size=%d; PRAGMA application_id=%d; PRAGMA user_version=%d;"
        "CREATE TABLE log(revision INTEGER PRIMARY KEY, key TEXT NOT NULL, type INTEGER NOT NULL,"
        " revision_at INTEGER NOT NULL, checksum INTEGER NOT NULL, text BLOB NOT NULL) STRICT;"
        "CREATE TABLE meta(name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
        "INSERT INTO meta VALUES('floor', 1);",
        DISK_PAGE_BYTES, DISK_APPLICATION_ID, DISK_FORMAT);
    r = execute(path, db, sql, ret_error);
    sqlite3_free(sql);
    (void) sqlite3_close(db);
    return r;
}

static int make_empty(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    (void) close(fd);
    return 0;
}

/* A new file gets its name only when it is whole: whatever bears the name and is not whole was
 * damaged. */
static int create(const char *path, char **ret_error)
{
    char *new_path = disk_sibling(path, NEW_SUFFIX);
    int r = make_empty(new_path);
    if (r < 0)
        *ret_error = disk_complaint(path, "cannot create", r);
    if (r == 0)
        r = fill_new_file(new_path, ret_error);
    if (r == 0) {
        r = disk_sync_file(new_path);
        if (r == 0 && rename(new_path, path) < 0)
            r = -errno;
        if (r == 0)
            r = disk_sync_directory(path);
        if (r < 0)
            *ret_error = disk_complaint(path, "cannot create", r);
    }
    mem_free(new_path);
    return r;
}

static bool has_bytes(const char *path, const char *suffix)
{
    struct stat st;
    char *sibling = disk_sibling(path, suffix);
    bool yes = stat(sibling, &st) == 0 && st.st_size > 0;
    mem_free(sibling);
    return yes;
}

/* Creates the file when nothing says that there was one. */
static int ensure_exists(struct disk *d, char **ret_error)
{
    struct stat st;
    if (stat(d->path, &st) == 0) {
        if (st.st_size > 0)
            return 0;
        *ret_error = disk_damage(d->path, "the file is empty, its data is gone");
        return -EBADMSG;
    }
    int r = -errno;
    if (r != -ENOENT) {
        *ret_error = disk_complaint(d->path, "cannot look at it", r);
        return r;
    }
    if (has_bytes(d->path, DISK_RESTORING_SUFFIX)) {
        *ret_error = disk_damage(d->path, "a restore was interrupted before it took effect");
        return -EBADMSG;
    }
    if (has_bytes(d->path, "-wal")) {
        *ret_error = disk_damage(d->path, "the file is gone, only its write-ahead log is left");
        return -EBADMSG;
    }
    if (d->access == DISK_SERVE)
        return create(d->path, ret_error);
    *ret_error = disk_complaint(d->path, "cannot open", r);
    return r;
}

static int check_identity(struct disk *d, char **ret_error)
{
    int64_t id = 0, format = 0, page_bytes = 0;
    int r = query_number(d->path, d->writer, "PRAGMA application_id", &id, ret_error);
    if (r == 0)
        r = query_number(d->path, d->writer, "PRAGMA user_version", &format, ret_error);
    if (r == 0)
        r = query_number(d->path, d->writer, "PRAGMA page_size", &page_bytes, ret_error);
    if (r < 0)
        return r;
    if (id != DISK_APPLICATION_ID) {
        *ret_error = disk_damage(d->path, "this is no store of seth");
        return -EBADMSG;
    }
    if (format > DISK_FORMAT) {
        char what[128];
        (void) snprintf(
            what, sizeof(what),
            "written by a newer seth (format %lld, this one knows up to %d); run that one",
            (long long) format, DISK_FORMAT);
        *ret_error = disk_complaint(d->path, what, -ENOTSUP);
        return -ENOTSUP;
    }
    d->page_bytes = (int) page_bytes;
    d->format = format;
    return 0;
}

static int read_floor(struct disk *d, char **ret_error)
{
    int r = query_number(d->path, d->writer, "SELECT value FROM meta WHERE name = 'floor'",
                         &d->floor, ret_error);
    if (r == -ENOENT || (r == 0 && (d->floor < 1 || d->floor > STORE_REVISION_MAX))) {
        *ret_error = disk_damage(d->path, "it does not say from where its history counts");
        return -EBADMSG;
    }
    return r;
}

static int read_scrub(struct disk *d, char **ret_error)
{
    int64_t value = 0;
    int r = query_number(d->path, d->writer, "SELECT value FROM meta WHERE name = 'scrub'", &value,
                         ret_error);
    d->is_scrub_wanted = value != 0;
    return r == -ENOENT ? 0 : r;
}

static int on_wal_grown(void *ctx, sqlite3 *db, const char *name, int n_pages)
{
    (void) db;
    (void) name;
    atomic_store_explicit(&((struct disk *) ctx)->n_wal_pages, n_pages, memory_order_relaxed);
    return SQLITE_OK;
}

/* The cache is small since nothing is read twice; but a group stays in it whole, for a page spilled
 * before the commit would be written twice. Deleted rows are left as they are, not overwritten:
 * they are no secret beside the live ones, or are sealed. */
static int prepare_writer(struct disk *d, char **ret_error)
{
    char *sql =
        sqlite3_mprintf("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                        "PRAGMA wal_autocheckpoint=0; PRAGMA journal_size_limit=%d;"
                        "PRAGMA cache_size=-512; PRAGMA cache_spill=0; PRAGMA secure_delete=0;",
                        DISK_WAL_KEPT_BYTES);
    int r = execute(d->path, d->writer, sql, ret_error);
    sqlite3_free(sql);
    if (r < 0)
        return r;
    (void) sqlite3_wal_hook(d->writer, on_wal_grown, d);
    for (int i = 0; i < N_STATEMENTS; i++) {
        int rc = sqlite3_prepare_v3(d->writer, statement_texts[i], -1, SQLITE_PREPARE_PERSISTENT,
                                    &d->statements[i], NULL);
        if (rc != SQLITE_OK)
            return read_failure(d->path, d->writer, rc, ret_error);
    }
    r = connect_to(d->path, SQLITE_OPEN_READWRITE, &d->checkpointer, ret_error);
    return r < 0 ? r : execute(d->path, d->checkpointer, "PRAGMA cache_size=-64", ret_error);
}

static int open_file(struct disk *d, char **ret_error)
{
    int r = ensure_exists(d, ret_error);
    if (r == 0)
        r = connect_to(d->path, SQLITE_OPEN_READWRITE, &d->writer, ret_error);
    if (r == 0)
        r = check_identity(d, ret_error);
    if (r == 0)
        r = read_floor(d, ret_error);
    if (r == 0)
        r = read_scrub(d, ret_error);
    if (r == 0 && d->access == DISK_SERVE)
        r = prepare_writer(d, ret_error);
    return r;
}

int disk_open(const char *path, enum disk_access access, struct disk **ret_disk, char **ret_error)
{
    int lock_fd = -1;
    if (access == DISK_SERVE) {
        lock_fd = disk_lock(path, ret_error);
        if (lock_fd < 0)
            return lock_fd;
    }
    CLEANUP(disk_closep) struct disk *d = NEW(struct disk);
    d->path = mem_strdup(path);
    d->access = access;
    d->lock_fd = lock_fd;
    int r = open_file(d, ret_error);
    if (r == 0)
        *ret_disk = TAKE(d);
    return r;
}

void disk_close(struct disk *d)
{
    if (!d)
        return;
    for (int i = 0; i < N_STATEMENTS; i++)
        (void) sqlite3_finalize(d->statements[i]);
    (void) sqlite3_close(d->checkpointer);
    if (d->is_loaded)
        (void) sqlite3_wal_checkpoint_v2(d->writer, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    else if (d->writer) /* What may be damaged is left as it was found. */
        (void) sqlite3_db_config(d->writer, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    (void) sqlite3_close(d->writer);
    if (d->lock_fd >= 0)
        (void) close(d->lock_fd);
    mem_free(d->path);
    mem_free(d);
}

/* ---- loading ------------------------------------------------------------------------------- */

int64_t disk_floor(const struct disk *d)
{
    return d->floor;
}

static struct str column_bytes(sqlite3_stmt *st, int column)
{
    const void *p = sqlite3_column_blob(st, column);
    return str_range(p ? p : "", (size_t) sqlite3_column_bytes(st, column));
}

void disk_read_row(sqlite3_stmt *st, struct row *row)
{
    *row = (struct row){
        .revision = sqlite3_column_int64(st, 0),
        .type = sqlite3_column_int64(st, 1),
        .revision_at = sqlite3_column_int64(st, 2),
        .checksum = sqlite3_column_int64(st, 3),
        .key = column_bytes(st, 4),
        .text = column_bytes(st, 5),
    };
}

/* A damaged page may hide rows without an error; SQLite finds that when it accounts for all of
 * them. */
static int check_pages(struct disk *d, char **ret_error)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(d->writer, "PRAGMA quick_check(1)", -1, &st, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(st);
    int r = 0;
    if (rc != SQLITE_ROW) {
        r = read_failure(d->path, d->writer, rc, ret_error);
    } else if (!str_is(column_bytes(st, 0), "ok")) {
        struct str found = column_bytes(st, 0);
        *ret_error = disk_damage(d->path, "the file is damaged (%.*s)", STR_ARG(found));
        r = -EBADMSG;
    }
    (void) sqlite3_finalize(st);
    return r;
}

static int load_rows(struct disk *d,
                     int (*on_row)(void *ctx, const struct row *row, char **ret_error), void *ctx,
                     char **ret_error)
{
    sqlite3_stmt *st = NULL;
    int r = 0;
    int rc = sqlite3_prepare_v2(d->writer, ROW_QUERY " ORDER BY revision", -1, &st, NULL);
    if (rc == SQLITE_OK)
        while (r == 0 && (rc = sqlite3_step(st)) == SQLITE_ROW) {
            struct row row;
            disk_read_row(st, &row);
            r = on_row(ctx, &row, ret_error);
        }
    if (r == 0 && rc != SQLITE_DONE)
        r = read_failure(d->path, d->writer, rc, ret_error);
    (void) sqlite3_finalize(st);
    return r;
}

int disk_load(struct disk *d, int (*on_row)(void *ctx, const struct row *row, char **ret_error),
              void *ctx, char **ret_error)
{
    int r = check_pages(d, ret_error);
    if (r == 0)
        r = load_rows(d, on_row, ctx, ret_error);
    d->is_loaded = r == 0;
    (void) sqlite3_db_release_memory(d->writer);
    return r;
}

/* ---- groups -------------------------------------------------------------------------------- */

int disk_run(struct disk *d, enum statement which)
{
    errno = 0;
    int rc = sqlite3_step(d->statements[which]);
    int r = rc == SQLITE_DONE ? 0 : disk_is_full(rc, errno) ? -ENOSPC : -EIO;
    (void) sqlite3_reset(d->statements[which]);
    return r;
}

int disk_begin(struct disk *d)
{
    return disk_run(d, BEGIN);
}

int disk_upgrade(struct disk *d, const struct row *row)
{
    if (d->format >= DISK_FORMAT || d->is_upgraded || !row_is_sealed(row))
        return 0;
    int r = disk_run(d, UPGRADE);
    d->is_upgraded = r == 0;
    return r;
}

int disk_append(struct disk *d, const struct row *row)
{
    int r = disk_upgrade(d, row);
    if (r < 0)
        return r;
    sqlite3_stmt *st = d->statements[APPEND];
    (void) sqlite3_bind_int64(st, 1, row->revision);
    (void) sqlite3_bind_text(st, 2, row->key.p, (int) row->key.n, SQLITE_STATIC);
    (void) sqlite3_bind_int64(st, 3, row->type);
    (void) sqlite3_bind_int64(st, 4, row->revision_at);
    (void) sqlite3_bind_int64(st, 5, row->checksum);
    (void) sqlite3_bind_blob(st, 6, row->text.p, (int) row->text.n, SQLITE_STATIC);
    return disk_run(d, APPEND);
}

int disk_delete(struct disk *d, int64_t revision)
{
    (void) sqlite3_bind_int64(d->statements[DELETE_ROW], 1, revision);
    return disk_run(d, DELETE_ROW);
}

int disk_set_floor(struct disk *d, int64_t floor)
{
    (void) sqlite3_bind_int64(d->statements[SET_FLOOR], 1, floor);
    return disk_run(d, SET_FLOOR);
}

int disk_commit(struct disk *d)
{
    int r = disk_run(d, COMMIT);
    if (r == 0 && d->is_upgraded)
        d->format = DISK_FORMAT;
    return r;
}

/* Some failures have rolled back already. */
void disk_rollback(struct disk *d)
{
    d->is_upgraded = false;
    if (!sqlite3_get_autocommit(d->writer))
        (void) disk_run(d, ROLLBACK);
}

const char *disk_last_error(const struct disk *d)
{
    return sqlite3_errmsg(d->writer);
}

/* ---- upkeep -------------------------------------------------------------------------------- */

int64_t disk_wal_bytes(const struct disk *d)
{
    return (int64_t) atomic_load_explicit(&d->n_wal_pages, memory_order_relaxed) * d->page_bytes;
}

void disk_checkpoint(struct disk *d)
{
    int rc =
        sqlite3_wal_checkpoint_v2(d->checkpointer, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    if (rc != SQLITE_OK)
        log_debug("checkpoint put off", LOG_TEXT("path", d->path),
                  LOG_TEXT("error", sqlite3_errmsg(d->checkpointer)));
}
