/* SPDX-License-Identifier: Apache-2.0 */
/* An instance that runs: its process, its output, its end. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "runtime/child.h"
#include "runtime/process_internal.h"

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

static void on_line(void *arg, enum runtime_stream stream, struct str line)
{
    struct tenant *t = arg;
    runtime_log(t->object, stream, line);
}

struct tenant *tenant_of(struct process *p, struct runtime_object *o)
{
    if (o->of_machine)
        return o->of_machine;
    struct tenant *t = NEW(struct tenant);
    *t = (struct tenant){.process = p, .object = o, .pidfd = -1, .stop_signal = SIGTERM};
    for (int s = 0; s < 2; s++)
        t->outputs[s] = (struct output){.fd = -1, .stream = s, .on_line = on_line, .arg = t};
    o->of_machine = t;
    return t;
}

static void close_fd(void *arg)
{
    (void) close((int) (intptr_t) arg);
}

static void detach(struct tenant *t)
{
    loop_timer_free(TAKE(t->killer));
    if (t->pidfd >= 0 && t->launcher->detach)
        t->launcher->detach(t);
    for (int s = 0; s < 2; s++)
        output_close(&t->outputs[s]);
    if (t->pidfd >= 0)
        loop_fd_free(TAKE(t->watch), close_fd, (void *) (intptr_t) t->pidfd);
    t->pidfd = -1;
}

void tenant_free(struct tenant *t)
{
    if (!t)
        return;
    detach(t);
    mem_free(t);
}

/* ---- the end ------------------------------------------------------------------------------- */

static int exit_code(int pidfd)
{
    siginfo_t info = {0};
    if (waitid(P_PIDFD, (id_t) pidfd, &info, WEXITED | WNOHANG) < 0 || !info.si_pid)
        return RUNTIME_EXIT_UNKNOWN; /* adopted: it was never a child of ours */
    return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

static void describe(struct tenant *t, struct buf *error)
{
    ARENA_AUTO a = arena_new();
    struct str cgroup = process_cgroup(a, t->process, t->object->id);
    bool is_full = cgroup.p && cgroup_oom_kills(&t->process->cgroup, cgroup) > 0;
    if (t->object->state == RUNTIME_HALTING || t->exit_code == 0)
        return;
    if (t->exit_code == RUNTIME_EXIT_UNKNOWN)
        buf_printf(error, "it ended by itself; its exit code is not known");
    else if (t->exit_code > 128)
        buf_printf(error, "killed by signal %d%s", t->exit_code - 128,
                   is_full ? ": its memory limit was reached" : "");
    else
        buf_printf(error, "ended with exit code %d%s", t->exit_code,
                   is_full ? "; something in it was killed at its memory limit" : "");
}

static void deleted(struct job *j)
{
    struct tenant *t = j->object->of_machine;
    runtime_exited(j->object, t->exit_code, j->error);
}

/* Everything it wrote is in the pipes: the whole process namespace has ended with it. */
static void on_exit(void *arg, unsigned ready)
{
    (void) ready;
    struct tenant *t = arg;
    BUF_AUTO error = {0};
    t->exit_code = exit_code(t->pidfd);
    for (int s = 0; s < 2; s++)
        output_drain(&t->outputs[s]);
    describe(t, &error);
    detach(t);
    job_begin(t->process, t->object, t->launcher->remove, deleted);
    if (error.n)
        t->job->error = buf_take(&error);
}

/* ---- its life ------------------------------------------------------------------------------ */

int tenant_attach(struct tenant *t, int pid, int pidfd, int stop_signal)
{
    ARENA_AUTO a = arena_new();
    struct process *p = t->process;
    t->pid = pid;
    t->stop_signal = stop_signal;
    for (int s = 0; s < 2; s++)
        (void) output_open(&t->outputs[s], p->loop, process_pipe(a, p, t->object->id, s));
    t->watch = loop_fd_new(p->loop, pidfd, on_exit, t);
    if (!t->watch)
        return -EPERM;
    t->pidfd = pidfd;
    loop_fd_watch(t->watch, LOOP_READABLE);
    if (t->launcher->attach)
        t->launcher->attach(t);
    return 0;
}

static void on_patience_ends(void *arg)
{
    struct tenant *t = arg;
    (void) child_signal(t->pidfd, SIGKILL);
}

void tenant_halt(struct tenant *t, bool at_once)
{
    if (t->pidfd < 0) /* it ends already */
        return;
    bool is_asked = !at_once && t->launcher->ask_to_end && t->launcher->ask_to_end(t) >= 0;
    if (!is_asked)
        (void) child_signal(t->pidfd, at_once ? SIGKILL : t->stop_signal);
    int64_t stop_ms = t->object->instance.stop_ms;
    if (!t->killer)
        t->killer = loop_timer_new(t->process->loop, on_patience_ends, t);
    loop_timer_start(t->killer, stop_ms ? stop_ms : RUNTIME_DEFAULT_STOP_MS, 0);
}
