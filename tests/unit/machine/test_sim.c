/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "machine/machine.h"
#include "test.h"

static struct clock_virtual now;

static struct machine *make(uint64_t seed)
{
    static const struct str dns[] = {STR("127.0.0.1"), STR("::1")};
    if (!now.now_us)
        clock_virtual_init(&now, 1700000000000000);
    return machine_sim_new(&(struct machine_sim_options){
        .clock = &now.clock,
        .seed = seed,
        .address = STR("127.0.0.7"),
        .dns_servers = dns,
        .n_dns_servers = N_ELEMENTS(dns),
    });
}

TEST(serial_follows_from_the_seed)
{
    ARENA_AUTO a = arena_new();
    struct machine *one = make(1), *again = make(1), *other = make(2);
    struct machine_identity x, y, z;
    assert_int_equal(one->functions->identity(one, a, &x), 0);
    assert_int_equal(again->functions->identity(again, a, &y), 0);
    assert_int_equal(other->functions->identity(other, a, &z), 0);
    assert_true(str_eq(x.serial, y.serial));
    assert_true(str_eq(x.uuid, y.uuid));
    assert_int_equal(x.uuid.n, 36);
    assert_false(str_eq(x.serial, z.serial));
    assert_true(x.n_cpus && x.memory_bytes && x.manufacturer.n && x.product.n);
    machine_free(one);
    machine_free(again);
    machine_free(other);
}

TEST(counters_grow_with_its_clock)
{
    ARENA_AUTO a = arena_new();
    struct machine *m = make(3);
    struct machine_load before, after;
    assert_int_equal(m->functions->load(m, a, &before), 0);
    now.now_us += 3600 * (int64_t) 1000000;
    assert_int_equal(m->functions->load(m, a, &after), 0);
    assert_int_equal(after.uptime_s - before.uptime_s, 3600);
    assert_true(after.cpu_ns > before.cpu_ns);
    assert_true(after.disks[0].write_bytes > before.disks[0].write_bytes);
    assert_true(after.mounts[0].used_bytes + after.mounts[0].free_bytes ==
                after.mounts[0].total_bytes);
    machine_free(m);
}

TEST(has_one_port_with_the_address_it_was_given)
{
    ARENA_AUTO a = arena_new();
    struct machine *m = make(4);
    struct machine_interface *list;
    size_t n;
    assert_int_equal(m->functions->interfaces(m, a, &list, &n), 0);
    assert_int_equal(n, 1);
    assert_str(list[0].name, "eth0");
    assert_str(list[0].addresses[0].text, "127.0.0.7");
    assert_str(list[0].dns_servers[1], "::1");
    assert_int_equal(list[0].mac[0] & 3, 2);
    struct machine_port port = {.interface = STR("eth0"), .dhcp = MACHINE_DHCP};
    assert_int_equal(m->functions->apply_port(m, &port), -EPERM);
    assert_int_equal(m->functions->apply_links(m, NULL, 0, NULL), -EPERM);
    port.interface = STR("eth1");
    assert_int_equal(m->functions->apply_port(m, &port), -ENODEV);
    machine_free(m);
}

TEST(hardware_names_the_mac_of_its_port)
{
    ARENA_AUTO a = arena_new();
    struct machine *m = make(5);
    struct machine_hardware h;
    struct machine_interface *list;
    size_t n;
    assert_int_equal(m->functions->hardware(m, a, &h), 0);
    assert_int_equal(m->functions->interfaces(m, a, &list, &n), 0);
    char text[18];
    const unsigned char *mac = list[0].mac;
    (void) snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2],
                    mac[3], mac[4], mac[5]);
    assert_str(h.network[0].mac, text);
    assert_true(h.n_cpus && h.n_disks && h.n_pci);
    machine_free(m);
}

static unsigned restarts;
static void on_restart(void *arg, enum machine_restart how, struct str reason)
{
    assert_ptr_equal(arg, &restarts);
    assert_int_equal(how, MACHINE_POWEROFF);
    assert_str(reason, "test");
    restarts++;
}

TEST(restart_calls_its_owner_and_counts_time_anew)
{
    ARENA_AUTO a = arena_new();
    struct machine *m = machine_sim_new(&(struct machine_sim_options){
        .clock = &now.clock, .serial = STR("S1"), .on_restart = on_restart, .arg = &restarts});
    now.now_us += 5000000;
    assert_int_equal(m->functions->restart(m, MACHINE_POWEROFF, STR("test")), 0);
    assert_int_equal(restarts, 1);
    struct machine_load load;
    struct machine_identity id;
    assert_int_equal(m->functions->load(m, a, &load), 0);
    assert_int_equal(load.uptime_s, 0);
    assert_int_equal(m->functions->identity(m, a, &id), 0);
    assert_str(id.serial, "S1");
    assert_true(id.booted_wall_us == now.now_us);
    machine_free(m);
}
