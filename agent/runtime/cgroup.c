/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "runtime/runtime.h"

#define TOP "/sys/fs/cgroup"
#define MAX_FILE_BYTES ((size_t) 64 * 1024)

/* Files of the kernel have no size to ask for. */
static int read_text(const char *path, struct buf *ret)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n;
    while (ret->n < MAX_FILE_BYTES && (n = read(fd, buf_reserve(ret, 4096), 4096)) > 0)
        ret->n += (size_t) n;
    buf_append_str(ret, STR(""));
    (void) close(fd);
    return 0;
}

static int64_t to_number(struct str text)
{
    int64_t v;
    return str_to_i64(str_trim(text), &v) < 0 ? -1 : v;
}

/* The number behind "key " at the beginning of a line, or the only number. */
static int64_t read_number(const char *path, const char *key)
{
    BUF_AUTO text = {0};
    if (read_text(path, &text) < 0)
        return -1;
    if (!key)
        return to_number(buf_str(&text));
    struct str rest = buf_str(&text), line, name;
    while (str_split(&rest, '\n', &line))
        if (str_split(&line, ' ', &name) && str_is(name, key))
            return to_number(line);
    return -1;
}

static int64_t read_group(const char *controller, struct str path, const char *file,
                          const char *key)
{
    BUF_AUTO name = {0};
    buf_printf(&name, TOP "%s%.*s/%s", controller, STR_ARG(path), file);
    return read_number(name.p, key);
}

/* ---- what there is ------------------------------------------------------------------------- */

static bool is_filesystem(const char *path, long magic)
{
    struct statfs s;
    return statfs(path, &s) == 0 && (long) s.f_type == magic;
}

static bool has_controller(struct str list, const char *name)
{
    struct str word;
    while (str_split(&list, ' ', &word))
        if (str_is(str_trim(word), name))
            return true;
    return false;
}

void cgroup_detect(struct cgroup *ret, bool is_root)
{
    *ret = (struct cgroup){.mode = CGROUP_NONE};
    if (is_filesystem(TOP, CGROUP2_SUPER_MAGIC)) {
        BUF_AUTO list = {0};
        ret->mode = CGROUP_V2;
        if (!is_root || read_text(TOP "/cgroup.controllers", &list) < 0)
            return;
        ret->has_memory = has_controller(buf_str(&list), "memory");
        ret->has_cpu = has_controller(buf_str(&list), "cpu");
        ret->has_processes = has_controller(buf_str(&list), "pids");
    } else if (is_filesystem(TOP, TMPFS_MAGIC)) {
        ret->mode = is_filesystem(TOP "/unified", CGROUP2_SUPER_MAGIC) ? CGROUP_HYBRID : CGROUP_V1;
        ret->has_memory = is_root && is_filesystem(TOP "/memory", CGROUP_SUPER_MAGIC);
        ret->has_cpu = is_root && is_filesystem(TOP "/cpu", CGROUP_SUPER_MAGIC);
        ret->has_processes = is_root && is_filesystem(TOP "/pids", CGROUP_SUPER_MAGIC);
    }
}

/* ---- making ---------------------------------------------------------------------------------- */

#define CPU_PERIOD_US 100000

/* One tree holds all of it, or each controller has its own. */
static const char *const trees_v1[] = {"/memory", "/cpu", "/cpuacct", "/pids"};
static const char *const trees_v2[] = {""};

static const char *const *trees(const struct cgroup *c, size_t *ret_n)
{
    *ret_n = c->mode == CGROUP_NONE ? 0
             : c->mode == CGROUP_V2 ? N_ELEMENTS(trees_v2)
                                    : N_ELEMENTS(trees_v1);
    return c->mode == CGROUP_V2 ? trees_v2 : trees_v1;
}

static int write_file(const char *path, struct str text)
{
    FD_AUTO fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 ? -errno : file_write_all(fd, text);
}

