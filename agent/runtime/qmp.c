/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/qmp.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "loop/loop.h"
#include "json/json.h"

#define BEGIN "{\"execute\":\"qmp_capabilities\"}\n"
#define ASK_STATUS "{\"execute\":\"query-status\"}\n"
#define ASK_DISKS "{\"execute\":\"query-blockstats\"}\n"
#define POWER_DOWN "{\"execute\":\"system_powerdown\"}\n"
#define READ_BYTES ((size_t) 8192)

struct qmp {
    struct loop *loop;
    struct loop_fd *watch;
    int fd; /* -1: it has hung up */
    struct buf line;
    struct qmp_disks disks;
};

/* ---- the socket ----------------------------------------------------------------------------- */

/* By way of the open directory: a name of a socket has 107 bytes at most. */
static int name_socket(const char *directory, int *ret_directory, struct sockaddr_un *ret)
{
    int fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    (void) snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/qmp", fd);
    *ret_directory = fd;
    return 0;
}

int qmp_listen(const char *directory)
{
    struct sockaddr_un name;
    FD_AUTO at = -1;
    int e = name_socket(directory, &at, &name);
    if (e < 0)
        return e;
    (void) unlinkat(at, "qmp", 0);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (bind(fd, (const struct sockaddr *) &name, sizeof(name)) == 0 && listen(fd, 4) == 0)
        return fd;
    e = -errno;
    (void) close(fd);
    return e;
}

static int connect_to(const char *directory, int flags)
{
    struct sockaddr_un name;
    FD_AUTO at = -1;
    int e = name_socket(directory, &at, &name);
    if (e < 0)
        return e;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (const struct sockaddr *) &name, sizeof(name)) == 0)
        return fd;
    e = -errno;
    (void) close(fd);
    return e;
}

/* Questions are short: the socket takes them whole or the other side is gone. */
static int ask(int fd, const char *question)
{
    size_t n = strlen(question);
    return fd >= 0 && send(fd, question, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t) n ? 0
                                                                                        : -EPIPE;
}

/* ---- at the start --------------------------------------------------------------------------- */

static int64_t now_ms(void)
{
    struct timespec t;
    (void) clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t) t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Questions are answered only once the machine is made. */
int qmp_wait(const char *directory, int pidfd, int64_t timeout_ms)
{
    FD_AUTO fd = connect_to(directory, 0);
    BUF_AUTO text = {0};
    int64_t end_ms = now_ms() + timeout_ms;
    if (fd < 0)
        return fd;
    int e = ask(fd, BEGIN ASK_STATUS);
    while (!e) {
        struct pollfd p[] = {{.fd = fd, .events = POLLIN}, {.fd = pidfd, .events = POLLIN}};
        int64_t left_ms = end_ms - now_ms();
        if (left_ms <= 0 || text.n > QMP_MAX_LINE_BYTES)
            return -ETIMEDOUT;
        if (poll(p, 2, (int) left_ms) < 0 && errno != EINTR)
            return -errno;
        if (p[1].revents)
            return -ESRCH;
        ssize_t n = p[0].revents ? read(fd, buf_reserve(&text, READ_BYTES), READ_BYTES) : 0;
        if (p[0].revents && n <= 0)
            return -ESRCH;
        text.n += (size_t) n;
        if (str_find_str(buf_str(&text), STR("\"running\"")) >= 0)
            return 0;
    }
    return e;
}

/* ---- while it runs -------------------------------------------------------------------------- */

/* Numbers of the other side may be any. */
static void add(int64_t *sum, const struct json *stats, const char *name)
{
    int64_t v = json_get_int(stats, str_of(name), 0);
    if (v > 0 && v <= INT64_MAX - *sum)
        *sum += v;
}

bool qmp_read_disks(struct arena *a, struct str line, struct qmp_disks *ret)
{
    const struct json *answer = json_parse_quick(a, line);
    const struct json *list = json_get(answer, STR("return"));
    struct qmp_disks sum = {0};
    bool is_about = false;
    if (!json_is(list, JSON_ARRAY))
        return false;
    JSON_FOR_EACH_ITEM (list, disk) {
        const struct json *stats = json_get(disk, STR("stats"));
        is_about |= stats != NULL;
        add(&sum.read_bytes, stats, "rd_bytes");
        add(&sum.written_bytes, stats, "wr_bytes");
        add(&sum.n_reads, stats, "rd_operations");
        add(&sum.n_writes, stats, "wr_operations");
    }
    if (is_about)
        *ret = sum;
    return is_about;
}

static void hang_up(void *arg)
{
    (void) close((int) (intptr_t) arg);
}

static void disconnect(struct qmp *q)
{
    if (q->fd >= 0)
        loop_fd_free(TAKE(q->watch), hang_up, (void *) (intptr_t) q->fd);
    q->fd = -1;
}

static void take_lines(struct qmp *q)
{
    ptrdiff_t end;
    while ((end = str_find(buf_str(&q->line), '\n')) >= 0) {
        ARENA_AUTO a = arena_new();
        (void) qmp_read_disks(a, str_sub(buf_str(&q->line), 0, (size_t) end), &q->disks);
        buf_consume(&q->line, (size_t) end + 1);
    }
}

static void on_ready(void *arg, unsigned ready)
{
    (void) ready;
    struct qmp *q = arg;
    ssize_t n = read(q->fd, buf_reserve(&q->line, READ_BYTES), READ_BYTES);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0 || q->line.n + (size_t) n > QMP_MAX_LINE_BYTES) {
        disconnect(q);
        return;
    }
    q->line.n += (size_t) n;
    take_lines(q);
}

int qmp_open(struct loop *l, const char *directory, struct qmp **ret)
{
    int fd = connect_to(directory, SOCK_NONBLOCK);
    if (fd < 0)
        return fd;
    struct qmp *q = NEW(struct qmp);
    *q = (struct qmp){.loop = l, .fd = fd};
    q->watch = loop_fd_new(l, fd, on_ready, q);
    if (!q->watch) {
        (void) close(fd);
        mem_free(q);
        return -EPERM;
    }
    loop_fd_watch(q->watch, LOOP_READABLE);
    if (ask(fd, BEGIN ASK_DISKS) < 0)
        disconnect(q);
    *ret = q;
    return 0;
}

int qmp_power_down(struct qmp *q)
{
    return q ? ask(q->fd, POWER_DOWN) : -EPIPE;
}

void qmp_disks(struct qmp *q, struct qmp_disks *ret)
{
    *ret = q->disks;
    (void) ask(q->fd, ASK_DISKS);
}

void qmp_free(struct qmp *q)
{
    if (!q)
        return;
    disconnect(q);
    buf_done(&q->line);
    mem_free(q);
}
