/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime that runs images as containers on this machine, by crun, and disks as virtual machines,
 * by qemu. Content, volumes and bundles live in the persist directory, the state of what runs and
 * the pipes of the instances in the run directory.
 * Instances outlive the agent; the next one adopts them. */
#pragma once

#include "runtime/runtime.h"

struct runtime_process_options {
    struct loop *loop;
    const struct clock *clock;
    const char *persist_directory; /* survives a restart of the machine */
    const char *run_directory;     /* need not; on the same machine only one runtime uses it */
    const char *cgroup_parent;     /* NULL: "seth-agent" */
    const char *crun, *curl, *qemu, *qemu_img; /* NULL: as found in PATH */
};

/* Finds what is there and adopts what runs, without an event: see runtime_each(). The process
 * becomes the reaper of its instances (PR_SET_CHILD_SUBREAPER), or their exit codes would be lost.
 * Negative errno: the directories cannot be made. */
int runtime_process_new(const struct runtime_process_options *options,
                        const struct runtime_events *events, struct runtime **ret);
