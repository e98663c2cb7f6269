/* SPDX-License-Identifier: Apache-2.0 */
/* The directories and file names that newlogd and the log uploader share, and what is looked for in
 * them. Nothing is remembered between two looks. */
#pragma once

#include "base/arena.h"
#include "base/uuid.h"

/* Larger files are no uploads; newlogd makes them of 50,000 bytes at most. */
#define LOGFILES_MAX_UPLOAD_BYTES ((size_t) 65536)
#define LOGFILES_TARGET_BYTES ((size_t) 50000)
/* Of those that the controller refused. */
#define LOGFILES_MAX_FAILED 1000

enum log_directory {
    LOG_COLLECT,    /* raw files, still written or on their way to be packed */
    LOG_DEV_UPLOAD, /* dev.log.<ms>.gz */
    LOG_APP_UPLOAD, /* app.<uuid>.log.<ms>.gz */
    LOG_KEEP_SENT,  /* what was sent, and what is not to be: app.skipTx.<uuid>.log.<ms>.gz */
    LOG_FAILED,     /* refused too often */
    LOG_DIRECTORIES
};

/* What a name says. */
struct logfile {
    bool is_app, is_skipped;
    struct uuid app; /* zero: of the device */
    int64_t time_ms;
};

/* Of a gzip file. -EINVAL: it is none of ours. */
int logfile_parse(struct str name, struct logfile *ret);
struct str logfile_name(struct arena *a, const struct logfile *f);
/* The same without .gz, for a file under collect. time_ms is 0 for newlogd's own, which end in
 * random digits. */
int logfile_parse_raw(struct str name, struct logfile *ret);
struct str logfile_raw_name(struct arena *a, const struct logfile *f);
/* Where a packed file belongs. */
enum log_directory logfile_directory(const struct logfile *f);

/* `<root>/<directory>[/<name>]`, NUL-terminated, in the arena. */
const char *logfiles_path(struct arena *a, const char *root, enum log_directory d, struct str name);
/* Makes all of them. */
int logfiles_make(const char *root);
/* Of the directory itself, so that what was renamed or removed stays so. */
int logfiles_sync(const char *root, enum log_directory d);

struct logfiles_oldest {
    size_t n_files; /* that may be sent */
    struct logfile file;
    struct str name; /* in the arena; absent: there is none */
};
/* What is to be sent first. A directory that is not there has no files. */
int logfiles_find_oldest(struct arena *a, const char *root, enum log_directory d,
                         struct logfiles_oldest *ret);

struct logfiles_usage {
    uint64_t n_bytes;
    size_t n_files;
    int64_t oldest_ms, newest_ms; /* by name; 0: none */
};
/* Adds up. */
void logfiles_measure(const char *root, enum log_directory d, struct logfiles_usage *ret);
/* Removes the oldest until so many bytes and files are gone, or nothing is left; tells what went.
 */
struct logfiles_usage logfiles_remove_oldest(const char *root, enum log_directory d,
                                             uint64_t n_bytes, size_t n_files);
/* Into another directory under the same name. 0 also when it was gone already. */
int logfiles_move(const char *root, enum log_directory from, enum log_directory to, struct str name,
                  bool syncs);
