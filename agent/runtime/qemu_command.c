/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/qemu_command.h"

#include <inttypes.h>

#include "base/uuid.h"
#include "json/json.h"

#define MEGABYTE ((int64_t) 1 << 20)
#define TRANSLATION_MB 64 /* what translated code may take */

static const struct qemu_machine machines[] = {
    {.architecture = "amd64",
     .program = "qemu-system-x86_64",
     .package = "qemu-system-x86",
     .type = "q35,vmport=off"},
    {.architecture = "arm64",
     .program = "qemu-system-aarch64",
     .package = "qemu-system-arm and qemu-efi-aarch64",
     .type = "virt,gic-version=max",
     .firmware = "/usr/share/qemu-efi-aarch64/QEMU_EFI.fd"},
};

const struct qemu_machine *qemu_machine_for(struct str architecture)
{
    for (size_t i = 0; i < N_ELEMENTS(machines); i++)
        if (str_is(architecture, machines[i].architecture))
            return &machines[i];
    return NULL;
}

struct words {
    struct arena *arena;
    const char **list;
    size_t n;
};

static void add(struct words *w, const char *word)
{
    w->list = arena_grow(w->arena, w->list, w->n, sizeof(*w->list));
    w->list[w->n++] = word;
}

static void add_pair(struct words *w, const char *option, const char *format, ...)
    PRINTF_LIKE(3, 4);
static void add_pair(struct words *w, const char *option, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct str value = arena_vprintf(w->arena, format, args);
    va_end(args);
    add(w, option);
    add(w, arena_strz(w->arena, value));
}

/* Nothing that was not asked for: no devices, no configuration of the machine's, no display, and a
 * filter of system calls. */
static void add_frame(struct words *w, const struct qemu_input *in)
{
    struct uuid uuid;
    add_pair(w, "-name", "%.*s", STR_ARG(in->id));
    if (uuid_parse(in->id, &uuid) == 0)
        add_pair(w, "-uuid", "%.*s", STR_ARG(in->id));
    add(w, "-nodefaults");
    add(w, "-no-user-config");
    add_pair(w, "-sandbox",
             "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny");
    add_pair(w, "-display", "none");
    add_pair(w, "-rtc", "base=utc");
    add_pair(w, "-chardev", "stdio,id=console,signal=off");
    add_pair(w, "-serial", "chardev:console");
    add_pair(w, "-chardev", "socket,id=monitor,fd=%d,server=on,wait=off", QEMU_COMMAND_FIRST_FD);
    add_pair(w, "-mon", "chardev=monitor,mode=control");
}

static void add_hardware(struct words *w, const struct qemu_input *in)
{
    int64_t memory = in->memory_bytes ? in->memory_bytes : QEMU_COMMAND_DEFAULT_MEMORY_BYTES;
    int64_t n_cpus = MAX((in->cpu_millis + 999) / 1000, 1);
    add_pair(w, "-machine", "%s", in->machine->type);
    if (in->has_kvm)
        add_pair(w, "-accel", "kvm");
    else
        add_pair(w, "-accel", "tcg,tb-size=%d", TRANSLATION_MB);
    add_pair(w, "-cpu", "%s", in->has_kvm ? "host" : "max");
    if (in->machine->firmware)
        add_pair(w, "-bios", "%s", in->machine->firmware);
    add_pair(w, "-m", "%" PRId64 "M", MAX((memory + MEGABYTE - 1) / MEGABYTE, 1));
    add_pair(w, "-smp", "%" PRId64, MIN(n_cpus, QEMU_COMMAND_MAX_CPUS));
    add_pair(w, "-device", "virtio-rng-pci");
}

/* As JSON, so that no path can say more than a path; the format is given and never guessed. */
static void add_disk(struct words *w, const struct qemu_input *in, size_t i)
{
    const struct qemu_disk *d = &in->disks[i];
    bool is_cdrom = d->kind == QEMU_DISK_CDROM;
    struct json file = json_object(), node = json_object();
    struct str name = arena_printf(w->arena, "disk%zu", i);
    (void) json_set(w->arena, &file, STR("driver"), json_string(STR("file")));
    (void) json_set(w->arena, &file, STR("filename"), json_string(d->path));
    (void) json_set(w->arena, &node, STR("driver"),
                    json_string(d->kind == QEMU_DISK_QCOW2 ? STR("qcow2") : STR("raw")));
    (void) json_set(w->arena, &node, STR("node-name"), json_string(name));
    (void) json_set(w->arena, &node, STR("read-only"), json_bool(is_cdrom || d->is_read_only));
    (void) json_set(w->arena, &node, STR("file"), file);
    add_pair(w, "-blockdev", "%.*s", STR_ARG(json_text(w->arena, &node)));
    add_pair(w, "-device", "%s,drive=%.*s,bootindex=%zu", is_cdrom ? "scsi-cd" : "virtio-blk-pci",
             STR_ARG(name), i + 1);
}

static void add_disks(struct words *w, const struct qemu_input *in)
{
    bool has_cdrom = false;
    for (size_t i = 0; i < in->n_disks; i++)
        has_cdrom |= in->disks[i].kind == QEMU_DISK_CDROM;
    /* Systems made for clouds know no other bus that a medium could be on. */
    if (has_cdrom)
        add_pair(w, "-device", "virtio-scsi-pci");
    for (size_t i = 0; i < in->n_disks; i++)
        add_disk(w, in, i);
}

static void add_interfaces(struct words *w, const struct qemu_input *in)
{
    for (size_t i = 0; i < in->n_interfaces; i++) {
        add_pair(w, "-netdev", "tap,id=net%zu,fd=%zu", i, QEMU_COMMAND_FIRST_FD + 1 + i);
        /* No network boot: applications start from their disks. */
        add_pair(w, "-device", "virtio-net-pci,netdev=net%zu,mac=%.*s,romfile=", i,
                 STR_ARG(in->macs[i]));
    }
}

const char *const *qemu_command(struct arena *a, const struct qemu_input *in)
{
    struct words w = {.arena = a};
    add(&w, in->program);
    add_frame(&w, in);
    add_hardware(&w, in);
    add_disks(&w, in);
    add_interfaces(&w, in);
    add(&w, NULL);
    return w.list;
}
