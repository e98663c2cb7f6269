/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of log files in a temporary place, and what is in them. */
#pragma once

#include "base/arena.h"
#include "eve/newlog.h"
#include "loguploader/logfiles.h"

struct logs {
    char base[40];
    char root[64]; /* <base>/newlog */
    struct arena *arena;
};

void logs_init(struct logs *l);
void logs_done(struct logs *l);
void logs_put(struct logs *l, enum log_directory d, const char *name, struct str content);
/* A file of that size without content. */
void logs_put_size(struct logs *l, enum log_directory d, const char *name, size_t n_bytes);
bool logs_has(struct logs *l, enum log_directory d, const char *name);
/* Names in their order, each with a blank behind it; in the arena. */
struct str logs_names(struct logs *l, enum log_directory d);
struct str logs_read(struct logs *l, enum log_directory d, struct str name);

/* Every line of the packed files of a directory, files in the order of their names. */
struct logs_lines {
    struct newlog_entry *items;
    size_t n;
};
/* Adds; removes the files when asked, as an uploader would. */
void logs_collect(struct logs *l, enum log_directory d, bool is_taken, struct logs_lines *to);

/* Runs it in a process of its own, which may end anywhere; the exit code. */
int logs_in_child(void (*fn)(void *arg), void *arg);
