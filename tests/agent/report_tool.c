/* SPDX-License-Identifier: Apache-2.0 */
/* A device of zedagent and the reporter on this very machine, in a process of its own; what all
 * other services would say is published by the tool.
 *
 *     report_tool CONFIG PERSIST RUN SPEED
 *
 * Time runs so many times faster. Standard input has one JSON object a line:
 *
 *     {"publish":"nim/DeviceNetworkStatus","key":"global","value":{..},"persistent":false}
 *     {"unpublish":"msrv/AppInstMetaData","key":".."}
 *     {"counts":true}
 *
 * Events are lines of standard output: {"event":"counts","waiting":0,"delivered":3,"dropped":0,
 * "metrics":1,"lost":0}, {"event":"error","words":".."}. It ends with standard input. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "loop/loop.h"
#include "machine/machine.h"
#include "report/report.h"
#include "zedagent/zedagent.h"

#define READ_BYTES ((size_t) 64 * 1024)
#define MAX_TOPICS 32

struct tool {
    struct loop *loop;
    struct clock_scaled clock;
    struct machine *machine;
    struct loop_fd *input;
    struct buf pending;
    struct node *node;
    struct zedagent *zedagent;
    struct report *report;
    struct {
        char *name;
        struct publication *publication;
    } topics[MAX_TOPICS];
    size_t n_topics;
};

static void say_error(struct str words)
{
    BUF_AUTO line = {0};
    json_write_str(&line, words);
    (void) printf("{\"event\":\"error\",\"words\":%s}\n", line.p);
    (void) fflush(stdout);
}

static void say_counts(const struct tool *t)
{
    const struct report_counts c = report_counts(t->report);
    (void) printf("{\"event\":\"counts\",\"waiting\":%zu,\"delivered\":%llu,\"dropped\":%llu,"
                  "\"metrics\":%llu,\"lost\":%llu}\n",
                  c.waiting, (unsigned long long) c.delivered, (unsigned long long) c.dropped,
                  (unsigned long long) c.metrics_sent, (unsigned long long) c.metrics_lost);
    (void) fflush(stdout);
}

/* ---- commands ------------------------------------------------------------------------------- */

static struct publication *topic_of(struct tool *t, struct str name, bool is_persistent)
{
    for (size_t i = 0; i < t->n_topics; i++)
        if (str_is(name, t->topics[i].name))
            return t->topics[i].publication;
    const ptrdiff_t slash = str_find(name, '/');
    struct publication *p = NULL;
    if (t->n_topics == MAX_TOPICS || slash < 0)
        return NULL;
    const struct pubsub_name topic = {.agent = str_sub(name, 0, (size_t) slash),
                                      .topic = str_from(name, (size_t) slash + 1),
                                      .is_persistent = is_persistent};
    if (publication_new(t->node->pubsub, &topic, &p) < 0)
        return NULL;
    BUF_AUTO copy = {0};
    buf_append_str(&copy, name);
    t->topics[t->n_topics].name = buf_take(&copy);
    t->topics[t->n_topics++].publication = p;
    return p;
}

/* Those that are there from the start: a subscriber looks for others only every ten seconds. */
static int publish_usual(struct tool *t)
{
    static const struct {
        const char *name;
        bool is_persistent;
    } usual[] = {
        {"nim/DeviceNetworkStatus", false},     {"nim/DevicePortConfigList", true},
        {"nodeagent/NodeAgentStatus", false},   {"zedmanager/AppInstanceStatus", false},
        {"volumemgr/ContentTreeStatus", false}, {"zedrouter/NetworkInstanceStatus", false},
        {"msrv/AppInstMetaData", true},         {"volumemgr/VolumeStatus", false},
    };
    for (size_t i = 0; i < N_ELEMENTS(usual); i++)
        if (!topic_of(t, str_of(usual[i].name), usual[i].is_persistent))
            return -EIO;
    return 0;
}

static void run_command(struct tool *t, const struct json *v)
{
    const struct str in = json_get_str(v, STR("publish")), out = json_get_str(v, STR("unpublish"));
    const struct str key = json_get_str(v, STR("key"));
    if (json_get(v, STR("counts"))) {
        say_counts(t);
        return;
    }
    struct publication *p =
        topic_of(t, in.n ? in : out, json_get_bool(v, STR("persistent"), false));
    int r = -EINVAL;
    if (p)
        r = in.n ? publication_publish(p, key, json_get(v, STR("value")))
                 : publication_unpublish(p, key);
    if (r < 0)
        say_error(str_of(log_errno_text(r)));
}

static void on_input(void *arg, unsigned ready)
{
    struct tool *t = arg;
    (void) ready;
    const ssize_t n = read(STDIN_FILENO, buf_reserve(&t->pending, READ_BYTES), READ_BYTES);
    if (n <= 0) {
        loop_stop(t->loop);
        return;
    }
    t->pending.n += (size_t) n;
    ptrdiff_t end;
    while ((end = str_find(buf_str(&t->pending), '\n')) >= 0) {
        ARENA_AUTO a = arena_new();
        run_command(t, json_parse_quick(a, str_sub(buf_str(&t->pending), 0, (size_t) end)));
        buf_consume(&t->pending, (size_t) end + 1);
    }
}

/* ---- life ----------------------------------------------------------------------------------- */

static int start(struct tool *t, struct uplink_wire *wire, char **argv)
{
    char *error = NULL;
    const char *mounts[] = {argv[2]};
    const struct machine_linux_options machine = {
        .loop = t->loop, .clock = &t->clock.clock, .root = "", .mounts = mounts, .n_mounts = 1};
    int r = machine_linux_new(&machine, &t->machine);
    if (r < 0)
        return r;
    const struct node_options o = {.loop = t->loop,
                                   .clock = &t->clock.clock,
                                   .wire = wire,
                                   .machine = t->machine,
                                   .directories = {argv[1], argv[2], argv[3]}};
    r = node_new(&o, &t->node, &error);
    if (r < 0) {
        say_error(str_of(error));
        mem_free(error);
        return r;
    }
    const struct zedagent_options zedagent = {0};
    r = publish_usual(t);
    if (r == 0)
        r = zedagent_new(t->node, &zedagent, &t->zedagent);
    return r < 0 ? r : report_new(t->zedagent, t->node, &t->report);
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        (void) fprintf(stderr, "usage: report_tool CONFIG PERSIST RUN SPEED\n");
        return 2;
    }
    struct tool t = {.loop = loop_new()};
    const double speed = strtod(argv[4], NULL);
    clock_scaled_init(&t.clock, &clock_system);
    clock_scaled_set_speed(&t.clock, speed);
    loop_set_speed(t.loop, speed);
    struct uplink_wire *wire = uplink_wire_new(t.loop, &t.clock.clock);
    t.input = loop_fd_new(t.loop, STDIN_FILENO, on_input, &t);
    loop_fd_watch(t.input, LOOP_READABLE);
    const int r = start(&t, wire, argv);
    if (r == 0)
        loop_run(t.loop);
    report_free(t.report);
    zedagent_free(t.zedagent);
    for (size_t i = 0; i < t.n_topics; i++) {
        publication_free(t.topics[i].publication);
        mem_free(t.topics[i].name);
    }
    node_free(t.node);
    loop_fd_free(t.input, NULL, NULL);
    loop_settle(t.loop);
    uplink_wire_free(wire);
    machine_free(t.machine);
    loop_settle(t.loop);
    loop_free(t.loop);
    buf_done(&t.pending);
    return r < 0;
}
