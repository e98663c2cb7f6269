/* SPDX-License-Identifier: Apache-2.0 */
#include "program/agent.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "base/log.h"
#include "loop/loop.h"

/* Beyond this a block is a mapping of its own and goes back as soon as it is free. */
#define HEAP_LARGE_BYTES (64 * 1024)

int agent_complain(const struct options *o, int r, char *error)
{
    fprintf(stderr, "%s: %s\n", o->program->name, error ? error : log_errno_text(r));
    mem_free(error);
    return EXIT_FAILURE;
}

/* A device has little memory and one busy thread. */
static void prepare_process(void)
{
    (void) mallopt(M_ARENA_MAX, 1);
    (void) mallopt(M_MMAP_THRESHOLD, HEAP_LARGE_BYTES);
    (void) mallopt(M_TRIM_THRESHOLD, HEAP_LARGE_BYTES);
    (void) signal(SIGPIPE, SIG_IGN);
    (void) signal(SIGXFSZ, SIG_IGN);
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void) setrlimit(RLIMIT_NOFILE, &files);
    }
}

static void on_signal(void *arg, int signal_number)
{
    struct agent *a = arg;
    log_info("stopping", LOG_TEXT("signal", strsignal(signal_number)));
    agent_end(a, EXIT_SUCCESS);
}

int agent_begin(struct agent *a, const struct options *o, const struct machine_linux_options *m)
{
    *a = (struct agent){.options = o};
    if (log_set_level_name(str_of(option_text(o, "log-level"))) < 0) {
        fprintf(stderr, "%s: --log-level: '%s' is none of error, warning, info, debug\n",
                o->program->name, option_text(o, "log-level"));
        return -EINVAL;
    }
    prepare_process();
    a->loop = loop_new();
    a->wire = uplink_wire_new(a->loop, &clock_system);
    a->mounts[0] = option_text(o, "persist-dir");
    a->mounts[1] = option_text(o, "config-dir");
    struct machine_linux_options machine = *m;
    machine.loop = a->loop;
    machine.clock = &clock_system;
    machine.root = "";
    machine.mounts = a->mounts;
    machine.n_mounts = N_ELEMENTS(a->mounts);
    int r = a->wire ? machine_linux_new(&machine, &a->machine) : -ENOTSUP;
    if (r < 0) {
        agent_complain(o, r, NULL);
        (void) agent_done(a);
        return r;
    }
    loop_on_signal(a->loop, SIGTERM, on_signal, a);
    loop_on_signal(a->loop, SIGINT, on_signal, a);
    return 0;
}

struct node_options agent_node_options(const struct agent *a)
{
    return (struct node_options){
        .loop = a->loop,
        .clock = &clock_system,
        .wire = a->wire,
        .machine = a->machine,
        .directories = {[NODE_CONFIG] = option_text(a->options, "config-dir"),
                        [NODE_PERSIST] = option_text(a->options, "persist-dir"),
                        [NODE_RUN] = option_text(a->options, "run-dir")},
    };
}

void agent_run(struct agent *a)
{
    loop_run(a->loop);
}

void agent_end(struct agent *a, int exit_code)
{
    a->exit_code = exit_code;
    loop_stop(a->loop);
}

int agent_done(struct agent *a)
{
    machine_free(a->machine);
    loop_settle(a->loop);
    if (a->wire)
        uplink_wire_free(a->wire);
    loop_settle(a->loop);
    loop_free(a->loop);
    return a->exit_code;
}
