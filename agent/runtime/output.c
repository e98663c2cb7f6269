/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loop/loop.h"

#define READ_BYTES 8192

static void tell(struct output *o)
{
    struct str line = buf_str(&o->line);
    if (line.n && line.p[line.n - 1] == '\r')
        line.n--;
    o->on_line(o->arg, o->stream, line);
    buf_reset(&o->line);
}

void output_take(struct output *o, struct str bytes)
{
    while (bytes.n) {
        size_t room = OUTPUT_MAX_LINE_BYTES - o->line.n;
        struct str head = str_sub(bytes, 0, MIN(bytes.n, room));
        ptrdiff_t end = str_find(head, '\n');
        if (end >= 0)
            head.n = (size_t) end;
        buf_append_str(&o->line, head);
        bytes = str_from(bytes, head.n + (end >= 0));
        if (end >= 0 || o->line.n == OUTPUT_MAX_LINE_BYTES)
            tell(o);
    }
}

static void read_some(struct output *o, size_t max_bytes)
{
    char bytes[READ_BYTES];
    for (size_t total = 0; o->fd >= 0 && total < max_bytes;) {
        ssize_t n = read(o->fd, bytes, sizeof(bytes));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        total += (size_t) n;
        output_take(o, str_range(bytes, (size_t) n));
    }
}

static void on_ready(void *arg, unsigned ready)
{
    (void) ready;
    read_some(arg, OUTPUT_TURN_BYTES);
}

int output_make(const char *path)
{
    return mkfifo(path, 0600) < 0 && errno != EEXIST ? -errno : 0;
}

int output_open(struct output *o, struct loop *l, const char *path)
{
    int fd = open(path, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    struct loop_fd *watch = loop_fd_new(l, fd, on_ready, o);
    if (!watch) {
        (void) close(fd);
        return -EPERM;
    }
    o->loop = l;
    o->fd = fd;
    o->watch = watch;
    loop_fd_watch(watch, LOOP_READABLE);
    return 0;
}

void output_drain(struct output *o)
{
    read_some(o, OUTPUT_DRAIN_BYTES);
    if (o->line.n)
        tell(o);
}

static void on_closed(void *arg)
{
    (void) close((int) (intptr_t) arg);
}

void output_close(struct output *o)
{
    if (o->fd >= 0) {
        loop_fd_free(o->watch, on_closed, (void *) (intptr_t) o->fd);
        o->watch = NULL;
        o->fd = -1;
    }
    buf_done(&o->line);
}
