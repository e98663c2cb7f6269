/* SPDX-License-Identifier: Apache-2.0 */
/* Where lines come from by themselves: a datagram socket that syslog(3) writes to, and the kernel's
 * messages. How far these were taken is kept in the run directory, so that a restart repeats none.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "loguploader/collector_internal.h"
#include "loguploader/loginput.h"

#define MAX_PER_TURN 256
#define DATAGRAM_BYTES ((size_t) 32 * 1024)
#define KERNEL_RECORD_BYTES ((size_t) 8192)
#define BOOT_ID_BYTES ((size_t) 36)
#define KERNEL_FILE STR("newlog.kmsg")

struct collector_inputs {
    struct collector *collector;
    int syslog_fd, kernel_fd, place_fd;
    struct loop_fd *syslog, *kernel;
    char *syslog_path;
    char boot_id[BOOT_ID_BYTES + 1];
    uint64_t next_sequence; /* of the kernel: older ones were taken */
    int64_t boot_wall_us;
};

static void close_fd(void *arg)
{
    int *fd = arg;
    (void) close(*fd);
    mem_free(fd);
}

/* ---- syslog --------------------------------------------------------------------------------- */

static bool is_wanted(struct collector *c, unsigned level, const char *item)
{
    return (int) level <= loginput_level(items_text(c->node->items, item));
}

static void take_datagram(struct collector *c, struct str datagram)
{
    struct loginput in = loginput_syslog(datagram);
    if (in.content.n == 0 || !is_wanted(c, in.level, "debug.syslog.remote.loglevel"))
        return;
    c->counts.n_syslog++;
    (void) collector_add(c,
                         &(struct collector_line){.source = in.source,
                                                  .severity = str_of(loginput_severity(in.level)),
                                                  .content = in.content,
                                                  .iid = in.pid});
}

static void on_syslog(void *arg, unsigned ready)
{
    struct collector_inputs *in = arg;
    (void) ready;
    BUF_AUTO bytes = {0};
    char *p = buf_reserve(&bytes, DATAGRAM_BYTES);
    for (int i = 0; i < MAX_PER_TURN; i++) {
        ssize_t n = recv(in->syslog_fd, p, DATAGRAM_BYTES, MSG_DONTWAIT);
        if (n < 0)
            break;
        take_datagram(in->collector, str_range(p, (size_t) n));
    }
}

static int listen_at(struct collector_inputs *in, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    memcpy(address.sun_path, path, strlen(path) + 1);
    in->syslog_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (in->syslog_fd < 0)
        return -errno;
    (void) unlink(path);
    if (bind(in->syslog_fd, (struct sockaddr *) &address, sizeof(address)) < 0)
        return -errno;
    in->syslog_path = mem_strdup(path);
    if (chmod(path, 0666) < 0)
        return -errno;
    in->syslog = loop_fd_new(in->collector->node->loop, in->syslog_fd, on_syslog, in);
    if (!in->syslog)
        return -EIO;
    loop_fd_watch(in->syslog, LOOP_READABLE);
    return 0;
}

/* ---- the kernel ----------------------------------------------------------------------------- */

static void keep_place(struct collector_inputs *in)
{
    char text[BOOT_ID_BYTES + 32];
    int n = snprintf(text, sizeof(text), "%s %020llu\n", in->boot_id,
                     (unsigned long long) in->next_sequence);
    if (in->place_fd >= 0)
        (void) !pwrite(in->place_fd, text, (size_t) n, 0);
}

