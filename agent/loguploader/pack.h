/* SPDX-License-Identifier: Apache-2.0 */
/* From a raw file under collect to the gzip files that are uploaded, so that each of its lines is
 * in exactly one of them wherever the process or the power dies:
 *
 *     raw                      lines, still the only place
 *     raw, TempFile.raw.0 ..   parts that may be half made: swept after a crash
 *     done.raw, TempFile.raw.0 ..   from this rename on the parts are the place
 *     done.raw, <upload>/..    parts go where they belong, one by one; a crash resumes it
 *     <upload>/..
 *
 * The parts of raw file `<ms>` are named `<ms>`, `<ms> + 1` and so on. */
#pragma once

#include "loguploader/logfiles.h"

#define PACK_MAX_RAW_BYTES ((size_t) 16 * 1024 * 1024)

struct pack {
    const char *root;
    bool syncs;
    int64_t created_s; /* what the gzip header says */
    /* Before the raw file's lines have another place, with what was read: who must remember
     * something of them does it here, or refuses with a negative errno. NULL: nobody. */
    int (*on_commit)(void *arg, const struct logfile *f, uint64_t last_msgid);
    void (*on_step)(void *arg); /* for tests: before each change of the disk */
    void *arg;
};

struct pack_result {
    size_t n_files;
    uint64_t n_bytes; /* of these files */
    size_t max_bytes; /* of the largest */
    size_t n_lines;
    size_t n_damaged;    /* lines that are none */
    uint64_t last_msgid; /* of lines that were read; 0: none were */
    int64_t last_ms;     /* of the last part */
};

/* Lines are checked for what they are when the file is of an earlier life. A file without lines is
 * just removed. -EFBIG: too large to be ours. Adds to the result. */
int pack_file(const struct pack *p, const struct logfile *f, bool is_checked,
              struct pack_result *ret);
/* Resumes what was committed, sweeps what was not; raw files stay. */
int pack_recover(const struct pack *p);

/* The raw files, in the arena. */
struct pack_raw {
    struct logfile file;
    struct str name;
};
int pack_list(struct arena *a, const char *root, struct pack_raw **ret, size_t *ret_n);
/* Gives a raw file of newlogd's a name of ours. */
int pack_adopt(const struct pack *p, struct pack_raw *raw, int64_t time_ms);
