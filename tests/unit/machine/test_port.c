/* SPDX-License-Identifier: Apache-2.0 */
/* Interfaces in a network namespace of the test's own. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loop/loop.h"
#include "machine/machine.h"
#include "test.h"

struct world {
    char root[64];
    struct loop *loop;
    struct machine *machine;
    unsigned n_told;
};

static void run(const char *command)
{
    if (system(command) != 0)
        fail_msg("%s", command);
}

static void on_network(void *arg)
{
    struct world *w = arg;
    w->n_told++;
    loop_stop(w->loop);
}

static void put_resolvers(const struct world *w, const char *text)
{
    char path[128];
    (void) snprintf(path, sizeof(path), "%s/etc/resolv.conf", w->root);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* Takes root, as all tests of networks here. */
static void begin(struct world *w)
{
    *w = (struct world){.root = "/tmp/machine.XXXXXX"};
    if (unshare(CLONE_NEWNET) < 0)
        fail_msg("a network namespace of its own takes root: %s", strerror(errno));
    run("ip link set lo up && ip link add eth5 type veth peer name far5 && ip link set far5 up");
    assert_non_null(mkdtemp(w->root));
    char etc[128];
    (void) snprintf(etc, sizeof(etc), "%s/etc", w->root);
    assert_int_equal(mkdir(etc, 0755), 0);
    put_resolvers(w,
                  "# none\nnameserver 192.0.2.53\nnameserver  2001:db8::53\nsearch site.example\n");
    w->loop = loop_new();
    struct machine_linux_options o = {
        .loop = w->loop, .clock = &clock_system, .root = w->root, .changes_network = true};
    assert_int_equal(machine_linux_new(&o, &w->machine), 0);
}

static void end(struct world *w)
{
    machine_free(w->machine);
    loop_settle(w->loop);
    loop_free(w->loop);
    char command[128];
    (void) snprintf(command, sizeof(command), "rm -rf %s", w->root);
    run(command);
}

static struct machine_interface interface_of(struct world *w, struct arena *a, const char *name)
{
    struct machine_interface *list;
    size_t n;
    assert_int_equal(w->machine->functions->interfaces(w->machine, a, &list, &n), 0);
    for (size_t i = 0; i < n; i++)
        if (str_is(list[i].name, name))
            return list[i];
    fail_msg("no interface %s", name);
    abort();
}

/* The kernel tells of a carrier in its own time. */
static struct machine_interface wait_up(struct world *w, struct arena *a, const char *name)
{
    struct machine_interface i = interface_of(w, a, name);
    for (int n = 0; n < 5000 && !i.is_up; n++) {
        (void) usleep(1000);
        i = interface_of(w, a, name);
    }
    return i;
}

/* The only child of this process, or 0. */
static int child(void)
{
    char path[64], text[64] = "";
    (void) snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int) getpid());
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    (void) fgets(text, sizeof(text), f);
    (void) fclose(f);
    return (int) strtol(text, NULL, 10);
}

static const struct machine_port plan = {
    .interface = STR("eth5"),
    .dhcp = MACHINE_STATIC,
    .address = {STR("192.0.2.7"), 24},
    .router = STR("192.0.2.1"),
    .mtu = 1400,
};

TEST(static_port_has_address_router_and_mtu)
{
    struct world w;
    begin(&w);
    ARENA_AUTO a = arena_new();
    assert_int_equal(w.machine->functions->apply_port(w.machine, &plan), 0);
    struct machine_interface i = wait_up(&w, a, "eth5");
    assert_true(i.is_up && i.is_ethernet && !i.is_loopback);
    assert_int_equal(i.mtu, 1400);
    assert_str(i.addresses[0].text, "192.0.2.7");
    assert_int_equal(i.addresses[0].prefix_bits, 24);
    assert_int_equal(i.n_routers, 1);
    assert_str(i.routers[0], "192.0.2.1");
    assert_int_equal(i.n_dns_servers, 2);
    assert_str(i.dns_servers[1], "2001:db8::53");
    assert_str(i.domain, "site.example");
    run("ip rule show | grep -q 'from 192.0.2.7 lookup'");
    end(&w);
}

TEST(applying_it_again_changes_nothing_and_another_replaces_it)
{
    struct world w;
    begin(&w);
    ARENA_AUTO a = arena_new();
    assert_int_equal(w.machine->functions->apply_port(w.machine, &plan), 0);
    assert_int_equal(w.machine->functions->apply_port(w.machine, &plan), 0);
    run("test $(ip rule show | grep -c 'from 192.0.2.7 lookup') = 1");
    static const struct str dns[] = {STR("198.51.100.53")};
    struct machine_port other = plan;
    other.address = (struct machine_address){STR("198.51.100.9"), 25};
    other.router = STR("198.51.100.1");
    other.dns_servers = dns;
    other.n_dns_servers = 1;
    assert_int_equal(w.machine->functions->apply_port(w.machine, &other), 0);
    struct machine_interface i = interface_of(&w, a, "eth5");
    size_t n_ipv4 = 0;
    for (size_t at = 0; at < i.n_addresses; at++)
        n_ipv4 += str_find(i.addresses[at].text, ':') < 0;
    assert_int_equal(n_ipv4, 1);
    assert_str(i.addresses[0].text, "198.51.100.9");
    assert_int_equal(i.n_routers, 1);
    assert_str(i.routers[0], "198.51.100.1");
    assert_int_equal(i.n_dns_servers, 1);
    assert_str(i.dns_servers[0], "198.51.100.53");
    run("! ip rule show | grep -q 'from 192.0.2.7 lookup'");
    end(&w);
}

