/* SPDX-License-Identifier: Apache-2.0 */
/* A machine that does not exist: everything follows from its seed and the clock, so that nothing
 * need be kept but these. */
#include <errno.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "loop/loop.h"
#include "machine/machine.h"

struct sim {
    struct machine machine;
    const struct clock *clock;
    uint64_t seed;
    int64_t booted_us, booted_wall_us; /* monotonic, wall */
    char *serial, *address, *hostname;
    struct str *dns_servers; /* with their text in one block */
    size_t n_dns_servers;
    void (*on_restart)(void *arg, enum machine_restart how, struct str reason);
    void *arg;
};

static struct sim *sim_of(struct machine *m)
{
    return CONTAINER_OF(m, struct sim, machine);
}

/* A number of the machine's own for each `which`, the same for ever (splitmix64). */
static uint64_t draw(const struct sim *s, uint64_t which)
{
    uint64_t z = s->seed + (which + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

enum { DRAW_MODEL, DRAW_SERIAL, DRAW_UUID, DRAW_UUID_LOW, DRAW_MAC, DRAW_RATE, DRAW_DISK };

static const struct model {
    const char *manufacturer, *product, *cpu;
    unsigned n_cpus, memory_gib, disk_gib;
} models[] = {
    {"Advantech", "UNO-2484G", "Intel(R) Core(TM) i7-6600U CPU @ 2.60GHz", 4, 16, 256},
    {"Dell Inc.", "Edge Gateway 3200", "Intel Atom(R) x6425RE Processor @ 1.90GHz", 4, 16, 512},
    {"HPE", "ProLiant EL300 Gen10", "Intel(R) Core(TM) i7-7600U CPU @ 2.80GHz", 4, 32, 512},
    {"Supermicro", "SYS-E100-9W-L", "Intel(R) Core(TM) i3-8145UE CPU @ 2.20GHz", 4, 8, 128},
    {"OnLogic", "Helix 511", "Intel(R) Core(TM) i5-1145G7E @ 2.60GHz", 8, 32, 1024},
};

static const struct model *model_of(const struct sim *s)
{
    return &models[draw(s, DRAW_MODEL) % N_ELEMENTS(models)];
}

static int64_t uptime_us(const struct sim *s)
{
    return MAX(s->clock->monotonic_us(s->clock) - s->booted_us, 0);
}

/* What so many per second have become. */
static uint64_t grown(const struct sim *s, uint64_t base, uint64_t which)
{
    uint64_t rate = base / 2 + draw(s, which) % base;
    return rate * (uint64_t) (uptime_us(s) / 1000) / 1000;
}

static struct str uuid_of(const struct sim *s, struct arena *a)
{
    uint64_t high = draw(s, DRAW_UUID), low = draw(s, DRAW_UUID_LOW);
    return arena_printf(a, "%08x-%04x-4%03x-a%03x-%012llx", (unsigned) (high >> 32),
                        (unsigned) (high >> 16) & 0xffff, (unsigned) high & 0xfff,
                        (unsigned) (low >> 48) & 0xfff,
                        (unsigned long long) (low & 0xffffffffffffu));
}

static int sim_identity(struct machine *machine, struct arena *a, struct machine_identity *ret)
{
    const struct sim *s = sim_of(machine);
    const struct model *model = model_of(s);
    *ret = (struct machine_identity){
        .serial = s->serial
                      ? str_of(s->serial)
                      : arena_printf(a, "SIM%016llX", (unsigned long long) draw(s, DRAW_SERIAL)),
        .manufacturer = str_of(model->manufacturer),
        .product = str_of(model->product),
        .version = STR("1.0"),
        .uuid = uuid_of(s, a),
        .bios_vendor = STR("American Megatrends Inc."),
        .bios_version = STR("5.12"),
        .bios_release_date = STR("03/14/2024"),
        .compatible = STR(""),
        .architecture = STR("x86_64"),
        .platform = STR("x86_64"),
        .kernel_version = STR("6.1.112-simulated"),
        .hypervisor = STR("none"),
        .eve_version = STR("seth-" SETH_VERSION),
        .hostname = s->hostname ? str_of(s->hostname) : STR("simulated"),
        .n_cpus = model->n_cpus,
        .memory_bytes = (uint64_t) model->memory_gib << 30,
        .booted_wall_us = s->booted_wall_us,
        .has_watchdog = true,
    };
    return 0;
}

static struct str mac_text(const struct sim *s, struct arena *a)
{
    uint64_t n = draw(s, DRAW_MAC);
    return arena_printf(a, "02:%02x:%02x:%02x:%02x:%02x", (unsigned) (n >> 32) & 255,
                        (unsigned) (n >> 24) & 255, (unsigned) (n >> 16) & 255,
                        (unsigned) (n >> 8) & 255, (unsigned) n & 255);
}

static struct machine_cpu *make_cpus(struct arena *a, const struct model *model)
{
    struct machine_cpu *cpus = ARENA_ARRAY(a, struct machine_cpu, model->n_cpus);
    for (unsigned i = 0; i < model->n_cpus; i++)
        cpus[i] = (struct machine_cpu){
            .id = i,
            .core_id = i / 2,
            .vendor = STR("GenuineIntel"),
            .model_name = str_of(model->cpu),
            .flags = STR("fpu vme de pse tsc msr pae mce cx8 apic sep mtrr sse sse2 vmx aes"),
            .max_khz = 2600000,
        };
    return cpus;
}

static int sim_hardware(struct machine *machine, struct arena *a, struct machine_hardware *ret)
{
    static const struct machine_pci_device pci[] = {
        {STR("0000:00:00.0"), STR(""), 0x8086, 0x1904, 8, 0x8086, 0x2015, 0x060000},
        {STR("0000:00:17.0"), STR("ahci"), 0x8086, 0x9d03, 0x21, 0x8086, 0x7270, 0x010601},
        {STR("0000:01:00.0"), STR("igb"), 0x8086, 0x1533, 3, 0x8086, 0x1533, 0x020000},
    };
    const struct sim *s = sim_of(machine);
    const struct model *model = model_of(s);
    struct machine_disk *disk = ARENA_NEW(a, struct machine_disk);
    *disk = (struct machine_disk){
        .name = STR("sda"),
        .model = STR("SIMULATED SSD"),
        .serial =
            arena_printf(a, "S%012llX", (unsigned long long) draw(s, DRAW_DISK) & 0xffffffffffff),
        .bus = STR("ata"),
        .size_bytes = (uint64_t) model->disk_gib << 30,
    };
    struct machine_network_device *network = ARENA_NEW(a, struct machine_network_device);
    *network = (struct machine_network_device){
        .name = STR("eth0"),
        .mac = mac_text(s, a),
        .driver = STR("igb"),
        .pci_address = STR("0000:01:00.0"),
        .speed_mbits = 1000,
    };
    struct machine_pci_device *devices = ARENA_ARRAY(a, struct machine_pci_device, N_ELEMENTS(pci));
    memcpy(devices, pci, sizeof(pci));
    *ret = (struct machine_hardware){
        .cpus = make_cpus(a, model),
        .n_cpus = model->n_cpus,
        .disks = disk,
        .n_disks = 1,
        .pci = devices,
        .n_pci = N_ELEMENTS(pci),
        .network = network,
        .n_network = 1,
    };
    return 0;
}

static int sim_load(struct machine *machine, struct arena *a, struct machine_load *ret)
{
    const struct sim *s = sim_of(machine);
    const struct model *model = model_of(s);
    uint64_t memory = (uint64_t) model->memory_gib << 30;
    uint64_t total = (uint64_t) model->disk_gib << 30;
    uint64_t used = MIN(total / 10 + grown(s, 4096, DRAW_DISK), total);
    struct machine_mount *mount = ARENA_NEW(a, struct machine_mount);
    *mount = (struct machine_mount){STR("/persist"), total, used, total - used};
    struct machine_disk_load *disk = ARENA_NEW(a, struct machine_disk_load);
    *disk = (struct machine_disk_load){
        .name = STR("sda"),
        .read_bytes = grown(s, 16384, DRAW_RATE),
        .write_bytes = grown(s, 32768, DRAW_RATE),
        .n_reads = grown(s, 2, DRAW_RATE),
        .n_writes = grown(s, 4, DRAW_RATE),
    };
    *ret = (struct machine_load){
        .uptime_s = uptime_us(s) / 1000000,
        .cpu_ns = (int64_t) grown(s, 40000000, DRAW_RATE),
        .memory_total_bytes = memory,
        .memory_available_bytes = memory - memory / 8,
        .mounts = mount,
        .n_mounts = 1,
        .disks = disk,
        .n_disks = 1,
        .own_memory_bytes = (uint64_t) 12 << 20,
        .n_processes = 90 + (unsigned) (draw(s, DRAW_RATE) % 40),
    };
    return 0;
}

static int sim_interfaces(struct machine *machine, struct arena *a, struct machine_interface **ret,
                          size_t *ret_n)
{
    static const struct str router = STR("192.0.2.1");
    const struct sim *s = sim_of(machine);
    struct machine_address *address = ARENA_NEW(a, struct machine_address);
    *address = (struct machine_address){
        .text = str_of(s->address),
        .prefix_bits = str_find(str_of(s->address), ':') >= 0 ? 64 : 24,
    };
    struct machine_interface *i = ARENA_NEW(a, struct machine_interface);
    *i = (struct machine_interface){
        .name = STR("eth0"),
        .is_up = true,
        .is_physical = true,
        .is_ethernet = true,
        .mtu = 1500,
        .index = 2,
        .addresses = address,
        .n_addresses = address->text.n ? 1 : 0,
        .routers = &router,
        .n_routers = 1,
        .dns_servers = s->dns_servers,
        .n_dns_servers = s->n_dns_servers,
        .counters = {.rx_bytes = grown(s, 2000, DRAW_RATE),
                     .tx_bytes = grown(s, 1000, DRAW_RATE),
                     .rx_packets = grown(s, 4, DRAW_RATE),
                     .tx_packets = grown(s, 2, DRAW_RATE)},
    };
    uint64_t mac = draw(s, DRAW_MAC);
    i->mac[0] = 2;
    for (unsigned byte = 1; byte < sizeof(i->mac); byte++)
        i->mac[byte] = (unsigned char) (mac >> (8 * (5 - byte)));
    *ret = i;
    *ret_n = 1;
    return 0;
}

/* Its address is one that the simulator really has. */
static int sim_apply_port(struct machine *machine, const struct machine_port *p)
{
    (void) machine;
    return str_is(p->interface, "eth0") ? -EPERM : -ENODEV;
}

static int sim_apply_links(struct machine *machine, const struct machine_link *links, size_t n,
                           int *ret_results)
{
    (void) machine;
    (void) links;
    (void) n;
    (void) ret_results;
    return -EPERM;
}

/* Its network never changes. */
static void sim_watch_network(struct machine *machine, void (*on_network)(void *arg), void *arg)
{
    (void) machine;
    (void) on_network;
    (void) arg;
}

static int sim_set_hostname(struct machine *machine, struct str name)
{
    struct sim *s = sim_of(machine);
    BUF_AUTO copy = {0};
    buf_append_str(&copy, name);
    mem_free(s->hostname);
    s->hostname = buf_take(&copy);
    return 0;
}

static void boot(struct sim *s)
{
    s->booted_us = s->clock->monotonic_us(s->clock);
    s->booted_wall_us = s->clock->wall_us(s->clock);
}

static int sim_restart(struct machine *machine, enum machine_restart how, struct str reason)
{
    struct sim *s = sim_of(machine);
    boot(s);
    if (s->on_restart)
        s->on_restart(s->arg, how, reason);
    return 0;
}

static void sim_free(struct machine *machine)
{
    struct sim *s = sim_of(machine);
    mem_free(s->serial);
    mem_free(s->address);
    mem_free(s->hostname);
    mem_free(s->dns_servers);
    mem_free(s);
}

static const struct machine_functions sim_functions = {
    .name = "sim",
    .identity = sim_identity,
    .hardware = sim_hardware,
    .load = sim_load,
    .interfaces = sim_interfaces,
    .apply_port = sim_apply_port,
    .apply_links = sim_apply_links,
    .watch_network = sim_watch_network,
    .set_hostname = sim_set_hostname,
    .restart = sim_restart,
    .free = sim_free,
};

static struct str *keep_list(const struct str *list, size_t n)
{
    size_t n_bytes = n * sizeof(*list);
    for (size_t i = 0; i < n; i++)
        n_bytes += list[i].n;
    struct str *copy = mem_alloc(MAX(n_bytes, 1));
    char *text = (char *) (copy + n);
    for (size_t i = 0; i < n; i++) {
        memcpy(text, list[i].p, list[i].n);
        copy[i] = str_range(text, list[i].n);
        text += list[i].n;
    }
    return copy;
}

struct machine *machine_sim_new(const struct machine_sim_options *o)
{
    struct sim *s = NEW(struct sim);
    *s = (struct sim){
        .machine.functions = &sim_functions,
        .clock = o->clock,
        .seed = o->seed,
        .serial = o->serial.n ? str_dup(o->serial) : NULL,
        .address = str_dup(o->address),
        .dns_servers = keep_list(o->dns_servers, o->n_dns_servers),
        .n_dns_servers = o->n_dns_servers,
        .on_restart = o->on_restart,
        .arg = o->arg,
    };
    boot(s);
    return &s->machine;
}
