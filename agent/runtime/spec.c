/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/spec.h"

#include <errno.h>
#include <signal.h>

#include "base/error.h"

#define STOP_SIGNAL "seth.agent/stop-signal"
#define DEFAULT_PATH "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* What programs of ordinary images need as root; nothing that reaches outside their namespaces. */
static const char *const capabilities[] = {
    "CAP_CHOWN",  "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID",           "CAP_KILL",
    "CAP_SETGID", "CAP_SETPCAP",      "CAP_SETUID", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT",
};

static const char *const masked_paths[] = {
    "/proc/acpi",          "/proc/asound",
    "/proc/kcore",         "/proc/keys",
    "/proc/latency_stats", "/proc/sched_debug",
    "/proc/timer_list",    "/proc/scsi",
    "/sys/firmware",       "/sys/devices/virtual/powercap",
};
static const char *const read_only_paths[] = {
    "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger",
};

/* Refused to every instance: they change the machine, not the container. */
static const char *const refused_calls[] = {
    "acct",
    "add_key",
    "bpf",
    "delete_module",
    "finit_module",
    "fsconfig",
    "fsmount",
    "fsopen",
    "init_module",
    "ioperm",
    "iopl",
    "kexec_file_load",
    "kexec_load",
    "keyctl",
    "lookup_dcookie",
    "mount",
    "mount_setattr",
    "move_mount",
    "open_by_handle_at",
    "open_tree",
    "perf_event_open",
    "pivot_root",
    "quotactl",
    "reboot",
    "request_key",
    "setns",
    "settimeofday",
    "swapoff",
    "swapon",
    "umount2",
    "unshare",
    "userfaultfd",
    "clock_settime",
    "clock_adjtime",
};

static const struct {
    const char *target, *type, *source;
    const char *options[6];
} system_mounts[] = {
    {"/proc", "proc", "proc", {"nosuid", "noexec", "nodev"}},
    {"/dev", "tmpfs", "tmpfs", {"nosuid", "strictatime", "mode=755", "size=65536k"}},
    {"/dev/pts",
     "devpts",
     "devpts",
     {"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"}},
    {"/dev/shm", "tmpfs", "shm", {"nosuid", "noexec", "nodev", "mode=1777", "size=65536k"}},
    {"/dev/mqueue", "mqueue", "mqueue", {"nosuid", "noexec", "nodev"}},
};

/* ---- small builders ------------------------------------------------------------------------ */

static struct json texts(struct arena *a, const char *const *names, size_t n)
{
    struct json list = json_array();
    for (size_t i = 0; i < n && names[i]; i++)
        (void) json_push(a, &list, json_string(str_of(names[i])));
    return list;
}

static void set_text(struct arena *a, struct json *object, const char *key, struct str value)
{
    (void) json_set(a, object, str_of(key), json_string(value));
}

static void set_int(struct arena *a, struct json *object, const char *key, int64_t value)
{
    (void) json_set(a, object, str_of(key), json_int(value));
}

/* ---- process ------------------------------------------------------------------------------- */

static struct str name_of(struct str assignment)
{
    ptrdiff_t equals = str_find(assignment, '=');
    return equals < 0 ? assignment : str_sub(assignment, 0, (size_t) equals);
}

/* A later assignment to the same name replaces the earlier one in its place. */
static void set_env(struct arena *a, struct json *list, struct str assignment)
{
    JSON_FOR_EACH_ITEM (list, have) {
        if (str_eq(name_of(json_str(have)), name_of(assignment))) {
            *have = json_string(assignment);
            return;
        }
    }
    (void) json_push(a, list, json_string(assignment));
}

static struct json environment(struct arena *a, const struct spec_input *in)
{
    struct json list = json_array();
    set_env(a, &list, STR(DEFAULT_PATH));
    for (size_t i = 0; i < in->image->n_env; i++)
        set_env(a, &list, in->image->env[i]);
    for (size_t i = 0; i < in->instance->n_env; i++)
        set_env(a, &list, in->instance->env[i]);
    return list;
}

static struct json capability_sets(struct arena *a, bool is_superuser)
{
    static const char *const sets[] = {"bounding", "effective", "permitted"};
    struct json o = json_object();
    for (size_t i = 0; i < N_ELEMENTS(sets); i++)
        (void) json_set(a, &o, str_of(sets[i]),
                        i == 0 || is_superuser ? texts(a, capabilities, N_ELEMENTS(capabilities))
                                               : json_array());
    return o;
}

