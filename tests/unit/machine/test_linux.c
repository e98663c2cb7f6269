/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loop/loop.h"
#include "machine/machine.h"
#include "test.h"

/* A root as a small box would have it. */
struct world {
    char root[64];
    struct loop *loop;
    struct machine *machine;
};

static void put(const struct world *w, const char *path, const char *content)
{
    char whole[512];
    (void) snprintf(whole, sizeof(whole), "%s%s", w->root, path);
    for (char *p = whole + strlen(w->root) + 1; *p; p++)
        if (*p == '/') {
            *p = '\0';
            (void) mkdir(whole, 0755);
            *p = '/';
        }
    FILE *f = fopen(whole, "w");
    assert_non_null(f);
    assert_true(fputs(content, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void put_link(const struct world *w, const char *path, const char *target)
{
    char whole[512];
    (void) snprintf(whole, sizeof(whole), "%s%s", w->root, path);
    assert_int_equal(symlink(target, whole), 0);
}

static void begin(struct world *w)
{
    *w = (struct world){.root = "/tmp/machine.XXXXXX"};
    assert_non_null(mkdtemp(w->root));
    w->loop = loop_new();
    const char *mounts[] = {w->root, "/no/such/place"};
    struct machine_linux_options o = {.loop = w->loop,
                                      .clock = &clock_system,
                                      .root = w->root,
                                      .mounts = mounts,
                                      .n_mounts = N_ELEMENTS(mounts)};
    assert_int_equal(machine_linux_new(&o, &w->machine), 0);
}

static void end(struct world *w)
{
    machine_free(w->machine);
    loop_settle(w->loop);
    loop_free(w->loop);
    char command[128];
    (void) snprintf(command, sizeof(command), "rm -rf %s", w->root);
    assert_int_equal(system(command), 0);
}

TEST(identity_is_of_smbios)
{
    struct world w;
    begin(&w);
    ARENA_AUTO a = arena_new();
    put(&w, "/sys/class/dmi/id/product_serial", "  J4K2 \n");
    put(&w, "/sys/class/dmi/id/sys_vendor", "Maker\n");
    put(&w, "/sys/class/dmi/id/product_name", "Box 9\n");
    put(&w, "/sys/class/dmi/id/product_version", "Default string\n");
    put(&w, "/sys/class/dmi/id/bios_date", "01/02/2024\n");
    put(&w, "/proc/cpuinfo", "processor\t: 0\nmodel name\t: X\n\nprocessor\t: 1\n");
    put(&w, "/proc/meminfo", "MemTotal:        2048000 kB\nMemAvailable:    1024000 kB\n");
    put(&w, "/proc/stat", "cpu  1 2 3 4\nbtime 1700000000\nprocesses 5\n");
    put(&w, "/run/eve-release", "12.0.4-kvm-amd64\n");
    put(&w, "/run/eve-hv-type", "kvm\n");
    put(&w, "/dev/watchdog", "");
    struct machine_identity i;
    assert_int_equal(w.machine->functions->identity(w.machine, a, &i), 0);
    assert_str(i.serial, "J4K2");
    assert_str(i.manufacturer, "Maker");
    assert_str(i.product, "Box 9");
    assert_str(i.version, "");
    assert_str(i.bios_release_date, "01/02/2024");
    assert_str(i.eve_version, "12.0.4-kvm-amd64");
    assert_str(i.hypervisor, "kvm");
    assert_int_equal(i.n_cpus, 2);
    assert_true(i.memory_bytes == (uint64_t) 2048000 * 1024);
    assert_true(i.booted_wall_us == 1700000000000000);
    assert_true(i.has_watchdog);
    assert_false(i.has_tpm);
    end(&w);
}

TEST(identity_without_smbios_is_of_the_device_tree_and_the_cpu)
{
    struct world w;
    begin(&w);
    ARENA_AUTO a = arena_new();
    put(&w, "/proc/cpuinfo",
        "processor\t: 0\n\nHardware\t: BCM2835\nSerial\t\t: 10000000a1b2c3d4\n");
    put(&w, "/proc/device-tree/model", "Raspberry Pi 4 Model B Rev 1.4");
    struct machine_identity i;
    assert_int_equal(w.machine->functions->identity(w.machine, a, &i), 0);
    assert_str(i.serial, "10000000a1b2c3d4");
    assert_str(i.product, "Raspberry Pi 4 Model B Rev 1.4");
    assert_str(i.manufacturer, "");
    assert_str(i.hypervisor, "none");
    assert_true(i.eve_version.n > 0);
    end(&w);
}

TEST(hardware_is_read_from_sysfs)
{
    struct world w;
    begin(&w);
    ARENA_AUTO a = arena_new();
    put(&w, "/proc/cpuinfo",
        "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Atom\ncpu MHz\t\t: 1900.5\n"
        "physical id\t: 0\ncore id\t\t: 1\nflags\t\t: fpu vme\n\nprocessor\t: 1\ncore id\t\t: 3\n");
    put(&w, "/sys/block/loop0/size", "8\n");
    put(&w, "/sys/block/sda/size", "1000\n");
    put(&w, "/sys/block/sda/queue/rotational", "1\n");
    put(&w, "/sys/block/sda/device/model", "DISK 1  \n");
    put(&w, "/sys/bus/pci/devices/0000:00:02.0/vendor", "0x8086\n");
    put(&w, "/sys/bus/pci/devices/0000:00:02.0/device", "0x1533\n");
    put(&w, "/sys/bus/pci/devices/0000:00:02.0/class", "0x020000\n");
    put_link(&w, "/sys/bus/pci/devices/0000:00:02.0/driver", "../../../bus/pci/drivers/igb");
    put(&w, "/sys/bus/usb/devices/1-1/idVendor", "046d\n");
    put(&w, "/sys/bus/usb/devices/1-1/idProduct", "c31c\n");
    put(&w, "/sys/bus/usb/devices/1-1/busnum", "1\n");
    put(&w, "/sys/bus/usb/devices/1-1/devnum", "9\n");
    put(&w, "/sys/bus/usb/devices/1-1:1.0/bInterfaceClass", "03\n");
    put(&w, "/sys/class/net/eth7/address", "52:54:00:12:34:56\n");
    put(&w, "/sys/class/net/eth7/speed", "-1\n");
    put_link(&w, "/sys/class/net/eth7/device", "../../../bus/pci/devices/0000:00:02.0");
    put(&w, "/sys/devices/system/edac/mc/mc0/ce_count", "3\n");
    put(&w, "/sys/devices/system/edac/mc/mc0/ue_count", "1\n");
    put(&w, "/sys/devices/system/edac/mc/mc0/rank2/dimm_ce_count", "2\n");
    put(&w, "/sys/devices/system/edac/mc/mc0/rank2/dimm_label", "DIMM_A1\n");
    put(&w, "/sys/class/net/br0/address", "52:54:00:12:34:57\n");
    struct machine_hardware h;
    assert_int_equal(w.machine->functions->hardware(w.machine, a, &h), 0);
    assert_int_equal(h.n_cpus, 2);
    assert_str(h.cpus[0].vendor, "GenuineIntel");
    assert_true(h.cpus[0].max_khz == 1900000);
    assert_int_equal(h.cpus[1].core_id, 3);
    assert_int_equal(h.n_disks, 1);
    assert_str(h.disks[0].model, "DISK 1");
    assert_true(h.disks[0].size_bytes == 512000 && h.disks[0].is_rotational);
    assert_int_equal(h.n_pci, 1);
    assert_int_equal(h.pci[0].vendor, 0x8086);
    assert_int_equal(h.pci[0].class_id, 0x20000);
    assert_str(h.pci[0].driver, "igb");
    assert_int_equal(h.n_usb, 1);
    assert_int_equal(h.usb[0].product, 0xc31c);
    assert_int_equal(h.usb[0].number, 9);
    assert_int_equal(h.n_network, 1);
    assert_str(h.network[0].name, "eth7");
    assert_str(h.network[0].pci_address, "0000:00:02.0");
    assert_true(h.network[0].speed_mbits == 0);
    assert_int_equal(h.n_memory, 1);
    assert_int_equal(h.memory[0].n_corrected, 3);
    assert_int_equal(h.memory[0].n_uncorrected, 1);
    assert_int_equal(h.memory[0].n_ranks, 1);
    assert_str(h.memory[0].ranks[0].name, "DIMM_A1");
    assert_int_equal(h.memory[0].ranks[0].n_corrected, 2);
    end(&w);
}

TEST(load_counts_what_the_kernel_counts)
{
    struct world w;
    begin(&w);
    ARENA_AUTO a = arena_new();
    put(&w, "/proc/uptime", "4711.25 9000.00\n");
    put(&w, "/proc/stat", "cpu  100 10 50 5000 600 5 15 20 0 0\ncpu0 1 1 1 1\nbtime 1\n");
    put(&w, "/proc/meminfo", "MemTotal:  2000 kB\nMemFree:  10 kB\nMemAvailable:  1500 kB\n");
    put(&w, "/proc/self/statm", "1000 25 3 1 0 2 0\n");
    put(&w, "/sys/block/sda/size", "1000\n");
    put(&w, "/proc/diskstats",
        "   7       0 loop0 1 1 1 1 1 1 1 1\n   8       0 sda 10 1 200 5 20 2 400 6 0 0\n"
        "   8       1 sda1 9 1 100 5 20 2 400 6 0 0\n");
    struct machine_load l;
    assert_int_equal(w.machine->functions->load(w.machine, a, &l), 0);
    assert_int_equal(l.uptime_s, 4711);
    assert_true(l.cpu_ns == (int64_t) 200 * (1000000000 / sysconf(_SC_CLK_TCK)));
    assert_true(l.memory_available_bytes == 1500 * 1024);
    assert_true(l.own_memory_bytes == 25 * (uint64_t) sysconf(_SC_PAGESIZE));
    assert_int_equal(l.n_disks, 1);
    assert_true(l.disks[0].n_reads == 10 && l.disks[0].read_bytes == 200 * 512);
    assert_true(l.disks[0].n_writes == 20 && l.disks[0].write_bytes == 400 * 512);
    assert_int_equal(l.n_mounts, 1);
    assert_true(l.mounts[0].total_bytes > 0);
    end(&w);
}

TEST(an_empty_root_tells_nothing_and_does_not_fail)
{
    struct world w;
    begin(&w);
    ARENA_AUTO a = arena_new();
    struct machine_identity i;
    struct machine_hardware h;
    struct machine_load l;
    assert_int_equal(w.machine->functions->identity(w.machine, a, &i), 0);
    assert_str(i.serial, "");
    assert_int_equal(w.machine->functions->hardware(w.machine, a, &h), 0);
    assert_int_equal(h.n_cpus + h.n_disks + h.n_pci + h.n_usb + h.n_network, 0);
    assert_int_equal(w.machine->functions->load(w.machine, a, &l), 0);
    assert_int_equal(l.uptime_s, 0);
    end(&w);
}

TEST(what_it_was_not_allowed_is_refused)
{
    struct world w;
    begin(&w);
    struct machine_port p = {.interface = STR("lo"), .dhcp = MACHINE_DHCP};
    assert_int_equal(w.machine->functions->apply_port(w.machine, &p), -EPERM);
    assert_int_equal(w.machine->functions->apply_links(w.machine, NULL, 0, NULL), -EPERM);
    assert_int_equal(w.machine->functions->set_hostname(w.machine, STR("x")), -EPERM);
    assert_int_equal(w.machine->functions->restart(w.machine, MACHINE_REBOOT, STR("x")), -EPERM);
    end(&w);
}

/* ---- this machine ---------------------------------------------------------------------------- */

TEST(this_machine_has_processors_memory_and_a_past)
{
    ARENA_AUTO a = arena_new();
    struct loop *loop = loop_new();
    struct machine *m;
    const char *mounts[] = {"/"};
    struct machine_linux_options o = {
        .loop = loop, .clock = &clock_system, .root = "", .mounts = mounts, .n_mounts = 1};
    assert_int_equal(machine_linux_new(&o, &m), 0);
    struct machine_identity i;
    struct machine_load before, after;
    assert_int_equal(m->functions->identity(m, a, &i), 0);
    assert_true(i.n_cpus > 0 && i.memory_bytes > 0 && i.architecture.n && i.kernel_version.n);
    assert_true(i.booted_wall_us > 0);
    assert_int_equal(m->functions->load(m, a, &before), 0);
    assert_int_equal(m->functions->load(m, a, &after), 0);
    assert_true(before.uptime_s > 0 && before.n_processes > 0 && before.own_memory_bytes > 0);
    assert_true(after.cpu_ns >= before.cpu_ns);
    assert_int_equal(before.n_mounts, 1);
    struct machine_hardware h;
    assert_int_equal(m->functions->hardware(m, a, &h), 0);
    assert_int_equal(h.n_cpus, i.n_cpus);
    struct machine_interface *list;
    size_t n, n_loopback = 0;
    assert_int_equal(m->functions->interfaces(m, a, &list, &n), 0);
    for (size_t at = 0; at < n; at++)
        n_loopback += list[at].is_loopback && str_is(list[at].name, "lo") && list[at].index == 1;
    assert_int_equal(n_loopback, 1);
    machine_free(m);
    loop_settle(loop);
    loop_free(loop);
}
