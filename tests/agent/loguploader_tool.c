/* SPDX-License-Identifier: Apache-2.0 */
/* A node with a collector and an uploader of logs as a process of its own. What other services
 * would say is published by the tool.
 *
 *     loguploader_tool CONFIG PERSIST RUN SPEED ROTATE_S
 *
 * Time runs SPEED times faster. Standard input has one JSON object a line, each answered by one:
 *
 *     {"network":{DeviceNetworkStatus}}
 *     {"items":{"<name>":"<value>"}}
 *     {"line":{"app":"<uuid>","name":"..","content":".."}}     {"error":0}: it is taken
 *     {"rotate":true}
 *     {"counts":true}
 *
 * It ends with standard input. */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "loguploader/collector.h"
#include "loguploader/loguploader.h"
#include "loop/loop.h"
#include "machine/machine.h"
#include "tool.h"
#include "tool_node.h"

struct tool {
    struct machine machine;
    struct tool_node own;
    struct publication *network, *items;
    struct collector *collector;
    struct loguploader *uploader;
};

static int identity(struct machine *m, struct arena *a, struct machine_identity *ret)
{
    (void) m;
    (void) a;
    *ret = (struct machine_identity){.serial = STR("tool"), .eve_version = STR("1.2.3")};
    return 0;
}

static const struct machine_functions functions = {.name = "tool", .identity = identity};

/* ---- commands ------------------------------------------------------------------------------- */

static int add_line(struct tool *t, const struct json *line)
{
    return collector_add(t->collector,
                         &(struct collector_line){.app = json_get_str(line, STR("app")),
                                                  .app_name = json_get_str(line, STR("name")),
                                                  .source = STR("tool"),
                                                  .severity = STR("info"),
                                                  .content = json_get_str(line, STR("content"))});
}

static int run_command(struct tool *t, const struct json *v)
{
    const struct json *network = json_get(v, STR("network")), *items = json_get(v, STR("items")),
                      *line = json_get(v, STR("line"));
    if (network)
        return publication_publish(t->network, STR("global"), network);
    if (items)
        return tool_publish_items(t->items, items);
    if (line)
        return add_line(t, line);
    if (json_get(v, STR("rotate")))
        collector_rotate(t->collector);
    return 0;
}

static void on_line(void *arg, struct arena *a, const struct json *v)
{
    struct tool *t = arg;
    (void) a;
    const int r = run_command(t, v);
    const struct loguploader_counts n = loguploader_counts(t->uploader);
    if (json_get(v, STR("counts")))
        tool_say("{\"sent\":%llu,\"bytes\":%llu,\"failures\":%llu,\"waiting\":%zu}",
                 (unsigned long long) n.files_sent, (unsigned long long) n.bytes_sent,
                 (unsigned long long) n.failures, n.files_waiting);
    else
        tool_say_result(r);
}

/* ---- life ----------------------------------------------------------------------------------- */

static int start_services(struct tool *t, int64_t rotate_s)
{
    const struct pubsub_name network = {.agent = STR("nim"), .topic = STR("DeviceNetworkStatus")};
    const struct pubsub_name items = {
        .agent = STR("zedagent"), .topic = STR("ConfigItemValueMap"), .is_persistent = true};
    int r = publication_new(t->own.node->pubsub, &network, &t->network);
    if (r == 0)
        r = publication_new(t->own.node->pubsub, &items, &t->items);
    if (r == 0)
        r = collector_new(t->own.node, &(struct collector_options){.rotate_s = rotate_s},
                          &t->collector);
    return r < 0 ? r : loguploader_new(t->own.node, &t->uploader);
}

static int start(struct tool *t, char **argv)
{
    int r = tool_node_start(&t->own, &t->machine, argv + 1);
    if (r < 0)
        return r;
    r = start_services(t, strtoll(argv[5], NULL, 10));
    if (r < 0)
        (void) fprintf(stderr, "%s\n", log_errno_text(r));
    return r;
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        (void) fprintf(stderr, "usage: loguploader_tool CONFIG PERSIST RUN SPEED ROTATE_S\n");
        return 2;
    }
    struct tool t = {.machine = {&functions}};
    tool_node_init(&t.own, strtod(argv[4], NULL));
    struct tool_lines *lines = tool_read_lines(t.own.loop, on_line, NULL, &t);
    const int r = start(&t, argv);
    if (r == 0)
        loop_run(t.own.loop);
    loguploader_free(t.uploader);
    collector_free(t.collector);
    publication_free(t.network);
    publication_free(t.items);
    tool_lines_free(lines);
    tool_node_done(&t.own);
    return r < 0;
}
