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

#include "base/alloc.h"
#include "loop/loop.h"
#include "machine/machine.h"
#include "report/report.h"
#include "tool.h"
#include "tool_node.h"
#include "zedagent/zedagent.h"

#define MAX_TOPICS 32

struct tool {
    struct tool_node own;
    struct machine *machine;
    struct zedagent *zedagent;
    struct report *report;
    struct {
        char *name;
        struct publication *publication;
    } topics[MAX_TOPICS];
    size_t n_topics;
};

static void say_counts(const struct tool *t)
{
    const struct report_counts c = report_counts(t->report);
    tool_say("{\"event\":\"counts\",\"waiting\":%zu,\"delivered\":%llu,\"dropped\":%llu,"
             "\"metrics\":%llu,\"lost\":%llu}",
             c.waiting, (unsigned long long) c.delivered, (unsigned long long) c.dropped,
             (unsigned long long) c.metrics_sent, (unsigned long long) c.metrics_lost);
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
    if (publication_new(t->own.node->pubsub, &topic, &p) < 0)
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

static void on_line(void *arg, struct arena *a, const struct json *v)
{
    struct tool *t = arg;
    (void) a;
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
        tool_say_error(r);
}

/* ---- life ----------------------------------------------------------------------------------- */

static int start(struct tool *t, char **argv)
{
    const char *mounts[] = {argv[2]};
    const struct machine_linux_options machine = {.loop = t->own.loop,
                                                  .clock = &t->own.clock.clock,
                                                  .root = "",
                                                  .mounts = mounts,
                                                  .n_mounts = 1};
    int r = machine_linux_new(&machine, &t->machine);
    if (r == 0)
        r = tool_node_start(&t->own, t->machine, argv + 1);
    if (r < 0)
        return r;
    const struct zedagent_options zedagent = {0};
    r = publish_usual(t);
    if (r == 0)
        r = zedagent_new(t->own.node, &zedagent, &t->zedagent);
    return r < 0 ? r : report_new(t->zedagent, t->own.node, &t->report);
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        (void) fprintf(stderr, "usage: report_tool CONFIG PERSIST RUN SPEED\n");
        return 2;
    }
    struct tool t = {0};
    tool_node_init(&t.own, strtod(argv[4], NULL));
    struct tool_lines *lines = tool_read_lines(t.own.loop, on_line, NULL, &t);
    const int r = start(&t, argv);
    if (r == 0)
        loop_run(t.own.loop);
    report_free(t.report);
    zedagent_free(t.zedagent);
    for (size_t i = 0; i < t.n_topics; i++) {
        publication_free(t.topics[i].publication);
        mem_free(t.topics[i].name);
    }
    tool_lines_free(lines);
    node_free(TAKE(t.own.node));
    machine_free(t.machine);
    tool_node_done(&t.own);
    return r < 0;
}
