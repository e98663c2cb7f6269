/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual machines: one qemu for each, which goes on when the agent ends. Its directory below the
 * run directory has the socket of its monitor and what a later agent needs to find it again. */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/kvm.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "pki/file.h"
#include "runtime/child.h"
#include "runtime/diskfile.h"
#include "runtime/drive.h"
#include "runtime/landlock.h"
#include "runtime/process_internal.h"
#include "runtime/qemu_command.h"
#include "runtime/qmp.h"
#include "runtime/spec.h"
#include "runtime/tree.h"

#define BOOT_MS 60000
#define KILL_MS 10000
#define REMOVE_TRIES 50
#define REMOVE_WAIT_MS 20
#define MAX_STATE_BYTES ((size_t) 4096)
#define MAX_COMPLAINT_BYTES ((size_t) 1024)
#define MAX_INTERFACES 16
/* What qemu itself needs beside the memory of the machine. */
#define OVERHEAD_BYTES ((int64_t) 256 << 20)

/* ---- what there is --------------------------------------------------------------------------- */

int qemu_find(const struct process *p, char **ret_error)
{
    ARENA_AUTO a = arena_new_with(512);
    const struct qemu_machine *m = qemu_machine_for(image_architecture());
    if (!m)
        return error_set(ret_error, -ENOTSUP, "disk images cannot be run on %.*s",
                         STR_ARG(image_architecture()));
    const char *program = p->qemu ? p->qemu : m->program;
    if (!child_program(a, program))
        return error_set(ret_error, -ENOTSUP,
                         "disk images need qemu, and there is no %s; install the package %s",
                         program, m->package);
    if (!child_program(a, p->qemu_img))
        return error_set(
            ret_error, -ENOTSUP,
            "disk images need qemu, and there is no %s; install the package qemu-utils",
            p->qemu_img);
    return 0;
}

/* Whether machines may be made by the kernel: the device alone does not tell. */
static bool has_kvm(void)
{
    FD_AUTO fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);
    if (fd < 0 || ioctl(fd, KVM_GET_API_VERSION, 0) != KVM_API_VERSION)
        return false;
    FD_AUTO machine = ioctl(fd, KVM_CREATE_VM, 0);
    return machine >= 0;
}

static bool find_disk(struct arena *a, const struct process *p, struct str volume,
                      struct qemu_disk *ret)
{
    static const struct {
        const char *name;
        enum qemu_disk_kind kind;
    } names[] = {{DISKFILE_QCOW2, QEMU_DISK_QCOW2},
                 {DISKFILE_ISO, QEMU_DISK_CDROM},
                 {DISKFILE_RAW, QEMU_DISK_RAW}};
    for (size_t i = 0; volume.n && i < N_ELEMENTS(names); i++) {
        struct str path = arena_printf(a, "%s/%.*s/%s", p->volumes, STR_ARG(volume), names[i].name);
        if (access(path.p, F_OK) == 0) {
            *ret = (struct qemu_disk){.path = path, .kind = names[i].kind};
            return true;
        }
    }
    return false;
}

const char *qemu_disk_path(struct arena *a, const struct process *p, struct str volume)
{
    struct qemu_disk d;
    /* An empty volume has a directory, too, and is nobody's root. */
    return find_disk(a, p, volume, &d) && d.kind != QEMU_DISK_RAW ? d.path.p : NULL;
}

/* ---- what is remembered ---------------------------------------------------------------------- */

static const char *state_path(struct arena *a, const struct process *p, struct str id)
{
    return arena_printf(a, "%s/state.json", process_path(a, p->machines, id)).p;
}

static int qemu_read_state(const struct process *p, struct str id, struct launch_state *ret)
{
    ARENA_AUTO a = arena_new_with(1024);
    BUF_AUTO text = {0};
    if (access(process_path(a, p->machines, id), F_OK) < 0)
        return -ENOENT;
    if (tree_read(AT_FDCWD, state_path(a, p, id), MAX_STATE_BYTES, &text) < 0)
        return -EBADMSG;
    const struct json *state = json_parse_quick(a, buf_str(&text));
    int64_t pid = json_get_int(state, STR("pid"), 0), start = json_get_int(state, STR("start"), -1);
    *ret = (struct launch_state){
        .pid = (int) pid,
        .created_wall_us = json_get_int(state, STR("created"), 0),
        .is_running = pid > 0 && start > 0 && cgroup_process_start((int) pid) == start,
    };
    return 0;
}

