/* SPDX-License-Identifier: Apache-2.0 */
/* Everything about the machine a node runs on, behind one table of functions: `linux` asks the
 * kernel, `sim` answers by seed. Results live in the arena. Nothing here blocks for long; all of it
 * belongs to the loop's thread. */
#pragma once

#include "base/arena.h"
#include "base/clock.h"

struct loop;

struct machine_identity {
    struct str serial;                               /* SMBIOS, else the CPU's; may be empty */
    struct str manufacturer, product, version, uuid; /* SMBIOS or device tree */
    struct str bios_vendor, bios_version, bios_release_date;
    struct str compatible;             /* of a device tree */
    struct str architecture, platform; /* uname's machine */
    struct str kernel_version;         /* uname's release */
    struct str hypervisor;             /* "kvm", "none" ... of /run/eve-hv-type */
    struct str eve_version;            /* /run/eve-release, or seth-agent's own */
    struct str hostname;
    unsigned n_cpus;
    uint64_t memory_bytes;
    int64_t booted_wall_us;
    bool has_watchdog, has_tpm;
};

struct machine_disk {
    struct str name, model, serial, bus; /* "sda" */
    uint64_t size_bytes;
    bool is_rotational;
};
struct machine_pci_device {
    struct str address, driver;
    unsigned vendor, device, revision, subvendor, subdevice, class_id;
};
struct machine_usb_device {
    unsigned bus, number, vendor, product, class_id;
    struct str address, driver, manufacturer_name, product_name;
};
struct machine_cpu {
    unsigned id, physical_id, core_id;
    struct str vendor, model_name, flags;
    uint64_t max_khz;
};
struct machine_network_device {
    struct str name, mac, driver, pci_address;
    uint64_t speed_mbits;
};
/* Errors of memory, as its controllers count them since the start. */
struct machine_memory_rank {
    struct str name;
    int64_t n_corrected, n_uncorrected;
};
struct machine_memory_controller {
    struct str name;
    int64_t n_corrected, n_uncorrected;
    struct machine_memory_rank *ranks;
    size_t n_ranks;
};
struct machine_hardware {
    struct machine_cpu *cpus;
    size_t n_cpus;
    struct machine_disk *disks;
    size_t n_disks;
    struct machine_pci_device *pci;
    size_t n_pci;
    struct machine_usb_device *usb;
    size_t n_usb;
    struct machine_network_device *network;
    size_t n_network;
    struct machine_memory_controller *memory; /* those that can count */
    size_t n_memory;
};

struct machine_address {
    struct str text;
    unsigned prefix_bits;
};
/* A bond and its members as they are; members name it by its index. */
struct machine_bond_state {
    unsigned mode; /* as enum machine_bond_mode */
    unsigned active_index;
    unsigned mii_ms, up_delay_ms, down_delay_ms;
    unsigned arp_ms, arp_missed_max;
    const struct str *targets;
    size_t n_targets;
    bool is_lacp_fast;
    unsigned aggregator, actor_key, partner_key;
    unsigned char partner_mac[6];
};
struct machine_member_state {
    bool is_link_up; /* as the bond sees it */
    unsigned aggregator;
};
struct machine_interface {
    struct str name;
    unsigned char mac[6];
    bool is_up, is_loopback, is_physical, is_ethernet;
    bool is_made; /* by apply_links() */
    unsigned mtu, index;
    unsigned bond; /* index of the one it is a member of; 0: of none */
    struct machine_member_state member;
    const struct machine_bond_state *bond_state; /* NULL: it is none */
    const struct machine_address *addresses;
    size_t n_addresses;
    const struct str *routers; /* default ones of the interface */
    size_t n_routers;
    const struct str *dns_servers;
    size_t n_dns_servers;
    struct str domain;
    struct {
        uint64_t rx_bytes, tx_bytes, rx_packets, tx_packets, rx_errors, tx_errors, rx_drops,
            tx_drops;
    } counters;
};

struct machine_mount {
    struct str path;
    uint64_t total_bytes, used_bytes, free_bytes;
};
struct machine_disk_load {
    struct str name;
    uint64_t read_bytes, write_bytes, n_reads, n_writes;
};
struct machine_load {
    int64_t uptime_s;
    int64_t cpu_ns; /* used by all since the start, not idle */
    uint64_t memory_total_bytes, memory_available_bytes;
    struct machine_mount *mounts; /* of the node's directories first */
    size_t n_mounts;
    struct machine_disk_load *disks;
    size_t n_disks;
    uint64_t own_memory_bytes; /* of this process */
    unsigned n_processes;
};

