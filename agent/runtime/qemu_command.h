/* SPDX-License-Identifier: Apache-2.0 */
/* How qemu is called for one virtual machine. A pure function. */
#pragma once

#include "base/arena.h"

#define QEMU_COMMAND_DEFAULT_MEMORY_BYTES ((int64_t) 512 << 20)
#define QEMU_COMMAND_MAX_CPUS 64
/* What it is given: the socket of its monitor first, then its interfaces. */
#define QEMU_COMMAND_FIRST_FD 3

/* What an architecture's machines are made of. */
struct qemu_machine {
    const char *architecture; /* as Go calls it */
    const char *program, *package;
    const char *type;
    const char *firmware; /* NULL: qemu's own */
};
/* NULL: none for this architecture. */
const struct qemu_machine *qemu_machine_for(struct str architecture);

enum qemu_disk_kind { QEMU_DISK_QCOW2, QEMU_DISK_RAW, QEMU_DISK_CDROM };

struct qemu_disk {
    struct str path;
    enum qemu_disk_kind kind;
    bool is_read_only;
};

struct qemu_input {
    const char *program;
    const struct qemu_machine *machine;
    struct str id;
    bool has_kvm;
    int64_t memory_bytes; /* 0: the default */
    int64_t cpu_millis;   /* rounded up to whole CPUs; 0: one */
    const struct qemu_disk *disks;
    size_t n_disks;
    const struct str *macs; /* one for each interface */
    size_t n_interfaces;
};

/* NULL at the end, in the arena. */
const char *const *qemu_command(struct arena *a, const struct qemu_input *in);