static int write_state(struct job *j, int pid)
{
    const struct process *p = j->process;
    struct json o = json_object();
    int64_t start = cgroup_process_start(pid);
    if (start < 0)
        return -ESRCH;
    (void) json_set(j->arena, &o, STR("pid"), json_int(pid));
    (void) json_set(j->arena, &o, STR("start"), json_int(start));
    (void) json_set(j->arena, &o, STR("created"), json_int(p->clock->wall_us(p->clock)));
    return pki_file_write(state_path(j->arena, p, j->id), json_text(j->arena, &o), 0600);
}

static void kill_left(const struct process *p, struct str id)
{
    struct launch_state state = {0};
    if (qemu_read_state(p, id, &state) < 0 || !state.is_running)
        return;
    FD_AUTO pidfd = child_pidfd(state.pid);
    if (pidfd < 0 || qemu_read_state(p, id, &state) < 0 || !state.is_running)
        return;
    struct pollfd end = {.fd = pidfd, .events = POLLIN};
    (void) child_signal(pidfd, SIGKILL);
    (void) poll(&end, 1, KILL_MS);
}

static void qemu_remove(struct job *j)
{
    const struct process *p = j->process;
    const char *directory = process_path(j->arena, p->machines, j->id);
    struct str cgroup = process_cgroup(j->arena, p, j->id);
    if (access(directory, F_OK) < 0)
        return;
    kill_left(p, j->id);
    /* The kernel lets a cgroup go a moment after the last process of it. */
    for (int i = 0; cgroup.p && i < REMOVE_TRIES && cgroup_remove(&p->cgroup, cgroup) < 0; i++)
        (void) poll(NULL, 0, REMOVE_WAIT_MS);
    (void) tree_remove(AT_FDCWD, directory);
}

/* ---- what it is made of ---------------------------------------------------------------------- */

struct boot {
    struct job *job;
    struct qemu_input input;
    int fds[1 + MAX_INTERFACES]; /* its monitor, then its interfaces */
    size_t n_fds;
};

static int add_disk(struct boot *b, struct qemu_disk *disks, struct str volume, bool is_read_only)
{
    struct job *j = b->job;
    struct qemu_disk *d = &disks[b->input.n_disks];
    if (!find_disk(j->arena, j->process, volume, d))
        return error_set(&j->error, -EINVAL,
                         "volume '%.*s' is no disk: a virtual machine cannot have it",
                         STR_ARG(volume));
    d->is_read_only = is_read_only;
    b->input.n_disks++;
    return 0;
}

static int collect_disks(struct boot *b)
{
    struct job *j = b->job;
    const struct runtime_instance *i = &j->instance;
    struct qemu_disk *disks = ARENA_ARRAY(j->arena, struct qemu_disk, i->n_mounts + 2);
    int e = add_disk(b, disks, i->root_volume, i->is_root_read_only);
    for (size_t k = 0; !e && k < i->n_mounts; k++)
        e = add_disk(b, disks, i->mounts[k].volume, i->mounts[k].is_read_only);
    b->input.disks = disks;
    if (e < 0 || !i->user_data.p)
        return e;
    struct str path =
        arena_printf(j->arena, "%s/cidata.iso", process_path(j->arena, j->process->bundles, j->id));
    disks[b->input.n_disks++] = (struct qemu_disk){.path = path, .kind = QEMU_DISK_CDROM};
    return drive_write(path.p, i->user_data, i->meta_data, &j->error);
}

static bool is_mac(struct str text)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        bool is_digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
        if (i % 3 == 2 ? c != ':' : !is_digit)
            return false;
    }
    return text.n == 17;
}