static int build_process(struct arena *a, const struct spec_input *in, struct json *config,
                         char **ret_error)
{
    const struct runtime_instance *i = in->instance;
    const struct str *args = i->n_args ? i->args : in->image->args;
    size_t n_args = i->n_args ? i->n_args : in->image->n_args;
    if (!n_args)
        return error_set(ret_error, -EINVAL,
                         "neither the image nor the configuration names a command to run");
    /* Without root there is one user to be had: the one who runs us, seen as root inside. */
    struct image_user user = in->machine.is_root ? in->user : (struct image_user){0, 0};
    struct json p = json_object(), list = json_array(), who = json_object();
    for (size_t k = 0; k < n_args; k++)
        (void) json_push(a, &list, json_string(args[k]));
    set_int(a, &who, "uid", user.uid);
    set_int(a, &who, "gid", user.gid);
    (void) json_set(a, &p, STR("terminal"), json_bool(false));
    (void) json_set(a, &p, STR("user"), who);
    (void) json_set(a, &p, STR("args"), list);
    (void) json_set(a, &p, STR("env"), environment(a, in));
    set_text(a, &p, "cwd", in->image->working_directory);
    (void) json_set(a, &p, STR("capabilities"), capability_sets(a, user.uid == 0));
    (void) json_set(a, &p, STR("noNewPrivileges"), json_bool(true));
    (void) json_set(a, config, STR("process"), p);
    return 0;
}

/* ---- mounts -------------------------------------------------------------------------------- */

static void add_mount(struct arena *a, struct json *list, const struct spec_mount *m,
                      const char *type, struct json options)
{
    struct json o = json_object();
    set_text(a, &o, "destination", m->target);
    set_text(a, &o, "type", str_of(type));
    set_text(a, &o, "source", m->source);
    (void) json_set(a, &o, STR("options"), options);
    (void) json_push(a, list, o);
}

static struct json build_mounts(struct arena *a, const struct spec_input *in)
{
    static const char *const system_options[] = {"nosuid", "noexec", "nodev", "ro", "rbind"};
    struct json list = json_array();
    for (size_t i = 0; i < N_ELEMENTS(system_mounts); i++) {
        const struct spec_mount m = {.source = str_of(system_mounts[i].source),
                                     .target = str_of(system_mounts[i].target)};
        add_mount(a, &list, &m, system_mounts[i].type,
                  texts(a, system_mounts[i].options, N_ELEMENTS(system_mounts[i].options)));
    }
    /* A sysfs belongs to its network namespace: without one of our own ours is shown. */
    bool is_own = in->instance->network == RUNTIME_NETWORK_NONE || in->machine.is_root;
    const struct spec_mount sys = {.source = is_own ? STR("sysfs") : STR("/sys"),
                                   .target = STR("/sys")};
    add_mount(a, &list, &sys, is_own ? "sysfs" : "bind", texts(a, system_options, is_own ? 4 : 5));
    for (size_t i = 0; i < in->n_mounts; i++) {
        const char *const options[] = {"rbind", "nosuid", "nodev",
                                       in->mounts[i].is_read_only ? "ro" : "rw"};
        add_mount(a, &list, &in->mounts[i], "bind", texts(a, options, N_ELEMENTS(options)));
    }
    return list;
}

/* ---- linux --------------------------------------------------------------------------------- */

static void add_namespace(struct arena *a, struct json *list, const char *type, struct str path)
{
    struct json o = json_object();
    set_text(a, &o, "type", str_of(type));
    if (path.p)
        set_text(a, &o, "path", path);
    (void) json_push(a, list, o);
}

static struct json build_namespaces(struct arena *a, const struct spec_input *in)
{
    struct json list = json_array();
    add_namespace(a, &list, "pid", STR_NONE);
    add_namespace(a, &list, "ipc", STR_NONE);
    add_namespace(a, &list, "uts", STR_NONE);
    add_namespace(a, &list, "mount", STR_NONE);
    if (in->instance->network == RUNTIME_NETWORK_NONE)
        add_namespace(a, &list, "network", STR_NONE);
    if (in->instance->network == RUNTIME_NETWORK_JOIN)
        add_namespace(a, &list, "network", in->instance->network_path);
    if (!in->machine.is_root)
        add_namespace(a, &list, "user", STR_NONE);
    return list;
}

