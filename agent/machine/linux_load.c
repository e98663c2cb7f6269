/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine is doing: counters of the kernel. */
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "machine/linux_internal.h"

static uint64_t next_number(struct str *rest)
{
    *rest = str_trim(*rest);
    struct str word;
    int64_t n = 0;
    if (str_split(rest, ' ', &word))
        (void) str_to_i64(word, &n);
    return (uint64_t) n;
}

/* user nice system idle iowait irq softirq steal: all but idle and iowait. */
static int64_t busy_ns(struct str stat)
{
    struct str fields = linux_field(stat, STR("cpu"));
    uint64_t ticks = 0;
    for (unsigned i = 0; i < 8; i++) {
        uint64_t n = next_number(&fields);
        ticks += i == 3 || i == 4 ? 0 : n;
    }
    return (int64_t) (ticks * (1000000000 / (uint64_t) MAX(sysconf(_SC_CLK_TCK), 1)));
}

static void read_memory(struct machine_linux *m, struct arena *a, struct machine_load *load)
{
    struct str meminfo = linux_read(m, a, "/proc/meminfo");
    struct str total = linux_field(meminfo, STR("MemTotal"));
    struct str available = linux_field(meminfo, STR("MemAvailable"));
    load->memory_total_bytes = next_number(&total) * 1024;
    load->memory_available_bytes = next_number(&available) * 1024;
    struct str statm = linux_read(m, a, "/proc/self/statm");
    (void) next_number(&statm);
    load->own_memory_bytes = next_number(&statm) * (uint64_t) sysconf(_SC_PAGESIZE);
}

static void read_mounts(struct machine_linux *m, struct arena *a, struct machine_load *load)
{
    load->mounts = ARENA_ARRAY(a, struct machine_mount, m->n_mounts);
    for (size_t i = 0; i < m->n_mounts; i++) {
        struct statvfs v;
        if (statvfs(m->mounts[i], &v) < 0)
            continue;
        uint64_t total = (uint64_t) v.f_blocks * v.f_frsize;
        uint64_t available = (uint64_t) v.f_bavail * v.f_frsize;
        load->mounts[load->n_mounts++] = (struct machine_mount){
            .path = arena_str(a, str_of(m->mounts[i])),
            .total_bytes = total,
            .free_bytes = available,
            .used_bytes = total - MIN(total, (uint64_t) v.f_bfree * v.f_frsize),
        };
    }
}

static bool is_disk(struct machine_linux *m, struct arena *a, struct str name)
{
    static const char *const others[] = {"loop", "ram", "zram", "dm-", "nbd", "fd"};
    for (size_t i = 0; i < N_ELEMENTS(others); i++)
        if (str_starts_with(name, str_of(others[i])))
            return false;
    return linux_exists(m, a, "/sys/block/%.*s", STR_ARG(name));
}

/* major minor name reads merged sectors ms writes merged sectors ... */
static void read_disk(struct machine_linux *m, struct arena *a, struct str line,
                      struct machine_load *load)
{
    (void) next_number(&line);
    (void) next_number(&line);
    struct str name;
    line = str_trim(line);
    if (!str_split(&line, ' ', &name) || !is_disk(m, a, name))
        return;
    uint64_t n[7];
    for (size_t i = 0; i < N_ELEMENTS(n); i++)
        n[i] = next_number(&line);
    load->disks = arena_grow(a, load->disks, load->n_disks, sizeof(*load->disks));
    load->disks[load->n_disks++] = (struct machine_disk_load){
        .name = name,
        .n_reads = n[0],
        .read_bytes = n[2] * 512,
        .n_writes = n[4],
        .write_bytes = n[6] * 512,
    };
}

static unsigned count_processes(struct machine_linux *m, struct arena *a)
{
    struct str *names;
    size_t n_names = linux_list(m, a, "/proc", &names);
    unsigned n = 0;
    for (size_t i = 0; i < n_names; i++)
        n += names[i].p[0] >= '0' && names[i].p[0] <= '9';
    return n;
}

int linux_load(struct machine *machine, struct arena *a, struct machine_load *ret)
{
    struct machine_linux *m = machine_linux_of(machine);
    struct str uptime = linux_read(m, a, "/proc/uptime");
    struct machine_load load = {
        .uptime_s = uptime.n ? strtoll(uptime.p, NULL, 10) : 0,
        .cpu_ns = busy_ns(linux_read(m, a, "/proc/stat")),
        .n_processes = count_processes(m, a),
    };
    read_memory(m, a, &load);
    read_mounts(m, a, &load);
    struct str disks = linux_read(m, a, "/proc/diskstats"), line;
    while (str_split(&disks, '\n', &line))
        read_disk(m, a, line, &load);
    *ret = load;
    return 0;
}