/* It must be there: one that is only made now would lead nowhere. */
static int open_tap(struct str name)
{
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};
    if (!name.n || name.n >= IFNAMSIZ)
        return -EINVAL;
    memcpy(request.ifr_name, name.p, name.n);
    if (!if_nametoindex(request.ifr_name))
        return -ENODEV;
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (ioctl(fd, TUNSETIFF, &request) == 0)
        return fd;
    int e = -errno;
    (void) close(fd);
    return e;
}

static int collect_interfaces(struct boot *b)
{
    struct job *j = b->job;
    const struct runtime_instance *i = &j->instance;
    struct str *macs = ARENA_ARRAY(j->arena, struct str, i->n_interfaces + 1);
    if (i->n_interfaces > MAX_INTERFACES)
        return error_set(&j->error, -EINVAL, "more than %d interfaces", MAX_INTERFACES);
    for (size_t k = 0; k < i->n_interfaces; k++) {
        if (!is_mac(i->interfaces[k].mac))
            return error_set(&j->error, -EINVAL, "'%.*s' is no hardware address",
                             STR_ARG(i->interfaces[k].mac));
        int fd = open_tap(i->interfaces[k].tap);
        if (fd < 0)
            return error_set(&j->error, fd, "interface '%.*s': %s", STR_ARG(i->interfaces[k].tap),
                             log_errno_text(fd));
        b->fds[b->n_fds++] = fd;
        macs[k] = i->interfaces[k].mac;
    }
    b->input.macs = macs;
    b->input.n_interfaces = i->n_interfaces;
    return 0;
}

/* In the shape of a container's, for whoever finds it: which volumes it uses. */
static int write_bundle(struct job *j, const struct qemu_input *in)
{
    struct json config = json_object(), root = json_object(), mounts = json_array();
    const char *path =
        arena_printf(j->arena, "%s/config.json", process_path(j->arena, j->process->bundles, j->id))
            .p;
    for (size_t i = 0; i < in->n_disks; i++) {
        struct json mount = json_object();
        (void) json_set(j->arena, &mount, STR("source"), json_string(in->disks[i].path));
        (void) json_push(j->arena, &mounts, mount);
    }
    (void) json_set(j->arena, &root, STR("path"), json_string(in->disks[0].path));
    (void) json_set(j->arena, &config, STR("root"), root);
    (void) json_set(j->arena, &config, STR("mounts"), mounts);
    int e = pki_file_write(path, json_text(j->arena, &config), 0600);
    return e < 0 ? error_set(&j->error, e, "bundle: %s", log_errno_text(e)) : 0;
}

/* From now on; said once. */
static void emulate(struct process *p, const char *why)
{
    if (!atomic_exchange(&p->is_emulating, true))
        log_warning("virtual machines are emulated, which is slow", LOG_TEXT("reason", why));
}

static int prepare(struct boot *b)
{
    struct job *j = b->job;
    const struct process *p = j->process;
    const char *directory = process_path(j->arena, p->machines, j->id);
    int e = qemu_find(p, &j->error);
    if (e < 0)
        return e;
    const struct qemu_machine *m = qemu_machine_for(image_architecture());
    b->input = (struct qemu_input){
        .program = p->qemu ? p->qemu : m->program,
        .machine = m,
        .id = j->id,
        .memory_bytes = j->instance.memory_max_bytes,
        .cpu_millis = j->instance.cpu_millis,
    };
    if (!atomic_load(&j->process->is_emulating) && !has_kvm())
        emulate(j->process, "/dev/kvm cannot be used");
    b->input.has_kvm = !atomic_load(&j->process->is_emulating);
    e = tree_make(directory);
    if (!e)
        e = tree_make(process_path(j->arena, p->bundles, j->id));
    int monitor = e < 0 ? e : qmp_listen(directory);
    if (monitor < 0)
        return error_set(&j->error, monitor, "%s: %s", directory, log_errno_text(monitor));
    b->fds[b->n_fds++] = monitor;
    e = collect_disks(b);
    if (!e)
        e = collect_interfaces(b);
    if (!e)
        e = write_bundle(j, &b->input);
    return e < 0 ? e : process_open_pipes(j, &j->error);
}

