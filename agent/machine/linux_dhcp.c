/* SPDX-License-Identifier: Apache-2.0 */
/* The machine's own DHCP client, one for each port, started again when it ends. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "machine/linux_internal.h"

#define RESTART_MS 10000
#define MAX_ARGUMENTS 8
#define CANNOT_RUN 127

/* In the foreground, so that it is ours to end. NULL stands for the interface. */
static const struct program {
    const char *arguments[MAX_ARGUMENTS];
    size_t n;
} programs[] = {
    {{"dhcpcd", "-B", "-q", NULL}, 4},
    {{"udhcpc", "-f", "-R", "-i", NULL}, 5},
    {{"dhclient", "-d", "-q", NULL}, 4},
};

struct linux_dhcp {
    struct machine_linux *machine;
    char *interface;
    const struct program *program;
    char *path; /* of it */
    pid_t pid;  /* 0: none runs */
    int pidfd;
    struct loop_fd *watch;
    struct loop_timer *again;
};

/* In the arena; NULL: not installed. */
static const char *path_of(struct machine_linux *m, struct arena *a, const char *program)
{
    static const char *const directories[] = {"/usr/sbin", "/sbin", "/usr/bin", "/bin",
                                              "/usr/local/sbin"};
    for (size_t i = 0; i < N_ELEMENTS(directories); i++) {
        const char *path = arena_printf(a, "%s%s/%s", m->root, directories[i], program).p;
        if (access(path, X_OK) == 0)
            return path;
    }
    return NULL;
}

/* Between fork and exec: calls that are safe there alone. It ends with us: the next life begins its
 * own. */
static _Noreturn void become(const struct linux_dhcp *d, char *const *arguments)
{
    sigset_t none;
    (void) sigemptyset(&none);
    (void) sigprocmask(SIG_SETMASK, &none, NULL);
    (void) signal(SIGPIPE, SIG_DFL);
    (void) prctl(PR_SET_PDEATHSIG, SIGTERM);
    int null = open("/dev/null", O_RDWR);
    if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0)
        _exit(CANNOT_RUN);
    (void) syscall(SYS_close_range, 3U, ~0U, 0U);
    (void) execv(d->path, arguments);
    _exit(CANNOT_RUN);
}

static int spawn(struct linux_dhcp *d)
{
    char *arguments[MAX_ARGUMENTS + 1] = {0};
    for (size_t i = 0; i < d->program->n; i++) {
        const char *given = d->program->arguments[i];
        arguments[i] = given ? (char *) (uintptr_t) given : d->interface;
    }
    d->pid = fork();
    if (d->pid == 0)
        become(d, arguments);
    if (d->pid > 0)
        return 0;
    d->pid = 0;
    return -errno;
}

static void on_pidfd_closed(void *arg)
{
    (void) close((int) (intptr_t) arg);
}

static void forget_process(struct linux_dhcp *d)
{
    if (d->watch)
        loop_fd_free(TAKE(d->watch), on_pidfd_closed, (void *) (intptr_t) d->pidfd);
    else if (d->pidfd >= 0)
        (void) close(d->pidfd);
    d->pidfd = -1;
    d->pid = 0;
}

static void on_exit_of(void *arg, unsigned ready)
{
    struct linux_dhcp *d = arg;
    (void) ready;
    if (waitpid(d->pid, NULL, WNOHANG) != d->pid)
        return;
    log_warning("the DHCP client has ended; starting it again",
                LOG_TEXT("interface", d->interface));
    forget_process(d);
    loop_timer_start(d->again, RESTART_MS, 0);
}

static void run(void *arg)
{
    struct linux_dhcp *d = arg;
    int r = spawn(d);
    if (r == 0) {
        d->pidfd = (int) syscall(SYS_pidfd_open, d->pid, 0);
        d->watch = d->pidfd < 0 ? NULL : loop_fd_new(d->machine->loop, d->pidfd, on_exit_of, d);
        if (d->watch)
            loop_fd_watch(d->watch, LOOP_READABLE);
        return;
    }
    log_warning("the DHCP client does not start; trying again", LOG_TEXT("interface", d->interface),
                LOG_ERRNO(r));
    loop_timer_start(d->again, RESTART_MS, 0);
}

int linux_dhcp_new(struct machine_linux *m, const char *interface, struct linux_dhcp **ret)
{
    ARENA_AUTO a = arena_new();
    const char *path = NULL;
    size_t i = 0;
    while (i < N_ELEMENTS(programs) && !(path = path_of(m, a, programs[i].arguments[0])))
        i++;
    if (!path)
        return -ENOENT;
    struct linux_dhcp *d = NEW(struct linux_dhcp);
    *d = (struct linux_dhcp){.machine = m,
                             .interface = mem_strdup(interface),
                             .program = &programs[i],
                             .path = mem_strdup(path),
                             .pidfd = -1};
    d->again = loop_timer_new(m->loop, run, d);
    run(d);
    *ret = d;
    return 0;
}

void linux_dhcp_free(struct linux_dhcp *d)
{
    if (!d)
        return;
    if (d->pid) {
        (void) kill(d->pid, SIGTERM);
        /* It ends at once; a zombie would not. */
        for (unsigned i = 0; i < 100 && waitpid(d->pid, NULL, WNOHANG) == 0; i++)
            (void) usleep(1000);
    }
    forget_process(d);
    loop_timer_free(d->again);
    mem_free(d->interface);
    mem_free(d->path);
    mem_free(d);
}
