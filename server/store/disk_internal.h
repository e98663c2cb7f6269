/* SPDX-License-Identifier: Apache-2.0 */
/* The file as its own two parts see it: disk.c opens, reads and appends, disk_rewrite.c changes
 * what lies in it. */
#pragma once

#include <sqlite3.h>
#include <stdatomic.h>

#include "store/disk.h"

#define DISK_FORMAT 2 /* 2: texts may be sealed; a file of 1 becomes one of 2 with the first */

enum statement {
    BEGIN,
    APPEND,
    DELETE_ROW,
    SET_FLOOR,
    COMMIT,
    ROLLBACK,
    READ,
    REWRITE,
    WANT_SCRUB,
    UPGRADE,
    N_STATEMENTS
};

struct disk {
    char *path;
    enum disk_access access;
    int lock_fd;
    sqlite3 *writer;
    sqlite3 *checkpointer;
    sqlite3_stmt *statements[N_STATEMENTS];
    int64_t floor;
    int64_t format;
    int page_bytes;
    bool is_loaded;
    bool is_scrub_wanted;
    bool is_upgraded; /* by the group under way */
    atomic_int n_wal_pages;
};

/* Whether a failure means that there is no space. */
bool disk_is_full(int rc, int system_errno);
/* Of a statement that asks for the columns of struct row. */
void disk_read_row(sqlite3_stmt *st, struct row *row);
/* Runs a bound statement that yields no rows. */
int disk_run(struct disk *d, enum statement which);
/* Before the row is written: the first sealed text raises the format, so that an older program does
 * not take the file for a damaged one. */
int disk_upgrade(struct disk *d, const struct row *row);
