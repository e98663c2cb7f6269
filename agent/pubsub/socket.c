/* SPDX-License-Identifier: Apache-2.0 */
/* Unix sockets that keep packets apart. Their addresses have room for 107 bytes of path; a longer
 * one is reached through a descriptor of its directory. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "pubsub/files.h"
#include "pubsub/pubsub_internal.h"

/* The kernel lowers it to what it allows. */
#define LISTEN_BACKLOG 65535

/* *ret_directory stays open while the address is in use; -1: not needed. */
static int make_address(const struct pubsub_place *place, struct sockaddr_un *ret,
                        int *ret_directory)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    *ret_directory = -1;
    int n =
        snprintf(ret->sun_path, sizeof(ret->sun_path), "%s/%s", place->directory, place->socket);
    if (n > 0 && (size_t) n < sizeof(ret->sun_path))
        return 0;
    int fd = open(place->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    n = snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/%s", fd, place->socket);
    if (n < 0 || (size_t) n >= sizeof(ret->sun_path)) {
        (void) close(fd);
        return -ENAMETOOLONG;
    }
    *ret_directory = fd;
    return 0;
}

static int new_socket(void)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return fd < 0 ? -errno : fd;
}

int pubsub_socket_connect(const struct pubsub_place *place)
{
    struct sockaddr_un address;
    FD_AUTO directory = -1;
    int r = make_address(place, &address, &directory);
    if (r < 0)
        return r;
    FD_AUTO fd = new_socket();
    if (fd < 0)
        return fd;
    if (connect(fd, (const struct sockaddr *) &address, sizeof(address)) < 0)
        return -errno;
    r = fd;
    fd = -1;
    return r;
}

/* A socket that nobody listens on was left by a publisher that died. */
static int remove_left_over(const struct pubsub_place *place, const struct sockaddr_un *address)
{
    int fd = pubsub_socket_connect(place);
    if (fd >= 0)
        (void) close(fd);
    if (fd >= 0 || fd == -EAGAIN)
        return -EADDRINUSE;
    if (fd != -ECONNREFUSED)
        return fd == -ENOENT ? 0 : fd;
    return unlink(address->sun_path) < 0 && errno != ENOENT ? -errno : 0;
}

int pubsub_socket_listen(const struct pubsub_place *place)
{
    int r = pubsub_directory_make(place->directory);
    if (r < 0)
        return r;
    struct sockaddr_un address;
    FD_AUTO directory = -1;
    r = make_address(place, &address, &directory);
    if (r == 0)
        r = remove_left_over(place, &address);
    if (r < 0)
        return r;
    FD_AUTO fd = new_socket();
    if (fd < 0)
        return fd;
    if (bind(fd, (const struct sockaddr *) &address, sizeof(address)) < 0 ||
        listen(fd, LISTEN_BACKLOG) < 0)
        return -errno;
    r = fd;
    fd = -1;
    return r;
}

void pubsub_socket_remove(const struct pubsub_place *place)
{
    struct sockaddr_un address;
    FD_AUTO directory = -1;
    if (make_address(place, &address, &directory) == 0)
        (void) unlink(address.sun_path);
}

static void close_fd(void *arg)
{
    (void) close((int) (intptr_t) arg);
}

void pubsub_socket_close(struct loop_fd *watch, int fd)
{
    if (watch)
        loop_fd_free(watch, close_fd, (void *) (intptr_t) fd);
    else if (fd >= 0)
        (void) close(fd);
}