static void put_client(const struct world *w)
{
    char path[256];
    (void) snprintf(path, sizeof(path), "mkdir -p %s/usr/sbin", w->root);
    run(path);
    (void) snprintf(path, sizeof(path), "%s/usr/sbin/udhcpc", w->root);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    /* Counts its lives, and gives the interface (the fourth word) an address as a lease would. */
    assert_true(fprintf(f,
                        "#!/bin/sh\necho x >> %s/lives\n"
                        "ip addr replace 203.0.113.9/24 dev \"$4\"\nexec sleep 1000\n",
                        w->root) > 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, 0755), 0);
}

static bool has_address(struct world *w, const char *text)
{
    ARENA_AUTO a = arena_new();
    const struct machine_interface i = interface_of(w, a, "eth5");
    for (size_t at = 0; at < i.n_addresses; at++)
        if (str_is(i.addresses[at].text, text))
            return true;
    return false;
}

TEST(a_client_for_dhcp_runs_until_the_port_is_another)
{
    struct world w;
    begin(&w);
    const struct machine_port dhcp = {.interface = STR("eth5"), .dhcp = MACHINE_DHCP};
    char command[256];
    loop_set_speed(w.loop, 1000);
    assert_int_equal(w.machine->functions->apply_port(w.machine, &dhcp), -ENOENT);
    put_client(&w);
    w.machine->functions->watch_network(w.machine, on_network, &w);
    assert_int_equal(w.machine->functions->apply_port(w.machine, &dhcp), 0);
    while (!has_address(&w, "203.0.113.9"))
        loop_run(w.loop);
    /* Applied again it is the same client; one that ends is started again. */
    assert_int_equal(w.machine->functions->apply_port(w.machine, &dhcp), 0);
    (void) snprintf(command, sizeof(command), "test $(wc -l < %s/lives) = 1", w.root);
    run(command);
    run("ip addr del 203.0.113.9/24 dev eth5");
    (void) snprintf(command, sizeof(command), "kill -9 %d", child());
    run(command);
    while (!has_address(&w, "203.0.113.9"))
        loop_run(w.loop);
    assert_int_equal(w.machine->functions->apply_port(w.machine, &plan), 0);
    assert_int_equal(child(), 0);
    end(&w);
}

TEST(bad_plans_are_refused)
{
    struct world w;
    begin(&w);
    struct machine_port bad = plan;
    bad.interface = STR("eth77");
    assert_int_equal(w.machine->functions->apply_port(w.machine, &bad), -ENODEV);
    bad = plan;
    bad.address.text = STR("192.0.2.400");
    assert_int_equal(w.machine->functions->apply_port(w.machine, &bad), -EINVAL);
    bad = plan;
    bad.address.prefix_bits = 33;
    assert_int_equal(w.machine->functions->apply_port(w.machine, &bad), -EINVAL);
    bad = plan;
    bad.router = STR("nowhere");
    assert_int_equal(w.machine->functions->apply_port(w.machine, &bad), -EINVAL);
    end(&w);
}

TEST(changes_of_addresses_and_resolvers_are_told)
{
    struct world w;
    begin(&w);
    w.machine->functions->watch_network(w.machine, on_network, &w);
    run("ip link set eth5 up && ip addr add 203.0.113.5/24 dev eth5");
    loop_run(w.loop);
    assert_int_equal(w.n_told, 1);
    put_resolvers(&w, "nameserver 203.0.113.53\n");
    while (w.n_told < 2)
        loop_run(w.loop);
    ARENA_AUTO a = arena_new();
    struct machine_interface i = interface_of(&w, a, "eth5");
    assert_str(i.addresses[0].text, "203.0.113.5");
    assert_int_equal(i.n_dns_servers, 1);
    end(&w);
}

/* ---- links over others, on whatever kernel: what it may lack is tested by
 * tests/agent/test_vlan.py */

static int apply(struct world *w, struct machine_link link)
{
    int result = 1;
    assert_int_equal(w->machine->functions->apply_links(w->machine, &link, 1, &result), 0);
    return result;
}

TEST(a_link_that_makes_no_sense_is_refused)
{
    struct world w;
    begin(&w);
    const struct machine_link vlan = {
        .name = STR("lan5"), .kind = MACHINE_VLAN, .parent = STR("eth5"), .vlan_id = 5};
    struct machine_link bad = vlan;
    bad.vlan_id = 4095;
    assert_int_equal(apply(&w, bad), -EINVAL);
    bad = vlan;
    bad.parent = STR("nobody");
    assert_int_equal(apply(&w, bad), -ENODEV);
    bad = vlan;
    bad.name = STR("a-name-too-long-for-it");
    assert_int_equal(apply(&w, bad), -EINVAL);
    bad = (struct machine_link){
        .name = STR("bo"), .kind = MACHINE_BOND, .mode = (enum machine_bond_mode) 7};
    assert_int_equal(apply(&w, bad), -EINVAL);
    end(&w);
}

TEST(links_of_others_stay_as_they_are)
{
    struct world w;
    begin(&w);
    run("ip link add taken type bridge");
    const struct machine_link vlan = {
        .name = STR("taken"), .kind = MACHINE_VLAN, .parent = STR("eth5"), .vlan_id = 5};
    assert_int_equal(apply(&w, vlan), -EEXIST);
    assert_int_equal(w.machine->functions->apply_links(w.machine, NULL, 0, NULL), 0);
    ARENA_AUTO a = arena_new();
    assert_false(interface_of(&w, a, "taken").is_made);
    /* Not even with our mark, if it is of a kind that we never make. */
    run("ip link set taken alias 'seth-agent 0123456789abcdef'");
    assert_int_equal(w.machine->functions->apply_links(w.machine, NULL, 0, NULL), 0);
    assert_true(interface_of(&w, a, "taken").is_made);
    end(&w);
}
