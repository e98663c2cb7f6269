/* SPDX-License-Identifier: Apache-2.0 */
/* The inventory: processors, disks, PCI, USB, network devices. */
#include <limits.h>
#include <stdlib.h>

#include "machine/linux_internal.h"

/* ---- processors ----------------------------------------------------------------------------- */

static unsigned field_number(struct str table, const char *key)
{
    int64_t n = 0;
    (void) str_to_i64(linux_field(table, str_of(key)), &n);
    return (unsigned) n;
}

static struct str field_or(struct str table, const char *key, const char *other)
{
    struct str found = linux_field(table, str_of(key));
    return found.n ? found : linux_field(table, str_of(other));
}

static struct machine_cpu read_cpu(struct machine_linux *m, struct arena *a, struct str block)
{
    struct machine_cpu cpu = {
        .id = field_number(block, "processor"),
        .physical_id = field_number(block, "physical id"),
        .core_id = field_number(block, "core id"),
        .vendor = field_or(block, "vendor_id", "CPU implementer"),
        .model_name = field_or(block, "model name", "CPU part"),
        .flags = field_or(block, "flags", "Features"),
    };
    cpu.max_khz =
        linux_read_number(m, a, "/sys/devices/system/cpu/cpu%u/cpufreq/cpuinfo_max_freq", cpu.id);
    struct str mhz = linux_field(block, STR("cpu MHz"));
    if (!cpu.max_khz && mhz.n)
        cpu.max_khz = strtoull(mhz.p, NULL, 10) * 1000;
    return cpu;
}

static void read_cpus(struct machine_linux *m, struct arena *a, struct machine_hardware *h)
{
    struct str rest = linux_read(m, a, "/proc/cpuinfo");
    while (rest.n) {
        ptrdiff_t end = str_find_str(rest, STR("\n\n"));
        struct str block = end < 0 ? rest : str_sub(rest, 0, (size_t) end);
        rest = end < 0 ? STR("") : str_from(rest, (size_t) end + 2);
        if (!str_starts_with(block, STR("processor")))
            continue;
        h->cpus = arena_grow(a, h->cpus, h->n_cpus, sizeof(*h->cpus));
        h->cpus[h->n_cpus++] = read_cpu(m, a, block);
    }
}

/* ---- disks ---------------------------------------------------------------------------------- */

static struct str bus_of(struct str path)
{
    static const char *const buses[] = {"nvme", "usb", "ata", "virtio", "mmc"};
    for (size_t i = 0; i < N_ELEMENTS(buses); i++)
        if (str_find_str(path, str_of(buses[i])) >= 0)
            return str_of(buses[i]);
    return STR("scsi");
}

static void read_disks(struct machine_linux *m, struct arena *a, struct machine_hardware *h)
{
    struct str *names;
    size_t n = linux_list(m, a, "/sys/block", &names);
    h->disks = ARENA_ARRAY(a, struct machine_disk, n);
    for (size_t i = 0; i < n; i++) {
        const char *name = names[i].p;
        /* Without a device behind it, it is a file, memory or made of others. */
        if (!linux_exists(m, a, "/sys/block/%s/device", name))
            continue;
        struct str serial = linux_read(m, a, "/sys/block/%s/device/serial", name);
        h->disks[h->n_disks++] = (struct machine_disk){
            .name = names[i],
            .model = linux_read(m, a, "/sys/block/%s/device/model", name),
            .serial = serial.n ? serial : linux_read(m, a, "/sys/block/%s/serial", name),
            .bus = bus_of(linux_link(m, a, "/sys/block/%s", name)),
            .size_bytes = linux_read_number(m, a, "/sys/block/%s/size", name) * 512,
            .is_rotational = linux_read_number(m, a, "/sys/block/%s/queue/rotational", name),
        };
    }
}

/* ---- PCI and USB ---------------------------------------------------------------------------- */

static void read_pci(struct machine_linux *m, struct arena *a, struct machine_hardware *h)
{
    struct str *names;
    size_t n = linux_list(m, a, "/sys/bus/pci/devices", &names);
    h->pci = ARENA_ARRAY(a, struct machine_pci_device, n);
    for (size_t i = 0; i < n; i++) {
        const char *at = arena_printf(a, "/sys/bus/pci/devices/%s", names[i].p).p;
        h->pci[h->n_pci++] = (struct machine_pci_device){
            .address = names[i],
            .driver = linux_last_part(linux_link(m, a, "%s/driver", at)),
            .vendor = (unsigned) linux_read_hex(m, a, "%s/vendor", at),
            .device = (unsigned) linux_read_hex(m, a, "%s/device", at),
            .revision = (unsigned) linux_read_hex(m, a, "%s/revision", at),
            .subvendor = (unsigned) linux_read_hex(m, a, "%s/subsystem_vendor", at),
            .subdevice = (unsigned) linux_read_hex(m, a, "%s/subsystem_device", at),
            .class_id = (unsigned) linux_read_hex(m, a, "%s/class", at),
        };
    }
}