/* Of another start of the machine: from the beginning. */
static void load_place(struct collector_inputs *in)
{
    char text[BOOT_ID_BYTES + 33] = "";
    ARENA_AUTO a = arena_new();
    int64_t sequence;
    in->place_fd = open(node_path(a, in->collector->node, NODE_RUN, KERNEL_FILE),
                        O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ssize_t n = in->place_fd < 0 ? 0 : pread(in->place_fd, text, sizeof(text) - 1, 0);
    struct str s = str_trim(str_range(text, n < 0 ? 0 : (size_t) n));
    if (s.n > BOOT_ID_BYTES + 1 && str_starts_with(s, str_of(in->boot_id)) &&
        str_to_i64(str_from(s, BOOT_ID_BYTES + 1), &sequence) == 0 && sequence >= 0)
        in->next_sequence = (uint64_t) sequence;
}

static void take_record(struct collector_inputs *in, struct str text)
{
    struct collector *c = in->collector;
    struct loginput record;
    if (loginput_kernel(text, &record) < 0 || record.sequence < in->next_sequence)
        return;
    in->next_sequence = record.sequence + 1;
    if (record.content.n && is_wanted(c, record.level, "debug.kernel.remote.loglevel")) {
        c->counts.n_kernel++;
        (void) collector_add(
            c, &(struct collector_line){.source = record.source,
                                        .severity = str_of(loginput_severity(record.level)),
                                        .content = record.content,
                                        .iid = record.pid,
                                        .wall_us = in->boot_wall_us + record.boot_us});
    }
    keep_place(in);
}

static void on_kernel(void *arg, unsigned ready)
{
    struct collector_inputs *in = arg;
    char bytes[KERNEL_RECORD_BYTES];
    (void) ready;
    for (int i = 0; i < MAX_PER_TURN; i++) {
        ssize_t n = read(in->kernel_fd, bytes, sizeof(bytes));
        if (n < 0 && errno == EPIPE) /* some were overwritten before we came */
            continue;
        if (n <= 0)
            break;
        take_record(in, str_range(bytes, (size_t) n));
    }
}

static void read_boot_id(struct collector_inputs *in)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    memset(in->boot_id, '0', BOOT_ID_BYTES);
    if (fd < 0)
        return;
    (void) !read(fd, in->boot_id, BOOT_ID_BYTES);
    (void) close(fd);
}

static int open_kernel(struct collector_inputs *in)
{
    struct timespec since_boot;
    in->kernel_fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (in->kernel_fd < 0)
        return -errno;
    (void) clock_gettime(CLOCK_MONOTONIC, &since_boot);
    const struct clock *clock = in->collector->node->clock;
    in->boot_wall_us =
        clock->wall_us(clock) - (since_boot.tv_sec * 1000000 + since_boot.tv_nsec / 1000);
    read_boot_id(in);
    load_place(in);
    in->kernel = loop_fd_new(in->collector->node->loop, in->kernel_fd, on_kernel, in);
    if (!in->kernel)
        return -EIO;
    loop_fd_watch(in->kernel, LOOP_READABLE);
    return 0;
}

/* ---- both ----------------------------------------------------------------------------------- */

int collector_inputs_new(struct collector *c, const struct collector_options *o)
{
    struct collector_inputs *in = NEW(struct collector_inputs);
    in->collector = c;
    in->syslog_fd = in->kernel_fd = in->place_fd = -1;
    c->inputs = in;
    int r = o->syslog_path ? listen_at(in, o->syslog_path) : 0;
    if (r < 0)
        return r;
    r = o->reads_kernel ? open_kernel(in) : 0;
    if (r < 0) /* not everybody may */
        log_warning("messages of the kernel cannot be read; ignoring them", LOG_ERRNO(r));
    return 0;
}

static void let_go(struct loop_fd *watch, int fd)
{
    if (watch)
        loop_fd_free(watch, close_fd, mem_dup(&fd, sizeof(fd)));
    else if (fd >= 0)
        (void) close(fd);
}

void collector_inputs_free(struct collector_inputs *in)
{
    if (!in)
        return;
    let_go(in->syslog, in->syslog_fd);
    let_go(in->kernel, in->kernel_fd);
    if (in->place_fd >= 0)
        (void) close(in->place_fd);
    if (in->syslog_path)
        (void) unlink(in->syslog_path);
    mem_free(in->syslog_path);
    mem_free(in);
}
