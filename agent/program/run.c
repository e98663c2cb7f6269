/* SPDX-License-Identifier: Apache-2.0 */
/* seth-agent run: the services of a device under one roof. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cli/notify.h"
#include "loop/loop.h"
#include "program/agent.h"
#include "program/memory.h"
#include "runtime/process.h"
#include "runtime/sim.h"

#define HAND_BACK_MS 10000

const struct option_spec run_options[] = {
    AGENT_OPTIONS,
    {"services", OPTION_LIST, "all",
     "which of client, zedagent, nodeagent, nim, loguploader, collector, apps, diag; the others "
     "are "
     "EVE's own",
     0, 0, 0},
    {"runtime", OPTION_TEXT, "process",
     "process: applications run in containers, by crun; sim: they only seem to", 0, 0, 0},
    {"app-networks", OPTION_TEXT, "auto",
     "bridge: networks and the metadata server for applications, takes root; none; auto: bridge as "
     "root",
     0, 0, 0},
    {"ports", OPTION_TEXT, "keep",
     "keep: the machine's ports are used as they are; manage: they are set as the controller says, "
     "takes root",
     0, 0, 0},
    {"restarts", OPTION_TEXT, "refuse",
     "allow: the machine reboots and powers off when the controller says so; refuse: a reboot is "
     "one "
     "of the agent and its applications",
     0, 0, 0},
    {"hostname", OPTION_TEXT, "keep", "set: the machine is named by its UUID; keep", 0, 0, 0},
    {"syslog", OPTION_TEXT, "", "a socket to be made, as /dev/log, whose lines are uploaded", 0, 0,
     0},
    {"kernel-log", OPTION_TEXT, "no", "yes: the kernel's lines are uploaded, too; no", 0, 0, 0},
    {"tpm", OPTION_TEXT, "", "a TPM as tpm2-tss names it: device:/dev/tpmrm0", 0, 0, 0},
    {"geo-url", OPTION_TEXT, "",
     "who is asked where the device is, by the addresses of its ports; EVE asks "
     "http://ipinfo.io/json; empty: nobody",
     0, 0, 0},
    {0},
};

struct run {
    struct agent agent;
    struct box *box;
    struct loop_timer *watchdog, *trim;
    pthread_t thread; /* of the loop */
    bool is_within_tap;
    bool begins_again; /* instead of a machine that must not restart */
};

/* ---- options ----------------------------------------------------------------------------------
 */

/* *ret: whether it is the second of the two words. */
static int choose(const struct options *o, const char *name, const char *first, const char *second,
                  bool *ret)
{
    struct str text = str_of(option_text(o, name));
    *ret = str_is(text, second);
    if (*ret || str_is(text, first))
        return 0;
    fprintf(stderr, "%s: --%s: '%.*s' is neither %s nor %s\n", o->program->name, name,
            STR_ARG(text), first, second);
    return -EINVAL;
}

static int find_service(struct str name)
{
    for (int s = 0; s < BOX_SERVICES; s++)
        if (str_is(name, box_service_name((enum box_service) s)))
            return s;
    return -ENOENT;
}

static int choose_services(const struct options *o, unsigned *ret)
{
    struct str rest = str_of(option_text(o, "services"));
    *ret = str_is(rest, "all") ? BOX_ALL : 0;
    while (!*ret || rest.n) {
        ptrdiff_t comma = str_find(rest, ',');
        struct str name = comma < 0 ? rest : str_sub(rest, 0, (size_t) comma);
        rest = comma < 0 ? STR("") : str_from(rest, (size_t) comma + 1);
        int s = str_is(name, "all") ? BOX_SERVICES : find_service(name);
        if (s < 0) {
            fprintf(stderr, "%s: --services: there is no '%.*s'; --help lists them\n",
                    o->program->name, STR_ARG(name));
            return s;
        }
        *ret |= s == BOX_SERVICES ? BOX_ALL : 1U << s;
    }
    return 0;
}

static int choose_networks(const struct options *o, bool *ret)
{
    *ret = geteuid() == 0;
    return str_is(str_of(option_text(o, "app-networks")), "auto")
               ? 0
               : choose(o, "app-networks", "none", "bridge", ret);
}

/* ---- the runtime ------------------------------------------------------------------------------
 */

static int make_simulation(void *arg, const struct runtime_events *events, struct runtime **ret)
{
    struct run *r = arg;
    *ret = runtime_sim_new(r->agent.loop, &clock_system, &runtime_sim_defaults, events);
    return *ret ? 0 : -ENOMEM;
}

static int make_processes(void *arg, const struct runtime_events *events, struct runtime **ret)
{
    struct run *r = arg;
    ARENA_AUTO a = arena_new();
    struct node *n = box_node(r->box);
    const struct runtime_process_options o = {
        .loop = r->agent.loop,
        .clock = &clock_system,
        .persist_directory = node_path(a, n, NODE_PERSIST, STR("apps")),
        .run_directory = node_path(a, n, NODE_RUN, STR("apps")),
    };
    return runtime_process_new(&o, events, ret);
}

/* ---- its own lines are the device's log -------------------------------------------------------
 */