static void read_usb(struct machine_linux *m, struct arena *a, struct machine_hardware *h)
{
    struct str *names;
    size_t n = linux_list(m, a, "/sys/bus/usb/devices", &names);
    h->usb = ARENA_ARRAY(a, struct machine_usb_device, n);
    for (size_t i = 0; i < n; i++) {
        const char *at = arena_printf(a, "/sys/bus/usb/devices/%s", names[i].p).p;
        if (!linux_exists(m, a, "%s/idVendor", at))
            continue; /* an interface of a device */
        h->usb[h->n_usb++] = (struct machine_usb_device){
            .address = names[i],
            .bus = (unsigned) linux_read_number(m, a, "%s/busnum", at),
            .number = (unsigned) linux_read_number(m, a, "%s/devnum", at),
            .vendor = (unsigned) linux_read_hex(m, a, "%s/idVendor", at),
            .product = (unsigned) linux_read_hex(m, a, "%s/idProduct", at),
            .class_id = (unsigned) linux_read_hex(m, a, "%s/bDeviceClass", at),
            .driver = linux_last_part(linux_link(m, a, "%s/driver", at)),
            .manufacturer_name = linux_read(m, a, "%s/manufacturer", at),
            .product_name = linux_read(m, a, "%s/product", at),
        };
    }
}

/* ---- network devices ------------------------------------------------------------------------ */

/* The device that is its parent may sit on a bus behind PCI (virtio): the last PCI address of the
 * path is the one that can be assigned. */
static struct str pci_address_of(struct machine_linux *m, struct arena *a, const char *name)
{
    char real[PATH_MAX];
    struct str path = STR_NONE, part, found = STR_NONE;
    if (realpath(arena_printf(a, "%s/sys/class/net/%s/device", m->root, name).p, real))
        path = arena_str(a, str_of(real));
    while (str_split(&path, '/', &part))
        if (part.n == 12 && part.p[4] == ':' && part.p[7] == ':' && part.p[10] == '.')
            found = part;
    return found;
}

static void read_network(struct machine_linux *m, struct arena *a, struct machine_hardware *h)
{
    struct str *names;
    size_t n = linux_list(m, a, "/sys/class/net", &names);
    h->network = ARENA_ARRAY(a, struct machine_network_device, n);
    for (size_t i = 0; i < n; i++) {
        const char *name = names[i].p;
        if (!linux_exists(m, a, "/sys/class/net/%s/device", name))
            continue;
        struct str speed = linux_read(m, a, "/sys/class/net/%s/speed", name);
        int64_t mbits = 0; /* -1: not known */
        (void) str_to_i64(speed, &mbits);
        h->network[h->n_network++] = (struct machine_network_device){
            .name = names[i],
            .mac = linux_read(m, a, "/sys/class/net/%s/address", name),
            .driver = linux_last_part(linux_link(m, a, "/sys/class/net/%s/device/driver", name)),
            .pci_address = pci_address_of(m, a, name),
            .speed_mbits = (uint64_t) MAX(mbits, 0),
        };
    }
}

/* ---- memory --------------------------------------------------------------------------------- */

static void read_ranks(struct machine_linux *m, struct arena *a, const char *at,
                       struct machine_memory_controller *c)
{
    struct str *names;
    size_t n = linux_list(m, a, at, &names);
    c->ranks = ARENA_ARRAY(a, struct machine_memory_rank, n);
    for (size_t i = 0; i < n; i++) {
        const char *name = names[i].p;
        if (!linux_exists(m, a, "%s/%s/dimm_ce_count", at, name))
            continue;
        struct str label = linux_read(m, a, "%s/%s/dimm_label", at, name);
        c->ranks[c->n_ranks++] = (struct machine_memory_rank){
            .name = label.n ? label : names[i],
            .n_corrected = (int64_t) linux_read_number(m, a, "%s/%s/dimm_ce_count", at, name),
            .n_uncorrected = (int64_t) linux_read_number(m, a, "%s/%s/dimm_ue_count", at, name),
        };
    }
}

static void read_memory(struct machine_linux *m, struct arena *a, struct machine_hardware *h)
{
    struct str *names;
    size_t n = linux_list(m, a, "/sys/devices/system/edac/mc", &names);
    h->memory = ARENA_ARRAY(a, struct machine_memory_controller, n);
    for (size_t i = 0; i < n; i++) {
        const char *at = arena_printf(a, "/sys/devices/system/edac/mc/%s", names[i].p).p;
        if (!linux_exists(m, a, "%s/ce_count", at))
            continue;
        struct machine_memory_controller *c = &h->memory[h->n_memory++];
        *c = (struct machine_memory_controller){
            .name = names[i],
            .n_corrected = (int64_t) linux_read_number(m, a, "%s/ce_count", at),
            .n_uncorrected = (int64_t) linux_read_number(m, a, "%s/ue_count", at),
        };
        read_ranks(m, a, at, c);
    }
}

int linux_hardware(struct machine *machine, struct arena *a, struct machine_hardware *ret)
{
    struct machine_linux *m = machine_linux_of(machine);
    struct machine_hardware h = {0};
    read_cpus(m, a, &h);
    read_disks(m, a, &h);
    read_pci(m, a, &h);
    read_usb(m, a, &h);
    read_network(m, a, &h);
    read_memory(m, a, &h);
    *ret = h;
    return 0;
}
