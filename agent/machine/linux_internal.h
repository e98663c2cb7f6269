/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a Linux machine: files of the kernel, rtnetlink, DHCP clients. */
#pragma once

#include "base/list.h"
#include "loop/loop.h"
#include "machine/machine.h"

#define LINUX_MAX_FILE_BYTES ((size_t) 1024 * 1024)
#define LINUX_MAX_ENTRIES 4096 /* of one directory */
#define LINUX_MAX_INTERFACES 1024
#define LINUX_MAX_ADDRESSES 64 /* of one interface, and routers, and resolvers */

struct machine_linux {
    struct machine machine;
    struct loop *loop;
    const struct clock *clock;
    char *root;
    char **mounts;
    size_t n_mounts;
    bool changes_network, changes_hostname, restarts;
    int (*on_restart)(void *arg, enum machine_restart how, struct str reason);
    void *arg;

    struct list ports; /* struct linux_port: what apply_port() was told */

    void (*on_network)(void *arg);
    void *on_network_arg;
    struct loop_deferred tell;
    int netlink_fd, inotify_fd;
    struct loop_fd *netlink, *inotify;
};

static inline struct machine_linux *machine_linux_of(struct machine *m)
{
    return CONTAINER_OF(m, struct machine_linux, machine);
}

/* What one interface was made to be. */
struct linux_port {
    struct list link;
    char *interface;
    enum machine_dhcp dhcp;
    char *address; /* of a static one, to take it away again; may be NULL */
    unsigned prefix_bits;
    char **dns_servers;
    size_t n_dns_servers;
    struct linux_dhcp *client;
};
struct linux_port *linux_port_find(struct machine_linux *m, struct str interface);
void linux_port_free(struct linux_port *p);
/* Undoes what apply_port() has made of the interface: another link takes it over. */
void linux_port_release(struct machine_linux *m, struct str interface);

/* A DHCP client of the machine that is kept running. -ENOENT: there is none installed. */
struct linux_dhcp;
int linux_dhcp_new(struct machine_linux *m, const char *interface, struct linux_dhcp **ret);
void linux_dhcp_free(struct linux_dhcp *d);

/* ---- files: paths are below the root -------------------------------------------------------- */

/* The content without blanks at its ends, NUL-terminated; STR_NONE: absent or unreadable. */
struct str linux_read(struct machine_linux *m, struct arena *a, const char *format, ...)
    PRINTF_LIKE(3, 4);
/* As a number, decimal or with 0x (is_hex: hexadecimal without); 0 when it is none. */
uint64_t linux_read_number(struct machine_linux *m, struct arena *a, const char *format, ...)
    PRINTF_LIKE(3, 4);
uint64_t linux_read_hex(struct machine_linux *m, struct arena *a, const char *format, ...)
    PRINTF_LIKE(3, 4);
bool linux_exists(struct machine_linux *m, struct arena *a, const char *format, ...)
    PRINTF_LIKE(3, 4);
/* The target of a link, whole, or its last part. */
struct str linux_link(struct machine_linux *m, struct arena *a, const char *format, ...)
    PRINTF_LIKE(3, 4);
struct str linux_last_part(struct str path);
/* Names in order, without those that begin with a dot. */
size_t linux_list(struct machine_linux *m, struct arena *a, const char *path, struct str **ret);
/* The text of the line `key : value` (or `key value`) in a table such as /proc/meminfo. */
struct str linux_field(struct str table, struct str key);

/* ---- functions of the table ----------------------------------------------------------------- */

int linux_identity(struct machine *m, struct arena *a, struct machine_identity *ret);
int linux_hardware(struct machine *m, struct arena *a, struct machine_hardware *ret);
int linux_load(struct machine *m, struct arena *a, struct machine_load *ret);
int linux_interfaces(struct machine *m, struct arena *a, struct machine_interface **ret,
                     size_t *ret_n);
int linux_apply_port(struct machine *m, const struct machine_port *p);
int linux_apply_links(struct machine *m, const struct machine_link *links, size_t n,
                      int *ret_results);
struct rtattr;
/* link_info: its IFLA_LINKINFO; NULL: none. */
void linux_read_bond(struct arena *a, const struct rtattr *link_info, unsigned master,
                     struct machine_interface *i);
/* Of a link's alias: it is of apply_links(). */
bool linux_link_is_made(struct str alias);
void linux_watch_network(struct machine *m, void (*on_network)(void *arg), void *arg);
/* Ends it. */
void linux_unwatch_network(struct machine_linux *m);
/* Tells the listener at the end of this turn. */
void linux_network_changed(struct machine_linux *m);