/* Every directory of the path; in version 2 each passes its controllers on. */
static int make_directories(const struct cgroup *c, const char *tree, struct str path)
{
    static const char *const wanted[] = {"+memory", "+cpu", "+pids"};
    BUF_AUTO at = {0};
    struct str rest = path, name;
    buf_printf(&at, TOP "%s", tree);
    while (str_split(&rest, '/', &name)) {
        if (!name.n)
            continue;
        for (size_t i = 0; c->mode == CGROUP_V2 && i < N_ELEMENTS(wanted); i++) {
            BUF_AUTO control = {0};
            buf_printf(&control, "%s/cgroup.subtree_control", at.p);
            (void) write_file(control.p, str_of(wanted[i]));
        }
        buf_printf(&at, "/%.*s", STR_ARG(name));
        if (mkdir(at.p, 0755) < 0 && errno != EEXIST)
            return -errno;
    }
    return 0;
}

static void limit(const char *tree, struct str path, const char *file, const char *format, ...)
    PRINTF_LIKE(4, 5);
static void limit(const char *tree, struct str path, const char *file, const char *format, ...)
{
    BUF_AUTO name = {0};
    BUF_AUTO text = {0};
    va_list args;
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    buf_printf(&name, TOP "%s%.*s/%s", tree, STR_ARG(path), file);
    (void) write_file(name.p, buf_str(&text));
}

static void set_limits(const struct cgroup *c, struct str path, const struct cgroup_limits *l)
{
    bool is_v2 = c->mode == CGROUP_V2;
    long long quota_us = l->cpu_millis * (CPU_PERIOD_US / 1000);
    if (l->memory_max_bytes && c->has_memory)
        limit(is_v2 ? "" : "/memory", path, is_v2 ? "memory.max" : "memory.limit_in_bytes", "%lld",
              (long long) l->memory_max_bytes);
    if (l->cpu_millis && c->has_cpu && is_v2)
        limit("", path, "cpu.max", "%lld %d", quota_us, CPU_PERIOD_US);
    if (l->cpu_millis && c->has_cpu && !is_v2) {
        limit("/cpu", path, "cpu.cfs_period_us", "%d", CPU_PERIOD_US);
        limit("/cpu", path, "cpu.cfs_quota_us", "%lld", quota_us);
    }
    if (l->max_processes && c->has_processes)
        limit(is_v2 ? "" : "/pids", path, "pids.max", "%lld", (long long) l->max_processes);
}

int cgroup_make(const struct cgroup *c, struct str path, const struct cgroup_limits *l)
{
    size_t n;
    const char *const *all = trees(c, &n);
    for (size_t i = 0; i < n; i++) {
        int e = make_directories(c, all[i], path);
        if (e < 0 && e != -ENOENT) /* a controller that this machine lacks */
            return e;
    }
    set_limits(c, path, l);
    return 0;
}

size_t cgroup_open(const struct cgroup *c, struct str path, int ret_fds[CGROUP_MAX_FDS])
{
    size_t n, n_open = 0;
    const char *const *all = trees(c, &n);
    for (size_t i = 0; i < n; i++) {
        BUF_AUTO name = {0};
        buf_printf(&name, TOP "%s%.*s/cgroup.procs", all[i], STR_ARG(path));
        int fd = open(name.p, O_WRONLY | O_CLOEXEC);
        if (fd >= 0)
            ret_fds[n_open++] = fd;
    }
    return n_open;
}

int cgroup_remove(const struct cgroup *c, struct str path)
{
    size_t n;
    int e = 0;
    const char *const *all = trees(c, &n);
    for (size_t i = 0; i < n; i++) {
        BUF_AUTO name = {0};
        buf_printf(&name, TOP "%s%.*s", all[i], STR_ARG(path));
        if (rmdir(name.p) < 0 && errno != ENOENT)
            e = -errno;
    }
    return e;
}

/* ---- numbers ------------------------------------------------------------------------------- */

int cgroup_metrics(const struct cgroup *c, struct str path, struct runtime_metrics *ret)
{
    bool is_v2 = c->mode == CGROUP_V2;
    int64_t cpu = is_v2 ? read_group("", path, "cpu.stat", "usage_usec")
                        : read_group("/cpuacct", path, "cpuacct.usage", NULL);
    if (cpu < 0)
        return -ENOENT;
    ret->cpu_ns = is_v2 ? cpu * 1000 : cpu;
    ret->memory_bytes = is_v2 ? read_group("", path, "memory.current", NULL)
                              : read_group("/memory", path, "memory.usage_in_bytes", NULL);
    ret->memory_peak_bytes = is_v2 ? read_group("", path, "memory.peak", NULL)
                                   : read_group("/memory", path, "memory.max_usage_in_bytes", NULL);
    ret->n_processes = read_group(is_v2 ? "" : "/pids", path, "pids.current", NULL);
    ret->memory_bytes = MAX(ret->memory_bytes, 0);
    /* Kernels before 5.19 keep no peak. */
    ret->memory_peak_bytes = MAX(ret->memory_peak_bytes, ret->memory_bytes);
    ret->n_processes = MAX(ret->n_processes, 0);
    ret->is_whole = true;
    return 0;
}