/* ---- starting -------------------------------------------------------------------------------- */

static int make_cgroup(struct job *j, int fds[CGROUP_MAX_FDS], size_t *ret_n)
{
    const struct process *p = j->process;
    const struct runtime_instance *i = &j->instance;
    struct str path = process_cgroup(j->arena, p, j->id);
    int64_t memory = i->memory_max_bytes ? i->memory_max_bytes : QEMU_COMMAND_DEFAULT_MEMORY_BYTES;
    const struct cgroup_limits limits = {
        .memory_max_bytes = memory + OVERHEAD_BYTES,
        .cpu_millis = i->cpu_millis,
        .max_processes = i->max_processes ? i->max_processes : SPEC_DEFAULT_PROCESSES,
    };
    *ret_n = 0;
    if (!path.p)
        return 0;
    int e = cgroup_make(&p->cgroup, path, &limits);
    if (e < 0)
        return error_set(&j->error, e, "cgroup: %s", log_errno_text(e));
    *ret_n = cgroup_open(&p->cgroup, path, fds);
    return 0;
}

/* Its disks, and of the machine what qemu cannot be without. */
static int make_filter(struct boot *b)
{
    static const struct landlock_rule always[] = {
        {"/usr", LANDLOCK_READ},
        {"/lib", LANDLOCK_READ},
        {"/lib64", LANDLOCK_READ},
        {"/etc/ld.so.cache", LANDLOCK_READ},
        {"/proc", LANDLOCK_READ},
        {"/sys/devices/system", LANDLOCK_READ},
        {"/dev/null", LANDLOCK_READ_WRITE},
        {"/dev/urandom", LANDLOCK_READ},
        {"/dev/kvm", LANDLOCK_READ_WRITE},
    };
    struct job *j = b->job;
    size_t n = 0;
    struct landlock_rule *rules =
        ARENA_ARRAY(j->arena, struct landlock_rule, N_ELEMENTS(always) + b->input.n_disks + 1);
    for (; n < N_ELEMENTS(always); n++)
        rules[n] = always[n];
    for (size_t i = 0; i < b->input.n_disks; i++)
        rules[n++] = (struct landlock_rule){b->input.disks[i].path.p, LANDLOCK_READ_WRITE};
    rules[n++] = (struct landlock_rule){child_program(j->arena, b->input.program), LANDLOCK_READ};
    int fd = landlock_make(rules, n);
    if (fd < 0 && fd != -EOPNOTSUPP)
        (void) error_set(&j->error, fd, "landlock: %s", log_errno_text(fd));
    return fd;
}

/* The last of what it said before it ended. */
static void take_complaint(struct job *j)
{
    char text[MAX_COMPLAINT_BYTES];
    int flags = fcntl(j->pipes[1], F_GETFL);
    (void) fcntl(j->pipes[1], F_SETFL, flags | O_NONBLOCK);
    ssize_t n = read(j->pipes[1], text, sizeof(text));
    struct str said = str_trim(str_range(text, n > 0 ? (size_t) n : 0));
    (void) error_set(&j->error, -EIO, "qemu has ended at once%s%.*s", said.n ? ": " : "",
                     STR_ARG(said));
}

/* -ESRCH: it has ended before its machine ran. */
static int start_and_wait(struct boot *b, struct child_start *how)
{
    struct job *j = b->job;
    struct child_started child;
    how->argv = qemu_command(j->arena, &b->input);
    int e = child_start(how, &child);
    if (e < 0)
        return error_set(&j->error, e, "qemu: %s", log_errno_text(e));
    e = write_state(j, child.pid);
    if (e < 0) {
        child_end(&child);
        return error_set(&j->error, e, "state: %s", log_errno_text(e));
    }
    e = child_go(&child);
    if (e < 0)
        return error_set(&j->error, e, "%s: %s", b->input.program, log_errno_text(e));
    e = qmp_wait(process_path(j->arena, j->process->machines, j->id), child.pidfd, BOOT_MS);
    if (e < 0) {
        child_end(&child);
        take_complaint(j);
        return e;
    }
    j->pid = child.pid;
    j->pidfd = child.pidfd;
    j->stop_signal = SIGTERM;
    return 0;
}

