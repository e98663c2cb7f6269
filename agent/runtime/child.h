/* SPDX-License-Identifier: Apache-2.0 */
/* Running another program to its end, from a worker thread: crun and curl. */
#pragma once

#include <stdatomic.h>

#include "base/buf.h"

#define CHILD_MAX_OUTPUT_BYTES ((size_t) 64 * 1024)

struct child {
    const char *const *argv;         /* argv[0] is looked for in PATH; NULL at the end */
    struct str input;                /* its standard input */
    int out_fd, err_fd;              /* -1: out is returned, err is thrown away */
    int64_t max_file_bytes;          /* of any file it writes; 0: no limit */
    int64_t timeout_ms;              /* then it is killed */
    bool hides_unified;              /* shows it the cgroups of version 1 alone */
    const atomic_bool *is_cancelled; /* NULL: never */
};

/* Returns its exit code, 128 + signal when it was killed, or negative errno: -ENOENT when there is
 * no such program, -ETIMEDOUT, -ECANCELED. output gets what it wrote, at most the limit. */
int child_run(const struct child *c, struct buf *output);
/* A process as the kernel knows it, to be signalled and waited for without mistaking another for
 * it. Negative errno. */
int child_pidfd(int pid);
int child_signal(int pidfd, int signal_number);
