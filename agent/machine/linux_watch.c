/* SPDX-License-Identifier: Apache-2.0 */
/* Tells when addresses, links, routes or resolvers may have changed. */
#include <errno.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "machine/linux_internal.h"
#include "machine/netlink.h"

static void on_tell(struct loop_deferred *d)
{
    struct machine_linux *m = CONTAINER_OF(d, struct machine_linux, tell);
    if (m->on_network)
        m->on_network(m->on_network_arg);
}

void linux_network_changed(struct machine_linux *m)
{
    m->tell.fn = on_tell;
    loop_defer(m->loop, &m->tell);
}

/* What it says does not matter: the listener looks at everything. An overflow (ENOBUFS) is a
 * change, too. */
static bool drain(int fd)
{
    char room[16 * 1024];
    bool has_any = false;
    for (;;) {
        ssize_t n = read(fd, room, sizeof(room));
        if (n > 0 || (n < 0 && (errno == EINTR || errno == ENOBUFS)))
            has_any = true;
        else
            return has_any;
    }
}

static void on_netlink(void *arg, unsigned ready)
{
    struct machine_linux *m = arg;
    (void) ready;
    if (drain(m->netlink_fd))
        linux_network_changed(m);
}

static void on_inotify(void *arg, unsigned ready)
{
    struct machine_linux *m = arg;
    (void) ready;
    union {
        struct inotify_event event;
        char room[16 * 1024];
    } events;
    ssize_t n = read(m->inotify_fd, &events, sizeof(events));
    for (ssize_t at = 0; at + (ssize_t) sizeof(struct inotify_event) <= n;) {
        const struct inotify_event *e =
            (const struct inotify_event *) (const void *) (events.room + at);
        if (e->len && str_is(str_of(e->name), "resolv.conf"))
            linux_network_changed(m);
        at += (ssize_t) (sizeof(*e) + e->len);
    }
}

static int watch_netlink(struct machine_linux *m)
{
    struct sockaddr_nl groups = {
        .nl_family = AF_NETLINK,
        .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE |
                     RTMGRP_IPV6_ROUTE,
    };
    m->netlink_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (m->netlink_fd < 0)
        return -errno;
    if (bind(m->netlink_fd, (struct sockaddr *) &groups, sizeof(groups)) < 0)
        return -errno;
    m->netlink = loop_fd_new(m->loop, m->netlink_fd, on_netlink, m);
    if (!m->netlink)
        return -EINVAL;
    loop_fd_watch(m->netlink, LOOP_READABLE);
    return 0;
}

/* Of the directory: the file is usually replaced, not written. */
static void watch_resolvers(struct machine_linux *m)
{
    ARENA_AUTO a = arena_new();
    m->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (m->inotify_fd < 0)
        return;
    const char *directory = arena_printf(a, "%s/etc", m->root).p;
    if (inotify_add_watch(m->inotify_fd, directory, IN_MOVED_TO | IN_CLOSE_WRITE | IN_DELETE) < 0)
        return;
    m->inotify = loop_fd_new(m->loop, m->inotify_fd, on_inotify, m);
    if (m->inotify)
        loop_fd_watch(m->inotify, LOOP_READABLE);
}

void linux_watch_network(struct machine *machine, void (*on_network)(void *arg), void *arg)
{
    struct machine_linux *m = machine_linux_of(machine);
    linux_unwatch_network(m);
    m->on_network = on_network;
    m->on_network_arg = arg;
    if (!on_network)
        return;
    int r = watch_netlink(m);
    if (r < 0)
        log_warning("changes of the network are not noticed", LOG_ERRNO(r));
    watch_resolvers(m);
}

static void on_closed(void *arg)
{
    (void) close((int) (intptr_t) arg);
}

static void end(struct loop_fd **w, int *fd)
{
    if (*w)
        loop_fd_free(TAKE(*w), on_closed, (void *) (intptr_t) *fd);
    else if (*fd >= 0)
        (void) close(*fd);
    *fd = -1;
}

void linux_unwatch_network(struct machine_linux *m)
{
    end(&m->netlink, &m->netlink_fd);
    end(&m->inotify, &m->inotify_fd);
    loop_undefer(m->loop, &m->tell);
    m->on_network = NULL;
}
