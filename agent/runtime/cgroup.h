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

struct cgroup_limits {
    int64_t memory_max_bytes, cpu_millis, max_processes; /* 0: none */
};
#define CGROUP_MAX_FDS 4
/* Makes it with its limits, as far as there are cgroups for them. */
int cgroup_make(const struct cgroup *c, struct str path, const struct cgroup_limits *l);
/* What a process writes itself into to be in it; returns how many there are. */
size_t cgroup_open(const struct cgroup *c, struct str path, int ret_fds[CGROUP_MAX_FDS]);
/* -EBUSY: something is in it. */
int cgroup_remove(const struct cgroup *c, struct str path);
/* Fills CPU, memory and processes. -ENOENT: there is no such cgroup. */
int cgroup_metrics(const struct cgroup *c, struct str path, struct runtime_metrics *ret);
/* How often something in it was killed because its memory was full. */
int64_t cgroup_oom_kills(const struct cgroup *c, struct str path);
/* The same of one process, when it has no cgroup of its own. */
int cgroup_process_metrics(int pid, struct runtime_metrics *ret);
/* Traffic of the process's network namespace, without loopback. */
void cgroup_network_metrics(int pid, struct runtime_metrics *ret);
/* Traffic of an interface of ours whose other end the instance has: what we send it receives. */
void cgroup_tap_metrics(struct str interface, struct runtime_metrics *ret);
/* Of /proc/<pid>/stat: when it started, in ticks since boot; tells it from a later process of the
 * same number. -ENOENT */
int64_t cgroup_process_start(int pid);