/* How a port gets its address. */
enum machine_dhcp {
    MACHINE_DHCP_UNSET = 0,
    MACHINE_STATIC = 1,
    MACHINE_NONE = 2,
    MACHINE_DHCP = 4
};
struct machine_port {
    struct str interface;
    enum machine_dhcp dhcp;
    struct machine_address address; /* static; text absent: none */
    struct str router;
    const struct str *dns_servers;
    size_t n_dns_servers;
    unsigned mtu; /* 0: as it is */
};

/* A link that is made over others. */
enum machine_link_kind { MACHINE_VLAN = 1, MACHINE_BOND = 2 };
enum machine_bond_mode {
    MACHINE_BOND_ROUND_ROBIN,
    MACHINE_BOND_ACTIVE_BACKUP,
    MACHINE_BOND_XOR,
    MACHINE_BOND_BROADCAST,
    MACHINE_BOND_LACP,
    MACHINE_BOND_TLB,
    MACHINE_BOND_ALB,
};
#define MACHINE_MAX_TARGETS 16 /* of a bond */
struct machine_link {
    struct str name;
    enum machine_link_kind kind;
    unsigned mtu; /* 0: as it is */

    struct str parent; /* of a VLAN */
    unsigned vlan_id;

    const struct str *members; /* of a bond */
    size_t n_members;
    enum machine_bond_mode mode;
    bool is_lacp_fast;
    unsigned mii_ms, up_delay_ms, down_delay_ms; /* 0: links are not watched */
    unsigned arp_ms;                             /* 0: hosts are not asked */
    const struct str *targets;                   /* IPv4 */
    size_t n_targets;
};

enum machine_restart { MACHINE_REBOOT, MACHINE_SHUTDOWN, MACHINE_POWEROFF };

struct machine {
    const struct machine_functions {
        const char *name; /* "linux", "sim" */
        int (*identity)(struct machine *m, struct arena *a, struct machine_identity *ret);
        int (*hardware)(struct machine *m, struct arena *a, struct machine_hardware *ret);
        int (*load)(struct machine *m, struct arena *a, struct machine_load *ret);
        int (*interfaces)(struct machine *m, struct arena *a, struct machine_interface **ret,
                          size_t *ret_n);
        /* Makes the interface so; takes effect in its own time, on_network tells. -EPERM: this
         * process may not, or was told not to: what the machine has is taken as it is. */
        int (*apply_port)(struct machine *m, const struct machine_port *p);
        /* Makes these links, changes those that are otherwise, removes those that it has made
         * earlier, in another life too, and that are not among them; what others have made is left
         * as it is. ret_results has one of each. -EPERM as above. */
        int (*apply_links)(struct machine *m, const struct machine_link *links, size_t n,
                           int *ret_results);
        /* Addresses, links or resolvers may have changed. One listener. */
        void (*watch_network)(struct machine *m, void (*on_network)(void *arg), void *arg);
        int (*set_hostname)(struct machine *m, struct str name);
        /* -EPERM: it may not. A simulated one calls its owner. */
        int (*restart)(struct machine *m, enum machine_restart how, struct str reason);
        void (*free)(struct machine *m);
    } * functions;
};

struct machine_linux_options {
    struct loop *loop;
    const struct clock *clock;
    const char *root;          /* of /proc, /sys, /etc, /run, programs: "" but in tests */
    const char *const *mounts; /* whose space is reported */
    size_t n_mounts;
    bool changes_network;  /* addresses are set, dhcpcd or udhcpc is run */
    bool changes_hostname; /* otherwise -EPERM */
    bool restarts;         /* otherwise the owner is asked, or -EPERM */
    /* For a machine that must not restart: the owner does what comes near. NULL: -EPERM. */
    int (*on_restart)(void *arg, enum machine_restart how, struct str reason);
    void *arg;
};
int machine_linux_new(const struct machine_linux_options *o, struct machine **ret);

struct machine_sim_options {
    struct loop *loop;
    const struct clock *clock;
    uint64_t seed;      /* serial, sizes, counters follow from it */
    struct str serial;  /* absent: of the seed */
    struct str address; /* of eth0, text; what the simulator itself has */
    const struct str *dns_servers;
    size_t n_dns_servers;
    void (*on_restart)(void *arg, enum machine_restart how, struct str reason);
    void *arg;
};
struct machine *machine_sim_new(const struct machine_sim_options *o);
void machine_free(struct machine *m);
