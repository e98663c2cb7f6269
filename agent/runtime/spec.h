/* SPDX-License-Identifier: Apache-2.0 */
/* The config.json of the OCI runtime specification for one instance: what its image asks for, what
 * the configuration adds, and what this machine can do. A pure function. */
#pragma once

#include "runtime/image.h"
#include "runtime/runtime.h"

#define SPEC_DEFAULT_PROCESSES 4096
#define SPEC_CPU_PERIOD_US 100000

struct spec_mount {
    struct str source, target;
    bool is_read_only;
};

struct spec_machine {
    bool is_root;
    bool limits_memory, limits_cpu, limits_processes; /* what the cgroups here can do */
    struct str cgroup_path;                           /* STR_NONE: none of its own */
    uint32_t uid, gid;                                /* ours, when we are not root */
};

struct spec_input {
    const struct runtime_instance *instance;
    const struct image_config *image;
    struct image_user user;
    struct str root_path;
    const struct spec_mount *mounts;
    size_t n_mounts;
    struct spec_machine machine;
};

/* -EINVAL with *ret_error (heap): neither the image nor the configuration names a command. */
int spec_build(struct arena *a, const struct spec_input *in, struct json *ret, char **ret_error);
/* Read back from a config.json of ours. */
int spec_stop_signal(const struct json *config);
