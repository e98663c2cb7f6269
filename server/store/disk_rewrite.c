/* SPDX-License-Identifier: Apache-2.0 */
/* Rows written again, and a file that forgets what they were. */
#include <errno.h>

#include "base/buf.h"
#include "store/disk_internal.h"

int disk_read(struct disk *d, int64_t revision, struct buf *room, struct row *ret_row)
{
    sqlite3_stmt *st = d->statements[READ];
    (void) sqlite3_bind_int64(st, 1, revision);
    int rc = sqlite3_step(st);
    int r = rc == SQLITE_ROW ? 0 : rc == SQLITE_DONE ? -ENOENT : -EIO;
    if (r == 0) {
        disk_read_row(st, ret_row);
        buf_reset(room);
        buf_append_str(room, ret_row->key);
        buf_append_str(room, ret_row->text);
        ret_row->key = str_sub(buf_str(room), 0, ret_row->key.n);
        ret_row->text = str_from(buf_str(room), ret_row->key.n);
    }
    (void) sqlite3_reset(st);
    return r;
}

int disk_rewrite(struct disk *d, const struct row *row)
{
    sqlite3_stmt *st = d->statements[REWRITE];
    int r = disk_upgrade(d, row);
    if (r < 0)
        return r;
    (void) sqlite3_bind_int64(st, 1, row->checksum);
    (void) sqlite3_bind_blob(st, 2, row->text.p, (int) row->text.n, SQLITE_STATIC);
    (void) sqlite3_bind_int64(st, 3, row->revision);
    return disk_run(d, REWRITE);
}

static int run_text(struct disk *d, const char *sql)
{
    errno = 0;
    int rc = sqlite3_exec(d->writer, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK              ? 0
           : disk_is_full(rc, errno)    ? -ENOSPC
           : (rc & 0xff) == SQLITE_BUSY ? -EBUSY
                                        : -EIO;
}

/* A large group is spilled rather than held: here nobody waits for it. */
int disk_begin_rewriting(struct disk *d)
{
    return run_text(d, "PRAGMA secure_delete=1; PRAGMA cache_spill=1;");
}

int disk_want_scrub(struct disk *d)
{
    int r = disk_run(d, WANT_SCRUB);
    if (r == 0)
        d->is_scrub_wanted = true;
    return r;
}

bool disk_is_scrub_wanted(const struct disk *d)
{
    return d->is_scrub_wanted;
}

/* VACUUM's copy stays in memory, for a temporary file would lie outside the data. The log is moved
 * and cut while the wish for it is still in the file. */
int disk_scrub(struct disk *d)
{
    int r = run_text(d, "PRAGMA temp_store=MEMORY; VACUUM;");
    if (r < 0)
        return r;
    int rc = sqlite3_wal_checkpoint_v2(d->writer, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    if (rc != SQLITE_OK)
        return (rc & 0xff) == SQLITE_BUSY ? -EBUSY : -EIO;
    r = run_text(d, "DELETE FROM meta WHERE name = 'scrub';"
                    "PRAGMA secure_delete=0; PRAGMA cache_spill=0;");
    if (r == 0)
        d->is_scrub_wanted = false;
    return r;
}