/* Some kernels offer to run machines and cannot, in machines themselves for example. */
static int start_somehow(struct boot *b, struct child_start *how)
{
    struct job *j = b->job;
    int e = start_and_wait(b, how);
    if (e != -ESRCH || !b->input.has_kvm)
        return e;
    char *why = TAKE(j->error);
    b->input.has_kvm = false;
    e = start_and_wait(b, how);
    if (!e)
        emulate(j->process, why);
    mem_free(why);
    return e;
}

static int start(struct boot *b)
{
    struct job *j = b->job;
    const struct runtime_instance *i = &j->instance;
    int groups[CGROUP_MAX_FDS];
    size_t n_groups = 0;
    FD_AUTO network = -1;
    FD_AUTO files = make_filter(b);
    int e = files < 0 && files != -EOPNOTSUPP ? files : 0;
    if (!e)
        e = make_cgroup(j, groups, &n_groups);
    if (!e && i->network == RUNTIME_NETWORK_JOIN) {
        network = open(arena_strz(j->arena, i->network_path), O_RDONLY | O_CLOEXEC);
        if (network < 0)
            e = error_set(&j->error, -errno, "%.*s: %s", STR_ARG(i->network_path),
                          log_errno_text(-errno));
    }
    struct child_start how = {
        .out_fd = j->pipes[0],
        .err_fd = j->pipes[1],
        .fds = b->fds,
        .n_fds = b->n_fds,
        .cgroup_fds = groups,
        .n_cgroup_fds = n_groups,
        .network_fd = network,
        .files_fd = files,
        .is_alone = j->process->is_root && i->network == RUNTIME_NETWORK_NONE,
    };
    if (!e)
        e = start_somehow(b, &how);
    for (size_t k = 0; k < n_groups; k++)
        (void) close(groups[k]);
    return e;
}

static void qemu_boot(struct job *j)
{
    struct boot b = {.job = j};
    qemu_remove(j);
    int e = prepare(&b);
    if (!e)
        e = start(&b);
    for (size_t i = 0; i < b.n_fds; i++)
        (void) close(b.fds[i]);
    if (e < 0)
        qemu_remove(j);
}

/* ---- while it runs --------------------------------------------------------------------------- */

static void qemu_attach(struct tenant *t)
{
    ARENA_AUTO a = arena_new_with(512);
    int e =
        qmp_open(t->process->loop, process_path(a, t->process->machines, t->object->id), &t->qmp);
    if (e < 0)
        log_warning("a virtual machine cannot be asked anything, ignoring it",
                    LOG_STR("instance", t->object->id), LOG_ERRNO(e));
}

static void qemu_detach(struct tenant *t)
{
    qmp_free(TAKE(t->qmp));
}

static int qemu_ask_to_end(struct tenant *t)
{
    return qmp_power_down(t->qmp);
}

static void qemu_metrics(struct tenant *t, struct runtime_metrics *ret)
{
    const struct runtime_instance *i = &t->object->instance;
    struct qmp_disks disks = {0};
    for (size_t k = 0; k < i->n_interfaces; k++)
        cgroup_tap_metrics(i->interfaces[k].tap, ret);
    if (t->qmp)
        qmp_disks(t->qmp, &disks);
    ret->disk_read_bytes = disks.read_bytes;
    ret->disk_written_bytes = disks.written_bytes;
    ret->disk_reads = disks.n_reads;
    ret->disk_writes = disks.n_writes;
}

const struct launcher qemu_launcher = {
    .name = "qemu",
    .boot = qemu_boot,
    .remove = qemu_remove,
    .read_state = qemu_read_state,
    .attach = qemu_attach,
    .detach = qemu_detach,
    .ask_to_end = qemu_ask_to_end,
    .metrics = qemu_metrics,
};
