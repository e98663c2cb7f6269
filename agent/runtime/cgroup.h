/* SPDX-License-Identifier: Apache-2.0 */
/* What the cgroups of this machine can limit and tell. */
#pragma once

#include "base/str.h"

struct runtime_metrics;

enum cgroup_mode {
    CGROUP_NONE,
    CGROUP_V1,
    CGROUP_HYBRID, /* used as version 1: crun knows no mixture */
    CGROUP_V2,
};

struct cgroup {
    enum cgroup_mode mode;
    bool has_memory, has_cpu, has_processes;
};

void cgroup_detect(struct cgroup *ret, bool is_root);
/* Fills CPU, memory and processes. -ENOENT: there is no such cgroup. */
int cgroup_metrics(const struct cgroup *c, struct str path, struct runtime_metrics *ret);
/* How often something in it was killed because its memory was full. */
int64_t cgroup_oom_kills(const struct cgroup *c, struct str path);
/* The same of one process, when it has no cgroup of its own. */
int cgroup_process_metrics(int pid, struct runtime_metrics *ret);
/* Traffic of the process's network namespace, without loopback. */
void cgroup_network_metrics(int pid, struct runtime_metrics *ret);
/* Of /proc/<pid>/stat: when it started, in ticks since boot; tells it from a later process of the
 * same number. -ENOENT */
int64_t cgroup_process_start(int pid);
