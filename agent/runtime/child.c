/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "runtime/landlock.h"

#define POLL_MS 100 /* how soon a cancelled child is noticed */
#define CANNOT_RUN 127
#ifndef P_PIDFD
#define P_PIDFD 3
#endif

int child_pidfd(int pid)
{
    long fd = syscall(SYS_pidfd_open, pid, 0);
    return fd < 0 ? -errno : (int) fd;
}

const char *child_program(struct arena *a, const char *name)
{
    struct str rest = str_of(getenv("PATH")), directory;
    if (strchr(name, '/'))
        return access(name, X_OK) == 0 ? name : NULL;
    while (rest.p && str_split(&rest, ':', &directory)) {
        const char *path = arena_printf(a, "%.*s/%s", STR_ARG(directory), name).p;
        if (access(path, X_OK) == 0)
            return path;
    }
    return NULL;
}

int child_signal(int pidfd, int signal_number)
{
    return syscall(SYS_pidfd_send_signal, pidfd, signal_number, NULL, 0) < 0 ? -errno : 0;
}

/* ---- in the child, between fork and exec: calls that are safe there alone -------------------- */

/* crun refuses hybrid cgroups. With the tree of version 2 covered, what it sees is version 1. */
static bool hide_unified(void)
{
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", "/sys/fs/cgroup/unified", "tmpfs", 0, NULL) == 0;
}

/* Root without capabilities is still the owner of our files, and nothing more. */
static bool drop_privileges(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {0};
    for (int c = 0; prctl(PR_CAPBSET_READ, c, 0, 0, 0) >= 0; c++)
        if (prctl(PR_CAPBSET_DROP, c, 0, 0, 0) < 0 && geteuid() == 0)
            return false;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && syscall(SYS_capset, &header, none) == 0;
}

/* Files and capabilities, of one that works on what strangers have made. */
static bool confine(const struct child *c)
{
    return !c->files_fd || (drop_privileges() && landlock_enter(c->files_fd) == 0);
}

