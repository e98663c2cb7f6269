/* SPDX-License-Identifier: Apache-2.0 */
/* A file of lines that is rotated when it grows too large: the full one becomes
 * <name>-<time><extension> beside it, and of these only the newest and youngest are kept. One
 * thread uses it. */
#pragma once

#include "base/clock.h"
#include "base/str.h"

struct log_file;

struct log_file_options {
    const char *path;       /* "-": standard output */
    int64_t max_size_bytes; /* 0: never rotated */
    int64_t max_age_s;      /* of rotated ones; 0: no limit */
    int64_t max_backups;    /* 0: no limit */
    const struct clock *clock;
};

/* Opens or creates, and appends. Strings of o are copied. */
int log_file_open(const struct log_file_options *o, struct log_file **ret_file);
/* NULL allowed. */
void log_file_close(struct log_file *f);

/* Opens the path anew if somebody has moved or removed the file. Failure keeps the old one. */
int log_file_follow(struct log_file *f);
/* Writes whole lines, rotating between two of them when it has to. *ret_taken bytes are written
 * (also on failure): the rest is to be offered again, from there on. */
int log_file_write(struct log_file *f, struct str lines, size_t *ret_taken);
