/* SPDX-License-Identifier: Apache-2.0 */
/* The machine protocol of qemu over a socket: questions go out, answers come when they come. What
 * qemu says is a guest's neighbour speaking: it has limits. */
#pragma once

#include "base/arena.h"

#define QMP_MAX_LINE_BYTES ((size_t) 256 * 1024)

struct loop;
struct qmp;

struct qmp_disks {
    int64_t read_bytes, written_bytes, n_reads, n_writes;
};

/* A listening socket called "qmp" in the directory, whose path may be longer than a socket's. */
int qmp_listen(const char *directory);
/* Blocks: until the machine in there has begun to run. -ESRCH: the process has ended; -ETIMEDOUT */
int qmp_wait(const char *directory, int pidfd, int64_t timeout_ms);

/* Negative errno: nobody listens. */
int qmp_open(struct loop *l, const char *directory, struct qmp **ret);
/* As if somebody pressed the button of the machine. -EPIPE: it cannot be asked. */
int qmp_power_down(struct qmp *q);
/* What was told last, and asks again. */
void qmp_disks(struct qmp *q, struct qmp_disks *ret);
/* NULL allowed. */
void qmp_free(struct qmp *q);
/* One line of it: false when it is no answer about disks. Pure. */
bool qmp_read_disks(struct arena *a, struct str line, struct qmp_disks *ret);