static _Noreturn void become(const struct child *c, int in, int out, int err)
{
    sigset_t none;
    (void) sigemptyset(&none);
    (void) sigprocmask(SIG_SETMASK, &none, NULL);
    /* Ignored signals stay ignored across exec, also in the container. */
    (void) signal(SIGPIPE, SIG_DFL);
    (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (c->max_file_bytes) {
        const struct rlimit limit = {(rlim_t) c->max_file_bytes, (rlim_t) c->max_file_bytes};
        (void) setrlimit(RLIMIT_FSIZE, &limit);
    }
    if (c->max_memory_bytes) {
        const struct rlimit limit = {(rlim_t) c->max_memory_bytes, (rlim_t) c->max_memory_bytes};
        (void) setrlimit(RLIMIT_AS, &limit);
    }
    if ((c->hides_unified && !hide_unified()) || dup2(in, 0) < 0 || dup2(out, 1) < 0 ||
        dup2(err, 2) < 0 || !confine(c))
        _exit(CANNOT_RUN);
    (void) syscall(SYS_close_range, 3U, ~0U, 4U /* CLOSE_RANGE_CLOEXEC */);
    (void) execvp(c->argv[0], (char *const *) c->argv);
    _exit(CANNOT_RUN);
}

/* ---- in the parent -------------------------------------------------------------------------- */

static int64_t now_ms(void)
{
    struct timespec t;
    (void) clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t) t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int reap(int pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int wait_for(const struct child *c, int pid)
{
    int pidfd = child_pidfd(pid);
    if (pidfd < 0)
        return reap(pid);
    int64_t end_ms = now_ms() + c->timeout_ms;
    int why = 0;
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    while (poll(&p, 1, POLL_MS) <= 0 && !why) {
        if (c->is_cancelled && atomic_load(c->is_cancelled))
            why = -ECANCELED;
        else if (now_ms() > end_ms)
            why = -ETIMEDOUT;
    }
    if (why)
        (void) child_signal(pidfd, SIGKILL);
    (void) close(pidfd);
    int code = reap(pid);
    return why ? why : code;
}

static int make_input(struct str text)
{
    int fd = memfd_create("input", MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = file_write_all(fd, text);
    if (r < 0) {
        (void) close(fd);
        return r;
    }
    (void) lseek(fd, 0, SEEK_SET);
    return fd;
}

static void read_output(int fd, struct buf *output)
{
    (void) lseek(fd, 0, SEEK_SET);
    ssize_t n = read(fd, buf_reserve(output, CHILD_MAX_OUTPUT_BYTES), CHILD_MAX_OUTPUT_BYTES);
    output->n += n > 0 ? (size_t) n : 0;
}

static int run_with(const struct child *c, int in, int out, int err)
{
    int pid = fork();
    if (pid < 0)
        return -errno;
    if (pid == 0)
        become(c, in, out, err);
    int code = wait_for(c, pid);
    return code == CANNOT_RUN ? -ENOENT : code;
}

int child_run(const struct child *c, struct buf *output)
{
    int in = make_input(c->input);
    int caught = memfd_create("output", MFD_CLOEXEC);
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    int code = -EMFILE;
    if (in >= 0 && caught >= 0 && nowhere >= 0) {
        code = run_with(c, in, c->out_fd >= 0 ? c->out_fd : caught,
                        c->err_fd >= 0 ? c->err_fd : nowhere);
        if (output)
            read_output(caught, output);
    }
    const int fds[] = {in, caught, nowhere};
    for (size_t i = 0; i < N_ELEMENTS(fds); i++)
        if (fds[i] >= 0)
            (void) close(fds[i]);
    return code;
}

/* ---- beside us ------------------------------------------------------------------------------ */

#define FIRST_FD 3
#define FAR_FD 512 /* above every number that a program is given */

/* Into 3, 4, ...: first far away, so that none of them covers another. */
static bool place_fds(const struct child_start *c, int *control_fd)
{
    int far[CHILD_MAX_FDS];
    for (size_t i = 0; i < c->n_fds; i++)
        if ((far[i] = fcntl(c->fds[i], F_DUPFD_CLOEXEC, FAR_FD)) < 0)
            return false;
    if ((*control_fd = fcntl(*control_fd, F_DUPFD_CLOEXEC, FAR_FD)) < 0)
        return false;
    for (size_t i = 0; i < c->n_fds; i++)
        if (dup2(far[i], FIRST_FD + (int) i) < 0)
            return false;
    return syscall(SYS_close_range, FIRST_FD + (unsigned) c->n_fds, ~0U,
                   4U /* CLOSE_RANGE_CLOEXEC */) == 0;
}

static bool enter(const struct child_start *c)
{
    for (size_t i = 0; i < c->n_cgroup_fds; i++)
        if (write(c->cgroup_fds[i], "0", 1) != 1)
            return false;
    if (c->is_alone)
        return unshare(CLONE_NEWNET) == 0;
    return c->network_fd < 0 || setns(c->network_fd, CLONE_NEWNET) == 0;
}

static _Noreturn void become_beside(const struct child_start *c, int control_fd)
{
    char go;
    sigset_t none;
    (void) sigemptyset(&none);
    (void) sigprocmask(SIG_SETMASK, &none, NULL);
    (void) signal(SIGPIPE, SIG_DFL);
    (void) setsid();
    int nothing = open("/dev/null", O_RDONLY);
    int e = 0;
    if (!enter(c) || dup2(nothing, 0) < 0 || dup2(c->out_fd, 1) < 0 || dup2(c->err_fd, 2) < 0 ||
        !place_fds(c, &control_fd) || !drop_privileges() ||
        (c->files_fd >= 0 && landlock_enter(c->files_fd) < 0))
        e = errno;
    if (read(control_fd, &go, 1) != 1)
        _exit(CANNOT_RUN);
    if (!e) {
        (void) execvp(c->argv[0], (char *const *) c->argv);
        e = errno;
    }
    if (write(control_fd, &e, sizeof(e)) < 0)
        _exit(CANNOT_RUN);
    _exit(CANNOT_RUN);
}

int child_start(const struct child_start *c, struct child_started *ret)
{
    int control[2];
    if (c->n_fds > CHILD_MAX_FDS)
        return -EINVAL;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0)
        return -errno;
    int pid = fork();
    if (pid == 0) {
        (void) close(control[0]);
        become_beside(c, control[1]);
    }
    int e = pid < 0 ? -errno : 0;
    (void) close(control[1]);
    *ret = (struct child_started){pid, pid < 0 ? -1 : child_pidfd(pid), control[0]};
    if (!e && ret->pidfd >= 0)
        return 0;
    e = e ? e : ret->pidfd;
    child_end(ret);
    return e;
}

int child_go(struct child_started *s)
{
    int e = 0;
    bool is_sent = send(s->go_fd, "g", 1, MSG_NOSIGNAL) == 1;
    /* Its end of the pair closes when the program is there. */
    ssize_t n = is_sent ? read(s->go_fd, &e, sizeof(e)) : -1;
    if (is_sent && n == 0) {
        (void) close(s->go_fd);
        s->go_fd = -1;
        return 0;
    }
    child_end(s);
    return n == sizeof(e) && e > 0 ? -e : -ECHILD;
}

void child_end(struct child_started *s)
{
    if (s->pidfd >= 0) {
        (void) child_signal(s->pidfd, SIGKILL);
        (void) close(s->pidfd);
    }
    if (s->go_fd >= 0)
        (void) close(s->go_fd);
    if (s->pid > 0)
        (void) reap(s->pid);
    *s = (struct child_started){-1, -1, -1};
}
