/* SPDX-License-Identifier: Apache-2.0 */
/* The machine as Linux tells. */
#include <errno.h>
#include <spawn.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "machine/linux_internal.h"

static int linux_set_hostname(struct machine *machine, struct str name)
{
    struct machine_linux *m = machine_linux_of(machine);
    if (!m->changes_hostname)
        return -EPERM;
    return sethostname(name.p, name.n) < 0 ? -errno : 0;
}

/* systemd stops what runs before; without it there is nobody to ask but the kernel. */
static int ask_systemd(const char *verb)
{
    extern char **environ;
    char *arguments[] = {(char[]){"systemctl"}, (char[]){"--no-block"}, (char *) (uintptr_t) verb,
                         NULL};
    pid_t pid;
    int status, r = posix_spawnp(&pid, arguments[0], NULL, NULL, arguments, environ);
    if (r)
        return -r;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

static int linux_restart(struct machine *machine, enum machine_restart how, struct str reason)
{
    struct machine_linux *m = machine_linux_of(machine);
    if (!m->restarts)
        return m->on_restart ? m->on_restart(m->arg, how, reason) : -EPERM;
    bool is_reboot = how == MACHINE_REBOOT;
    log_warning(is_reboot ? "restarting the machine" : "powering off the machine",
                LOG_STR("reason", reason));
    if (access("/run/systemd/system", F_OK) == 0 &&
        ask_systemd(is_reboot ? "reboot" : "poweroff") == 0)
        return 0;
    sync();
    return reboot(is_reboot ? RB_AUTOBOOT : RB_POWER_OFF) < 0 ? -errno : 0;
}

static void linux_free(struct machine *machine)
{
    struct machine_linux *m = machine_linux_of(machine);
    linux_unwatch_network(m);
    LIST_FOR_EACH (&m->ports, link)
        linux_port_free(CONTAINER_OF(link, struct linux_port, link));
    for (size_t i = 0; i < m->n_mounts; i++)
        mem_free(m->mounts[i]);
    mem_free(m->mounts);
    mem_free(m->root);
    mem_free(m);
}

static const struct machine_functions linux_functions = {
    .name = "linux",
    .identity = linux_identity,
    .hardware = linux_hardware,
    .load = linux_load,
    .interfaces = linux_interfaces,
    .apply_port = linux_apply_port,
    .apply_links = linux_apply_links,
    .watch_network = linux_watch_network,
    .set_hostname = linux_set_hostname,
    .restart = linux_restart,
    .free = linux_free,
};

int machine_linux_new(const struct machine_linux_options *o, struct machine **ret)
{
    struct machine_linux *m = NEW(struct machine_linux);
    m->machine.functions = &linux_functions;
    m->loop = o->loop;
    m->clock = o->clock;
    m->root = mem_strdup(o->root ? o->root : "");
    m->mounts = mem_realloc_array(NULL, MAX(o->n_mounts, 1), sizeof(char *));
    for (; m->n_mounts < o->n_mounts; m->n_mounts++)
        m->mounts[m->n_mounts] = mem_strdup(o->mounts[m->n_mounts]);
    m->changes_network = o->changes_network;
    m->changes_hostname = o->changes_hostname;
    m->restarts = o->restarts;
    m->on_restart = o->on_restart;
    m->arg = o->arg;
    m->netlink_fd = m->inotify_fd = -1;
    list_init(&m->ports);
    *ret = &m->machine;
    return 0;
}
