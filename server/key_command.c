/* SPDX-License-Identifier: Apache-2.0 */
#include "key_command.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

struct child {
    pid_t pid;
    int input, output, output_end; /* file descriptors; the last one is the child's */
    int64_t deadline_ms;
};

static int64_t now_ms(void)
{
    struct timespec t;
    (void) clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t) t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void) close(*fd);
    *fd = -1;
}

static void child_done(struct child *c)
{
    close_fd(&c->input);
    close_fd(&c->output);
    close_fd(&c->output_end);
}

/* A file in memory: unlike a pipe it can be filled before anybody reads, and never breaks. */
static int prepare_files(struct child *c, struct str input)
{
    int ends[2];
    c->input = memfd_create("key", MFD_CLOEXEC);
    if (c->input < 0 || pwrite(c->input, input.p, input.n, 0) != (ssize_t) input.n)
        return -EIO;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    c->output = ends[0];
    c->output_end = ends[1];
    return 0;
}

/* In a process group of its own, with the signals as a program expects them. */
static int start(struct child *c, const struct key_command *k)
{
    BUF_AUTO script = {0};
    buf_printf(&script, "%s \"$1\"", k->command);
    const char *const argv[] = {"sh", "-c", script.p, "seth", k->verb, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, usual;
    (void) sigemptyset(&none);
    (void) sigemptyset(&usual);
    (void) sigaddset(&usual, SIGPIPE);
    (void) sigaddset(&usual, SIGXFSZ);
    (void) posix_spawn_file_actions_init(&files);
    (void) posix_spawn_file_actions_adddup2(&files, c->input, STDIN_FILENO);
    (void) posix_spawn_file_actions_adddup2(&files, c->output_end, STDOUT_FILENO);
    (void) posix_spawnattr_init(&attributes);
    (void) posix_spawnattr_setpgroup(&attributes, 0);
    (void) posix_spawnattr_setsigmask(&attributes, &none);
    (void) posix_spawnattr_setsigdefault(&attributes, &usual);
    (void) posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                                     POSIX_SPAWN_SETSIGDEF);
    int r = posix_spawn(&c->pid, "/bin/sh", &files, &attributes, (char *const *) argv, environ);
    (void) posix_spawnattr_destroy(&attributes);
    (void) posix_spawn_file_actions_destroy(&files);
    return -r;
}

/* Until there is something to read from fd, or the time is over. */
static int await(const struct child *c, int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    for (;;) {
        int64_t left_ms = c->deadline_ms - now_ms();
        int r = left_ms > 0 ? poll(&p, 1, (int) left_ms) : 0;
        if (r < 0 && errno == EINTR)
            continue;
        return r < 0 ? -errno : r == 0 ? -ETIMEDOUT : 0;
    }
}

static int read_output(const struct child *c, struct buf *to)
{
    size_t limit = to->n + KEY_COMMAND_MAX_BYTES;
    for (;;) {
        int r = await(c, c->output);
        if (r < 0)
            return r;
        /* One byte past the limit tells too much from just full. */
        ssize_t n = read(c->output, buf_reserve(to, limit + 1 - to->n), limit + 1 - to->n);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            return 0;
        to->n += (size_t) MAX(n, 0);
        if (to->n > limit)
            return -EFBIG;
    }
}

/* A negative errno, or how it ended as waitpid() says. Nothing of it runs on after a failure. */
static int finish(const struct child *c, int r)
{
    int status = 0;
    int fd = r < 0 ? -1 : pidfd_open(c->pid, 0);
    if (fd >= 0)
        r = await(c, fd);
    if (r < 0)
        (void) kill(-c->pid, SIGKILL);
    close_fd(&fd);
    while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
        ;
    return r < 0 ? r : status;
}

static int judge(const struct key_command *k, int64_t timeout_ms, int r, char **ret_error)
{
    struct buf b = {0};
    if (r >= 0 && WIFEXITED(r) && WEXITSTATUS(r) == 0)
        return 0;
    buf_printf(&b, "--encryption-key-command: '%s %s' ", k->command, k->verb);
    if (r == -ETIMEDOUT)
        buf_printf(&b, "is not done after %" PRId64 " ms", timeout_ms);
    else if (r == -EFBIG)
        buf_printf(&b, "prints more than %zu bytes", KEY_COMMAND_MAX_BYTES);
    else if (r < 0)
        buf_printf(&b, "cannot be run: %s", log_errno_text(r));
    else if (WIFSIGNALED(r))
        buf_printf(&b, "was ended by signal %d", WTERMSIG(r));
    else
        buf_printf(&b, "failed with exit code %d", WEXITSTATUS(r));
    *ret_error = buf_take(&b);
    return r < 0 ? r : -EIO;
}

int key_command_run(const struct key_command *k, struct buf *to, char **ret_error)
{
    CLEANUP(child_done) struct child c = {.input = -1, .output = -1, .output_end = -1};
    int64_t timeout_ms = k->timeout_ms ? k->timeout_ms : KEY_COMMAND_TIMEOUT_MS;
    size_t before = to->n;
    c.deadline_ms = now_ms() + timeout_ms;
    int r = prepare_files(&c, k->input);
    if (r == 0)
        r = start(&c, k);
    if (r == 0) {
        close_fd(&c.output_end); /* so that the end of the child's output is seen */
        r = finish(&c, read_output(&c, to));
    }
    r = judge(k, timeout_ms, r, ret_error);
    if (r < 0 && to->p) {
        explicit_bzero(to->p + before, to->n - before);
        to->n = before;
    }
    return r;
}
