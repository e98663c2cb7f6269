/* SPDX-License-Identifier: Apache-2.0 */
/* Running another program from a worker thread: to its end (crun, curl), or beside us and beyond
 * our own end (qemu). */
#pragma once

#include <stdatomic.h>

#include "base/arena.h"
#include "base/buf.h"

#define CHILD_MAX_OUTPUT_BYTES ((size_t) 64 * 1024)

struct child {
    const char *const *argv;  /* argv[0] is looked for in PATH; NULL at the end */
    struct str input;         /* its standard input */
    int out_fd, err_fd;       /* -1: out is returned, err is thrown away */
    int64_t max_file_bytes;   /* of any file it writes; 0: no limit */
    int64_t max_memory_bytes; /* of its address space; 0: no limit */
    int64_t timeout_ms;       /* then it is killed */
    int files_fd; /* of landlock_make(): the files it may open, without capabilities; 0: as we may
                   */
    bool hides_unified;              /* shows it the cgroups of version 1 alone */
    const atomic_bool *is_cancelled; /* NULL: never */
};

/* Returns its exit code, 128 + signal when it was killed, or negative errno: -ENOENT when there is
 * no such program, -ETIMEDOUT, -ECANCELED. output gets what it wrote, at most the limit. */
int child_run(const struct child *c, struct buf *output);
/* Where PATH has it, in the arena; NULL: nowhere. */
const char *child_program(struct arena *a, const char *name);

/* One that goes on when we end: it has no capabilities, gains no privileges and inherits nothing
 * but what is named here. */
#define CHILD_MAX_FDS 64
struct child_start {
    const char *const *argv; /* argv[0] is looked for in PATH */
    int out_fd, err_fd;
    const int *fds; /* become its 3, 4, ... */
    size_t n_fds;
    const int *cgroup_fds; /* of cgroup.procs files that it enters */
    size_t n_cgroup_fds;
    int network_fd; /* of the network namespace that it enters; -1: ours */
    int files_fd;   /* of landlock_make(): the files it may open; -1: as we may */
    bool is_alone;  /* in a network namespace of its own, without anything in it */
};
struct child_started {
    int pid, pidfd; /* -1: none */
    int go_fd;
};
/* It waits for child_go(), so that what must be known of it can be written down before; should we
 * die first, it ends. Returns 0 or negative errno. */
int child_start(const struct child_start *c, struct child_started *ret);
/* 0: the program runs; -ENOENT and others: it has ended without, and is reaped. */
int child_go(struct child_started *s);
/* Kills and reaps what child_start() has given. */
void child_end(struct child_started *s);
/* A process as the kernel knows it, to be signalled and waited for without mistaking another for
 * it. Negative errno. */
int child_pidfd(int pid);
int child_signal(int pidfd, int signal_number);