static struct json build_resources(struct arena *a, const struct spec_input *in)
{
    const struct runtime_instance *i = in->instance;
    struct json r = json_object(), devices = json_array(), none = json_object();
    if (in->machine.is_root) {
        (void) json_set(a, &none, STR("allow"), json_bool(false));
        set_text(a, &none, "access", STR("rwm"));
        (void) json_push(a, &devices, none);
        (void) json_set(a, &r, STR("devices"), devices);
    }
    if (i->memory_max_bytes && in->machine.limits_memory) {
        struct json memory = json_object();
        set_int(a, &memory, "limit", i->memory_max_bytes);
        (void) json_set(a, &r, STR("memory"), memory);
    }
    if (i->cpu_millis && in->machine.limits_cpu) {
        struct json cpu = json_object();
        set_int(a, &cpu, "quota", MAX(i->cpu_millis * SPEC_CPU_PERIOD_US / 1000, 1000));
        set_int(a, &cpu, "period", SPEC_CPU_PERIOD_US);
        (void) json_set(a, &r, STR("cpu"), cpu);
    }
    if (in->machine.limits_processes) {
        struct json pids = json_object();
        set_int(a, &pids, "limit", i->max_processes ? i->max_processes : SPEC_DEFAULT_PROCESSES);
        (void) json_set(a, &r, STR("pids"), pids);
    }
    return r;
}

static struct json build_seccomp(struct arena *a)
{
    struct json s = json_object(), calls = json_array(), refused = json_object();
    set_text(a, &s, "defaultAction", STR("SCMP_ACT_ALLOW"));
#ifdef __x86_64__
    /* Otherwise the other two ways into the kernel would be open, or their programs killed. */
    static const char *const ways[] = {"SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"};
    (void) json_set(a, &s, STR("architectures"), texts(a, ways, N_ELEMENTS(ways)));
#endif
    (void) json_set(a, &refused, STR("names"), texts(a, refused_calls, N_ELEMENTS(refused_calls)));
    set_text(a, &refused, "action", STR("SCMP_ACT_ERRNO"));
    (void) json_push(a, &calls, refused);
    (void) json_set(a, &s, STR("syscalls"), calls);
    return s;
}

static void map_to_us(struct arena *a, struct json *linux_part, const char *key, uint32_t id)
{
    struct json list = json_array(), one = json_object();
    set_int(a, &one, "containerID", 0);
    set_int(a, &one, "hostID", id);
    set_int(a, &one, "size", 1);
    (void) json_push(a, &list, one);
    (void) json_set(a, linux_part, str_of(key), list);
}

static struct json build_linux(struct arena *a, const struct spec_input *in)
{
    struct json l = json_object();
    (void) json_set(a, &l, STR("resources"), build_resources(a, in));
    (void) json_set(a, &l, STR("namespaces"), build_namespaces(a, in));
    if (in->machine.cgroup_path.p)
        set_text(a, &l, "cgroupsPath", in->machine.cgroup_path);
    if (!in->machine.is_root) {
        map_to_us(a, &l, "uidMappings", in->machine.uid);
        map_to_us(a, &l, "gidMappings", in->machine.gid);
    }
    (void) json_set(a, &l, STR("seccomp"), build_seccomp(a));
    (void) json_set(a, &l, STR("maskedPaths"), texts(a, masked_paths, N_ELEMENTS(masked_paths)));
    (void) json_set(a, &l, STR("readonlyPaths"),
                    texts(a, read_only_paths, N_ELEMENTS(read_only_paths)));
    return l;
}

int spec_build(struct arena *a, const struct spec_input *in, struct json *ret, char **ret_error)
{
    struct json config = json_object(), root = json_object(), notes = json_object();
    set_text(a, &config, "ociVersion", STR("1.0.0"));
    int e = build_process(a, in, &config, ret_error);
    if (e < 0)
        return e;
    set_text(a, &root, "path", in->root_path);
    (void) json_set(a, &root, STR("readonly"), json_bool(in->instance->is_root_read_only));
    (void) json_set(a, &config, STR("root"), root);
    set_text(a, &config, "hostname",
             in->instance->hostname.n ? in->instance->hostname : in->instance->id);
    (void) json_set(a, &config, STR("mounts"), build_mounts(a, in));
    (void) json_set(a, &config, STR("linux"), build_linux(a, in));
    /* Who adopts the instance reads it here. */
    set_text(a, &notes, STOP_SIGNAL, arena_printf(a, "%d", in->image->stop_signal));
    (void) json_set(a, &config, STR("annotations"), notes);
    *ret = config;
    return 0;
}

int spec_stop_signal(const struct json *config)
{
    int64_t number;
    struct str text = json_str(json_at(config, "annotations", STOP_SIGNAL, NULL));
    if (str_to_i64(text, &number) < 0 || number <= 0 || number > SIGRTMAX)
        return SIGTERM;
    return (int) number;
}
