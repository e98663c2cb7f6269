/* SPDX-License-Identifier: Apache-2.0 */
/* Who made the machine, and what runs on it. */
#include <sys/utsname.h>
#include <unistd.h>

#include "base/buf.h"
#include "machine/linux_internal.h"

/* Entries that vendors leave as they came. */
static struct str without_filler(struct str s)
{
    static const char *const fillers[] = {"To Be Filled By O.E.M.", "Default string",
                                          "Not Specified", "System Serial Number", "None"};
    for (size_t i = 0; i < N_ELEMENTS(fillers); i++)
        if (str_eq_nocase(s, str_of(fillers[i])))
            return STR("");
    return s.p ? s : STR("");
}

static struct str dmi(struct machine_linux *m, struct arena *a, const char *name)
{
    return without_filler(linux_read(m, a, "/sys/class/dmi/id/%s", name));
}

/* Properties of a device tree are lists of NUL-terminated strings. */
static struct str tree(struct machine_linux *m, struct arena *a, const char *name)
{
    struct str raw = linux_read(m, a, "/proc/device-tree/%s", name), part;
    BUF_AUTO text = {0};
    while (str_split(&raw, '\0', &part))
        if (part.n)
            buf_printf(&text, "%s%.*s", text.n ? " " : "", STR_ARG(part));
    return arena_str(a, buf_str(&text));
}

static struct str either(struct str first, struct str second)
{
    return first.n ? first : second.n ? second : STR("");
}

static unsigned count_cpus(struct str cpuinfo)
{
    unsigned n = 0;
    struct str line;
    while (str_split(&cpuinfo, '\n', &line))
        n += str_starts_with(line, STR("processor"));
    return n ? n : (unsigned) MAX(sysconf(_SC_NPROCESSORS_ONLN), 1);
}

static uint64_t kilobytes(struct str table, struct str key)
{
    struct str text = linux_field(table, key);
    ptrdiff_t blank = str_find(text, ' ');
    int64_t n = 0;
    (void) str_to_i64(blank < 0 ? text : str_sub(text, 0, (size_t) blank), &n);
    return (uint64_t) n * 1024;
}

static void read_system(struct machine_linux *m, struct arena *a, struct machine_identity *i)
{
    struct utsname name = {0};
    (void) uname(&name);
    i->architecture = i->platform = arena_str(a, str_of(name.machine));
    i->kernel_version = arena_str(a, str_of(name.release));
    i->hostname = arena_str(a, str_of(name.nodename));
    i->hypervisor = either(linux_read(m, a, "/run/eve-hv-type"), STR("none"));
    i->eve_version = either(linux_read(m, a, "/run/eve-release"), STR("seth-" SETH_VERSION));
    i->has_watchdog = linux_exists(m, a, "/dev/watchdog");
    i->has_tpm = linux_exists(m, a, "/dev/tpmrm0");
    int64_t booted_s = 0;
    (void) str_to_i64(linux_field(linux_read(m, a, "/proc/stat"), STR("btime")), &booted_s);
    i->booted_wall_us = booted_s * 1000000;
    i->memory_bytes = kilobytes(linux_read(m, a, "/proc/meminfo"), STR("MemTotal"));
}

int linux_identity(struct machine *machine, struct arena *a, struct machine_identity *ret)
{
    struct machine_linux *m = machine_linux_of(machine);
    struct str cpuinfo = linux_read(m, a, "/proc/cpuinfo");
    struct machine_identity i = {
        .serial = either(dmi(m, a, "product_serial"),
                         either(tree(m, a, "serial-number"), linux_field(cpuinfo, STR("Serial")))),
        .manufacturer = dmi(m, a, "sys_vendor"),
        .product = either(dmi(m, a, "product_name"), tree(m, a, "model")),
        .version = dmi(m, a, "product_version"),
        .uuid = dmi(m, a, "product_uuid"),
        .bios_vendor = dmi(m, a, "bios_vendor"),
        .bios_version = dmi(m, a, "bios_version"),
        .bios_release_date = dmi(m, a, "bios_date"),
        .compatible = tree(m, a, "compatible"),
        .n_cpus = count_cpus(cpuinfo),
    };
    read_system(m, a, &i);
    *ret = i;
    return 0;
}