int64_t cgroup_oom_kills(const struct cgroup *c, struct str path)
{
    int64_t n = c->mode == CGROUP_V2
                    ? read_group("", path, "memory.events", "oom_kill")
                    : read_group("/memory", path, "memory.oom_control", "oom_kill");
    return MAX(n, 0);
}

/* The n-th word behind the name in parentheses, which may hold anything; the state is word 0. */
static int64_t stat_word(int pid, int n)
{
    BUF_AUTO name = {0};
    BUF_AUTO text = {0};
    buf_printf(&name, "/proc/%d/stat", pid);
    if (read_text(name.p, &text) < 0)
        return -ENOENT;
    ptrdiff_t end = str_find_last(buf_str(&text), ')');
    struct str rest = str_trim(str_from(buf_str(&text), (size_t) (end + 1))), word = STR_NONE;
    for (int i = 0; i <= n; i++)
        if (!str_split(&rest, ' ', &word))
            return -ENOENT;
    return to_number(word);
}

int64_t cgroup_process_start(int pid)
{
    return stat_word(pid, 19);
}

int cgroup_process_metrics(int pid, struct runtime_metrics *ret)
{
    int64_t user = stat_word(pid, 11), system = stat_word(pid, 12);
    int64_t resident_pages = stat_word(pid, 21);
    if (user < 0 || system < 0 || resident_pages < 0)
        return -ENOENT;
    ret->cpu_ns = (user + system) * (1000000000 / sysconf(_SC_CLK_TCK));
    ret->memory_bytes = resident_pages * sysconf(_SC_PAGESIZE);
    ret->memory_peak_bytes = ret->memory_bytes;
    ret->n_processes = 1;
    ret->is_whole = false;
    return 0;
}

/* "eth0: 1 2 3 4 5 6 7 8 9 ...": bytes and packets received, then from the ninth on sent. The name
 * absent: every one but loopback. */
static void add_interface(struct str line, struct str wanted, struct runtime_metrics *ret)
{
    ptrdiff_t colon = str_find(line, ':');
    struct str have = colon < 0 ? STR_NONE : str_trim(str_sub(line, 0, (size_t) colon));
    if (colon < 0 || (wanted.p ? !str_eq(have, wanted) : str_is(have, "lo")))
        return;
    struct str rest = str_from(line, (size_t) colon + 1), word;
    int64_t numbers[10] = {0};
    for (size_t n = 0; n < N_ELEMENTS(numbers) && str_split(&rest, ' ', &word);)
        if (word.n)
            numbers[n++] = MAX(to_number(word), 0);
    ret->rx_bytes += numbers[0];
    ret->rx_packets += numbers[1];
    ret->tx_bytes += numbers[8];
    ret->tx_packets += numbers[9];
}

static void add_interfaces(const char *process, struct str wanted, struct runtime_metrics *ret)
{
    BUF_AUTO name = {0};
    BUF_AUTO text = {0};
    buf_printf(&name, "/proc/%s/net/dev", process);
    if (read_text(name.p, &text) < 0)
        return;
    struct str rest = buf_str(&text), line;
    while (str_split(&rest, '\n', &line))
        add_interface(line, wanted, ret);
}

void cgroup_network_metrics(int pid, struct runtime_metrics *ret)
{
    BUF_AUTO process = {0};
    buf_printf(&process, "%d", pid);
    add_interfaces(process.p, STR_NONE, ret);
}

void cgroup_tap_metrics(struct str interface, struct runtime_metrics *ret)
{
    struct runtime_metrics ours = {0};
    add_interfaces("self", interface, &ours);
    ret->rx_bytes += ours.tx_bytes;
    ret->tx_bytes += ours.rx_bytes;
    ret->rx_packets += ours.tx_packets;
    ret->tx_packets += ours.rx_packets;
}