static const char *const severities[] = {
    [LOG_ERROR] = "err", [LOG_WARNING] = "warning", [LOG_INFO] = "info", [LOG_DEBUG] = "debug"};

struct own_line {
    struct run *run;
    enum log_level level;
    int64_t wall_us;
    size_t n;
    char text[];
};

static void collect(struct run *r, enum log_level level, int64_t wall_us, struct str text)
{
    struct collector *c = r->box ? box_collector(r->box) : NULL;
    if (!c || r->is_within_tap)
        return;
    r->is_within_tap = true;
    (void) collector_add(c, &(struct collector_line){
                                .source = STR("seth-agent"),
                                .severity = str_of(severities[level]),
                                .content = text,
                                .wall_us = wall_us,
                                .is_of_service = true,
                            });
    r->is_within_tap = false;
}

static void on_posted_line(void *arg)
{
    struct own_line *l = arg;
    collect(l->run, l->level, l->wall_us, str_range(l->text, l->n));
    mem_free(l);
}

static void on_line(void *arg, enum log_level level, struct str line)
{
    struct run *r = arg;
    int64_t now = clock_system.wall_us(&clock_system);
    if (pthread_equal(pthread_self(), r->thread)) {
        collect(r, level, now, line);
        return;
    }
    struct own_line *l = mem_alloc(sizeof(*l) + line.n);
    *l = (struct own_line){.run = r, .level = level, .wall_us = now, .n = line.n};
    memcpy(l->text, line.p, line.n);
    loop_post(r->agent.loop, on_posted_line, l);
}

/* ---- running ----------------------------------------------------------------------------------
 */

static void on_watchdog(void *arg)
{
    (void) arg;
    notify_watchdog();
}

static void on_trim(void *arg)
{
    (void) arg;
    memory_hand_back();
}

static void start_timers(struct run *r)
{
    r->trim = loop_timer_new(r->agent.loop, on_trim, NULL);
    loop_timer_start(r->trim, HAND_BACK_MS, HAND_BACK_MS);
    r->watchdog = loop_timer_new(r->agent.loop, on_watchdog, NULL);
    if (notify_watchdog_ms())
        loop_timer_start(r->watchdog, 0, notify_watchdog_ms());
}

static int on_restart(void *arg, enum machine_restart how, struct str reason)
{
    struct run *r = arg;
    if (how != MACHINE_REBOOT)
        return -EPERM;
    log_warning("the agent restarts instead of the machine", LOG_STR("reason", reason));
    r->begins_again = true;
    agent_end(&r->agent, EXIT_SUCCESS);
    return 0;
}

/* As a new process, with nothing left over but files. */
static void begin_again(const struct options *o)
{
    execv("/proc/self/exe", o->argv);
    log_error("the agent cannot be started again", LOG_ERRNO(-errno));
}

static int run_box(struct run *r, const struct box_options *options)
{
    char *error = NULL;
    int result = box_new(options, &r->box, &error);
    if (result < 0)
        return agent_complain(r->agent.options, result, error);
    r->thread = pthread_self();
    log_set_tap(on_line, r);
    log_info("the agent runs", LOG_STR("server", box_node(r->box)->server),
             LOG_TEXT("persist", option_text(r->agent.options, "persist-dir")));
    start_timers(r);
    notify_ready();
    agent_run(&r->agent);
    notify_stopping();
    log_set_tap(NULL, NULL);
    loop_timer_free(r->watchdog);
    loop_timer_free(r->trim);
    box_stop(r->box);
    loop_settle(r->agent.loop);
    box_free(TAKE(r->box));
    return r->agent.exit_code;
}

int run_command(const struct options *o)
{
    struct run r = {0};
    struct machine_linux_options machine = {.on_restart = on_restart, .arg = &r};
    struct box_options box = {.make_arg = &r, .starts_with_machine = true};
    bool simulates = false;
    if (choose_services(o, &box.services) < 0 || choose_networks(o, &box.makes_networks) < 0 ||
        choose(o, "runtime", "process", "sim", &simulates) < 0 ||
        choose(o, "ports", "keep", "manage", &machine.changes_network) < 0 ||
        choose(o, "restarts", "refuse", "allow", &machine.restarts) < 0 ||
        choose(o, "hostname", "keep", "set", &machine.changes_hostname) < 0 ||
        choose(o, "kernel-log", "no", "yes", &box.collector.reads_kernel) < 0)
        return EXIT_FAILURE;
    box.make_runtime = simulates ? make_simulation : make_processes;
    box.collector.syslog_path = option_is_given(o, "syslog") ? option_text(o, "syslog") : NULL;
    box.tcti = option_is_given(o, "tpm") ? option_text(o, "tpm") : NULL;
    box.geo_url = option_text(o, "geo-url");
    if (agent_begin(&r.agent, o, &machine) < 0)
        return EXIT_FAILURE;
    box.node = agent_node_options(&r.agent);
    int exit_code = run_box(&r, &box);
    (void) agent_done(&r.agent);
    if (r.begins_again)
        begin_again(o);
    return exit_code;
}
